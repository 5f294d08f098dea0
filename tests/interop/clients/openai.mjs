// One paid completion; with STREAM=1 as a stream.
import OpenAI from 'openai';
import { headers, ref, report, retries, token, url } from './call.mjs';

const options = { apiKey: token, baseURL: `${url}/v1`, defaultHeaders: headers };
const openai = new OpenAI(retries === undefined ? options : { ...options, maxRetries: retries });
const asked = { model: 'gpt-test', messages: [{ role: 'user', content: `Say something about ${ref}` }], metadata: { ref } };

await report(async () => {
  if (!process.env.STREAM) {
    const { data, response } = await openai.chat.completions.create(asked).withResponse();
    return { id: data.id, status: response.status, text: data.choices[0].message.content, replayed: response.headers.get('idempotent-replayed') };
  }
  const { data, response } = await openai.chat.completions.create({ ...asked, stream: true }).withResponse();
  let id, text = '', finished = false;
  for await (const chunk of data) {
    id = chunk.id;
    text += chunk.choices[0]?.delta?.content ?? '';
    finished ||= chunk.choices[0]?.finish_reason === 'stop';
  }
  return { id, status: response.status, text, finished, replayed: response.headers.get('idempotent-replayed') };
});
