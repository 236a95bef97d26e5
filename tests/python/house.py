"""Shared by the tests of the Python loop: the loop, recording protocols, and child
processes.

WEFT_TEST_LOOP selects the tested loop: `weft` (the default), `uvloop`, or `asyncio`, the
stock loop.  Every test that is not for weft only must pass on the stock loop, too.

A test never waits for a fixed time: it waits for a notification, or polls another process
until that has reached a state.  When a test ends, it has left no descriptor, thread or
child process behind, and nothing was reported that the test did not expect.
"""
import asyncio
import contextlib
import functools
import gc
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LOOP = os.environ.get("WEFT_TEST_LOOP") or "weft"
PATIENCE = float(os.environ.get("WEFT_TEST_PATIENCE") or 300)  # seconds for an expected event
UNRAISABLE = []  # exceptions that no code could catch, as text
weft_only = unittest.skipUnless(LOOP == "weft", "for weft alone")
not_in_debug = unittest.skipIf(os.environ.get("WEFT_TEST_DEBUG"), "misuse ends a debug build")


# --- loops -------------------------------------------------------------------

def stock_loop():
    return asyncio.SelectorEventLoop()


def new_loop():
    """Make a loop of the tested kind."""
    if LOOP == "asyncio":
        return stock_loop()
    return __import__(LOOP).new_event_loop()


def run(main, debug=None):
    """asyncio.run() on a loop of the tested kind, in every version of Python."""
    with asyncio.Runner(loop_factory=new_loop, debug=debug) as runner:
        return runner.run(main)


def describe(context):
    """A report to the exception handler, without the parts that differ between loops."""
    exc = context.get("exception")
    message = re.sub(r"^(Exception in callback) .*", r"\1", context.get("message", ""))
    return ("report", re.sub(r"<.*>", "<>", message), type(exc).__name__, str(exc),
            *sorted(set(context) - {"message", "exception", "handle", "source_traceback"}))


async def turns(count=3):
    """Run some loop iterations, so that work in progress gets done."""
    for _ in range(count):
        await asyncio.sleep(0)


# --- leaks ---------------------------------------------------------------------

def descriptors():
    """Each open descriptor, and the file that it refers to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


def children():
    """The child processes of this process, dead or alive."""
    with open("/proc/thread-self/children", "rb") as listed:
        return set(listed.read().split())


def note_unraisable(what):
    UNRAISABLE.append(f"{what.err_msg or 'ignored in'} {what.object!r}: {what.exc_value!r}")


class LoopCase(unittest.TestCase):
    """A test with a loop, `self.loop`; errors reported to the loop are in
    `self.reports`."""

    outside = False  # whether everything that could leak is in other processes

    def setUp(self):
        UNRAISABLE.clear()
        self.addCleanup(self.check_left, descriptors(), set(threading.enumerate()), children())
        self.loop = new_loop()
        self.reports = []
        self.loop.set_exception_handler(lambda loop, context: self.reports.append(context))
        self.addCleanup(self.end_loop)

    def go(self, coro):
        """Run a coroutine to its end, or until PATIENCE is over."""
        return self.loop.run_until_complete(asyncio.wait_for(coro, PATIENCE))

    def settle(self, count=3):
        self.loop.run_until_complete(turns(count))

    def end_loop(self):
        if not self.loop.is_closed():
            self.settle()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
        self.assertEqual([describe(each) for each in self.reports], [])

    def check_left(self, before, threads, processes):
        self.loop = None
        gc.collect()
        after = descriptors()
        self.assertEqual({fd: what for fd, what in after.items() if fd not in before}, {},
                         "descriptors are left")
        for thread in set(threading.enumerate()) - threads:
            thread.join(PATIENCE)  # a thread that has finished its work may still be ending
            self.assertFalse(thread.is_alive(), f"{thread} is left")
        self.assertEqual(children() - processes, set(), "processes are left")
        self.assertEqual(UNRAISABLE, [])

    def take_reports(self):
        """Return the reports and clear them; they no longer fail the test."""
        taken = [describe(each) for each in self.reports]
        self.reports.clear()
        return taken

    def same_as_stock(self, scenario, *args):
        """Run scenario(loop, seen, *args) on the tested and on the stock loop.  `seen`
        and the reports must be the same on both."""
        mine = observe(self.loop, scenario, *args)
        self.loop.set_exception_handler(lambda loop, context: self.reports.append(context))
        theirs_loop = stock_loop()
        try:
            theirs = observe(theirs_loop, scenario, *args)
        finally:
            theirs_loop.close()
        self.assertEqual(mine, theirs)
        return mine

    # --- connections ---

    def pair(self, kind="unix"):
        """Two connected nonblocking sockets, closed at the end of the test."""
        if kind == "unix":
            pair = socket.socketpair()
        else:
            first = socket.socket(proto=socket.IPPROTO_TCP)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                for each in (listener, first):  # otherwise buffers grow to megabytes
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
                first.connect(listener.getsockname())
                pair = first, listener.accept()[0]
        for each in pair:
            each.setblocking(False)
            self.addCleanup(each.close)
        return pair

    async def wire(self, protocol, kind="unix"):
        """A transport with that protocol, and the socket at the other end."""
        mine, peer = self.pair(kind)
        transport, _ = await self.loop.create_connection(lambda: protocol, sock=mine)
        self.abort_at_end(transport)
        return transport, peer

    def abort_at_end(self, transport):
        """Abort the transport when the test ends, without keeping it alive until then."""
        known = weakref.ref(transport)

        def abort():
            if (transport := known()) and not transport.is_closing():
                transport.abort()
        self.addCleanup(abort)


def observe(loop, scenario, *args):
    seen = []
    loop.set_exception_handler(lambda loop, context: seen.append(describe(context)))
    loop.run_until_complete(asyncio.wait_for(scenario(loop, seen, *args), PATIENCE))
    loop.run_until_complete(turns(5))
    loop.set_exception_handler(None)
    return seen


# --- recording protocols -----------------------------------------------------

class Planned(Exception):
    """Raised by a test on purpose."""


class Notes:
    """Records the calls of its methods, and raises in the call named by `fail`."""

    def __init__(self, loop, fail=None, seen=None):
        self.loop, self.fail = loop, fail
        self.seen = [] if seen is None else seen
        self.data, self.transport, self.news = bytearray(), None, None

    def told(self, name, *args):
        if not args and self.seen[-1:] == [(name,)]:
            pass  # a repeated call: how often it comes depends on timing
        else:
            self.seen.append((name, *args))
        if self.news and not self.news.done():
            self.news.set_result(None)
        if self.fail == name:
            self.fail = None
            raise Planned(name)

    def names(self):
        return [each[0] for each in self.seen]

    async def until(self, happened):
        """Wait for a call of that name, or until happened() is true."""
        if isinstance(happened, str):
            name, happened = happened, lambda: name in self.names()
        while not happened():
            self.news = self.loop.create_future()
            await self.news

    async def until_lost(self):
        await self.until("connection_lost")

    def connection_made(self, transport):
        self.transport = transport
        self.told("connection_made")

    def connection_lost(self, exc):
        self.told("connection_lost", type(exc).__name__ if exc else None)

    def pause_writing(self):
        self.told("pause_writing")

    def resume_writing(self):
        self.told("resume_writing")


class Witness(Notes, asyncio.Protocol):
    keep_open = False  # the result of eof_received

    def data_received(self, data):
        self.data += data
        self.told("data_received")

    def eof_received(self):
        self.told("eof_received")
        return self.keep_open


class BufferedWitness(Notes, asyncio.BufferedProtocol):
    keep_open = False
    size = 1024

    def get_buffer(self, sizehint):
        self.buffer = bytearray(self.size)
        if self.fail == "get_buffer":
            self.told("get_buffer")
        return self.buffer

    def buffer_updated(self, count):
        self.data += self.buffer[:count]
        self.told("buffer_updated")

    def eof_received(self):
        self.told("eof_received")
        return self.keep_open


class DatagramWitness(Notes, asyncio.DatagramProtocol):
    def datagram_received(self, data, addr):
        self.told("datagram_received", data)

    def error_received(self, exc):
        self.told("error_received", type(exc).__name__)


async def receive(loop, sock, size):
    """Receive exactly `size` bytes, or fewer at the end of the stream."""
    data = bytearray()
    while len(data) < size:
        more = await loop.sock_recv(sock, min(size - len(data), 1 << 18))
        if not more:
            break
        data += more
    return bytes(data)


def fill(sock):
    """Send until the kernel accepts no more; return the number of bytes."""
    size = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            size += sock.send(bytes(1 << 16))
    return size


# --- TLS ---------------------------------------------------------------------

@functools.cache
def certificate():
    """(certificate, key) of localhost, as files that exist as long as the process.  A
    child uses those of its parent."""
    if given := os.environ.get("WEFT_TEST_CERTIFICATE"):
        return Path(given), Path(given).with_name("key.pem")
    folder = tempfile.mkdtemp(prefix="weft-python-")
    weakref.finalize(certificate, shutil.rmtree, folder)
    chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", key, "-out", chain], check=True, capture_output=True)
    return chain, key


@functools.cache
def server_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate())
    return context


@functools.cache
def client_context():
    return ssl.create_default_context(cafile=certificate()[0])


# --- other processes ---------------------------------------------------------

def wait_until(what, happened):
    """Poll another process until it has reached a state."""
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() >= end:
            raise AssertionError(f"it never came: {what}")
        time.sleep(0.005)
    return found


class Child:
    """A separate Python that runs `code`, with house and asyncio imported."""

    def __init__(self, code, loop=LOOP, options=(), **environment):
        start = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import asyncio, house\n"
        certificate = environment.pop("certificate", None)
        if certificate:
            environment["WEFT_TEST_CERTIFICATE"] = str(certificate)
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", start + code], stdin=subprocess.PIPE, bufsize=0,
            stdout=subprocess.PIPE, stderr=self.stderr, restore_signals=True,
            env={**os.environ, "WEFT_TEST_LOOP": loop, "PYTHONDONTWRITEBYTECODE": "1",
                 "PYTHONUNBUFFERED": "1", **environment})
        self.pid, self.out = self.process.pid, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.close()

    def read(self, enough):
        """Read its output until enough(output), or to its end; return whether it was
        enough."""
        end = time.monotonic() + PATIENCE
        while not enough(self.out):
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            if not ready:
                raise AssertionError(f"it hangs: {self.out}\n{self.told()}")
            if not (more := os.read(self.process.stdout.fileno(), 1 << 16)):
                return False
            self.out += more
        return True

    def await_line(self, text):
        if not self.read(lambda out: f"{text}\n".encode() in out):
            raise AssertionError(f"no {text!r} in {self.out}\n{self.told()}")

    def await_sleep(self):
        """Wait until its first thread sleeps in the kernel."""
        wait_until("sleep", lambda: re.search(r"^State:\s+S", self.status(), re.M))

    def status(self):
        return Path(f"/proc/{self.pid}/status").read_text()

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def told(self):
        return os.pread(self.stderr.fileno(), 1 << 20, 0).decode(errors="replace")

    def end(self):
        """Wait for its end; return (status, stdout, stderr)."""
        self.read(lambda out: False)
        self.process.wait(PATIENCE)
        return self.process.returncode, self.out.decode(), self.told()


def child(code, **options):
    """Run `code` in a child to its end; return (status, stdout, stderr)."""
    with Child(code, **options) as started:
        return started.end()
