// Signs a webhook with the vendor's own library. Standard input: {vendor, secret, url, body, params, id, seconds}; standard output: the headers.
import { Webhooks } from '@octokit/webhooks';
import { Signature } from '@hubspot/api-client';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';

const text = (await process.stdin.toArray()).join('');
const { vendor, secret, url, body, params, id, seconds } = JSON.parse(text);
const date = new Date(seconds * 1000);

const vendors = {
  stripe: () => ({ 'Stripe-Signature': new Stripe('sk_test_semel').webhooks.generateTestHeaderString({ payload: body, secret, timestamp: seconds }) }),
  svix: () => ({ 'svix-id': id, 'svix-timestamp': String(seconds), 'svix-signature': new SvixWebhook(secret).sign(id, date, body) }),
  'standard-webhooks': () => ({ 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': new StandardWebhook(secret).sign(id, date, body) }),
  twilio: () => ({ 'X-Twilio-Signature': getExpectedTwilioSignature(secret, url, params) }),
  github: async () => ({ 'X-GitHub-Delivery': id, 'X-Hub-Signature-256': await new Webhooks({ secret }).sign(body) }),
  hubspot: () => ({
    'X-HubSpot-Request-Timestamp': String(seconds * 1000),
    'X-HubSpot-Signature-v3': Signature.getSignature('POST', 'v3', { clientSecret: secret, requestBody: body, url, timestamp: seconds * 1000 }),
  }),
};

console.log(JSON.stringify(await vendors[vendor]()));
