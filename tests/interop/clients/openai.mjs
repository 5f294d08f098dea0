// One paid completion, with STREAM=1 as a stream; with CALL=responses by the Responses API, with CALL=embeddings an embedding.
import OpenAI from 'openai';
import { headers, ref, report, retries, token, url } from './call.mjs';

const options = { apiKey: token, baseURL: `${url}/v1`, defaultHeaders: headers };
const openai = new OpenAI(retries === undefined ? options : { ...options, maxRetries: retries });
const asked = { model: 'gpt-test', messages: [{ role: 'user', content: `Say something about ${ref}` }], metadata: { ref } };

const outcome = ({ data, response }, text) => ({ id: data.id, status: response.status, text, replayed: response.headers.get('idempotent-replayed') });

await report(async () => {
  if (process.env.CALL === 'embeddings') {
    const made = await openai.embeddings.create({ model: 'emb-test', input: ref, encoding_format: 'float' }).withResponse();
    return outcome(made, JSON.stringify(made.data.data[0].embedding));
  }
  if (process.env.CALL === 'responses' && !process.env.STREAM) {
    const made = await openai.responses.create({ model: 'gpt-test', input: `Say something about ${ref}` }).withResponse();
    return outcome(made, made.data.output_text);
  }
  if (process.env.CALL === 'responses') {
    const made = await openai.responses.create({ model: 'gpt-test', input: `Say something about ${ref}`, stream: true }).withResponse();
    let text = '', finished = false;
    for await (const event of made.data) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      finished ||= event.type === 'response.completed';
    }
    return { ...outcome(made, text), finished };
  }
  if (!process.env.STREAM) {
    const { data, response } = await openai.chat.completions.create(asked).withResponse();
    return outcome({ data, response }, data.choices[0].message.content);
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
