#!/usr/bin/env python3
"""One object of a static library, in which only the names of the header can be seen: archive.py OUT.a FACE.a CORE.a

All of FACE is in it, and of CORE what that needs.

A program that links it has functions of its own, and some will be called as ours are inside.
"""
import pathlib
import subprocess
import sys
import tempfile


def main():
    out, face, core = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        one = str(pathlib.Path(folder) / 'libsemel.o')
        subprocess.run(['ld', '-r', '-o', one, '--whole-archive', face, '--no-whole-archive', core], check=True)
        subprocess.run(['objcopy', '--localize-hidden', one], check=True)
        pathlib.Path(out).unlink(missing_ok=True)
        subprocess.run(['ar', 'rcs', out, one], check=True)


if __name__ == '__main__':
    main()
