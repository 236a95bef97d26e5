"""uvicorn: an ASGI application, plain and over TLS, driven by httpx, ended by a signal."""
import asyncio
import os
import signal

import httpx
import uvicorn
import websockets

from scene import bytes_of, digest, listening

BIG = bytes_of(2_000_000)


class App:
    def __init__(self):
        self.events = []
        self.left = asyncio.Event()

    async def __call__(self, scope, receive, send):
        await getattr(self, scope["type"])(scope, receive, send)

    async def lifespan(self, _scope, receive, send):
        while True:
            event = (await receive())["type"]
            self.events.append(event)
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def websocket(self, _scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        while (event := await receive())["type"] == "websocket.receive":
            if event.get("text") == "end":
                await send({"type": "websocket.close", "code": 4002})
                return
            await send({"type": "websocket.send", "text": event["text"].upper()})

    async def http(self, scope, receive, send):
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        if scope["path"] == "/fault":
            raise RuntimeError("a fault in the application")
        await send({"type": "http.response.start", "status": 200, "headers": [
            (b"x-scheme", scope["scheme"].encode()), (b"x-method", scope["method"].encode())]})
        if scope["path"] == "/never":
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            await receive()
            self.left.set()
            return
        for n in range(20 if scope["path"] == "/stream" else 0):
            await send({"type": "http.response.body", "body": b"%d" % n * 5000,
                        "more_body": True})
        await send({"type": "http.response.body", "body": body})


async def read(client, method, path, **named):
    reply = await client.request(method, path, **named)
    return [reply.status_code, reply.headers.get("x-scheme"), reply.headers.get("x-method"),
            reply.http_version, digest(reply.content)]


async def pieces():
    for n in range(20):
        yield bytes_of(7_000, n)


async def leave(client, app):
    """Read a part of the response, and disconnect."""
    async with client.stream("GET", "/never") as reply:
        async for part in reply.aiter_raw():
            break
    await app.left.wait()
    return part.decode()


async def chat(scene, port, secure):
    where = f"{'wss' if secure else 'ws'}://localhost:{port}/"
    heard = []
    async with websockets.connect(where, ssl=scene.tls_client() if secure else None) as socket:
        for word in ("one", "two" * 30000):
            await socket.send(word)
            heard.append(digest((await socket.recv()).encode()))
        await socket.send("end")
        await socket.wait_closed()
    return [*heard, socket.close_code]


async def drive(scene, app, port, secure):
    base = f"{'https' if secure else 'http'}://localhost:{port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False,
                                 verify=scene.tls_client() if secure else True) as client:
        await scene.attempt("get", read(client, "GET", "/"))
        await scene.attempt("post", read(client, "POST", "/", content=BIG))
        await scene.attempt("chunks", read(client, "POST", "/", content=pieces()))
        await scene.attempt("stream", read(client, "GET", "/stream"))
        await scene.attempt("head", read(client, "HEAD", "/"))
        await scene.attempt("fault", read(client, "GET", "/fault"))
        await scene.attempt("many", asyncio.gather(*(
            read(client, "POST", "/", content=b"%d" % n) for n in range(100))))
        await scene.attempt("leave", leave(client, app))
        await scene.attempt("chat", chat(scene, port, secure))


async def serve(scene, secure):
    app = App()
    files = {"ssl_certfile": scene.world["chain"], "ssl_keyfile": scene.world["key"]} \
        if secure else {}
    # "none" keeps the installed loop; otherwise uvicorn would choose one itself.
    config = uvicorn.Config(app, loop="none", http="h11", log_level="critical", **files)
    with listening() as (door, port):
        server = asyncio.ensure_future(uvicorn.Server(config).serve(sockets=[door]))
        await drive(scene, app, port, secure)
        os.kill(os.getpid(), signal.SIGTERM)
        await scene.attempt("the end", server)
    scene.note("events", app.events)


async def main(scene):
    for secure in (False, True):
        scene.note("TLS" if secure else "plain")
        await serve(scene, secure)
