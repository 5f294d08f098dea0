#!/usr/bin/env python3
"""Turns the named queries of .sql files into C: one struct per shape, one `struct query` per query.

    -- shape person: id i, name t, photo b          columns that are used together; i int64, t text, b bytes
    -- query person_add(person)                     parameters: a shape, or a list such as (id i, name t)
    -- query person_get(id i) -> person             result columns: a shape, or a list
    -- sqlite:  -- postgres:  -- postgres arrays:   the text below is for that database only; without a mark it is for both

In a text `:name` is a parameter, `{shape}` a column list, `{:shape}` the parameters of that shape, `{shape=}` "a = :a, …" without the first,
`{shape[i]}` the i-th elements of the parameters as PostgreSQL arrays (far cheaper than unnest(), which keeps each column apart). The build fails when a dialect is missing or parameters disagree.
"""
import re
import sys

C_TYPES = {'i': 'int64_t', 't': 'struct bytes', 'b': 'struct bytes'}
C_KINDS = {'i': 'COLUMN_INT', 't': 'COLUMN_TEXT', 'b': 'COLUMN_BYTES'}
PG_ARRAYS = {'i': 'bigint[]', 't': 'text[]', 'b': 'bytea[]'}
DIALECTS = ('sqlite', 'postgres')


class Bad(Exception):
    pass


def columns_of(text, shapes, where):
    text = text.strip()
    if not text:
        return None, []
    if text in shapes:
        return text, shapes[text]
    columns = []
    for part in text.split(','):
        words = part.split()
        if len(words) != 2 or words[1] not in C_TYPES:
            raise Bad(f'{where}: "{part.strip()}" is neither a shape nor "name type"')
        columns.append((words[0], words[1]))
    return None, columns


class Query:
    def __init__(self, name, params, result, where):
        self.name, self.where = name, where
        self.params_shape, self.params = params
        self.result_shape, self.result = result
        self.texts, self.arrays = {}, {}

    def expand(self, text, shapes):
        def shape(match):
            sign, name, mark = match.group(1), match.group(2), match.group(3)
            if name not in shapes:
                raise Bad(f'{self.where}: no shape "{name}"')
            if mark == '[i]':
                return ', '.join(f'(:{n}::{PG_ARRAYS[t]})[i] AS {n}' for n, t in shapes[name])
            if mark == '=':
                return ', '.join(f'{n} = :{n}' for n, _ in shapes[name][1:])
            return ', '.join(sign + n for n, _ in shapes[name])
        return re.sub(r'\{(:?)(\w+)(\[i\]|=)?\}', shape, text)

    def numbered(self, text, dialect):
        order = [n for n, _ in self.params]
        seen = set()

        def number(match):
            name = match.group(1)
            if name not in order:
                raise Bad(f'{self.where}: parameter :{name} of the {dialect} text is not declared')
            seen.add(name)
            return ('?' if dialect == 'sqlite' else '$') + str(order.index(name) + 1)
        text = re.sub(r'(?<!:):([a-z_]\w*)', number, text)
        if seen != set(order):
            raise Bad(f'{self.where}: the {dialect} text does not use {sorted(set(order) - seen)}')
        return text


def read(path, shapes, queries):
    current, dialects, arrays = None, DIALECTS, False
    for number, line in enumerate(open(path, encoding='utf-8'), 1):
        where = f'{path}:{number}'
        if m := re.match(r'-- shape (\w+):(.*)', line):
            shapes[m.group(1)] = columns_of(m.group(2), {}, where)[1]
        elif m := re.match(r'-- query (\w+)\(([^)]*)\)(?:\s*->\s*(.*))?', line):
            current = Query(m.group(1), columns_of(m.group(2), shapes, where), columns_of(m.group(3) or '', shapes, where), where)
            if current.name in queries:
                raise Bad(f'{where}: query {current.name} exists already')
            queries[current.name] = current
            dialects, arrays = DIALECTS, False
        elif m := re.match(r'-- (sqlite|postgres)( arrays)?:\s*$', line):
            dialects, arrays = (m.group(1),), bool(m.group(2))
        elif line.startswith('--') or not line.strip():
            continue
        elif current is None:
            raise Bad(f'{where}: SQL before the first "-- query"')
        else:
            for dialect in dialects:
                current.texts[dialect] = current.texts.get(dialect, '') + line.rstrip() + '\n'
                current.arrays[dialect] = arrays


def c_string(text):
    out = []
    for line in text.strip().split('\n'):
        out.append('"' + line.strip().replace('\\', '\\\\').replace('"', '\\"') + ' "')
    return '\n        '.join(out)


def struct(name, columns):
    fields = ''.join(f'    {C_TYPES[t]} {n};\n' for n, t in columns)
    return f'struct {name} {{\n{fields}}};\n'


def table(name, type_name, columns):
    rows = ''.join(f'    {{"{n}", {C_KINDS[t]}, offsetof(struct {type_name}, {n})}},\n' for n, t in columns)
    return f'static const struct query_column {name}[] = {{\n{rows}}};\n'


def generate(shapes, queries):
    header = ['/* Made by tools/queries.py. */', '#ifndef SEMEL_QUERIES_H', '#define SEMEL_QUERIES_H', '', '#include "store/store.h"', '']
    source = ['/* Made by tools/queries.py. */', '#include "queries.h"', '']
    for name, columns in shapes.items():
        header.append(struct(f'row_{name}', columns))
        source.append(table(f'columns_{name}', f'row_{name}', columns))
    for number, q in enumerate(queries.values()):
        types = {}
        for role, shape, columns, prefix in (('params', q.params_shape, q.params, 'q'), ('columns', q.result_shape, q.result, 'r')):
            if not columns:
                types[role] = ('NULL', 0, '0')
                continue
            type_name = f'row_{shape}' if shape else f'{prefix}_{q.name}'
            table_name = f'columns_{shape}' if shape else f'{role}_{q.name}'
            if not shape:
                header.append(struct(type_name, columns))
                source.append(table(table_name, type_name, columns))
            types[role] = (table_name, len(columns), f'sizeof(struct {type_name})')
        texts = []
        for dialect in DIALECTS:
            if dialect not in q.texts:
                raise Bad(f'{q.where}: query {q.name} has no text for {dialect}')
            texts.append(c_string(q.numbered(q.expand(q.texts[dialect], shapes), dialect)))
        arrays = ', '.join('true' if q.arrays[d] else 'false' for d in DIALECTS)
        upper = q.name.upper()
        header.append(f'extern const struct query {upper};')
        source.append(f'const struct query {upper} = {{\n    "{q.name}",\n    {{{texts[0]},\n        {texts[1]}}},\n    {{{arrays}}},\n'
                      f'    {types["params"][0]}, {types["params"][1]}, {types["params"][2]},\n'
                      f'    {types["columns"][0]}, {types["columns"][1]}, {types["columns"][2]},\n    {number},\n}};\n')
    header.append(f'\n#define QUERY_COUNT {len(queries)}\n_Static_assert(QUERY_COUNT <= STORE_QUERIES_MAX, "raise STORE_QUERIES_MAX");\n#endif')
    return '\n'.join(header) + '\n', '\n'.join(source) + '\n'


def main(args):
    out_h, out_c, paths = args[0], args[1], args[2:]
    shapes, queries = {}, {}
    try:
        for path in paths:
            read(path, shapes, queries)
        header, source = generate(shapes, queries)
    except Bad as bad:
        sys.exit(f'queries.py: {bad}')
    for path, text in ((out_h, header), (out_c, source)):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


if __name__ == '__main__':
    main(sys.argv[1:])
