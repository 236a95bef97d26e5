"""An echo server, which ../pythons.py measures.

    echo.py LOOP WAY [FOLDER]      LOOP: asyncio, uvloop, weft

    protocol    a Protocol and its transport
    streams     a StreamReader and a StreamWriter
    sock        the loop's own sock_recv() and sock_sendall()
    tls         as protocol, over TLS with FOLDER's cert.pem and key.pem

It prints its port, and serves until it is terminated.
"""
import asyncio
import functools
import socket
import ssl
import sys
from pathlib import Path

from loops import new_loop

READ_BYTES = 65536


def tell_port(listener):
    print(listener.getsockname()[1], flush=True)


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


async def serve_protocol(context=None):
    loop = asyncio.get_running_loop()
    return await loop.create_server(Echo, "127.0.0.1", 0, ssl=context)


async def serve_tls(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(folder, "cert.pem"), Path(folder, "key.pem"))
    return await serve_protocol(context)


async def echo_stream(reader, writer):
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve_streams():
    return await asyncio.start_server(echo_stream, "127.0.0.1", 0)


async def echo_sock(loop, peer):
    with peer:
        while data := await loop.sock_recv(peer, READ_BYTES):
            await loop.sock_sendall(peer, data)


async def accept_all(loop, listener):
    tasks = set()
    while True:
        peer, _ = await loop.sock_accept(listener)
        # The transports of all loops set this, too.
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(echo_sock(loop, peer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def serve_sock():
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        listener.setblocking(False)
        tell_port(listener)
        await accept_all(asyncio.get_running_loop(), listener)


SERVERS = {"protocol": serve_protocol, "streams": serve_streams, "tls": serve_tls}


async def serve(way, *words):
    if way == "sock":
        return await serve_sock()
    server = await SERVERS[way](*words)
    tell_port(server.sockets[0])
    return await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=functools.partial(new_loop, sys.argv[1])) as runner:
        runner.run(serve(*sys.argv[2:]))
