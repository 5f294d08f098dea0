// One paid message; with STREAM=1 as a stream.
import Anthropic from '@anthropic-ai/sdk';
import { headers, ref, report, retries, token, url } from './call.mjs';

const options = { apiKey: token, baseURL: url, defaultHeaders: headers };
const anthropic = new Anthropic(retries === undefined ? options : { ...options, maxRetries: retries });
const asked = { model: 'claude-test', max_tokens: 50, messages: [{ role: 'user', content: `Say something about ${ref}` }] };

await report(async () => {
  const stream = Boolean(process.env.STREAM);
  const { data, response } = await anthropic.messages.create(stream ? { ...asked, stream } : asked).withResponse();
  const replayed = response.headers.get('idempotent-replayed');
  if (!stream) return { id: data.id, status: response.status, text: data.content[0].text, replayed };
  let id, text = '', finished = false;
  for await (const event of data) {
    if (event.type === 'message_start') id = event.message.id;
    if (event.type === 'content_block_delta') text += event.delta.text;
    finished ||= event.type === 'message_stop';
  }
  return { id, status: response.status, text, finished, replayed };
});
