"""anyio and httpx: streams of all kinds, threads, processes, signals, and an HTTP
client."""
import os
import signal
import socket
import sys

import anyio
import anyio.abc
import anyio.from_thread
import anyio.streams.tls
import anyio.to_process
import anyio.to_thread
import httpx

from scene import bytes_of, digest

BIG = bytes_of(1_000_000)
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


async def echo(stream):
    async with stream:
        async for data in stream:
            await stream.send(data)


async def hear(stream, data):
    """Send the data, and receive the echo meanwhile."""
    heard = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.send, data)
        while len(heard) < len(data):
            heard += await stream.receive()
    return digest(heard)


async def exchange(listener, connect):
    """Ten clients at once.  Each one closes after it has received everything: this
    version of anyio cannot separate the last data from the end of the stream, on any
    loop."""
    results = []

    async def one(n):
        async with await connect() as stream:
            results.append(await hear(stream, bytes_of(200_000, n)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, echo)
        async with anyio.create_task_group() as clients:
            for n in range(10):
                clients.start_soon(one, n)
        tasks.cancel_scope.cancel()
    await listener.aclose()
    return sorted(results)


async def tcp():
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    return await exchange(listener, lambda: anyio.connect_tcp("localhost", port))


async def unix(scene):
    path = scene.folder / "anyio.sock"
    listener = await anyio.create_unix_listener(path)
    try:
        return await exchange(listener, lambda: anyio.connect_unix(path))
    finally:
        path.unlink()


async def tls(scene):
    plain = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = plain.extra(anyio.abc.SocketAttribute.local_port)
    versions = set()

    async def connect():
        stream = await anyio.connect_tcp("localhost", port, ssl_context=scene.tls_client())
        versions.add(stream.extra(anyio.streams.tls.TLSAttribute.tls_version))
        return stream

    listener = anyio.streams.tls.TLSListener(plain, scene.tls_server())
    return [await exchange(listener, connect), sorted(versions)]


async def udp():
    async with await anyio.create_udp_socket(socket.AF_INET, local_host="127.0.0.1") as server:
        port = server.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.create_connected_udp_socket("127.0.0.1", port) as client:
            for n in range(1, 20):
                await client.send(bytes_of(n * 50, n))
                data, sender = await server.receive()
                await server.sendto(data[::-1], *sender)
                if await client.receive() != bytes_of(n * 50, n)[::-1]:
                    return n
    return "all"


async def readiness():
    """Wait for sockets that anyio did not create."""
    left, right = socket.socketpair()
    with left, right:
        for each in (left, right):
            each.setblocking(False)
        await anyio.wait_socket_writable(left)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.wait_socket_readable, right)
            left.send(b"now")
        return right.recv(10).decode()


async def cancellation():
    seen, ended = [], []
    with anyio.move_on_after(0.05) as scope:
        await anyio.sleep_forever()
    seen.append(scope.cancel_called)
    try:
        with anyio.fail_after(0.05):
            await anyio.sleep_forever()
    except TimeoutError as error:
        seen.append(type(error).__name__)

    async def finish(n):
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)
                ended.append(n)

    try:
        async with anyio.create_task_group() as tasks:
            for n in range(3):
                tasks.start_soon(finish, n)
            await anyio.sleep(0)
            raise LookupError("enough")
    except LookupError as error:
        seen.append(str(error))
    return [*seen, sorted(ended)]


async def threads():
    """A thread calls into the loop, and a portal runs its own loop in a thread."""
    def outside():
        with anyio.from_thread.start_blocking_portal() as portal:
            return [portal.call(answer, n) for n in range(5)]

    async def answer(n):
        await anyio.sleep(0)
        return n * 3

    async def nap(n):
        return await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(answer, n))

    return [[await nap(n) for n in range(5)], await anyio.to_thread.run_sync(outside)]


async def processes():
    seen = []
    code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); " \
           "print('done', file=sys.stderr); sys.exit(3)"
    done = await anyio.run_process([sys.executable, "-c", code], input=BIG, check=False)
    seen.append([done.returncode, digest(done.stdout), done.stderr.decode()])
    async with await anyio.open_process([sys.executable, "-c", "input()"]) as process:
        process.terminate()
        seen.append(await process.wait())
    seen.append(await anyio.to_process.run_sync(pow, 7, 20))
    return seen


async def signals():
    seen = []
    with anyio.open_signal_receiver(signal.SIGUSR1, signal.SIGUSR2) as received:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
            os.kill(os.getpid(), number)
            seen.append((await received.__anext__()).name)
    return seen


async def site(stream):
    """A minimal HTTP server; the test is about the client."""
    async with stream:
        head = b""
        while True:
            while b"\r\n\r\n" not in head:
                try:
                    head += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
            request, _, head = head.partition(b"\r\n\r\n")
            path = request.split()[1]
            if path == b"/never":
                await anyio.sleep_forever()
            if path == b"/cut":
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
                return
            await stream.send(PAGE % (len(BIG), BIG) if path == b"/big" else PAGE % (2, b"ok"))


async def fetch(client, path):
    reply = await client.get(path)
    return [reply.status_code, digest(reply.content)]


async def stream_page(client):
    sizes = 0
    async with client.stream("GET", "/big") as reply:
        async for part in reply.aiter_bytes(1000):
            sizes += len(part)
    return sizes


async def browse(client):
    pages = []

    async def one():
        pages.append(await fetch(client, "/"))

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(one)
    return pages


async def http(scene):
    for secure in (False, True):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        if secure:
            listener = anyio.streams.tls.TLSListener(listener, scene.tls_server())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, site)
            async with httpx.AsyncClient(
                    base_url=f"http{'s' * secure}://localhost:{port}", trust_env=False,
                    verify=scene.tls_client() if secure else True,
                    limits=httpx.Limits(max_connections=5)) as client:
                await scene.attempt("page", fetch(client, "/"))
                await scene.attempt("big", fetch(client, "/big"))
                await scene.attempt("stream", stream_page(client))
                await scene.attempt("many", browse(client))
                await scene.fail("cut", fetch(client, "/cut"))
                await scene.fail("never", client.get("/never", timeout=0.3))
            tasks.cancel_scope.cancel()
        await listener.aclose()
    async with httpx.AsyncClient(trust_env=False) as client:
        await scene.fail("closed", client.get(f"http://localhost:{port}/"))


async def main(scene):
    await scene.attempt("tcp", tcp())
    await scene.attempt("unix", unix(scene))
    await scene.attempt("tls", tls(scene))
    await scene.attempt("udp", udp())
    await scene.attempt("readiness", readiness())
    await scene.attempt("cancellation", cancellation())
    await scene.attempt("threads", threads())
    await scene.attempt("processes", processes())
    await scene.attempt("signals", signals())
    await http(scene)
