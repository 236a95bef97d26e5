"""Shared by the tests with third-party peers: servers, folders, certificates.

Every process that is started ends with its World, by its own process id.  The system
chooses the ports.  No test waits for a fixed time.
"""
import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PATIENCE = 300  # seconds until an expected event must have happened
SKIP = 77


def check(what, good):
    if not good:
        raise AssertionError(f"not as it should be: {what}")


def need(*names):
    """Return the path of the first program that exists; skip the test if there is none."""
    for name in names:
        if path := shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"):
            return path
    print(f"skipped: there is no {' or '.join(names)}")
    sys.exit(SKIP)


def until(what, look):
    """Poll `look` until its result is true, and return that."""
    end = time.monotonic() + PATIENCE
    while not (seen := look()):
        check(f"{what}, in {PATIENCE} s", time.monotonic() < end)
        time.sleep(0.005)
    return seen


def letters(size):
    """The body of that size that the server makes."""
    return (b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]


class Server:
    """A server program of ours, by default peer_server."""

    def __init__(self, world, program, *words, fds=(), scheme="http"):
        self.world, self.scheme = world, scheme
        self.log = open(world.folder / f"{Path(program).name}.log", "ab+")
        self.process = subprocess.Popen([program, *words], stdout=subprocess.PIPE,
                                        stderr=self.log, stdin=subprocess.DEVNULL,
                                        pass_fds=fds)
        self.port = None

    def await_port(self):
        line = self.process.stdout.readline().decode()
        found = re.match(r"listening on \w+://127\.0\.0\.1:(\d+)$", line)
        check(f"where it listens: {line!r} {self.said()}", found)
        self.port = int(found[1])

    def url(self, path):
        return f"{self.scheme}://localhost:{self.port}{path}"

    def stats(self):
        context = ssl.create_default_context(cafile=self.world.chain) \
            if self.scheme == "https" else None
        url = f"{self.scheme}://127.0.0.1:{self.port}/stats"
        with urllib.request.urlopen(url, timeout=PATIENCE, context=context) as reply:
            return json.load(reply)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def end(self):
        """The server must end after SIGTERM, with status 0 and without messages."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        check(f"the end of a server: {status}\n{self.said()}", status == 0 and not self.said())
        self.log.close()


class World(contextlib.ExitStack):
    """The resources of one run; they are released together."""

    def __init__(self, programs):
        super().__init__()
        (self.program, self.files_program, self.chat_program, self.tls_program,
         *self.more_programs) = programs
        self.folder = Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="weft-peers-", ignore_cleanup_errors=True)))
        self.site = self.folder / "site"
        self.site.mkdir()
        self.servers = []
        self.chain = self.key = None
        self.callback(self.kill_all)

    def kill_all(self):
        """Kill the servers that are left when a test failed."""
        for server in self.servers:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()

    def start(self, *args, **named):
        server = Server(self, *args, **named)
        self.servers.append(server)
        return server

    def serve(self, scheme="http"):
        words = []
        if scheme == "https":
            self.make_certificate()
            words = [self.chain, self.key]
        address = {"http": "tcp", "https": "tls"}[scheme] + "://127.0.0.1:0"
        server = self.start(self.program, address, str(self.site), *words, scheme=scheme)
        server.await_port()
        return server

    def serve_example(self, program, folder, door=None):
        """Start an example on our socket: connections wait there until it is ready."""
        door = door or self.listen()
        server = self.start(program, f"fd:{door.fileno()}", str(folder), fds=[door.fileno()])
        server.port = door.getsockname()[1]
        return server

    def listen(self):
        return self.enter_context(socket.create_server(("127.0.0.1", 0), backlog=511))

    def free_port(self):
        """Return a port that is bound, but not listened on: only SO_REUSEADDR gets it."""
        reserved = self.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]

    def make_certificate(self):
        """Make a self-signed certificate for this host."""
        if self.chain:
            return
        chain, key = str(self.folder / "chain.pem"), str(self.folder / "key.pem")
        subprocess.run([need("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=weft test", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", chain, "-keyout",
                        key], check=True, capture_output=True, timeout=PATIENCE)
        self.chain, self.key = chain, key

    def end(self):
        """End all servers; all must end cleanly."""
        for server in self.servers:
            server.end()
        self.servers.clear()
