#!/usr/bin/env python3
"""Runs all tests of a build and sums them up in one last line: N passed, N failed, N skipped."""
import argparse
import os
import pathlib
import re
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
    env.setdefault('ASAN_OPTIONS', 'detect_leaks=1:abort_on_error=1')
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


def run_e2e(env, patterns):
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, 'junit.xml')
        command = ['/usr/bin/python3', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', f'--junitxml={report}', str(ROOT / 'tests/e2e')]
        if patterns:
            command += ['-k', ' or '.join(patterns)]
        code = subprocess.run(command, env=env, cwd=ROOT).returncode
        if not os.path.exists(report):
            return 0, 1, 0
        suite = xml.parse(report).getroot().find('testsuite')
        tests, skipped = int(suite.get('tests')), int(suite.get('skipped'))
        failed = int(suite.get('failures')) + int(suite.get('errors'))
        if code not in (0, 5) and failed == 0:
            failed = 1
        return tests - skipped - failed, failed, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--unit', action='store_true', help='only the unit tests')
    parser.add_argument('--e2e', action='store_true', help='only the end-to-end tests')
    parser.add_argument('patterns', nargs='*')
    args = parser.parse_args()
    build = (ROOT / args.build).resolve()
    env = environment(build)
    every = not args.unit and not args.e2e
    counts = []
    if every and not args.patterns:
        counts.append(run_tidy())
    if every or args.unit:
        counts.append(run_unit(build, env, args.patterns))
    if every or args.e2e:
        counts.append(run_e2e(env, args.patterns))
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f'{passed} passed, {failed} failed, {skipped} skipped', flush=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == '__main__':
    main()
