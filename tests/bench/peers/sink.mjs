// The outside: counts requests and effects. A request whose Idempotency-Key it has seen has no second effect, as at a provider that takes keys.
import http from 'node:http';

let seen = new Map(), first = 0, last = 0, effects = 0, requests = 0;
const keys = new Set();

function note(job, key) {
  const now = Number(process.hrtime.bigint() / 1000n) / 1000;
  first ||= now;
  last = now;
  requests++;
  seen.set(job, (seen.get(job) ?? 0) + 1);
  if (key === undefined || !keys.has(key)) effects++;
  if (key !== undefined) keys.add(key);
}

function stats() {
  let twice = 0;
  for (const n of seen.values()) if (n > 1) twice++;
  return JSON.stringify({ requests, jobs: seen.size, twice, effects, first, last });
}

function answer(response, text) {
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}

const server = http.createServer((request, response) => {
  if (request.url === '/stats') return answer(response, stats());
  if (request.url === '/reset') {
    seen = new Map();
    keys.clear();
    first = last = effects = requests = 0;
    return answer(response, '{}');
  }
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    note(JSON.parse(Buffer.concat(pieces)).job, request.headers['idempotency-key']);
    answer(response, 'ok');
  });
});
server.keepAliveTimeout = 60000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
