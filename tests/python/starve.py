"""Programs that run out of memory: each allocation of Python fails once, one after another.

    starve.sweep(NAME, STRIDE)    in a separate process; prints the outcomes as JSON

A scenario runs many times, and each time another allocation fails: the first, then every
STRIDE-th up to the last.  The outcome must be the result, or a MemoryError that is raised,
reported to the exception handler, or reported as unraisable.  If a loop does none of these
and continues to wait, a timer that was armed before stops it: that counts as stalled.
"""
import array
import asyncio
import collections
import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
import time

import _testcapi
import house

STALL = 0.05  # seconds: long enough for most runs that still make progress
LIMIT = 60_000  # more allocations than any scenario makes


async def callbacks(loop, held):
    done = loop.create_future()
    ran = []
    loop.call_soon(ran.append, 1)
    loop.call_later(0, ran.append, 2)
    loop.call_soon_threadsafe(ran.append, 3)
    loop.call_later(1000, ran.append).cancel()
    loop.call_soon(done.set_result, None)
    await done
    await asyncio.sleep(0)
    await asyncio.sleep(0.0001)
    assert sorted(ran) == [1, 2, 3], ran


async def readers(loop, held):
    one, two = held.enter_context(pair())
    ready = loop.create_future()
    loop.add_reader(one, lambda: ready.done() or ready.set_result(None))
    held.callback(loop.remove_reader, one)
    two.send(b"x")
    await ready
    loop.remove_reader(one)
    loop.add_writer(two, lambda: loop.remove_writer(two))
    held.callback(loop.remove_writer, two)
    await asyncio.sleep(0)


async def sockets(loop, held):
    one, two = held.enter_context(pair())
    receiving = asyncio.ensure_future(loop.sock_recv(one, 100))
    await asyncio.sleep(0)
    await loop.sock_sendall(two, b"hello")
    assert await receiving == b"hello"
    buffer = bytearray(100)
    await loop.sock_sendall(one, b"back")
    assert await loop.sock_recv_into(two, buffer) == 4


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


class Asking(asyncio.Protocol):
    def __init__(self, loop):
        self.answer, self.lost, self.data = loop.create_future(), loop.create_future(), b""

    def data_received(self, data):
        self.data += data
        if len(self.data) == 5 and not self.answer.done():
            self.answer.set_result(None)

    def connection_lost(self, exc):
        for each in (self.answer, self.lost):
            if not each.done():
                each.set_result(exc)


async def ask(loop, held, **options):
    """Echo over a pair of transports."""
    one, two = held.enter_context(pair())
    serving = {"ssl": house.server_context()} if options else {}
    accepting = asyncio.ensure_future(loop.connect_accepted_socket(Echo, two, **serving))
    held.callback(end, accepting)
    asking = Asking(loop)

    def accepted(_):
        if accepting.cancelled() or accepting.exception():
            with contextlib.suppress(OSError):
                two.shutdown(socket.SHUT_RDWR)  # so that the other end does not wait
    accepting.add_done_callback(accepted)
    transport, _ = await loop.create_connection(lambda: asking, sock=one, **options)
    held.callback(transport.abort)
    transport.write(b"hello")
    await asking.answer
    transport.close()
    lost = await asking.lost
    if asking.data != b"hello" or lost:
        raise lost or ConnectionResetError


def end(connecting):
    if connecting.done() and not connecting.cancelled() and not connecting.exception():
        connecting.result()[0].abort()
    connecting.cancel()


async def streams(loop, held):
    await ask(loop, held)


async def secure(loop, held):
    await ask(loop, held, ssl=house.client_context(), server_hostname="localhost")


async def served(loop, held):
    server = await loop.create_server(Echo, "127.0.0.1", 0)
    held.callback(server.close)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    held.callback(writer.transport.abort)
    writer.write(b"hello")
    if await reader.read(5) != b"hello":
        raise ConnectionResetError
    writer.close()
    server.close()


async def datagrams(loop, held):
    heard = loop.create_future()

    class Heard(asyncio.DatagramProtocol):
        def datagram_received(self, data, addr):
            heard.set_result(data)
    one, _ = await loop.create_datagram_endpoint(Heard, local_addr=("127.0.0.1", 0))
    held.callback(one.abort)
    two, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=one.get_extra_info("sockname"))
    held.callback(two.abort)
    two.sendto(b"x")
    assert await heard == b"x"


async def processes(loop, held):
    process = await asyncio.create_subprocess_exec("true", stdout=-1)
    held.callback(lambda: process._transport.close())
    await process.communicate()
    assert process.returncode == 0


SCENARIOS = {each.__name__: each for each in (callbacks, readers, sockets, streams, secure, served,
                                              datagrams, processes)}


@contextlib.contextmanager
def pair():
    one, two = socket.socketpair()
    with one, two:
        one.setblocking(False)
        two.setblocking(False)
        yield one, two


class Run:
    """One run of a scenario on its own loop, in which one allocation fails."""

    def __init__(self, scenario, patience=STALL):
        self.scenario, self.patience, self.told, self.rest = scenario, patience, [], None
        self.over, self.stalled, self.stuck = True, False, False
        sys.unraisablehook = lambda what: self.tell(what.exc_value)

    def tell(self, wrong):
        """An error was reported: stop waiting."""
        self.told.append(wrong)
        if not self.over:
            self.loop.stop()

    def stall(self):
        self.stalled = True
        self.loop.stop()

    def go(self, number):
        """Run it; return the exception that it raised, or None."""
        self.loop = loop = house.new_loop()
        loop.set_exception_handler(lambda _, context: self.tell(context.get("exception")))
        held = contextlib.ExitStack()
        loop.run_until_complete(house.turns(1))
        guard = loop.call_later(self.patience, self.stall)
        raised, task = None, loop.create_task(self.scenario(loop, held))
        self.over = False
        try:
            _testcapi.set_nomemory(number, number + 1)
            try:
                loop.run_until_complete(task)
                if self.rest:
                    use_up(self.rest)
            finally:
                _testcapi.remove_mem_hooks()
        except BaseException as wrong:
            raised = wrong
        self.over = True
        guard.cancel()
        self.stuck = loop.is_running() or asyncio._get_running_loop() is not None
        asyncio._set_running_loop(None)
        if not loop.is_running():
            self.clean(loop, held)
        return raised

    def clean(self, loop, held):
        """Close everything that the run held, and let the remaining work end."""
        for close in (lambda: None, held.close, lambda: None):
            for task in asyncio.all_tasks(loop):
                task.cancel()
            close()
            for _ in range(10):  # one iteration at a time: a stop may still be pending
                loop.stop()
                loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def is_memory_error(wrong):
    while wrong is not None:
        if isinstance(wrong, MemoryError):
            return True
        wrong = wrong.__cause__ or wrong.__context__
    return False


def judge(run, raised):
    """The outcome, as one or two words."""
    if run.stuck:
        return "stuck"
    if raised is None and not run.told:
        return "done"
    if is_memory_error(raised) or any(is_memory_error(each) for each in run.told):
        return "MemoryError"
    if run.stalled:
        return "stalled"
    return type(run.told[0] if run.told else raised).__name__


def try_at(scenario, number):
    """The outcome of one run.  A run that stalls is repeated with more time before it
    counts."""
    for patience in (STALL, 10 * STALL):
        run = Run(scenario, patience)
        outcome = judge(run, run.go(number))
        collect()  # leftovers must not be finalized during the next run
        if outcome != "stalled":
            break
    return outcome


def collect():
    while gc.collect():  # finalizers create more garbage
        pass


def use_up(count):
    """Allocate until an allocation fails; return how many succeeded."""
    try:
        while True:
            count[0] += bytes(40) == b""
            count[1] += 1
    except MemoryError:
        return count[1]


def count_allocations(scenario):
    """How many allocations a run makes: LIMIT minus those that are left after the run."""
    _testcapi.set_nomemory(LIMIT, LIMIT + 1)
    try:
        every = use_up(array.array("q", [0, 0]))
    finally:
        _testcapi.remove_mem_hooks()
    collect()  # empties the free lists, as before each run
    run = Run(scenario, house.PATIENCE)
    run.rest = array.array("q", [0, 0])
    run.go(LIMIT)
    return LIMIT - run.rest[1] * LIMIT // every


def left():
    """Live objects of the loop, descriptors, threads and children."""
    collect()
    kinds = (asyncio.AbstractEventLoop, asyncio.BaseTransport, asyncio.BaseProtocol,
             asyncio.Handle, asyncio.Future)
    alive = collections.Counter(type(each).__name__ for each in gc.get_objects()
                                if isinstance(each, kinds))
    return {"objects": dict(alive), "descriptors": len(house.descriptors()),
            "threads": threading.active_count(), "children": len(house.children())}


def sweep(name, stride=1):
    scenario = SCENARIOS[name]
    signal.alarm(200)
    house.server_context(), house.client_context()
    for _ in range(3):
        run = Run(scenario, house.PATIENCE)
        raised = run.go(LIMIT)
        assert judge(run, raised) == "done", (raised, run.told, run.stalled)
    points = count_allocations(scenario)
    del run
    collect()
    gc.freeze()  # makes later collections fast
    before, start, outcomes = left(), time.monotonic(), {}
    for number in range(1, points + stride, stride):
        outcomes.setdefault(try_at(scenario, number), []).append(number)
    print(json.dumps({"points": points, "before": before, "after": left(),
                      "seconds": round(time.monotonic() - start, 2),
                      "outcomes": {name: len(each) for name, each in outcomes.items()},
                      "where": {name: each[:20] for name, each in outcomes.items()
                                if name not in ("done", "MemoryError")}}))
    sys.stdout.flush()
    os._exit(0)  # skips the interpreter's shutdown, which could fail for other reasons


if __name__ == "__main__":
    sweep(sys.argv[1], int(sys.argv[2]))
