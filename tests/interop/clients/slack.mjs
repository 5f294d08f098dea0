// One message in a channel.
import { LogLevel, WebClient } from '@slack/web-api';
import { headers, ref, report, retries, token, url } from './call.mjs';

const options = { slackApiUrl: `${url}/api/`, headers, logLevel: LogLevel.ERROR, rejectRateLimitedCalls: process.env.RATE_LIMITS === 'reject' };
const slack = new WebClient(token, retries === undefined ? options : { ...options, retryConfig: { retries } });

await report(async () => {
  const posted = await slack.chat.postMessage({ channel: 'C1', text: `About ${ref}`, metadata: { event_type: 'semel', event_payload: { ref } } });
  return { id: posted.ts, status: 200, channel: posted.channel };
});
