#!/usr/bin/env python3
"""n8n itself, with the nodes and without them: each workflow is executed twice, and what reached the world outside is counted.

Installs n8n into build/n8n the first time (package.json beside this file). Run by ./dev test-n8n; no part of the normal suite.
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
N8N = ROOT / 'build/n8n'
sys.path.insert(0, str(ROOT / 'sdk/python'))
os.environ.setdefault('SEMEL_BIN', str(ROOT / 'build/semel'))

from semel.testing import Daemon, Effects  # noqa: E402  (needs the path above)


def install():
    if not (N8N / 'node_modules/.bin/n8n').exists():
        print('installing n8n into build/n8n; this takes about eight minutes', flush=True)
        N8N.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / 'n8n.package.json', N8N / 'package.json')
        subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--silent'], cwd=N8N, check=True)
    subprocess.run(['npm', 'ci', '--ignore-scripts', '--silent'], cwd=PACKAGE, check=True)
    subprocess.run(['npm', 'run', '--silent', 'build'], cwd=PACKAGE, check=True)


def node(name, kind, version, parameters, **more):
    return {'id': name, 'name': name, 'type': kind, 'typeVersion': version, 'position': [0, 0], 'parameters': parameters, **more}


def workflow(ident, nodes, edges):
    """`edges`: (from, output, to)."""
    connections = {}
    for source, output, target in edges:
        outputs = connections.setdefault(source, {'main': [[], []]})['main']
        outputs[output].append({'node': target, 'type': 'main', 'index': 0})
    return {'id': ident, 'name': ident, 'active': False, 'settings': {}, 'nodes': nodes, 'connections': connections}


START = node('Start', 'n8n-nodes-base.manualTrigger', 1, {})
LEAD = node('Lead', 'n8n-nodes-base.set', 3.4, {'mode': 'raw', 'jsonOutput': '{"lead_id": 8821}'})


def http(name, url, **headers):
    pairs = {'parameters': [{'name': key.replace('_', '-'), 'value': value} for key, value in headers.items()]}
    return node(name, 'n8n-nodes-base.httpRequest', 4.2, {'method': 'POST', 'url': url, 'sendHeaders': bool(headers), 'headerParameters': pairs, 'options': {}})


def with_nodes(world):
    credentials = {'semelApi': {'id': 'semel1', 'name': 'semel'}}
    once = node('Once', 'n8n-nodes-semel.once', 1, {'workflow': 'n8n', 'key': '=lead_{{ $json.lead_id }}:intro', 'wait': 20, 'lease': 300, 'confirm': False, 'input': ''},
                credentials=credentials)
    act = http('Send', world.url + '/with-node', Idempotency_Key="={{ $json.semel.downstream_key }}")
    done = node('Once: Done', 'n8n-nodes-semel.onceDone', 1, {'what': 'confirm', 'intent': "={{ $('Once').item.json.semel.intent }}",
                'fence': "={{ $('Once').item.json.semel.fence }}", 'result': '={{ $json }}'}, credentials=credentials)
    already = http('Already', world.url + '/already')
    return workflow('withnodes', [START, LEAD, once, act, done, already],
                    [('Start', 0, 'Lead'), ('Lead', 0, 'Once'), ('Once', 0, 'Send'), ('Send', 0, 'Once: Done'), ('Once', 1, 'Already')])


def without_nodes(daemon):
    act = http('Send', daemon.url + '/to/world/without-node', Idempotency_Key='=lead_{{ $json.lead_id }}:intro')
    return workflow('withoutnodes', [START, LEAD, act], [('Start', 0, 'Lead'), ('Lead', 0, 'Send')])


def unprotected(world):
    """So that the counting is known to see a second effect."""
    return workflow('unprotected', [START, LEAD, http('Send', world.url + '/unprotected')], [('Start', 0, 'Lead'), ('Lead', 0, 'Send')])


class Editor:
    """One n8n on a folder of its own."""

    def __init__(self, folder):
        self.env = {'PATH': os.environ['PATH'], 'HOME': str(folder), 'N8N_USER_FOLDER': str(folder), 'N8N_ENCRYPTION_KEY': 'for-this-test-only', 'N8N_DIAGNOSTICS_ENABLED': 'false',
                    'N8N_VERSION_NOTIFICATIONS_ENABLED': 'false', 'N8N_RUNNERS_ENABLED': 'false', 'DB_SQLITE_POOL_SIZE': '1', 'N8N_ENFORCE_SETTINGS_FILE_PERMISSIONS': 'false'}
        self.folder = folder
        installed = folder / '.n8n/nodes/node_modules/n8n-nodes-semel'
        installed.mkdir(parents=True)
        shutil.copy(PACKAGE / 'package.json', installed)
        shutil.copytree(PACKAGE / 'dist', installed / 'dist')

    def __call__(self, *words):
        ran = subprocess.run([str(N8N / 'node_modules/.bin/n8n'), *words], env=self.env, capture_output=True, text=True, timeout=300)
        # `execute` may end with a code of its own after a success: what it says counts.
        if ran.returncode != 0 and not ran.stdout.startswith('Execution was successful'):
            sys.exit(f'n8n {" ".join(words)} failed:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}')
        return ran.stdout

    def load(self, kind, document):
        path = self.folder / f'{kind}.json'
        path.write_text(json.dumps(document))
        self(f'import:{kind}', f'--input={path}')


def main():
    install()
    world = Effects()
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        daemon.policy(json.dumps({'destinations': {'world': {'provider': 'http', 'url': world.url, 'allow_private': True}}}))
        n8n = Editor(pathlib.Path(folder))
        n8n.load('credentials', [{'id': 'semel1', 'name': 'semel', 'type': 'semelApi', 'data': {'url': daemon.url, 'token': ''}}])
        n8n.load('workflow', [with_nodes(world), without_nodes(daemon), unprotected(world)])
        for ident in ('unprotected', 'withnodes', 'withoutnodes'):
            for _ in range(2):
                n8n('execute', f'--id={ident}')
                print(f'executed {ident}', flush=True)
        states = [(intent['workflow'], intent['state']) for intent in daemon.intents()]
    counts = collections.Counter(effect.what for effect in world.received)
    world.close()
    wanted = {'POST /unprotected': 2, 'POST /with-node': 1, 'POST /already': 1, 'POST /without-node': 1}
    print(dict(counts), states)
    passed = sum(counts[what] == count for what, count in wanted.items())
    print(f'{passed} passed, {len(wanted) - passed} failed, 0 skipped')
    sys.exit(0 if passed == len(wanted) and all(state == 'confirmed' for _, state in states) else 1)


if __name__ == '__main__':
    main()
