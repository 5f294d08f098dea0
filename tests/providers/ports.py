"""Ports that stay ours."""

import socket


def reserve(port=0):
    """A socket that keeps a port on loopback while nobody listens there: connections are refused, and the system gives the port to nobody else. Whoever
    listens with SO_REUSEADDR (semel, PostgreSQL, Node and asyncio do) can have it, again and again, until the socket is closed."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held


def number(held):
    return held.getsockname()[1]
