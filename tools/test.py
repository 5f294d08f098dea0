#!/usr/bin/env python3
"""Runs all tests of a build and sums them up in one last line: N passed, N failed, N skipped."""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent


def environment(build):
    env = dict(os.environ)
    env['SEMEL_BINARY'] = str(build / 'semel')
    env['SEMEL_SOURCE_DIR'] = str(ROOT)
    shared = ROOT.parent / 'shared' / 'data'
    if shared.is_dir():
        env.setdefault('SEMEL_TEST_DATA', str(shared))
    env.setdefault('ASAN_OPTIONS', 'detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1')
    env.setdefault('UBSAN_OPTIONS', 'print_stacktrace=1:halt_on_error=1')
    env.setdefault('TSAN_OPTIONS', 'halt_on_error=1:second_deadlock_stack=1')
    return env


def run_tidy():
    result = subprocess.run([sys.executable, str(ROOT / 'tools/tidy.py')])
    return (1, 0, 0) if result.returncode == 0 else (0, 1, 0)


def run_unit(build, env, patterns):
    command = [sys.executable, str(ROOT / 'tools/with_postgres.py'), str(build / 'unit'), *patterns]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    last = ''
    for line in process.stdout:
        last = line
        if not line.startswith('ok '):
            print(line, end='', flush=True)
    code = process.wait()
    counts = re.match(r'(\d+) passed, (\d+) failed, (\d+) skipped', last)
    if not counts:
        return 0, 1, 0
    passed, failed, skipped = map(int, counts.groups())
    if passed + failed + skipped == 0 and patterns:
        return 0, 0, 0
    return passed, max(failed, 1 if code != 0 else 0), skipped


def run_pytest(folder, env, patterns, more=()):
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, 'junit.xml')
        command = ['/usr/bin/python3', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', f'--junitxml={report}', str(ROOT / folder)]
        if patterns:
            command += ['-k', ' or '.join(patterns)]
        code = subprocess.run([*command, *more], env=env, cwd=ROOT).returncode
        if not os.path.exists(report):
            return 0, 1, 0
        suite = xml.parse(report).getroot().find('testsuite')
        tests, skipped = int(suite.get('tests')), int(suite.get('skipped'))
        failed = int(suite.get('failures')) + int(suite.get('errors'))
        if code not in (0, 5) and failed == 0:
            failed = 1
        return tests - skipped - failed, failed, skipped


def run_e2e(env, patterns):
    """Three files at a time, since they mostly wait; then what compares the answers of all of them with the OpenAPI document."""
    if patterns:
        return run_pytest('tests/e2e', env, patterns)
    with tempfile.TemporaryDirectory() as seen:
        env = dict(env, SEMEL_E2E_OBSERVED=seen)
        most = run_pytest('tests/e2e', env, [], ['-n', '3', '--dist', 'loadfile', f'--ignore={ROOT}/tests/e2e/test_openapi.py'])
        last = run_pytest('tests/e2e/test_openapi.py', env, [])
    return tuple(a + b for a, b in zip(most, last))


def run_processes(env, patterns, sanitized):
    """What needs processes. The fakes and the bare clients know nothing of the build, so a sanitizer has nothing to look for there."""
    installed = subprocess.run([sys.executable, str(ROOT / 'tools/interop.py')]).returncode
    counts = [(0, 1, 0)] if installed == 1 else []
    if not patterns or any(pattern in 'test_examples' for pattern in patterns):
        counts += [(0, 1, 0)] if install_frameworks() is False else []
    counts += [run_pytest(folder, env, patterns) for folder in ([] if sanitized else ['tests/providers', 'tests/interop'])]
    counts.append(run_e2e(env, patterns))
    return tuple(sum(column) for column in zip(*counts))


def run_node_files(files, env, patterns):
    command = ['node', '--test', '--test-reporter=tap', *(['--test-name-pattern', '|'.join(patterns)] if patterns else []), *map(str, files)]
    result = subprocess.run(['timeout', '900', *command], env=env, stdout=subprocess.PIPE, text=True)
    counts = {name: int(number) for name, number in re.findall(r'^# (pass|fail|cancelled|skipped) (\d+)$', result.stdout, re.MULTILINE)}
    failed = counts.get('fail', 0) + counts.get('cancelled', 0)
    if result.returncode != 0:
        print(result.stdout[-8000:], flush=True)
    # With a pattern the tests that it leaves out are called skipped.
    return counts.get('pass', 0), max(failed, 1 if result.returncode != 0 else 0), 0 if patterns else counts.get('skipped', 0)


@functools.cache
def install_frameworks():
    """The real frameworks, for the Node client's tests and for the examples. None when this Node is too old for them."""
    version = subprocess.run(['node', '--version'], capture_output=True, text=True).stdout
    if int(version.lstrip('v').split('.')[0]) < 20:
        print(f'skipped: LangChain needs Node 20, and this is {version}', end='', flush=True)
        return None
    folder = ROOT / 'sdk/node/interop'
    lock, stamp = (folder / 'package-lock.json').read_text(), folder / 'node_modules/.installed'
    if stamp.exists() and stamp.read_text() == lock:  # somebody may be using them
        return True
    if subprocess.run(['npm', 'ci', '--ignore-scripts', '--silent'], cwd=folder).returncode != 0:
        print('FAIL npm ci in sdk/node/interop', flush=True)
        return False
    stamp.write_text(lock)
    return True


def run_node(env, patterns, sanitized):
    """The Node client, then the same with real frameworks from npm; those are about JavaScript, so one build is enough."""
    folder = ROOT / 'sdk/node'
    own = run_node_files(sorted((folder / 'test').glob('*.test.js')), env, patterns)
    if sanitized:
        return own
    installed = install_frameworks()
    if installed is None:
        return own[0], own[1], own[2] + 1
    if not installed:
        return own[0], own[1] + 1, own[2]
    real = run_node_files(sorted((folder / 'interop').glob('*.test.mjs')), env, patterns)
    return tuple(a + b for a, b in zip(own, real))


def run_n8n(env, patterns, sanitized):
    """The nodes for n8n, built and called as n8n calls them; n8n itself is ./dev test-n8n."""
    folder = ROOT / 'integrations/n8n'
    if sanitized or install_frameworks() is None:
        return 0, 0, 0
    for words in (['npm', 'ci', '--ignore-scripts', '--silent'], ['npm', 'run', '--silent', 'build']):
        if subprocess.run(words, cwd=folder).returncode != 0:
            print(f'FAIL {" ".join(words)} in integrations/n8n', flush=True)
            return 0, 1, 0
    return run_node_files(sorted((folder / 'test').glob('*.test.js')), env, patterns)


def run_sdk(env, patterns, sanitized):
    counts = [run_pytest('sdk/python/tests', env, patterns), run_pytest('sdk/c/tests', env, patterns), run_node(env, patterns, sanitized), run_n8n(env, patterns, sanitized)]
    return tuple(sum(column) for column in zip(*counts))


def start_sdk(build):
    """The client libraries beside the end-to-end tests: both mostly wait. What they say comes when they are through."""
    return subprocess.Popen([sys.executable, __file__, '--build', str(build), '--sdk'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end_sdk(process):
    said = process.communicate()[0]
    print(said, end='', flush=True)
    counts = re.match(r'(\d+) passed, (\d+) failed, (\d+) skipped', said.rstrip().rsplit('\n', 1)[-1])
    passed, failed, skipped = map(int, counts.groups()) if counts else (0, 1, 0)
    return passed, max(failed, 1 if process.returncode != 0 else 0), skipped


FUZZ_TARGETS = sorted(path.name for path in (ROOT / 'tests/fuzz/corpus').iterdir() if path.is_dir())


def proofs(build, sanitized):
    """What proves the core. A sanitizer makes it slow, and it is about logic: then only a part is run."""
    share = 20 if sanitized else 1
    jobs = [('model', [sys.executable, str(ROOT / 'tests/model/run.py')])] if not sanitized else []
    half = 30000 // share
    jobs += [(f'sim memory {half} histories from {seed}', [str(build / 'sim'), '--tier', 'memory', '--seed', str(seed), '--histories', str(half), '--quiet'])
             for seed in (1, 1000001)]
    jobs += [(f'sim sqlite {10000 // share} histories', [str(build / 'sim'), '--tier', 'sqlite', '--histories', str(10000 // share), '--quiet'])]
    jobs += [('crash at every disk operation', [str(build / 'crash')] + (['--quick'] if sanitized else []))]
    if not sanitized:
        jobs += [('mutants', [str(build / 'sim'), '--mutants'])]
    jobs += [(f'fuzz corpus {target}', [str(build / 'fuzz_replay'), target, str(ROOT / 'tests/fuzz/corpus' / target)]) for target in FUZZ_TARGETS]
    return jobs


def run_proof(job, env):
    name, command = job
    result = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{'ok  ' if result.returncode == 0 else 'FAIL'} {name}", flush=True)
    if result.returncode != 0:
        print(result.stdout[-4000:], flush=True)
    return result.returncode == 0


def run_proofs(build, env, patterns, sanitized):
    jobs = [job for job in proofs(build, sanitized) if not patterns or any(pattern in job[0] for pattern in patterns)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        results = list(pool.map(lambda job: run_proof(job, env), jobs))
    return results.count(True), results.count(False), 0


def hear_signals():
    """Whoever starts the tests in the background may ignore these, and so would everything that they start: tests send them."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def main():
    hear_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--unit', action='store_true', help='only the unit tests')
    parser.add_argument('--e2e', action='store_true', help='only the end-to-end tests, with the fakes and clients that they use')
    parser.add_argument('--sdk', action='store_true', help='only the client libraries')
    parser.add_argument('--proof', action='store_true', help='only the model, the simulator, the crash sweep and the corpora')
    parser.add_argument('patterns', nargs='*')
    args = parser.parse_args()
    build = (ROOT / args.build).resolve()
    env = environment(build)
    every = not args.unit and not args.e2e and not args.sdk and not args.proof
    sanitized = build.name != 'build'
    counts = []
    if every and not args.patterns:
        counts.append(run_tidy())
    if every or args.unit:
        counts.append(run_unit(build, env, args.patterns))
    if every or args.proof:
        counts.append(run_proofs(build, env, args.patterns, sanitized))
    beside = start_sdk(build) if every and not args.patterns and install_frameworks() is not False else None
    if every or args.e2e:
        counts.append(run_processes(env, args.patterns, sanitized))
    if beside is not None:
        counts.append(end_sdk(beside))
    elif every or args.sdk:
        counts.append(run_sdk(env, args.patterns, sanitized))
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f'{passed} passed, {failed} failed, {skipped} skipped', flush=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == '__main__':
    main()
