"""Signals, and Ctrl-C in every state: the program ends as it does on the stock loop."""
import asyncio
import os
import re
import signal
import socket
import threading

from house import Child, LOOP, LoopCase, child

# Each program prints "ready" when it has reached its state, or is about to reach it.
STATES = {
    "idle in run_forever": """
loop = house.new_loop()
loop.call_soon(print, "ready")
loop.run_forever()
""",
    "idle with timers and readers": """
import socket
loop = house.new_loop()
one, two = socket.socketpair()
loop.add_reader(one, print)
loop.call_later(1000, print)
loop.call_soon(print, "ready")
loop.run_forever()
""",
    "in a callback": """
def busy():
    print("ready")
    while True:
        pass
loop = house.new_loop()
loop.call_soon(busy)
loop.run_forever()
""",
    "in a tight loop of call_soon": """
loop = house.new_loop()
def again():
    loop.call_soon(again)
loop.call_soon(print, "ready")
loop.call_soon(again)
loop.run_forever()
""",
    "in a tight loop of timers": """
loop = house.new_loop()
def again():
    loop.call_later(0, again)
loop.call_soon(print, "ready")
again()
loop.run_forever()
""",
    "in run_until_complete": """
async def main():
    print("ready")
    await asyncio.sleep(1000)
loop = house.new_loop()
loop.run_until_complete(main())
""",
    "in asyncio.run": """
async def main():
    print("ready")
    try:
        await asyncio.sleep(1000)
    finally:
        print("cleaned up")
house.run(main())
""",
    "in a task": """
async def work():
    print("ready")
    try:
        while True:
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        print("cancelled")
        raise
async def main():
    await asyncio.create_task(work())
house.run(main())
""",
    "in a task that does not wait": """
async def main():
    print("ready")
    while True:
        pass
house.new_loop().run_until_complete(main())
""",
    "in a wait for a thread": """
import time
def work():
    print("ready")
    time.sleep(0.3)
async def main():
    await asyncio.get_running_loop().run_in_executor(None, work)
house.run(main())
""",
    "while it reads a socket": """
import socket
async def main():
    one, two = socket.socketpair()
    one.setblocking(False)
    print("ready")
    await asyncio.get_running_loop().sock_recv(one, 1)
house.run(main())
""",
    "while it reads a stream": """
import socket
async def main():
    one, two = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=one)
    print("ready")
    try:
        await reader.read()
    finally:
        writer.close()
house.run(main())
""",
    "while it serves": """
async def main():
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    print("ready")
    await server.serve_forever()
house.run(main())
""",
    "during shutdown": """
async def stubborn():
    try:
        await asyncio.sleep(1000)
    finally:
        print("ready")
        await asyncio.sleep(1000)
async def main():
    held.append(asyncio.create_task(stubborn()))
    await house.turns()
held = []
house.run(main())
""",
    "in a protocol's callback": """
import socket
class Busy(asyncio.Protocol):
    def data_received(self, data):
        print("ready")
        while True:
            pass
async def main():
    one, two = socket.socketpair()
    await asyncio.get_running_loop().create_connection(Busy, sock=one)
    two.send(b"x")
    await asyncio.sleep(1000)
house.new_loop().run_until_complete(main())
""",
    "caught and gone on": """
loop = house.new_loop()
loop.call_soon(print, "ready")
try:
    loop.run_forever()
except KeyboardInterrupt:
    print("caught", loop.is_running(), loop.is_closed())
loop.run_until_complete(asyncio.sleep(0.001))
loop.close()
print("went on")
""",
    "while a process runs": """
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1)
    print("ready")
    try:
        await process.wait()
    finally:
        process.stdin.close()
house.run(main())
""",
}
BUSY = {"in a callback", "in a tight loop of call_soon", "in a tight loop of timers", "in a task",
        "in a task that does not wait", "in a protocol's callback"}
# The names of the exceptions, in the order of the traceback.
KIND = re.compile(r"^(?:\w+\.)*(KeyboardInterrupt|\w+Error|\w+Exception)\b", re.M)


class Interrupted(LoopCase):
    outside = True

    def outcome(self, state, loop):
        """(status, output, exceptions, stderr)"""
        with Child(STATES[state], loop=loop, options=("-W", "ignore::ResourceWarning")) as one:
            one.await_line("ready")
            if state not in BUSY:
                one.await_sleep()
            one.signal()
            status, out, told = one.end()
            return status, out, KIND.findall(told), told

    def check(self, state):
        mine, stock = self.outcome(state, LOOP), self.outcome(state, "asyncio")
        self.assertEqual(mine[:3], stock[:3], f"{mine[3]}\n--- stock ---\n{stock[3]}")
        if state != "caught and gone on":
            self.assertEqual((mine[0], mine[2][-1]), (-signal.SIGINT, "KeyboardInterrupt"))


def add_tests():
    """Add a test for each state, named after it."""
    for state in STATES:
        name = "test_ctrl_c_ends_it_as_on_stock_" + re.sub(r"\W+", "_", state)
        setattr(Interrupted, name, lambda self, state=state: self.check(state))


add_tests()


class Twice(LoopCase):
    outside = True

    def test_a_second_ctrl_c_ends_what_the_first_could_not(self):
        code = """
async def main():
    try:
        print("ready")
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        print("refused")
        await asyncio.sleep(1000)
house.run(main())
"""
        outcomes = []
        for loop in (LOOP, "asyncio"):
            with Child(code, loop=loop) as one:
                one.await_line("ready")
                one.await_sleep()
                one.signal()
                one.await_line("refused")
                one.await_sleep()
                one.signal()
                status, out, told = one.end()
                outcomes.append((status, out, KIND.findall(told)[-1:]))
        self.assertEqual(outcomes[0], outcomes[1])
        self.assertEqual(outcomes[0][0], -signal.SIGINT)

    def test_a_program_that_is_terminated_ends_by_that_signal(self):
        with Child(STATES["idle in run_forever"]) as one:
            one.await_line("ready")
            one.await_sleep()
            one.signal(signal.SIGTERM)
            self.assertEqual(one.end()[0], -signal.SIGTERM)

    def test_a_handler_of_python_runs_while_the_loop_sleeps(self):
        with Child("""
import signal
signal.signal(signal.SIGUSR1, lambda *_: print("heard"))
loop = house.new_loop()
loop.call_soon(print, "ready")
loop.run_forever()
""") as one:
            one.await_line("ready")
            one.await_sleep()
            one.signal(signal.SIGUSR1)
            one.await_line("heard")
            one.await_sleep()
            one.signal()
            self.assertEqual(one.end()[0], -signal.SIGINT)

    def test_the_handler_that_python_had_is_back_at_the_end(self):
        status, out, told = child("""
import signal
before = signal.getsignal(signal.SIGINT)
house.run(house.turns())
assert signal.getsignal(signal.SIGINT) is before is signal.default_int_handler
assert signal.set_wakeup_fd(-1) == -1
""")
        self.assertEqual(status, 0, told)


class Handlers(LoopCase):
    def test_a_handler_runs_in_the_loop_with_its_arguments(self):
        heard = []
        self.loop.add_signal_handler(signal.SIGUSR1, lambda *args: (
            heard.append((args, threading.get_ident())), self.loop.stop()), 1, 2)
        self.loop.call_soon(os.kill, os.getpid(), signal.SIGUSR1)
        self.loop.run_forever()
        self.assertEqual(heard, [((1, 2), threading.get_ident())])
        self.assertTrue(self.loop.remove_signal_handler(signal.SIGUSR1))
        self.assertFalse(self.loop.remove_signal_handler(signal.SIGUSR1))
        self.assertIs(signal.getsignal(signal.SIGUSR1), signal.SIG_DFL)

    def test_a_signal_wakes_a_sleeping_loop(self):
        self.loop.add_signal_handler(signal.SIGUSR1, self.loop.stop)
        thread = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1))
        thread.start()
        self.loop.run_forever()
        thread.join()
        self.loop.remove_signal_handler(signal.SIGUSR1)

    def test_a_later_handler_takes_the_place_of_an_earlier(self):
        heard = []
        self.loop.add_signal_handler(signal.SIGUSR1, heard.append, "old")
        self.loop.add_signal_handler(signal.SIGUSR1, lambda: (heard.append("new"),
                                                              self.loop.stop()))
        self.loop.call_soon(signal.raise_signal, signal.SIGUSR1)
        self.loop.run_forever()
        self.loop.remove_signal_handler(signal.SIGUSR1)
        self.assertEqual(heard, ["new"])

    def test_many_signals_of_several_kinds_are_heard(self):
        heard = []
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            self.loop.add_signal_handler(number, heard.append, number)

        async def main():
            for _ in range(50):
                for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
                    count = heard.count(number)
                    signal.raise_signal(number)
                    while heard.count(number) == count:
                        await asyncio.sleep(0)
        self.go(main())
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            self.loop.remove_signal_handler(number)
        self.assertEqual(len(heard), 150)

    def test_a_handler_that_raises_is_reported(self):
        self.loop.add_signal_handler(signal.SIGUSR1, lambda: (self.loop.stop(), 1 / 0))
        self.loop.call_soon(signal.raise_signal, signal.SIGUSR1)
        self.loop.run_forever()
        self.loop.remove_signal_handler(signal.SIGUSR1)
        self.assertEqual([each[2] for each in self.take_reports()], ["ZeroDivisionError"])

    def test_what_cannot_be_handled_is_refused(self):
        for number, kind in ((signal.SIGKILL, RuntimeError), (0, ValueError), (1000, ValueError),
                             ("one", TypeError)):
            with self.assertRaises(kind):
                self.loop.add_signal_handler(number, int)

        async def coro():
            pass
        self.assertRaises(TypeError, self.loop.add_signal_handler, signal.SIGUSR1, coro)
        wrong = []

        def elsewhere():
            try:
                self.loop.add_signal_handler(signal.SIGUSR1, int)
            except (ValueError, RuntimeError) as each:
                wrong.append(each)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.assertEqual(len(wrong), 1)

    def test_the_handlers_are_gone_when_the_loop_is_closed(self):
        self.loop.add_signal_handler(signal.SIGUSR1, int)
        self.loop.add_signal_handler(signal.SIGINT, int)
        self.loop.close()
        self.assertIs(signal.getsignal(signal.SIGUSR1), signal.SIG_DFL)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        self.assertEqual(signal.set_wakeup_fd(-1), -1)

    def test_a_descriptor_that_wakes_another_is_not_forgotten(self):
        """Without signal handlers of its own, a loop keeps the wakeup descriptor that
        was set."""
        mine, peer = socket.socketpair()
        mine.setblocking(False)
        before = signal.set_wakeup_fd(mine.fileno())
        try:
            self.settle()
            self.assertEqual(signal.set_wakeup_fd(before), mine.fileno())
        finally:
            mine.close()
            peer.close()
