#!/usr/bin/env python3
"""Measure a server in its own process.

    served_NAME ROW      NAME: weft, nginx, go; alone and watched: weft with an admin
                         endpoint that is unused, or whose events one client reads

The build makes a link to this file for each server that is installed.  The server runs on the
first core, its clients on the second.  The result depends on the row; usually it is the CPU time
of the server per request, after a warm-up of one second.
"""
import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAMS = Path(sys.argv[0]).absolute().parent
CORE, OTHER_CORE = "0", "1"
WAIT_S = 20
FILE_BYTES = 100_000
BULK_BYTES, RECORD_BYTES = 16 << 20, 16 << 10
HANDSHAKES, BULK_RUNS = 2000, 40
IDLE_PEERS, SLOW_PEERS = 10_000, 1_000
SKIPPED = 77


def pinned(core, *words):
    """A command on one core that ends when this process does."""
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", core, *map(str, words)]


def client(*words):
    """Run a client; returns its output."""
    done = subprocess.run(pinned(OTHER_CORE, *words), capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0:
        sys.exit(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout


# --- servers -----------------------------------------------------------------

NGINX = """
daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/pid;
error_log stderr crit;
events {{ worker_connections 19000; }}
http {{
    access_log off;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    open_file_cache max=100 inactive=600s;
    open_file_cache_valid 600s;
    default_type text/plain;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_session_cache off;
    ssl_session_tickets off;
    ssl_buffer_size 16k;
    server {{
        listen 127.0.0.1:{plain} backlog=1024;
        listen 127.0.0.1:{secure} ssl backlog=1024;
        location = /plain {{ return 200 "Hello, World!"; }}
        location /file/ {{ alias {folder}/; }}
    }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(condition, what):
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: timed out after {WAIT_S} s")
        time.sleep(0.01)


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


class Server:
    """A running server: `plain` and `secure` are its ports, `pid` is the process that serves."""

    def __init__(self, name, folder):
        self.folder = folder
        self.process, self.pid, self.reader = None, 0, None
        getattr(self, f"start_{name}")()

    def spawn(self, *words):
        self.process = subprocess.Popen(pinned(CORE, *words), stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def start_weft(self):
        self.spawn(PROGRAMS / "site_weft", self.folder)
        self.plain, self.secure = map(int, self.process.stdout.readline().split())

    def start_alone(self):
        self.spawn(PROGRAMS / "site_weft", self.folder, "admin")
        self.plain, self.secure, self.admin = map(int, self.process.stdout.readline().split())

    def start_watched(self):
        self.start_alone()
        self.reader = subprocess.Popen(
            pinned(OTHER_CORE, "curl", "-sN", f"http://127.0.0.1:{self.admin}/events"),
            stdout=subprocess.DEVNULL)

    def start_go(self):
        self.spawn(PROGRAMS / "rows_go", "serve")
        self.plain, self.secure = int(self.process.stdout.readline()), None

    def start_nginx(self):
        self.plain, self.secure = free_port(), free_port()
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(folder=self.folder, plain=self.plain,
                                       secure=self.secure))
        self.spawn("nginx", "-p", self.folder, "-c", config)
        until(lambda: answers(self.plain), "nginx listens")
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        until(lambda: children.read_text().split(), "nginx works")
        self.pid = int(children.read_text().split()[0])

    def cpu_ns(self):
        """CPU time of all its threads: the clock of clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def url(self, path):
        return f"http://127.0.0.1:{self.plain}{path}"

    def stop(self):
        if self.reader:
            if self.reader.poll() is not None:
                sys.exit("the client that reads the events has exited")
            self.reader.terminate()
            self.reader.wait(WAIT_S)
        self.process.terminate()
        self.process.wait(WAIT_S)


# --- rows --------------------------------------------------------------------

def wrk(server, path, seconds, *more):
    """The output of wrk with 64 connections."""
    out = client("wrk", "-t1", "-c64", f"-d{seconds}s", *more, server.url(path))
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(out)
    return out


def requests(out):
    return int(re.search(r"(\d+) requests in", out)[1])


def each_ns(server, count):
    """CPU time of the server during count(), divided by the number that it returns."""
    begin = server.cpu_ns()
    done = count()
    return (server.cpu_ns() - begin) / done


def cpu_of(path):
    def measure(server):
        wrk(server, path, 1)
        return each_ns(server, lambda: requests(wrk(server, path, 2)))
    return measure


def pipelined(server):
    return float(client(PROGRAMS / "pipeline", server.plain, "/plain"))


def of_tls(kind, count, share):
    """CPU time per handshake or body, of `count`; divided by `share`, the parts of one."""
    def measure(server):
        def run(n):
            client(PROGRAMS / "tls_client", kind, server.secure, n)
            return n * share
        run(count // 10)
        return each_ns(server, lambda: run(count))
    return measure


# --- rows with trouble -------------------------------------------------------

class Peers(threading.Thread):
    """Idle connections, and others that send one byte per second."""

    def __init__(self, port):
        super().__init__(daemon=True)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if limit < IDLE_PEERS + SLOW_PEERS + 100:
            print(f"needs {IDLE_PEERS + SLOW_PEERS + 100} descriptors", file=sys.stderr)
            sys.exit(SKIPPED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        self.over = threading.Event()
        self.peers = [socket.create_connection(("127.0.0.1", port))
                      for _ in range(IDLE_PEERS + SLOW_PEERS)]

    def run(self):
        slow = self.peers[:SLOW_PEERS]
        for byte in b"GET /plain HTTP/1.1\r\nHost: slow\r\n":
            for peer in slow:
                peer.send(bytes((byte,)))
            if self.over.wait(1):
                return


def slow_peers(server):
    """The 99th percentile of the latency of wrk's requests, in microseconds."""
    peers = Peers(server.plain)
    peers.start()
    out = wrk(server, "/plain", 3, "--latency")
    peers.over.set()
    peers.join()
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)\s", out).groups()
    return float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def overload(server):
    """The throughput at twice the peak load, divided by the peak throughput."""
    load = lambda rate: float(client(PROGRAMS / "load", server.plain, "/work", rate))
    peak = load(0)
    return load(2 * peak) / peak


MEASURES = {
    "admin.overhead": cpu_of("/plain"),
    "http.plain.cpu": cpu_of("/plain"),
    "http.pipelined.rps": pipelined,
    "http.static.cpu": cpu_of("/file/static.txt"),
    "http.slowpeers.p99": slow_peers,
    "http.overload.goodput": overload,
    "tls.handshake.cpu": of_tls("handshake", HANDSHAKES, 1),
    "tls.bulk.cpu": of_tls("bulk", BULK_RUNS, BULK_BYTES // RECORD_BYTES),
}


def certify(folder):
    """A certificate and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True)


def furnish(folder):
    """Files to serve, and a certificate."""
    (folder / "static.txt").write_bytes(b"x" * FILE_BYTES)
    (folder / "bulk.txt").write_bytes(os.urandom(BULK_BYTES))
    certify(folder)


def main():
    name, row = Path(sys.argv[0]).name.removeprefix("served_"), sys.argv[1]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        furnish(folder)
        server = Server(name, folder)
        try:
            print(f"{MEASURES[row](server):.3f}")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
