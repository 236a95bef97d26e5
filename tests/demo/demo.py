"""A running demo, requests to it, and the store behind it, for the tests."""
import contextlib
import json
import re
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "outside"))
from seen import PATIENCE, check, equal, wait_until  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- HTTP ----------------------------------------------------------------------

class Reply:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in
                        (line.partition(":") for line in lines[1:])}
        size = self.headers.get("content-length")
        self.whole = size is None or int(size) == len(self.body)

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode()


def read_all(stream):
    data = b""
    while more := stream.recv(65536):
        data += more
    return data


class Demo:
    """A process of `weft demo`, by default without its own load generator."""

    def __init__(self, weft, *words, load=0):
        self.process = subprocess.Popen(
            [weft, "demo", "--port", "0", "--load", str(load), *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.said = []
        while not self.said or not self.said[-1].startswith("page: "):
            line = self.process.stdout.readline()
            check(f"it ended: {self.said} {line or self.process.stderr.read()}", line)
            self.said.append(line.rstrip())
        self.port = int(re.search(r":(\d+)/$", self.said[-1])[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def ask(self, path, method="GET", body=b"", headers=()):
        """One request on a new connection.  With HTTP/1.0 the reply is not chunked."""
        head = [f"{method} {path} HTTP/1.0", f"Host: 127.0.0.1:{self.port}",
                f"Content-Length: {len(body)}", *headers]
        with self.connect() as stream:
            stream.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            return Reply(read_all(stream))

    def get(self, path, status=200):
        reply = self.ask(path)
        check(f"{path}: {reply.status}, not {status}: {reply.body!r}", reply.status == status)
        check(f"{path}: cut short", reply.whole)
        return reply

    def get_soon(self, path):
        """The same under load, where a request may be refused."""
        return wait_until(f"{path} is answered",
                          lambda: self.ask(path).status == 200 and self)

    def set(self, body, status=204):
        reply = self.ask("/demo/set", "POST", body.encode(),
                         (f"Origin: {self.url}", "Sec-Fetch-Site: same-origin"))
        check(f"{body}: {reply.status}, not {status}", reply.status == status)

    def events(self):
        """Yield (name, value) of each event."""
        with contextlib.closing(self.connect()) as stream:
            stream.sendall(f"GET /demo/events HTTP/1.0\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
                           .encode())
            lines = stream.makefile("r", encoding="utf-8")
            while lines.readline().strip():
                pass
            name, data = None, ""
            for line in lines:
                if line.startswith("event: "):
                    name = line[7:].strip()
                elif line.startswith("data: "):
                    data += line[6:]
                elif data:  # an empty line ends an event
                    yield name, json.loads(data)
                    data = ""

    def now(self):
        """The current values."""
        with contextlib.closing(self.events()) as events:
            return next(value for name, value in events if name == "demo")

    def slowest_steps(self):
        """The steps of the slowest request: [(name, place, begin_us, end_us)]."""
        with contextlib.closing(self.events()) as events:
            trace = next(value for name, value in events if name == "slow")
        return [(step["name"], step["cat"], step["ts"], step["ts"] + step["dur"])
                for step in trace["traceEvents"] if step["ph"] == "X"]

    def wait(self, what, happened):
        """Wait until `happened` is true for the values, and return them."""
        def look():
            value = self.now()
            return value if happened(value) else None
        return wait_until(what, look)

    def wait_up(self):
        self.wait("Redis is up", lambda now: now["redis"]["state"] == "up")
        return self

    def terminate(self):
        """End it as a service manager does.  Returns its output."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=PATIENCE)
        check(f"status {self.process.returncode}: {out}{err}", self.process.returncode == 0)
        equal(err, "")
        return out

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


# --- the store ---------------------------------------------------------------------

class Store:
    """A store in its own process: redis-server or `weft store`."""

    def __init__(self, words, port):
        self.words, self.port, self.process = words, port, None
        self.url = f"redis://127.0.0.1:{port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until("the store listens", self.answers)

    def answers(self):
        with contextlib.suppress(OSError):
            return self.call("PING") == "PONG"
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def call(self, *words):
        """Send a command on a new connection.  Returns its reply as a Python value."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as stream:
            data = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in
                            (str(word).encode() for word in words))
            stream.sendall(b"*%d\r\n" % len(words) + data)
            return read_reply(stream.makefile("rb"))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.kill()


def read_reply(lines):
    line = lines.readline().decode().rstrip()
    kind, rest = line[0], line[1:]
    if kind == "+":
        return rest
    if kind == ":":
        return int(rest)
    if kind == "$":
        return lines.read(int(rest) + 2)[:-2].decode() if rest != "-1" else None
    if kind == "*":
        return [read_reply(lines) for _ in range(int(rest))]
    raise AssertionError(line)


def store_of_weft(weft):
    port = free_port()
    return Store([weft, "store", "--listen", f"tcp://127.0.0.1:{port}"], port)


def store_of_redis(program):
    port = free_port()
    return Store([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                  "--appendonly", "no"], port)
