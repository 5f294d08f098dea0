// One call of CALL: send (a single-send mail, the default), contact (create one), upsert (create or update one).
import { Client } from '@hubspot/api-client';
import { key, ref, report, retries, token, url } from './call.mjs';

// The library counts the first attempt as a retry, too.
const options = { accessToken: token, basePath: url };
const hubspot = new Client(retries === undefined ? options : { ...options, numberOfApiCallRetries: retries + 1 });
const email = `${ref}@example.com`;

// The library's own defaultHeaders never reach the wire; only what is given with each call does.
const middleware = {
  async pre(context) {
    context.setHeaderParam('Idempotency-Key', key);
    return context;
  },
  async post(context) {
    return context;
  },
};
const more = key ? [{ middleware: [middleware], middlewareMergeStrategy: 'append' }] : [];

const calls = {
  async send() {
    const mail = { emailId: 7, message: { to: email }, contactProperties: {}, customProperties: { ref } };
    return { id: (await hubspot.marketing.transactional.singleSendApi.sendEmail(mail, ...more)).statusId };
  },
  async contact() {
    return { id: (await hubspot.crm.contacts.basicApi.create({ properties: { email, firstname: 'Jon' }, associations: [] }, ...more)).id };
  },
  async upsert() {
    const inputs = [{ idProperty: 'email', id: email, properties: { firstname: 'Jon' } }];
    const { results } = await hubspot.crm.contacts.batchApi.upsert({ inputs }, ...more);
    return { id: results[0].id, created: results[0]._new };
  },
};

await report(calls[process.env.CALL || 'send']);
