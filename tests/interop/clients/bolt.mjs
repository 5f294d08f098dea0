// A Slack app made with Bolt, as its users have them: it verifies Slack's signature itself. Prints its port, then a line for every mention that it handles.
import bolt from '@slack/bolt';

const app = new bolt.App({
  signingSecret: process.env.SECRET,
  authorize: async () => ({ botToken: 'xoxb-semel', botId: 'B1', botUserId: 'U0' }),
  port: 0,
});

app.event('app_mention', async ({ event }) => {
  console.log(JSON.stringify({ handled: event.text }));
});

const server = await app.start({ port: 0, host: '127.0.0.1' });
console.log(JSON.stringify({ port: server.address().port }));
