// peer.mjs NAME enqueue|work: one of the queues, as its documentation shows it; semel needs no worker of its own.
// Environment: SINK, REDIS, SEMEL (ports), POSTGRES (url), JOBS, FROM, CONCURRENCY, AT (not before this time).
import http from 'node:http';

const { SINK, REDIS, POSTGRES, SEMEL, AT } = process.env;
const jobs = Number(process.env.JOBS ?? 0), from = Number(process.env.FROM ?? 0), concurrency = Number(process.env.CONCURRENCY ?? 64);
const agent = new http.Agent({ keepAlive: true, maxSockets: concurrency });

function post(port, path, data) {
  const body = JSON.stringify(data);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method: 'POST', path, agent, headers }, (response) => {
      response.resume();
      response.on('end', () => (response.statusCode < 300 ? resolve() : reject(new Error(String(response.statusCode)))));
    });
    request.on('error', reject);
    request.end(body);
  });
}

const call = (data) => post(SINK, '/', data);
const payload = (n) => ({ job: n, text: 'x'.repeat(100) });

// So many at a time, each acknowledged before the next.
async function each(add) {
  let next = from;
  const one = async () => {
    while (next < from + jobs) {
      const n = next++;
      await add(n);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}

const peers = {
  async bullmq(role) {
    const { Queue, Worker } = await import('bullmq');
    const connection = { host: '127.0.0.1', port: Number(REDIS) };
    if (role === 'work') return void new Worker('jobs', (job) => call(job.data), { connection, concurrency, stalledInterval: 5000, lockDuration: 5000 });
    const queue = new Queue('jobs', { connection });
    await each((n) => queue.add('job', payload(n), { jobId: `j${n}`, attempts: 5, removeOnComplete: true }));
    await queue.close();
  },
  async pgboss(role) {
    const { default: PgBoss } = await import('pg-boss');
    const boss = new PgBoss({ connectionString: POSTGRES, max: 20 });
    boss.on('error', () => {});
    await boss.start();
    await boss.createQueue('jobs');
    if (role === 'work') {
      // It fetches twice a second at most, so it needs large batches to be fast.
      for (let i = 0; i < 4; i++)
        await boss.work('jobs', { batchSize: 1000, pollingIntervalSeconds: 0.5 }, (list) => Promise.all(list.map((job) => call(job.data))));
      return;
    }
    await each((n) => boss.send('jobs', payload(n), { retryLimit: 5, expireInSeconds: 5 }));
    await boss.stop({ graceful: false });
  },
  async graphile(role) {
    const { run, makeWorkerUtils } = await import('graphile-worker');
    if (role === 'work') return void (await run({ connectionString: POSTGRES, concurrency, maxPoolSize: 20, pollInterval: 500, noHandleSignals: true, logger: undefined, taskList: { job: (data) => call(data) } }));
    const utils = await makeWorkerUtils({ connectionString: POSTGRES, maxPoolSize: 20 });
    await utils.migrate();
    await each((n) => utils.addJob('job', payload(n), { jobKey: `j${n}`, maxAttempts: 5 }));
    await utils.release();
  },
};

peers.semel = () => each((n) => post(SEMEL, '/v1/effects', { destination: 'sink', key: `j${n}`, payload: payload(n), at: AT }));

const [name, role] = process.argv.slice(2);
const begin = process.hrtime.bigint();
await peers[name](role);
if (role === 'enqueue') {
  console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - begin) / 1e9 }));
  process.exit(0);
}
