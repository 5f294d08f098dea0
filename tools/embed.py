#!/usr/bin/env python3
"""Turns files into C byte arrays: embed.py OUT.c OUT.h NAME=FILE … ; `migrations_sqlite=DIR/*` style groups are given as repeated names."""
import os
import sys


def literal(data):
    lines = []
    for start in range(0, len(data), 20):
        lines.append('    ' + ''.join(f'{b},' for b in data[start:start + 20]))
    return '\n'.join(lines)


def main(args):
    out_c, out_h, items = args[0], args[1], args[2:]
    source = ['/* Made by tools/embed.py. */', f'#include "{os.path.basename(out_h)}"', '']
    header = ['/* Made by tools/embed.py: files that are part of the program. Each ends in a NUL that `len` does not count. */', '#pragma once', '',
              '#include "base/bytes.h"', '', 'struct embedded {', '    const char *name;', '    struct bytes data;', '};', '']
    groups = {}
    for item in items:
        name, path = item.split('=', 1)
        groups.setdefault(name, []).append(path)
    for name, paths in groups.items():
        rows = []
        for number, path in enumerate(sorted(paths, key=os.path.basename)):
            data = open(path, 'rb').read()
            symbol = f'embedded_{name}_{number}'
            source.append(f'static const unsigned char {symbol}[] = {{\n{literal(data)}0}};\n')
            rows.append(f'    {{"{os.path.basename(path)}", {{(const char *){symbol}, {len(data)}}}}},')
        source.append(f'const struct embedded embedded_{name}[] = {{\n' + '\n'.join(rows) + '\n};\n')
        header.append(f'#define EMBEDDED_{name.upper()}_COUNT {len(paths)}')
        header.append(f'extern const struct embedded embedded_{name}[EMBEDDED_{name.upper()}_COUNT];')
    for path, lines in ((out_c, source), (out_h, header)):
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
