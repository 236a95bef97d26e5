"""A server that completes the requests it has accepted before it ends (SIGTERM, Ctrl-C)."""
import asyncio
import signal

import weft


async def answer(reader, writer):
    name = (await reader.readline()).decode().strip()
    await asyncio.sleep(0.2)  # the work
    writer.write(f"hello {name}\n".encode())
    await writer.drain()
    writer.close()


async def main():
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    begun = set()

    def serve(reader, writer):
        task = loop.create_task(answer(reader, writer))
        begun.add(task)
        task.add_done_callback(begun.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("serving at", server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()  # no more connections are accepted
    if begun:
        await asyncio.wait(begun, timeout=5)
    print("all is answered", flush=True)


weft.run(main())
