// What the clients share: where to go and what to say comes from the environment, the outcome is one line of JSON.
//
//   SEMEL_TO   base URL: semel's http://127.0.0.1:PORT/to/<destination>, or a provider itself
//   KEY        an idempotency key of the caller's own (optional)
//   RUN        the run it belongs to, for model calls (optional)
//   REF        what the call is about, the business reference (default order-1)
//   TOKEN      the credential (default sk_test_semel)
//   RETRIES    how often the library may retry (default: as the library likes)

const base = process.env.SEMEL_TO;
if (!base) {
  console.error('SEMEL_TO is not set');
  process.exit(64);
}

export const to = new URL(base.replace(/\/+$/, ''));
export const prefix = to.pathname === '/' ? '' : to.pathname;
export const url = to.origin + prefix;
export const key = process.env.KEY || undefined;
export const ref = process.env.REF || 'order-1';
export const token = process.env.TOKEN || 'sk_test_semel';
export const retries = process.env.RETRIES === undefined ? undefined : Number(process.env.RETRIES);
export const headers = { ...(key && { 'Idempotency-Key': key }), ...(process.env.RUN && { 'Semel-Run': process.env.RUN }) };

// Runs one business call. It returns what to tell of a success.
export async function report(call) {
  try {
    console.log(JSON.stringify({ ok: true, ...(await call()) }));
  } catch (error) {
    const status = error.statusCode ?? error.status ?? (typeof error.code === 'number' ? error.code : null);
    console.log(JSON.stringify({ ok: false, status, name: error.constructor.name, type: error.type ?? error.data?.error ?? null, message: String(error.message) }));
    process.exitCode = 1;
  }
}
