"""The parts that only weft has: the functions of the package, backends, and metrics."""
import asyncio
import contextlib
import os
import threading
import warnings

from house import LoopCase, child, turns, weft_only

try:
    import weft
except ImportError:
    weft = None

BACKENDS = ("epoll", "poll")  # those that always exist


@contextlib.contextmanager
def quiet():
    """Suppress the warning that Python deprecates policies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@weft_only
class Running(LoopCase):
    def test_run_gives_what_the_coroutine_gives(self):
        async def main():
            self.assertIsInstance(asyncio.get_running_loop(), weft.Loop)
            await asyncio.sleep(0)
            return 42
        self.assertEqual(weft.run(main()), 42)

    def test_run_takes_debug(self):
        async def main():
            return asyncio.get_running_loop().get_debug()
        self.assertTrue(weft.run(main(), debug=True))
        self.assertFalse(weft.run(main(), debug=False))

    def test_run_raises_what_the_coroutine_raises(self):
        async def main():
            raise KeyError("lost")
        with self.assertRaises(KeyError):
            weft.run(main())

    def test_run_refuses_what_is_no_coroutine_and_a_loop_that_runs(self):
        with self.assertRaises((TypeError, ValueError)):
            weft.run(5)

        async def main():
            coro = turns()
            with self.assertRaises(RuntimeError):
                weft.run(coro)
            coro.close()
        self.go(main())

    def test_run_cancels_what_is_left_and_closes_the_loop(self):
        ended, loops = [], []

        async def forever():
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(1)

        async def main():
            loops.append(asyncio.get_running_loop())
            loops.append(asyncio.create_task(forever()))
            await turns()
        weft.run(main())
        self.assertEqual(ended, [1])
        self.assertTrue(loops[0].is_closed())

    def test_a_runner_takes_it_as_its_factory(self):
        async def main():
            return type(asyncio.get_running_loop())
        with asyncio.Runner(loop_factory=weft.new_event_loop) as runner:
            self.assertIs(runner.run(main()), weft.Loop)

    def test_a_loop_is_one_of_asyncio(self):
        loop = weft.new_event_loop()
        self.assertIsInstance(loop, weft.Loop)
        self.assertIsInstance(loop, asyncio.AbstractEventLoop)
        self.assertIsInstance(loop, asyncio.SelectorEventLoop)
        loop.close()

    def test_a_loop_may_be_subclassed(self):
        class Mine(weft.Loop):
            def call_soon(self, callback, *args, **options):
                calls.append(callback)
                return super().call_soon(callback, *args, **options)
        calls = []
        loop = Mine()
        loop.call_soon(int)
        loop.run_until_complete(turns())
        loop.close()
        self.assertIn(int, calls)


@weft_only
class Policies(LoopCase):
    def test_the_policy_makes_its_loops(self):
        with quiet():
            policy = weft.EventLoopPolicy()
            loop = policy.new_event_loop()
            self.assertIsInstance(loop, weft.Loop)
            policy.set_event_loop(loop)
            self.assertIs(policy.get_event_loop(), loop)
            policy.set_event_loop(None)
            loop.close()

    def test_install_makes_it_the_loop_of_asyncio_run(self):
        status, out, told = child("""
import warnings
warnings.simplefilter("ignore")
import weft
weft.install()
async def main():
    print(type(asyncio.get_running_loop()) is weft.Loop)
asyncio.run(main())
loop = asyncio.new_event_loop()
print(type(loop) is weft.Loop)
loop.close()
asyncio.set_event_loop_policy(None)
loop = asyncio.new_event_loop()
print(type(loop) is weft.Loop)
loop.close()
""")
        self.assertEqual((status, out.split()), (0, ["True", "True", "False"]), told)

    def test_threads_get_loops_of_their_own(self):
        with quiet():
            policy = weft.EventLoopPolicy()
        wrong = []

        def thread():
            with quiet():
                try:
                    policy.get_event_loop()
                except RuntimeError as each:
                    wrong.append(each)
        started = threading.Thread(target=thread)
        started.start()
        started.join()
        self.assertEqual(len(wrong), 1)


@weft_only
class Backends(LoopCase):
    def test_each_backend_runs_a_program(self):
        async def main():
            server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            self.assertEqual(await reader.read(), b"")
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(0.001)
            server.close()
            await server.wait_closed()
            await turns()
        for backend in BACKENDS:
            with self.subTest(backend):
                loop = weft.new_event_loop(backend=backend)
                loop.run_until_complete(main())
                self.assertEqual(weft.metrics(loop)["backend"], backend)
                loop.close()

    def test_io_uring_runs_where_there_is_one(self):
        try:
            loop = weft.new_event_loop(backend="uring")
        except (OSError, RuntimeError, ValueError) as wrong:
            self.skipTest(f"this kernel has none: {wrong}")
        loop.run_until_complete(turns())
        self.assertEqual(weft.metrics(loop)["backend"], "uring")
        loop.close()

    def test_a_backend_that_is_none_is_refused(self):
        for wrong in ("kqueue-of-the-future", "epoll "):
            with self.assertRaises(ValueError):
                weft.new_event_loop(backend=wrong)
        for wrong in (5, b"epoll"):
            with self.assertRaises((TypeError, ValueError)):
                weft.new_event_loop(backend=wrong)

    def test_the_environment_chooses_when_the_program_does_not(self):
        for backend in BACKENDS:
            status, out, told = child("""
import weft
loop = weft.new_event_loop()
loop.run_until_complete(house.turns())
print(weft.metrics(loop)["backend"])
loop.close()
""", WEFT_BACKEND=backend)
            self.assertEqual((status, out.strip()), (0, backend), told)


@weft_only
class Metrics(LoopCase):
    def test_turns_are_counted(self):
        before = weft.metrics(self.loop)
        self.assertIsInstance(before, dict)
        self.settle(10)
        after = weft.metrics(self.loop)
        self.assertGreater(after["turns"], before["turns"])
        self.assertEqual(set(after), set(before))

    def test_metrics_are_told_while_the_loop_runs(self):
        async def main():
            return weft.metrics(asyncio.get_running_loop())
        told = self.go(main())
        self.assertGreater(told["turns"], 0)
        self.assertIn(told["backend"], (*BACKENDS, "uring"))

    def test_rates_and_times_are_measured_from_the_first_reading_on(self):
        async def sleep_often():
            for _ in range(20):
                await asyncio.sleep(0.0005)
        self.go(sleep_often())
        before = weft.metrics(self.loop)
        for name in ("turns_per_s", "callbacks_per_s", "turn", "lag"):
            self.assertIsNone(before[name])
        self.go(sleep_often())
        after = weft.metrics(self.loop)
        for name in ("turns_per_s", "callbacks_per_s"):
            self.assertGreater(after[name], 0)
        for name in ("turn", "lag"):
            self.assertGreater(after[name]["count"], 0)
            self.assertGreater(after[name]["p50_ns"], 0)

    def test_each_loop_has_its_own(self):
        other = weft.new_event_loop()
        other.run_until_complete(turns(50))
        self.assertGreater(weft.metrics(other)["turns"], weft.metrics(self.loop)["turns"])
        other.close()

    def test_what_is_no_loop_of_weft_is_refused(self):
        stock = asyncio.SelectorEventLoop()
        for wrong in (5, stock):
            with self.assertRaises(TypeError):
                weft.metrics(wrong)
        stock.close()

    def test_without_a_loop_they_are_those_of_the_running_one(self):
        async def main():
            return weft.metrics()
        self.assertGreater(self.go(main())["turns"], 0)
        with self.assertRaises(RuntimeError):
            weft.metrics()

    def test_metrics_of_a_closed_loop_are_told_or_refused(self):
        self.settle()
        self.loop.close()
        with contextlib.suppress(RuntimeError):
            self.assertIn("turns", weft.metrics(self.loop))


@weft_only
class Importing(LoopCase):
    outside = True

    def test_it_says_its_version_and_all_its_names_are_there(self):
        self.assertRegex(weft.__version__, r"^\d+\.\d+")
        for name in ("run", "new_event_loop", "EventLoopPolicy", "install", "metrics", "Loop"):
            self.assertIn(name, weft.__all__)
        for name in weft.__all__:
            self.assertTrue(hasattr(weft, name), name)

    def test_its_stubs_are_beside_it(self):
        folder = os.path.dirname(weft.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))

    def test_importing_it_starts_nothing(self):
        status, out, told = child("""
import sys, threading
before = house.descriptors()
import weft
assert threading.active_count() == 1
assert house.descriptors() == before, house.descriptors()
print("quiet")
""")
        self.assertEqual((status, out), (0, "quiet\n"), told)

    def test_it_may_be_imported_again(self):
        status, out, told = child("""
import sys, importlib
import weft
async def main():
    await asyncio.sleep(0.001)
weft.run(main())
for name in [name for name in sys.modules if name.partition(".")[0] == "weft"]:
    del sys.modules[name]
import weft as again
assert again is not weft
again.run(main())
weft.run(main())
print("well")
""")
        self.assertEqual((status, out), (0, "well\n"), told)

    def test_a_program_that_ends_with_loops_open_ends_well(self):
        status, _, told = child("""
import socket, sys
loops = [house.new_loop() for _ in range(3)]
one, two = socket.socketpair()
loops[0].add_reader(one, print)
loops[0].run_until_complete(house.turns())
loops[1].call_later(1000, print)
loops[2].create_task(asyncio.sleep(1000))
loops[2].run_until_complete(house.turns())
sys.modules["kept"] = loops
""", options=("-W", "ignore"))
        self.assertEqual(status, 0, told)
