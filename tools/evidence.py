#!/usr/bin/env python3
"""Runs everything that proves something about semel and writes the figures into docs/internals/testing.md.

    evidence.py [--histories N] [--fuzz-seconds N] [--kill-seconds N] [--soak SECONDS | --soak-log FILE…]

A long soak may have been run before, with `./dev sim --seconds N --tier … > FILE`; its last line is quoted from the file.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs/internals/testing.md'
BEGIN, END = '<!-- figures: made by ./dev evidence -->', '<!-- end of figures -->'


class Failed(Exception):
    pass


def run(title, command, env=None):
    print(f'evidence: {title}: {" ".join(str(part) for part in command)}', flush=True)
    result = subprocess.run([str(part) for part in command], cwd=ROOT, env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        print(result.stdout[-4000:])
        raise Failed(title)
    return result.stdout


def number(text):
    return f'{int(text):,}'


def model_rows():
    out = run('model', [sys.executable, 'tests/model/run.py'])
    states = sum(int(count.replace(',', '')) for count in re.findall(r'^ok\s+(?:safety|live|batch)\s+\S+\s+\S+\s+\d+\s+([\d,]+)', out, re.M))
    checks = len(re.findall(r'^ok\s+(?:safety|live|batch)', out, re.M))
    mutants = len(re.findall(r'^ok\s+mutant', out, re.M))
    yield 'Promela model, safety and liveness', f'{checks} searches, {states:,} states, 0 errors; {mutants} of {mutants} mutants refuted', './dev model'


def sim_rows(build, histories):
    for tier, count in (('memory', histories), ('sqlite', histories // 10)):
        out = run(f'sim {tier}', [build / 'sim', '--tier', tier, '--histories', count])
        found = re.search(r'sim: (\d+) histories on the \w+ tier, 0 violations, (\d+) steps, (\d+) commands', out)
        what = 'in memory' if tier == 'memory' else 'SQLite on a simulated disk'
        yield (f'simulated histories, {what}', f'{number(found[1])} histories, {number(found[3])} commands, 0 violations, every mark reached',
               f'./dev sim --tier {tier} --histories {count}')


def mutant_rows(build):
    out = run('mutants', [build / 'sim', '--mutants'])
    killed = re.findall(r'^killed (\S+)\s+.*after (\d+): (INV-\w+)', out, re.M)
    worst = max(int(after) for _, after, _ in killed)
    yield 'mutants of the real code', f'{len(killed)} of {len(killed)} killed, the hardest after {worst:,} histories', './dev sim --mutants'


def crash_rows(build):
    out = run('crash', [build / 'crash'])
    found = re.search(r'(\d[\d,]*) crash points?.*?(\d[\d,]*) runs', out, re.S)
    what = f'{found[1]} crash points, {found[2]} runs, 0 violations' if found else out.strip().split('\n')[-1]
    yield 'a crash at every disk operation', what, './dev crash'


def fuzz_rows(seconds):
    out = run('fuzz', [sys.executable, 'tests/fuzz/run.py', '--seconds', seconds])
    runs = sum(int(count.replace(',', '')) for count in re.findall(r'([\d,]+) (?:runs|execs|executions)', out))
    targets = re.search(r'(\d+) passed, 0 failed', out)[1]
    yield 'fuzzers (libFuzzer, ASan, UBSan)', f'{targets} targets, {seconds} s each, {runs:,} executions, no finding', f'./dev fuzz --seconds {seconds}'


def process_rows(build, seconds, log):
    out = pathlib.Path(log).read_text(encoding='utf-8') if log else run_processes(build, seconds)
    for line in sorted(set(re.findall(r'^evidence: (test_.*)$', out, re.M))):
        name, _, facts = line.partition(' ')
        words = name.removeprefix('test_').replace('_', ' ')
        pairs = re.findall(r'(\w+)=([\d.]+)', facts)
        yield words, ', '.join(f"{key.replace('_', ' ')} {float(value):,.0f}" for key, value in pairs if key != 'runs'), f'./dev test --e2e {name}'


def run_processes(build, seconds):
    env = {'SEMEL_BINARY': str(build / 'semel'), 'SEMEL_E2E_SECONDS': str(seconds)}
    names = ['test_crash.py', 'test_stop.py', 'test_clock.py', 'test_proxy.py', 'test_failover.py', 'test_disk.py', 'test_storm.py']
    paths = [f'tests/e2e/{name}' for name in names if (ROOT / 'tests/e2e' / name).exists()]
    return run('processes', ['/usr/bin/python3', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', *paths], env)


def soak_rows(build, args):
    if args.soak:
        for tier in ('memory', 'sqlite'):
            out = run(f'soak {tier}', [build / 'sim', '--tier', tier, '--seed', '1000000', '--seconds', args.soak])
            yield from soak_line(out)
    for path in args.soak_log:
        yield from soak_line(pathlib.Path(path).read_text(encoding='utf-8'))


def soak_line(out):
    found = re.search(r'sim: (\d+) histories on the (\w+) tier, 0 violations, \d+ steps, (\d+) commands, ([\d.]+) s', out)
    if not found:
        raise Failed('the soak did not end well: ' + out[-400:])
    minutes = float(found[4]) / 60
    yield (f'soak, {found[2]} tier', f'{minutes:.0f} minutes, {number(found[1])} histories, {number(found[3])} commands, 0 violations',
           f'./dev sim --tier {found[2]} --seconds {float(found[4]):.0f}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--histories', type=int, default=100000)
    parser.add_argument('--fuzz-seconds', type=int, default=10)
    parser.add_argument('--kill-seconds', type=int, default=60)
    parser.add_argument('--only', nargs='*', default=[], help='run these sections again; the others stay as they were')
    parser.add_argument('--process-log', help='the output of an earlier ./dev test, instead of running these again')
    parser.add_argument('--soak', type=int, default=0)
    parser.add_argument('--soak-log', nargs='*', default=[])
    args = parser.parse_args()
    build = (ROOT / args.build).resolve()
    sections = {
        'model': model_rows,
        'sim': lambda: sim_rows(build, args.histories),
        'mutants': lambda: mutant_rows(build),
        'crash': lambda: crash_rows(build),
        'soak': lambda: soak_rows(build, args),
        'processes': lambda: process_rows(build, args.kill_seconds, args.process_log),
        'fuzz': lambda: fuzz_rows(args.fuzz_seconds),
    }
    kept = build / 'evidence.json'
    found = json.loads(kept.read_text()) if args.only and kept.exists() else {}
    try:
        for name, make in sections.items():
            if not args.only or name in args.only:
                found[name] = list(make())
                kept.write_text(json.dumps(found))
    except Failed as failed:
        sys.exit(f'evidence: {failed} failed; the page was left as it is')
    rows = [row for name in sections for row in found.get(name, [])]
    day = datetime.date.today().isoformat()
    table = [BEGIN, '', f'The last run of each section, {day}:', '', '| what | figures | command |', '|---|---|---|']
    table += [f'| {what} | {figures} | `{command}` |' for what, figures, command in rows]
    page = PAGE.read_text(encoding='utf-8')
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + '\n'.join(table) + '\n\n' + END + rest.split(END)[1], encoding='utf-8')
    print(f'evidence: written to {PAGE.relative_to(ROOT)}')


if __name__ == '__main__':
    main()
