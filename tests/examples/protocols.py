"""Run the examples of HTTP and Redis."""
import contextlib
import http.client
import http.server
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from harness import (PATIENCE, check, start, await_line, finish, receive, await_bytes, reserve,
                     listen, connect, end, ask, make_certificate, start_redis)


def tunnel(program):
    """An echo through the tunnel; a request without an upgrade; a target that is gone."""
    with contextlib.ExitStack() as stack:
        behind, door = listen(stack), listen(stack)
        target = f"tcp://127.0.0.1:{behind.getsockname()[1]}"
        port = door.getsockname()[1]
        process = start(program, f"fd:{door.fileno()}", target, fds=[door.fileno()])
        with connect(port) as client:
            client.sendall(b"GET /tunnel HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\n"
                           b"Upgrade: tcp\r\n\r\nhello")
            peer, _ = behind.accept()
            peer.settimeout(PATIENCE)
            with peer:
                await_bytes(client, b"\r\n\r\n")
                check("what came with the request", receive(peer, 5) == b"hello")
                peer.sendall(b"x" * 100000)
                check("the other way", receive(client, 100000) == b"x" * 100000)
                client.shutdown(socket.SHUT_WR)
                check("the end", peer.recv(1) == b"")
                peer.sendall(b"bye")
            check("the rest", receive(client, 4) == b"bye")
        check("no upgrade", ask(port, "GET", "/tunnel")[0] == 426)
        behind.close()
        status, _, body = ask(port, "GET", "/tunnel")
        check(body, status == 502 and b"connection refused" in body)
        process.send_signal(signal.SIGTERM)
        finish(process)


class Store(http.server.BaseHTTPRequestHandler):
    """Keeps one body that was sent by PUT, in chunks; refuses /full at once."""
    protocol_version = "HTTP/1.1"
    body = b""

    def handle(self):
        with contextlib.suppress(ConnectionError):  # a client may leave at any time
            super().handle()

    def do_PUT(self):
        if self.path == "/full":
            self.close_connection = True
            self.answer(507, b"")
            return
        Store.body = b""
        while size := int(self.rfile.readline(), 16):
            Store.body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.answer(201, b"")

    def do_GET(self):
        if self.path == "/nothing":
            self.answer(404, b"nothing\n")
            return
        size = len(Store.body) + (self.path == "/cut")
        self.close_connection = self.path == "/cut"
        self.answer(200, Store.body, size)

    def answer(self, status, body, size=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def transfer(program):
    """A file there and back; one that the server refuses, does not have, or cuts."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        there, back = str(folder / "there"), str(folder / "back")
        Path(there).write_bytes(bytes(range(256)) * 20000)
        check("no output", finish(start(program, "put", there, url + "file")) == "")
        check("the body", Store.body == Path(there).read_bytes())
        check("no output", finish(start(program, "get", back, url + "file")) == "")
        check("the file", Path(back).read_bytes() == Store.body)
        out = finish(start(program, "put", there, url + "full"), 1)
        check(out, f"{url}full: status 507" in out)
        out = finish(start(program, "get", back, url + "nothing"), 1)
        check(out, f"{url}nothing: status 404" in out)
        finish(start(program, "get", back, url + "cut"), 1)
        check("still the whole file", Path(back).read_bytes() == Store.body)
        out = finish(start(program, "put", there + "x", url + "file"), 1)
        check(out, "not found" in out)


def redis_ping(program):
    """Two servers at once, of which one is not there."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        start_redis(stack, folder)
        good = f"redis+unix:{folder}/socket"
        bad = f"redis://me:secret@127.0.0.1:{reserve(stack)}"
        out = finish(start(program, good))
        check(out, re.fullmatch(r"(\S+: PONG after \d+ us\n){3}", out))
        out = finish(start(program, bad, good), 1)
        check(out, out.count(f"{good}: PONG after") == 3 and "secret" not in out
              and "connection refused\n" in out and len(out.splitlines()) == 4)


def shop(program):
    """Of five customers three get an item, also a second time; no server."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        start_redis(stack, folder)
        for _ in range(2):
            out = finish(start(program, f"redis+unix:{folder}/socket"))
            buyers = re.findall(r"^ship to (\w+)$", out, re.M)
            losers = re.findall(r"^(\w+): sold out$", out, re.M)
            check(out, sorted(buyers + losers) == ["ann", "bob", "cid", "dee", "eve"])
            check(out, len(buyers) == 3 and re.search(
                r"3 orders, 750 cents, 0 left\n\d+ bytes sent, over 2 connections\n$", out))
        out = finish(start(program, f"redis://127.0.0.1:{reserve(stack)}"), 1)
        check(out, "refused" in out)


def https(program):
    """Pages over TLS, also after the certificate was replaced; plain text is refused."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        port = reserve(stack)
        process = start(program, f"tls://127.0.0.1:{port}", chain, key)
        check("hello", ask_https(port, chain) == (200, b"hello\n"))
        make_certificate(folder)
        process.send_signal(signal.SIGHUP)
        await_line(process, "reload: done")
        check("hello", ask_https(port, chain) == (200, b"hello\n"))
        with connect(port) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                check("no plain text", b"hello" not in receive(plain, 1000))
        process.send_signal(signal.SIGTERM)
        finish(process)


def ask_https(port, chain):
    """GET / of a server that starts; return status and body."""
    context = ssl.create_default_context(cafile=chain)
    end = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE,
                                                 context=context)
        try:
            connection.request("GET", "/")
        except ConnectionRefusedError:
            check("a server that starts", time.monotonic() < end)
            time.sleep(0.01)
            continue
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, data


def files(program):
    """Files in full, in part, revalidated, and missing; none from outside the folder."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "inside").mkdir()
        (folder / "inside" / "index.html").write_text("<p>hello")
        (folder / "data.bin").write_bytes(bytes(range(256)) * 1000)
        (folder / "inside" / "out").symlink_to("/etc/passwd")
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", str(folder), fds=[fd])
        status, headers, data = ask(port, "GET", "/inside/")
        check(status, (status, data) == (200, b"<p>hello"))
        check(headers, headers["Content-Type"].startswith("text/html"))
        status, headers, data = ask(port, "GET", "/data.bin")
        check(status, status == 200 and data == bytes(range(256)) * 1000)
        again = {"If-None-Match": headers["ETag"]}
        check("304", ask(port, "GET", "/data.bin", headers=again)[0] == 304)
        status, headers, data = ask(port, "GET", "/data.bin", headers={"Range": "bytes=2-4"})
        check(status, (status, data) == (206, b"\2\3\4"))
        for path in ("/nothing", "/../etc/passwd", "/inside/out", "/%2e%2e/etc/passwd"):
            status, _, data = ask(port, "GET", path)
            check(path, status in (400, 403, 404) and b"root" not in data)
        check("405", ask(port, "POST", "/data.bin", b"x")[0] == 405)
        process.send_signal(signal.SIGTERM)
        out = finish(process)
        check(out, re.fullmatch(r"\d requests and \d malformed ones, on 9 connections\n", out))


def hear(port):
    """Connect a listener of the chat; check the first line that it gets."""
    peer = connect(port)
    peer.sendall(b"GET /lines HTTP/1.1\r\nHost: here\r\n\r\n")
    lines = peer.makefile("rb")
    hear_line(lines, b"welcome")
    return peer, lines


def hear_line(lines, text):
    while (line := lines.readline()) != b"data: " + text + b"\n":
        check(f"no {text!r} before the end", line)


def chat(program):
    """Every line posted reaches all listeners, also after one has left; the page is
    served."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        examples = Path(__file__).resolve().parents[2] / "examples"
        process = start(program, f"fd:{fd}", str(examples), fds=[fd])
        status, headers, data = ask(port, "GET", "/")
        check(status, status == 200 and b"EventSource" in data)
        guests = [hear(port) for _ in range(3)]
        check("204", ask(port, "POST", "/lines", "good day")[0] == 204)
        for _, lines in guests:
            hear_line(lines, b"good day")
        guests.pop()[0].close()
        check("204", ask(port, "POST", "/lines", "good bye")[0] == 204)
        for _, lines in guests:
            hear_line(lines, b"good bye")
        check("413", ask(port, "POST", "/lines", "x" * 1000)[0] == 413)
        end([peer for peer, _ in guests], [process])


class Site(http.server.BaseHTTPRequestHandler):
    """A page that redirects, one that is long, one that is sent in chunks."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "/chunks")
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n7\r\n, world\r\n1\r\n\n\r\n0\r\n\r\n")
            return
        body = b"" if self.path == "/moved" else b"long\n" * 100000
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def site(stack, chain, key):
    """Start Python's HTTP server with TLS; return its port."""
    server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_address[1]


def fetch(program):
    """Pages of a trusted server; then of an untrusted one, and of a closed port."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        url = f"https://localhost:{site(stack, chain, key)}"
        out = finish(start(program, chain, url + "/moved"))
        check(out, out == f"200 {url}/chunks\nhello, world\n")
        out = finish(start(program, chain, *[url + "/long"] * 4))
        check(len(out), out == (f"200 {url}/long\n" + "long\n" * 100000) * 4)
        (folder / "other").mkdir()
        stranger, _ = make_certificate(folder / "other")
        out = finish(start(program, stranger, url + "/long"), 1)
        check(out, f"GET {url}/long: connect tls://" in out and "self-signed" in out)
        nobody = f"http://127.0.0.1:{reserve(stack)}/"
        out = finish(start(program, "-", nobody), 1)
        check(out, f"GET {nobody}: connect tcp://" in out and "refused" in out)


def hiredis(program):
    """With a server, and without one."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        start_redis(stack, folder)
        out = finish(start(program, f"{folder}/socket"))
        check(out, out == "visit 1\nvisit 2\nvisit 3\n")
        out = finish(start(program, "127.0.0.1", str(reserve(stack))), 1)
        check(out, out == "lost: Connection refused\n" * 3)


def cache_aside(program):
    """First every lookup misses, then every one hits; without a server all miss."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = f"redis+unix:{folder}/socket"
        out = finish(start(program, address))
        check(out, out.count("miss profile of ") == 100)
        if not shutil.which("redis-server"):
            return
        server = subprocess.Popen(["redis-server", "--port", "0", "--save", "", "--dir", folder,
                                   "--unixsocket", folder / "socket"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.kill)
        end = time.monotonic() + PATIENCE
        while not (folder / "socket").exists():
            check("a server that starts", time.monotonic() < end)
            time.sleep(0.01)
        for word in "miss", "hit":
            out = sorted(finish(start(program, address)).splitlines())
            check(out, out == sorted(f"{word} profile of {i}" for i in range(100)))
