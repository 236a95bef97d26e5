"""websockets: a server and many clients, plain, over TLS and over a Unix socket."""
import asyncio
import http

import websockets

from scene import bytes_of, digest, listening

CLIENTS = 60


class Room:
    """The server side: its clients, and how their connections ended."""

    def __init__(self):
        self.present, self.ended = set(), []

    async def enter(self, socket, path=None):
        self.present.add(socket)
        try:
            async for message in socket:
                await self.answer(socket, message)
        except websockets.ConnectionClosed as error:
            self.ended.append(type(error).__name__)
        finally:
            self.present.discard(socket)

    async def answer(self, socket, message):
        if message == "leave me":
            await socket.close(4003, "so be it")
        elif message == "in parts":
            await socket.send(word for word in ("a", "b" * 70000, "c"))
        elif message == "all":
            websockets.broadcast(self.present, "to all")
        else:
            await socket.send(message)


async def refuse(path, _headers):
    if path == "/closed":
        return http.HTTPStatus.FORBIDDEN, [("X-Why", "closed")], b"not here\n"
    return None


async def converse(connect, **named):
    heard = []
    async with connect(**named) as socket:
        for size in (0, 1, 125, 126, 65535, 65536, 300_000):
            await socket.send(bytes_of(size))
            heard.append(digest(await socket.recv()))
        await socket.send("grüße")
        heard.append(await socket.recv())
        await socket.send("in parts")
        heard.append(digest((await socket.recv()).encode()))
        await socket.send([b"x" * 1000, b"y" * 100_000])
        heard.append(digest(await socket.recv()))
        waiter = await socket.ping(b"here?")
        await waiter
        heard.append(socket.extensions and [e.name for e in socket.extensions])
    return [*heard, socket.close_code, socket.close_reason]


async def be_left(connect):
    async with connect() as socket:
        await socket.send("leave me")
        try:
            await socket.recv()
        except websockets.ConnectionClosed as error:
            return [type(error).__name__, error.rcvd.code, error.rcvd.reason]
    return None


async def say_too_much(connect):
    async with connect() as socket:
        await socket.send(bytes(2_000_000))
        await socket.wait_closed()
    return socket.close_code


async def crowd(connect):
    """Many clients at once: each one receives its own echo; after all have, one
    broadcasts."""
    all_here = asyncio.Barrier(CLIENTS)

    async def one(n):
        async with connect() as socket:
            await socket.send(str(n))
            heard = [await socket.recv()]
            await all_here.wait()
            if n == 0:
                await socket.send("all")
            heard.append(await socket.recv())
            return heard
    return await asyncio.gather(*(one(n) for n in range(CLIENTS)))


async def vanish(connect):
    """The server gets a connection that ends without a close frame."""
    socket = await connect()
    socket.transport.abort()
    await socket.wait_closed()
    return socket.close_code


async def outlive(connect, server):
    """A server that closes notifies its clients."""
    socket = await connect()
    await socket.send("x")
    await socket.recv()
    server.close()
    await server.wait_closed()
    await socket.wait_closed()
    return [socket.close_code, socket.open]


async def try_all(scene, connect, server, room):
    await scene.attempt("converse", converse(connect))
    await scene.attempt("uncompressed", converse(connect, compression=None))
    await scene.fail("refused", connect("/closed"))
    await scene.attempt("be left", be_left(connect))
    await scene.attempt("too much", say_too_much(connect))
    await scene.attempt("crowd", crowd(connect))
    await scene.attempt("vanish", vanish(connect))
    await scene.attempt("outlive", outlive(connect, server))
    scene.note("ended", sorted(room.ended))


async def main(scene):
    for secure in (False, True):
        scene.note("TLS" if secure else "plain")
        room, base = Room(), "wss" if secure else "ws"
        context = scene.tls_client() if secure else None
        with listening() as (door, port):
            server = await websockets.serve(
                room.enter, sock=door, process_request=refuse,
                ssl=scene.tls_server() if secure else None)
            await try_all(scene, lambda path="/", **named: websockets.connect(
                f"{base}://localhost:{port}{path}", ssl=context, **named), server, room)
    scene.note("Unix")
    path, room = str(scene.folder / "websockets.sock"), Room()
    server = await websockets.unix_serve(room.enter, path, process_request=refuse)
    await try_all(scene, lambda where="/", **named: websockets.unix_connect(
        path, f"ws://localhost{where}", **named), server, room)
