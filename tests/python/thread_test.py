"""Several threads: callbacks from outside, loops side by side, other interpreters."""
import asyncio
import concurrent.futures
import signal
import socket
import threading
import time

from house import Child, LoopCase, PATIENCE, Witness, child, new_loop, receive, turns


class FromOutside(LoopCase):
    def hear(self, threads, each, call=None):
        """Make callbacks from several threads while the loop runs; return them in the
        order of calls."""
        heard = []
        call = call or self.loop.call_soon_threadsafe

        def note(thread, i):
            heard.append((thread, i))
            if len(heard) == threads * each:
                self.loop.stop()

        def tell(thread):
            for i in range(each):
                call(note, thread, i)
        started = [threading.Thread(target=tell, args=(i,)) for i in range(threads)]
        for thread in started:
            thread.start()
        self.loop.run_forever()
        for thread in started:
            thread.join()
        self.settle()
        return heard

    def test_callbacks_of_many_threads_run_once_each_and_in_order_per_thread(self):
        heard = self.hear(8, 2000)
        self.assertEqual(len(heard), 16000)
        for thread in range(8):
            self.assertEqual([i for who, i in heard if who == thread], list(range(2000)))

    def test_callbacks_given_before_the_loop_runs_are_heard_when_it_does(self):
        heard = []
        thread = threading.Thread(target=lambda: [
            self.loop.call_soon_threadsafe(heard.append, i) for i in range(100)])
        thread.start()
        thread.join()
        self.settle()
        self.assertEqual(heard, list(range(100)))

    def test_a_sleeping_loop_is_woken_each_time(self):
        """One at a time: each callback is added when the loop has nothing else to do."""
        heard = threading.Semaphore(0)

        def tell():
            for _ in range(300):
                self.loop.call_soon_threadsafe(heard.release)
                self.assertTrue(heard.acquire(timeout=PATIENCE))
            self.loop.call_soon_threadsafe(self.loop.stop)
        thread = threading.Thread(target=tell)
        thread.start()
        self.loop.run_forever()
        thread.join()

    def test_callbacks_from_outside_and_inside_keep_their_order(self):
        ran = []
        self.loop.call_soon(ran.append, 1)
        self.loop.call_soon_threadsafe(ran.append, 2)
        self.loop.call_soon(ran.append, 3)
        self.settle()
        self.assertEqual(ran, [1, 2, 3])

    def test_callbacks_of_another_thread_run_before_those_added_after_them(self):
        ran = []

        def add_from_outside():
            thread = threading.Thread(target=self.loop.call_soon_threadsafe,
                                      args=(ran.append, 2))
            thread.start()
            thread.join()

        def first():
            self.loop.call_soon(ran.append, 1)
            add_from_outside()
            self.loop.call_soon(ran.append, 3)
        self.loop.call_soon(first)
        self.settle()
        self.assertEqual(ran, [1, 2, 3])

    def test_a_handle_from_outside_can_be_cancelled_by_its_thread(self):
        ran = []

        def tell():
            handle = self.loop.call_soon_threadsafe(ran.append, "cancelled")
            handle.cancel()
            self.loop.call_soon_threadsafe(ran.append, "kept")
        thread = threading.Thread(target=tell)
        thread.start()
        thread.join()
        self.settle()
        self.assertEqual(ran, ["kept"])

    def test_a_signal_handler_may_call_from_the_thread_of_the_loop(self):
        """The signal may interrupt the loop in any state, also inside the queue."""
        heard = []

        def handler(*_):
            self.loop.call_soon_threadsafe(heard.append, 1)
        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)

        async def busy():
            while len(heard) < 20:
                for _ in range(100):
                    self.loop.call_soon_threadsafe(int)
                await asyncio.sleep(0)
        self.go(busy())

    def test_a_closed_loop_refuses_calls_from_outside(self):
        self.loop.close()
        refused = []

        def tell():
            try:
                self.loop.call_soon_threadsafe(int)
            except RuntimeError as wrong:
                refused.append(str(wrong))
        thread = threading.Thread(target=tell)
        thread.start()
        thread.join()
        self.assertEqual(refused, ["Event loop is closed"])

    def test_a_loop_that_closes_while_threads_call_refuses_from_then_on(self):
        refused = threading.Barrier(5, timeout=PATIENCE)
        told = threading.Semaphore(0)

        def tell():
            try:
                while True:
                    self.loop.call_soon_threadsafe(int)
                    told.release()
            except RuntimeError:
                refused.wait()
        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        told.acquire()
        self.settle()
        self.loop.close()
        refused.wait()
        for thread in threads:
            thread.join()

    def test_coroutines_are_run_for_other_threads(self):
        async def double(x):
            await asyncio.sleep(0)
            return 2 * x

        def ask():
            got = [asyncio.run_coroutine_threadsafe(double(i), self.loop).result(PATIENCE)
                   for i in range(50)]
            self.loop.call_soon_threadsafe(self.loop.stop)
            answers.append(got)
        answers = []
        thread = threading.Thread(target=ask)
        thread.start()
        self.loop.run_forever()
        thread.join()
        self.assertEqual(answers, [[2 * i for i in range(50)]])

    def test_executors_work_for_the_loop_and_bring_results_and_errors(self):
        async def main():
            got = await asyncio.gather(*(self.loop.run_in_executor(None, pow, i, 2)
                                         for i in range(100)))
            self.assertEqual(got, [i * i for i in range(100)])
            with self.assertRaises(ZeroDivisionError):
                await self.loop.run_in_executor(None, divmod, 1, 0)
            self.assertEqual(await asyncio.to_thread(threading.active_count) > 1, True)
        self.go(main())

    def test_a_default_executor_is_one_of_threads(self):
        self.assertRaises(TypeError, self.loop.set_default_executor, object())
        pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mine")
        self.loop.set_default_executor(pool)
        name = self.go(self.run_in_default(lambda: threading.current_thread().name))
        self.assertTrue(name.startswith("mine"))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        with self.assertRaises(RuntimeError):
            self.loop.run_in_executor(None, int)

    async def run_in_default(self, function):
        return await self.loop.run_in_executor(None, function)


class SideBySide(LoopCase):
    def test_loops_in_several_threads_do_their_own_work(self):
        results, wrong = {}, []

        async def work(number):
            server = await asyncio.start_server(self.echo, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            total = 0
            for i in range(50):
                writer.write(b"%d\n" % i)
                total += int(await reader.readline())
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()
            server.close()
            await server.wait_closed()
            results[number] = total

        def thread(number):
            loop = new_loop()
            try:
                loop.run_until_complete(work(number))
                loop.run_until_complete(turns())
            except BaseException as each:
                wrong.append(each)
            finally:
                loop.close()
        threads = [threading.Thread(target=thread, args=(i,)) for i in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [])
        self.assertEqual(results, {i: sum(range(50)) for i in range(6)})

    @staticmethod
    async def echo(reader, writer):
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    def test_a_loop_may_be_made_in_one_thread_and_run_and_closed_in_others(self):
        seen = []

        def run():
            self.loop.call_soon(lambda: seen.append(threading.get_ident()))
            self.loop.run_until_complete(turns())
        for work in (run, run, self.loop.close):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(len(seen), 2)
        self.assertNotIn(threading.get_ident(), seen)

    def test_a_loop_that_runs_in_one_thread_cannot_run_in_another(self):
        wrong = []

        def other():
            coro = turns()
            try:
                self.loop.run_until_complete(coro)
            except RuntimeError as each:
                wrong.append(str(each))
            finally:
                coro.close()
            self.loop.call_soon_threadsafe(self.loop.stop)
        thread = threading.Thread(target=other)
        self.loop.call_soon(thread.start)
        self.loop.run_forever()
        thread.join()
        self.assertEqual(wrong, ["This event loop is already running"])

    def test_two_loops_talk_to_each_other(self):
        """One loop sends in its thread, and the other receives in its own."""
        left, right = self.pair()
        total = 1 << 20

        def send():
            loop = new_loop()
            loop.run_until_complete(loop.sock_sendall(left, bytes(total)))
            loop.close()
        thread = threading.Thread(target=send)
        thread.start()
        self.assertEqual(len(self.go(receive(self.loop, right, total))), total)
        thread.join()

    def test_another_thread_runs_while_the_loop_waits_and_while_it_is_busy(self):
        for busy in (False, True):
            ran = threading.Event()

            def spin():
                if ran.is_set():
                    self.loop.stop()
                elif busy:
                    self.loop.call_soon(spin)
                else:
                    self.loop.call_later(0.001, spin)
            thread = threading.Thread(target=ran.set)
            self.loop.call_soon(thread.start)
            self.loop.call_soon(spin)
            self.loop.run_forever()
            thread.join()


SUBINTERPRETER = """
import asyncio, house
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    await asyncio.sleep(0.001)
    server.close()
    return 42
assert house.run(main()) == 42
print("inside", flush=True)
"""


class Interpreters(LoopCase):
    outside = True

    def check(self, code, count):
        status, out, told = child(code)
        if "NoSuch" in out:
            self.skipTest("no other interpreters in this Python")
        self.assertEqual((status, out.count("inside")), (0, count), told)

    def test_an_interpreter_in_this_one_has_loops_of_its_own(self):
        self.check(f"""
try:
    import _testcapi
except ImportError:
    print("NoSuch")
else:
    for _ in range(2):
        assert _testcapi.run_in_subinterp({"import sys; sys.path.insert(0, sys.argv[1])"!r}
            .replace("sys.argv[1]", repr(sys.path[0])) + {SUBINTERPRETER!r}) == 0
    house.run(house.turns())
""", 2)

    def test_loops_live_in_two_interpreters_at_once(self):
        self.check(f"""
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    print("NoSuch")
    raise SystemExit
start = "import sys; sys.path.insert(0, %r)" % sys.path[0]
loop = house.new_loop()
loop.run_until_complete(house.turns())
mine = loop.call_later(100, print)
one = interpreters.create()
interpreters.run_string(one, start + {SUBINTERPRETER!r})
interpreters.destroy(one)
two = interpreters.create()
interpreters.run_string(two, start + "\\nimport asyncio, house\\nloop = house.new_loop()\\n"
    "loop.call_later(100, print)\\nprint('inside', flush=True)")
loop.run_until_complete(asyncio.sleep(0.001))
interpreters.destroy(two)
loop.run_until_complete(asyncio.sleep(0.001))
mine.cancel()
loop.close()
""", 2)


class Idle(LoopCase):
    outside = True

    def test_an_idle_loop_uses_no_time(self):
        with Child("""
loop = house.new_loop()
loop.call_later(1000, print)
loop.call_soon(print, "ready")
loop.run_forever()
""") as started:
            started.await_line("ready")
            started.await_sleep()
            times = []
            for _ in range(2):
                with open(f"/proc/{started.pid}/stat", "rb") as stat:
                    times.append(sum(map(int, stat.read().rsplit(b")")[1].split()[11:13])))
                time.sleep(0.1)  # nothing must happen during this time
            self.assertLessEqual(times[1] - times[0], 2)


class Witnessing(LoopCase):
    def test_a_transport_works_while_other_threads_call(self):
        told = []
        stop = threading.Event()

        def tell():
            while not stop.is_set():
                self.loop.call_soon_threadsafe(told.append, 1)

        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            for i in range(200):
                peer.send(b"12345")
                await protocol.until(lambda: len(protocol.data) == 5 * (i + 1))
                transport.write(b"back")
                self.assertEqual(await receive(self.loop, peer, 4), b"back")
            peer.shutdown(socket.SHUT_WR)
            await protocol.until_lost()
        thread = threading.Thread(target=tell)
        thread.start()
        try:
            self.go(main())
        finally:
            stop.set()
            thread.join()
        self.assertTrue(told)
