"""An echo server, and a client that talks to it."""
import asyncio

import weft


async def serve(reader, writer):
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        for word in (b"warp", b"weft"):
            writer.write(word + b"\n")
            print((await reader.readline()).decode().rstrip())
        writer.close()
        await writer.wait_closed()


weft.run(main())
