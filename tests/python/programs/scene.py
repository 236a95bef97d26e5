"""The environment of a program: a folder, certificates, servers; and its observations.

A program records what a user of its library can see, so that the records of two loops can
be compared: never a port, a time, or an order that is not guaranteed.
"""
import asyncio
import contextlib
import hashlib
import socket
import ssl
from pathlib import Path

PATIENCE = 300  # seconds for an expected event


class Scene:
    def __init__(self, world):
        self.world = world
        self.folder = Path(world["folder"])
        self.seen = []
        self.wrong = []  # unexpected successes and failures; wrong on any loop

    def note(self, what, value=True):
        self.seen.append([what, value])

    async def attempt(self, what, awaitable, fails=False):
        """Record the result, or the kind of the exception."""
        try:
            value, failed = await asyncio.wait_for(awaitable, PATIENCE), False
        except Exception as error:
            value, failed = kind_of(error), True
        self.note(what, value)
        if failed != fails:
            self.wrong.append([what, value])

    async def fail(self, what, awaitable):
        await self.attempt(what, awaitable, fails=True)

    def tls_server(self):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.world["chain"], self.world["key"])
        return context

    def tls_client(self):
        return ssl.create_default_context(cafile=self.world["chain"])


def kind_of(error):
    return " < ".join(kind.__name__ for kind in type(error).__mro__[:-2])


def bytes_of(size, seed=0):
    """Bytes of a pattern that shows errors: lost, repeated or moved parts change it."""
    block = b"".join(hashlib.sha256(b"%d %d" % (seed, n)).digest() for n in range(256))
    return (block * (size // len(block) + 1))[:size]


def digest(data):
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()[:16]}"


@contextlib.contextmanager
def listening():
    """A listening socket for a server to use: connections wait until the server accepts
    them."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as door:
        door.setblocking(False)
        yield door, door.getsockname()[1]
