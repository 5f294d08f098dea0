#!/usr/bin/env python3
"""The style that a machine can check. Each rule is tried on a bad example first, so that no rule checks nothing."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
# Who may include whom: a folder includes only those before it. Verbs and nouns of the same row do not include each other.
LAYERS = [
    ['base'], ['env'], ['store'],
    ['secret', 'guard', 'match'], ['fingerprint'], ['identity'], ['mail'], ['destination', 'mcp', 'receive'], ['policy'],
    ['audit'], ['ledger', 'access', 'lint'], ['exceptions', 'runs'], ['engine'],
    ['act', 'direct'], ['bridge', 'decide', 'leads', 'stage', 'threads'], ['flow'], ['doctor'],
    ['http'],
    ['smtp'],
    ['api'],
    ['cli'],
    ['run'],
    ['agent'],
]
LEVEL = {name: number for number, row in enumerate(LAYERS) for name in row}


def long_file(path, text):
    count = text.count('\n')
    if count > FILE_LINES_MAX:
        yield f'{path}: {count} lines; the idea is two ideas'


def long_function(path, text):
    start = None
    for number, line in enumerate(text.split('\n'), 1):
        if line == '{':
            start = number
        elif line == '}' and start is not None:
            if number - start - 1 > FUNCTION_LINES_MAX:
                yield f'{path}:{start}: a function of {number - start - 1} lines'
            start = None


def unfinished(path, text):
    for number, line in enumerate(text.split('\n'), 1):
        if re.search(r'\b(TODO|FIXME|XXX|HACK)\b', line):
            yield f'{path}:{number}: unfinished work'


def tab(path, text):
    for number, line in enumerate(text.split('\n'), 1):
        if '\t' in line:
            yield f'{path}:{number}: a tab'


def wrong_layer(path, text):
    folder = re.match(r'src/(\w+)/', path)
    if not folder or path.endswith(('_test.c', '_test.h')):
        return
    own = folder.group(1)
    for included in re.findall(r'#include "(\w+)/', text):
        if included in LEVEL and included != own and LEVEL[included] >= LEVEL[own]:
            yield f'{path}: {own} must not include {included}'


RULES = [
    (long_file, 'src/base/x.c', 'x\n' * 801),
    (long_function, 'src/base/x.c', 'void f(void)\n{\n' + '    g();\n' * 71 + '}\n'),
    (unfinished, 'src/base/x.c', '/* TO' + 'DO: later */'),
    (tab, 'src/base/x.c', '\tx();'),
    (wrong_layer, 'src/base/x.c', '#include "ledger/ledger.h"'),
]


def missing_readmes(paths):
    for folder in sorted({str(pathlib.Path(p).parent) for p in paths if re.match(r'src/\w+/', p)}):
        if f'{folder}/README.md' not in paths:
            yield f'{folder}: no README.md'


def main():
    for rule, path, bad in RULES:
        if not list(rule(path, bad)):
            sys.exit(f'tidy: the rule {rule.__name__} does not see its own bad example')
    if not list(missing_readmes(['src/base/x.c'])):
        sys.exit('tidy: the rule missing_readmes does not see its own bad example')
    paths = subprocess.run(['git', 'ls-files'], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split('\n')
    complaints = list(missing_readmes(set(paths)))
    for path in paths:
        if path.endswith(('.c', '.h')) and (ROOT / path).exists():
            text = (ROOT / path).read_text(encoding='utf-8')
            for rule, _, _ in RULES:
                complaints += rule(path, text)
    for complaint in complaints:
        print(f'tidy: {complaint}')
    sys.exit(1 if complaints else 0)


if __name__ == '__main__':
    main()
