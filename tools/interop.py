#!/usr/bin/env python3
"""Installs the npm packages of tests/interop and its MCP folders as their lock files say, once for all checkouts: into caches named by the lock files'
hashes, with a link beside each package.json. Exit code 0 when they are there, 1 when npm failed, 2 when there is no Node 20 or later with npm. Without the
packages of an MCP folder only its own tests are skipped."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOME = pathlib.Path(__file__).resolve().parent.parent / 'tests/interop'
MORE = ('mcp', 'mcp_modern')
FILES = ('package.json', 'package-lock.json', '.npmrc')
NODE_MIN = 20
SECONDS_MAX = 600


def has_node():
    if not shutil.which('node') or not shutil.which('npm'):
        return False
    version = subprocess.run(['node', '--version'], capture_output=True, text=True).stdout
    found = re.match(r'v(\d+)\.', version)
    return bool(found) and int(found[1]) >= NODE_MIN


def cache(home):
    root = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache') / 'semel'
    digest = hashlib.sha256(b'\0'.join((home / name).read_bytes() for name in FILES)).hexdigest()
    return root / f'interop-{digest[:16]}'


def install(home, place):
    """Complete or not at all: the directory gets its name when npm has finished."""
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='interop-', dir=place.parent))
    try:
        for name in FILES:
            shutil.copy(home / name, scratch)
        print(f'interop: npm in {home.relative_to(HOME.parent.parent)}', flush=True)
        # npm ci refuses a lock file without the optional packages of machines that this registry does not have.
        words = ['npm', 'install', '--no-save'] if home.name == 'mcp_modern' else ['npm', 'ci']
        done = subprocess.run([*words, '--no-progress'], cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
        if done.returncode != 0:
            print(done.stdout[-4000:], flush=True)
            return False
        try:
            scratch.rename(place)
        except OSError:
            return (place / 'node_modules').is_dir()  # somebody else was first
        return True
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def link(home, place):
    link_path, target = home / 'node_modules', place / 'node_modules'
    if link_path.is_symlink() and link_path.resolve() == target.resolve():
        return
    if link_path.is_symlink():
        link_path.unlink()
    elif link_path.is_dir():
        shutil.rmtree(link_path)
    link_path.symlink_to(target)


def main():
    if not has_node():
        print(f'interop: no Node {NODE_MIN} with npm here; the tests with real clients are skipped', flush=True)
        return 2
    good = True
    for home in (HOME, *(HOME / name for name in MORE)):
        place = cache(home)
        if (place / 'node_modules').is_dir() or install(home, place):
            link(home, place)
        elif home == HOME:
            good = False
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
