// One charge. Without KEY the library makes a random key for each process, the same for its own retries.
import Stripe from 'stripe';
import { key, prefix, ref, report, retries, to, token } from './call.mjs';

// The library takes a host and a port, but no path in front: it is added where the request leaves.
const httpClient = Stripe.createNodeHttpClient();
const send = httpClient.makeRequest.bind(httpClient);
httpClient.makeRequest = (host, port, path, ...rest) => send(host, port, prefix + path, ...rest);

const options = { host: to.hostname, port: to.port, protocol: to.protocol.slice(0, -1), httpClient, telemetry: false };
const stripe = new Stripe(token, retries === undefined ? options : { ...options, maxNetworkRetries: retries });

await report(async () => {
  const charge = await stripe.charges.create({ amount: 500, currency: 'eur', source: 'tok_visa', metadata: { ref } }, key ? { idempotencyKey: key } : {});
  const answered = charge.lastResponse;
  return { id: charge.id, status: answered.statusCode, replayed: answered.headers['idempotent-replayed'] ?? null };
});
