"""The servers under test, `weft store` and redis-server, and connections to them."""
import atexit
import contextlib
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 300  # upper limit in seconds of every wait
SKIPPED = 77


class Reply(tuple):
    """(kind, value): bulk, status, error, integer, double, null, array, map, set, push, ..."""
    __slots__ = ()

    def __new__(cls, kind, value):
        return tuple.__new__(cls, (kind, value))


KINDS = {b"+": "status", b"-": "error", b":": "integer", b",": "double", b"#": "bool",
         b"(": "big"}
MANY = {b"*": "array", b"~": "set", b">": "push", b"%": "map"}


class Connection:
    """A client that sends commands and parses replies."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, commands):
        self.socket.sendall(b"".join(map(encode, commands)))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(f"the server has gone: {line!r}")
        kind, text = line[:1], line[1:-2]
        if kind in KINDS:
            return Reply(KINDS[kind], int(text) if kind == b":" else text)
        if kind == b"_":
            return Reply("null", "_")
        if kind in (b"$", b"=") and int(text) >= 0:
            data = self.file.read(int(text) + 2)
            if len(data) < int(text) + 2:
                raise EOFError("the server has gone")
            return Reply("bulk" if kind == b"$" else "verbatim", data[:-2])
        if text == b"-1":
            return Reply("null", kind.decode())
        if kind not in MANY:
            raise ValueError(f"no reply: {line!r}")
        count = int(text) * (2 if kind == b"%" else 1)
        return Reply(MANY[kind], [self.read() for _ in range(count)])

    def read_all(self):
        """Read replies until the end of the stream."""
        replies = []
        while self.file.peek(1):
            replies.append(self.read())
        return replies

    def ask(self, *words):
        self.send([words])
        return self.read()


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {PATIENCE} s")
        time.sleep(0.01)


def answers(path):
    with contextlib.suppress(OSError, EOFError):
        connection = Connection(path)
        try:
            return connection.ask("PING") == Reply("status", b"PONG")
        finally:
            connection.close()
    return False


class Server:
    """A server at a Unix socket.  It is killed when this program ends, in whatever way."""

    def __init__(self, words, path):
        self.path = path
        end = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen([*end, *map(str, words)], stdout=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        until(lambda: answers(path) or self.process.poll() is not None, f"{words[0]} answers")
        if self.process.poll() is not None:
            sys.exit(f"{words[0]} ended with {self.process.returncode}")

    def stop(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)


def start_store(program, folder, *options):
    path = Path(folder) / "store"
    return Server([program, "store", "--listen", f"unix:{path}", *options], path)


def start_redis(folder):
    program = shutil.which("redis-server")
    if not program:
        print("redis-server is not here")
        sys.exit(SKIPPED)
    path = Path(folder) / "redis"
    return Server([program, "--port", 0, "--unixsocket", path, "--save", "", "--appendonly",
                   "no", "--dir", folder, "--logfile", Path(folder) / "log"], path)
