// One paid completion by the AI SDK, which speaks OpenAI's Responses API; with STREAM=1 as a stream.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';
import { headers, ref, report, retries, token, url } from './call.mjs';

const openai = createOpenAI({ apiKey: token, baseURL: `${url}/v1`, headers });
const asked = { model: openai('gpt-test'), prompt: `Say something about ${ref}`, ...(retries !== undefined && { maxRetries: retries }) };

await report(async () => {
  if (!process.env.STREAM) {
    const { text, response } = await generateText(asked);
    return { id: response.id, text, replayed: response.headers['idempotent-replayed'] ?? null };
  }
  let failure, text = '';
  const made = streamText({ ...asked, onError: ({ error }) => { failure = error; } });
  for await (const delta of made.textStream) text += delta;
  if (failure) throw failure;
  const response = await made.response;
  return { id: response.id, text, finished: (await made.finishReason) === 'stop', replayed: response.headers?.['idempotent-replayed'] ?? null };
});
