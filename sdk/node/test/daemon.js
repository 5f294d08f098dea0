'use strict';
/* A real semel for the tests: its own data, and a port that it keeps. It can be killed and started again. */
const { spawn } = require('node:child_process');
const { once: event } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const BINARY = process.env.SEMEL_BINARY ?? path.join(__dirname, '../../../build/semel');

/* Below the ports that the system gives to others, so that nobody takes it while the daemon is down; another test may have chosen the same. */
const somePort = () => 15000 + Math.floor(Math.random() * 15000);

function scratch() {
    return fs.mkdtempSync(path.join(os.tmpdir(), 'semel-node-'));
}

class Daemon {
    constructor() {
        this.folder = scratch();
        this.port = undefined;
    }

    async start() {
        if (this.port !== undefined) return this.launch();
        for (;;) {
            this.port = somePort();
            try {
                return await this.launch();
            } catch (error) {
                if (!/is in use by another program/.test(error.message)) throw error;
            }
        }
    }

    async launch() {
        const words = ['up', '--data', path.join(this.folder, 'data'), '--listen', `127.0.0.1:${this.port}`];
        const policy = path.join(this.folder, 'semel.yaml');
        if (fs.existsSync(policy)) words.push('--policy', policy);
        this.process = spawn(BINARY, words, { stdio: ['ignore', 'pipe', 'pipe'] });
        let said = '';
        await new Promise((resolve, reject) => {
            const listen = (chunk) => {
                said += chunk;
                if (/msg=ready/.test(said)) resolve();
            };
            this.process.stdout.on('data', listen);
            this.process.stderr.on('data', listen);
            this.process.once('error', reject);
            this.process.once('close', () => reject(new Error(`semel did not start:\n${said}`)));
        });
        return this;
    }

    get url() {
        return `http://127.0.0.1:${this.port}`;
    }

    policy(text) {
        fs.writeFileSync(path.join(this.folder, 'semel.yaml'), text);
        return this;
    }

    async kill() {
        if (this.process.exitCode !== null || this.process.signalCode !== null) return;
        this.process.kill('SIGKILL');
        await event(this.process, 'exit');
    }

    async end() {
        await this.kill();
        fs.rmSync(this.folder, { recursive: true, force: true });
    }

    /** What the API says, for tests that look behind the client. */
    async get(pathAndQuery) {
        return (await fetch(this.url + pathAndQuery)).json();
    }
}

/** Runs a file of test/ in a process of its own, with `words` and an environment; resolves to what it printed and how it ended. */
async function child(file, words = [], env = {}) {
    const process_ = spawn(process.execPath, [path.resolve(__dirname, file), ...words], {
        env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    process_.stdout.on('data', (chunk) => (out += chunk));
    const [code, signal] = await event(process_, 'close');
    return { out, code, signal };
}

module.exports = { BINARY, Daemon, child };
