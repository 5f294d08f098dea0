#!/usr/bin/env python3
"""Runs a command next to a private, throw-away PostgreSQL: with_postgres.py COMMAND… ; its URL is in SEMEL_TEST_POSTGRES."""
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def binaries():
    found = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'), key=lambda p: int(p.parent.name))
    return found[-1] if found else None


def reserve():
    """A socket that keeps a port for the server, which listens there with SO_REUSEADDR as well."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(('127.0.0.1', 0))
    return held


def as_owner(command):
    """PostgreSQL refuses to run as root; the package has made a user for it."""
    return ['runuser', '-u', 'postgres', '--', *command] if os.getuid() == 0 else command


@contextlib.contextmanager
def cluster():
    """A running cluster on loopback; yields its URL without a database name."""
    where = tempfile.mkdtemp(prefix='semel-postgres-')
    if os.getuid() == 0:
        user = pwd.getpwnam('postgres')
        os.chown(where, user.pw_uid, user.pw_gid)
    data, place = os.path.join(where, 'data'), reserve()
    port = place.getsockname()[1]
    try:
        subprocess.run(as_owner([str(binaries() / 'initdb'), '-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--no-sync']),
                       check=True, stdout=subprocess.DEVNULL)
        log = open(os.path.join(where, 'log'), 'wb')
        server = subprocess.Popen(as_owner([str(binaries() / 'postgres'), '-D', data, '-p', str(port), '-k', where,
                                            '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200']),
                                  stdout=log, stderr=log)
        for _ in range(1200):
            if subprocess.run([str(binaries() / 'pg_isready'), '-q', '-h', '127.0.0.1', '-p', str(port)]).returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError('the private PostgreSQL did not start: ' + open(os.path.join(where, 'log')).read()[-2000:])
        yield f'postgres://postgres@127.0.0.1:{port}'
        postmaster = int(open(os.path.join(data, 'postmaster.pid')).readline())
        os.kill(postmaster, signal.SIGINT)
        server.wait(timeout=60)
    finally:
        place.close()
        shutil.rmtree(where, ignore_errors=True)


def main(command):
    if binaries() is None:
        sys.exit('with_postgres.py: PostgreSQL is not installed')
    with cluster() as url:
        env = dict(os.environ, SEMEL_TEST_POSTGRES=url + '/postgres')
        return subprocess.run(command, env=env).returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
