"""aiohttp: a server and its clients, plain, over TLS and over a Unix socket."""
import asyncio

import aiohttp
from aiohttp import web

from scene import bytes_of, digest, listening

BIG = bytes_of(3_000_000)


class Site:
    """The application, and a record of its startup and cleanup."""

    def __init__(self, scene):
        self.forever = asyncio.Event()
        self.file = scene.folder / "aiohttp.bin"
        self.file.write_bytes(BIG)
        self.app = web.Application(client_max_size=10_000_000)
        self.app.add_routes([
            web.get("/hello/{name}", self.hello), web.post("/echo", self.echo),
            web.get("/stream", self.stream), web.get("/file", self.send_file),
            web.get("/fault", self.fault), web.get("/never", self.never),
            web.get("/socket", self.socket), web.get("/small", self.small)])
        self.app.on_startup.append(self.remember("startup"))
        self.app.on_cleanup.append(self.remember("cleanup"))
        self.events = []

    def remember(self, what):
        async def event(_app):
            self.events.append(what)
        return event

    async def hello(self, request):
        reply = web.json_response({"name": request.match_info["name"], "peer": request.remote,
                                   "scheme": request.scheme, "query": dict(request.query)})
        reply.set_cookie("seen", "yes")
        return reply

    async def small(self, request):
        return web.Response(text=request.query["n"])

    async def echo(self, request):
        return web.Response(body=await request.read())

    async def stream(self, request):
        reply = web.StreamResponse()
        reply.enable_compression()
        await reply.prepare(request)
        for n in range(50):
            await reply.write(b"%d\n" % n * 1000)
        await reply.write_eof()
        return reply

    async def send_file(self, _request):
        return web.FileResponse(self.file)

    async def fault(self, _request):
        raise RuntimeError("a fault in a handler")

    async def never(self, _request):
        await self.forever.wait()

    async def socket(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type == aiohttp.WSMsgType.TEXT and message.data == "end":
                await socket.close(code=4001, message=b"as you wish")
            elif message.type == aiohttp.WSMsgType.TEXT:
                await socket.send_str(message.data[::-1])
            elif message.type == aiohttp.WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        return socket


async def read(session, method, url, **named):
    async with session.request(method, url, **named) as reply:
        return [reply.status, digest(await reply.read())]


async def pieces():
    for n in range(30):
        yield bytes_of(10_000, n)
        await asyncio.sleep(0)


async def talk(scene, session, base):
    """The same exchange for each kind of connection."""
    async with session.get(f"{base}/hello/world", params={"a": "b c"}) as reply:
        scene.note("hello", [reply.status, await reply.json(), reply.headers["Content-Type"],
                             reply.cookies["seen"].value])
    await scene.attempt("echo", read(session, "POST", f"{base}/echo", data=BIG))
    await scene.attempt("chunks", read(session, "POST", f"{base}/echo", data=pieces()))
    await scene.attempt("continue", read(session, "POST", f"{base}/echo", data=b"x" * 70000,
                                         expect100=True))
    await scene.attempt("stream", read(session, "GET", f"{base}/stream"))
    await scene.attempt("file", read(session, "GET", f"{base}/file"))
    await scene.attempt("range", read(session, "GET", f"{base}/file",
                                      headers={"Range": "bytes=1000-1999"}))
    await scene.attempt("none", read(session, "GET", f"{base}/none"))
    await scene.attempt("many", gather(session, base))
    await scene.attempt("socket", chat(session, base))


async def gather(session, base):
    replies = await asyncio.gather(*(read(session, "GET", f"{base}/small?n={n}")
                                     for n in range(200)))
    return replies


async def chat(session, base):
    heard = []
    async with session.ws_connect(f"{base}/socket") as socket:
        await socket.send_str("forth")
        heard.append(await socket.receive_str())
        await socket.send_bytes(BIG[:500_000])
        heard.append(digest(await socket.receive_bytes()))
        await socket.ping(b"still there")
        await socket.send_str("end")
        last = await socket.receive()
        heard += [last.type.name, last.data, last.extra, socket.close_code]
    return heard


async def go_wrong(scene, base):
    """Errors must be the same on all loops."""
    short = aiohttp.ClientTimeout(total=0.3)
    async with aiohttp.ClientSession() as session:
        await scene.attempt("fault", read(session, "GET", f"{base}/fault"))
        await scene.fail("timeout", read(session, "GET", f"{base}/never", timeout=short))
    with listening() as (_, port):
        pass
    async with aiohttp.ClientSession() as session:
        await scene.fail("refused", read(session, "GET", f"http://127.0.0.1:{port}/"))


async def distrust(scene, base):
    async with aiohttp.ClientSession() as session:
        await scene.fail("distrust", read(session, "GET", f"{base}/hello/x"))


def counter(scene, kind):
    """Count connections that are made and reused: this checks keep-alive from outside."""
    counts, trace = {"made": 0, "used again": 0}, aiohttp.TraceConfig()

    async def made(*_):
        counts["made"] += 1

    async def again(*_):
        counts["used again"] += 1

    trace.on_connection_create_end.append(made)
    trace.on_connection_reuseconn.append(again)
    scene.note(f"{kind} connections", counts)
    return trace


async def main(scene):
    site = Site(scene)
    runner = web.AppRunner(site.app, access_log=None)
    await runner.setup()
    path = str(scene.folder / "aiohttp.sock")
    with listening() as (plain, port), listening() as (secure, secure_port):
        await web.SockSite(runner, plain).start()
        await web.SockSite(runner, secure, ssl_context=scene.tls_server()).start()
        await web.UnixSite(runner, path).start()
        for kind, base, make in (
                ("plain", f"http://127.0.0.1:{port}", aiohttp.TCPConnector),
                ("TLS", f"https://localhost:{secure_port}",
                 lambda **named: aiohttp.TCPConnector(ssl=scene.tls_client(), **named)),
                ("Unix", "http://unix", lambda **named: aiohttp.UnixConnector(path, **named))):
            scene.note(kind)
            # One connection at a time, so that their number does not depend on speed.
            async with aiohttp.ClientSession(connector=make(limit=1),
                                             trace_configs=[counter(scene, kind)]) as session:
                await talk(scene, session, base)
        await go_wrong(scene, f"http://127.0.0.1:{port}")
        await distrust(scene, f"https://localhost:{secure_port}")
        await runner.cleanup()
        scene.note("events", site.events)
        async with aiohttp.ClientSession() as session:
            await scene.fail("closed", read(session, "GET", f"http://127.0.0.1:{port}/"))
