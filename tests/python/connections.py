#!/usr/bin/env python3
"""Make many connections, each with a request and a reply, and check that nothing leaks.

    connections.py [COUNT]      default: 20,000

They use a Unix socket, which cannot run out of ports; half of them use transports and
protocols, half streams.  After a tenth of them all caches have their size; from then on
neither blocks of Python's memory nor descriptors may grow, nor the process by more than a
few megabytes.
"""
import asyncio
import gc
import os
import sys
import tempfile

import weft

TOGETHER = 50
BLOCKS_MAX, BYTES_MAX = 500, 4 << 20


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)
        self.transport.close()


class Ask(asyncio.Protocol):
    def __init__(self, loop):
        self.lost, self.data = loop.create_future(), b""

    def connection_made(self, transport):
        transport.write(b"question")

    def data_received(self, data):
        self.data += data

    def connection_lost(self, exc):
        self.lost.set_result(self.data)


async def ask(path):
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_unix_connection(lambda: Ask(loop), path)
    assert await protocol.lost == b"question"


async def ask_stream(path):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"question")
    assert await reader.read() == b"question"
    writer.close()
    await writer.wait_closed()


def held():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[1])
    return (sys.getallocatedblocks(), len(os.listdir("/proc/self/fd")),
            pages * os.sysconf("SC_PAGESIZE"))


async def make(path, count):
    for _ in range(count // (2 * TOGETHER)):
        await asyncio.gather(*(each(path) for _ in range(TOGETHER) for each in (ask, ask_stream)))


async def main(count):
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        server = await loop.create_unix_server(Echo, path, backlog=4 * TOGETHER)
        await make(path, count // 10)
        before = held()
        await make(path, count - count // 10)
        blocks, fds, rss = (b - a for a, b in zip(before, held()))
        server.close()
    print(f"{count} connections: {blocks} blocks, {fds} descriptors, {rss} bytes more")
    assert blocks <= BLOCKS_MAX and fds <= 0 and rss <= BYTES_MAX


weft.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
