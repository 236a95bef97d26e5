"""Loops with one fault each, and a program that shows them; a comparison must find them."""
import asyncio
import os
import signal

Stock = asyncio.SelectorEventLoop


class Differing(Stock):
    """A transport does not return the address of its peer."""

    def _make_socket_transport(self, sock, protocol, waiter=None, *, extra=None, server=None):
        extra = {**(extra or {}), "peername": None}
        return super()._make_socket_transport(sock, protocol, waiter, extra=extra,
                                              server=server)


class Aborting(Stock):
    """The process dies."""

    def _make_socket_transport(self, *_args, **_named):
        os.abort()


class Hanging(Stock):
    """A call does not return."""

    def _make_socket_transport(self, *_args, **_named):
        while True:
            signal.pause()


class Grumbling(Stock):
    """Everything works, but an error is logged."""

    def close(self):
        if not self.is_closed():
            self.call_exception_handler({"message": "something is not right"})
        super().close()


class Same(Stock):
    """No fault."""


def installer(loop):
    class Policy(asyncio.DefaultEventLoopPolicy):
        _loop_factory = loop

    return lambda: asyncio.set_event_loop_policy(Policy())


install_differing = installer(Differing)
install_aborting = installer(Aborting)
install_hanging = installer(Hanging)
install_grumbling = installer(Grumbling)
install_same = installer(Same)


def install_nothing():
    """Another loop runs than the name says."""


async def main(scene):
    """The program."""
    async def answer(reader, writer):
        peer = writer.get_extra_info("peername")
        writer.write(await reader.readline() + str(peer and peer[0]).encode())
        writer.close()
        await writer.wait_closed()

    async def ask():
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"who am I?\n")
        heard = await reader.read()
        writer.close()
        await writer.wait_closed()
        return heard.decode()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        await scene.attempt("ask", ask())
        await scene.fail("ask nobody", asyncio.open_unix_connection(scene.folder / "nobody"))


async def broken_main(scene):
    """A program that fails on every loop proves nothing."""
    await scene.attempt("ask nobody", asyncio.open_unix_connection(scene.folder / "nobody"))
