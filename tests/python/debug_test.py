"""Debug mode: slow callbacks, calls from the wrong thread, and source tracebacks."""
import asyncio
import gc
import logging
import re
import sys
import threading
import time

from house import (LoopCase, Planned, Witness, child, new_loop, run, turns,
                   weft_only)


class DebugCase(LoopCase):
    def setUp(self):
        super().setUp()
        self.loop.set_debug(True)

    def logged(self, level, work):
        """The messages that the loop logs while work() runs."""
        with self.assertLogs("asyncio", level) as logged:
            work()
        return [record.getMessage() for record in logged.records]


class Slow(DebugCase):
    def burn(self):
        end = time.monotonic() + 0.004
        while time.monotonic() < end:
            pass

    def test_a_slow_callback_is_logged(self):
        self.loop.slow_callback_duration = 0.002
        for call in (self.loop.call_soon, lambda f: self.loop.call_later(0, f),
                     self.loop.call_soon_threadsafe):
            call(self.burn)
            said = self.logged("WARNING", lambda: self.loop.run_until_complete(
                asyncio.sleep(0.002)))
            self.assertTrue(any(re.search(r"Executing <.*burn.*> took 0\.\d+ seconds", line)
                                for line in said), said)

    def test_a_slow_step_of_a_task_is_logged_with_its_name(self):
        async def sluggish():
            self.burn()
        self.loop.slow_callback_duration = 0.002
        said = self.logged("WARNING", lambda: self.loop.run_until_complete(sluggish()))
        self.assertTrue(any("sluggish" in line and "took" in line for line in said), said)

    def test_a_callback_that_is_not_slow_is_not_logged(self):
        self.loop.slow_callback_duration = 100
        with self.assertNoLogs("asyncio", "WARNING"):
            self.loop.call_soon(self.burn)
            self.settle()

    def test_nothing_is_logged_when_debug_mode_is_off(self):
        self.loop.set_debug(False)
        self.loop.slow_callback_duration = 0.002
        with self.assertNoLogs("asyncio", "WARNING"):
            self.loop.call_soon(self.burn)
            self.settle()

    def test_debug_mode_can_be_changed_while_the_loop_runs(self):
        self.loop.set_debug(False)
        self.loop.slow_callback_duration = 0.002

        async def main():
            self.burn()
            await turns()
            self.loop.set_debug(True)
            self.assertTrue(self.loop.get_debug())
            await turns()
            self.loop.call_soon(self.burn)
            await turns()
            self.loop.set_debug(False)
            await turns()
            self.loop.call_soon(self.burn)
            await turns()
        said = self.logged("WARNING", lambda: self.loop.run_until_complete(main()))
        self.assertEqual(sum("burn" in line for line in said), 1, said)


class Threads(DebugCase):
    def test_calls_from_another_thread_are_refused(self):
        wrong = []

        def elsewhere():
            for call in (lambda: self.loop.call_soon(int), lambda: self.loop.call_later(0, int),
                         lambda: self.loop.call_at(0, int)):
                try:
                    call()
                except RuntimeError as each:
                    wrong.append(str(each))

        async def main():
            await asyncio.to_thread(elsewhere)
        self.go(main())
        self.assertEqual(len(wrong), 3)
        for text in wrong:
            self.assertRegex(text, "Non-thread-safe operation")

    def test_calls_from_another_thread_are_allowed_while_the_loop_does_not_run(self):
        ran = []
        thread = threading.Thread(target=self.loop.call_soon, args=(ran.append, 1))
        thread.start()
        thread.join()
        self.settle()
        self.assertEqual(ran, [1])

    def test_the_safe_call_is_allowed_from_everywhere(self):
        async def main():
            heard = self.loop.create_future()
            await asyncio.to_thread(self.loop.call_soon_threadsafe, heard.set_result, 1)
            await heard
        self.go(main())

    def test_without_debug_mode_nothing_is_checked(self):
        self.loop.set_debug(False)
        ran = []

        async def main():
            await asyncio.to_thread(lambda: self.loop.call_soon(ran.append, 1))
            await turns()
        self.go(main())
        self.assertEqual(ran, [1])

    def test_what_is_no_callback_is_refused(self):
        async def coro():
            pass
        for call in (self.loop.call_soon, self.loop.call_soon_threadsafe,
                     lambda what: self.loop.call_later(1, what),
                     lambda what: self.loop.call_at(1, what)):
            self.assertRaises(TypeError, call, 5)
            self.assertRaises(TypeError, call, coro)


class Origins(DebugCase):
    def test_a_report_says_where_the_callback_was_given(self):
        def fail():
            raise Planned

        def here():
            return self.loop.call_soon(fail)
        here()
        self.loop.call_later(0, fail)
        self.loop.run_until_complete(asyncio.sleep(0.002))
        first, second = self.reports
        names = [frame.name for frame in first["source_traceback"]]
        self.assertEqual(names[-1], "here")
        self.assertEqual([frame.name for frame in second["source_traceback"]][-1],
                         "test_a_report_says_where_the_callback_was_given")
        self.reports.clear()

    def test_a_handle_says_where_it_was_made(self):
        handle = self.loop.call_soon(int)
        self.assertRegex(repr(handle), r"created at .*debug_test\.py:\d+")
        later = self.loop.call_later(1000, int)
        self.assertRegex(repr(later), r"created at .*debug_test\.py:\d+")
        later.cancel()
        self.assertRegex(repr(later), r"cancelled.*created at")

    def test_the_default_handler_logs_where_the_callback_was_given(self):
        self.loop.set_exception_handler(None)

        def work():
            self.loop.call_soon(lambda: 1 / 0)
            self.settle()
        said = self.logged("ERROR", work)
        self.assertRegex(said[0], r"(?s)Object created at .*debug_test\.py")

    def test_a_coroutine_that_is_never_awaited_says_where_it_was_made(self):
        async def forgotten():
            pass

        def careless():
            forgotten()

        async def main():
            with self.assertWarnsRegex(RuntimeWarning, "(?s)never awaited.*careless"):
                careless()
                gc.collect()
        self.go(main())

    def test_the_depth_of_origins_is_as_before_after_a_run(self):
        before = sys.get_coroutine_origin_tracking_depth()
        seen = []
        self.loop.call_soon(lambda: seen.append(sys.get_coroutine_origin_tracking_depth()))
        self.settle()
        self.assertGreater(seen[0], 0)
        self.assertEqual(sys.get_coroutine_origin_tracking_depth(), before)

    def test_a_task_that_is_destroyed_says_where_it_was_made(self):
        async def wait():
            await self.loop.create_future()

        async def main():
            asyncio.create_task(wait())
            await turns()
        self.go(main())
        gc.collect()
        self.assertEqual(len(self.reports), 1)
        self.assertIn("main", [frame.name for frame in self.reports[0]["source_traceback"]])
        self.reports.clear()

    def test_handles_of_contexts_and_transports_work_as_without(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            peer.send(b"x")
            await protocol.until(lambda: protocol.data)
            transport.write(b"y")
            self.assertEqual(await self.loop.sock_recv(peer, 1), b"y")
            transport.close()
            await protocol.until_lost()
        self.go(main())


class Switches(LoopCase):
    outside = True

    def test_debug_mode_is_asked_for_in_each_of_its_ways(self):
        code = "loop = house.new_loop(); print(loop.get_debug()); loop.close()"
        for options, environment, want in (((), {}, "False"), (("-X", "dev"), {}, "True"),
                                           ((), {"PYTHONASYNCIODEBUG": "1"}, "True")):
            status, out, told = child(code, options=options, **environment)
            self.assertEqual((status, out.strip()), (0, want), told)

    def test_a_runner_turns_it_on_and_off(self):
        async def main():
            return asyncio.get_running_loop().get_debug()
        self.assertTrue(run(main(), debug=True))
        self.assertFalse(run(main(), debug=False))

    @weft_only
    def test_a_loop_in_development_mode_says_nothing_of_itself(self):
        """No warning, no slow callback, nothing left open."""
        status, out, told = child("""
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await reader.read()
    writer.close()
    await writer.wait_closed()
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    await asyncio.to_thread(int)
    server.close()
    await server.wait_closed()
house.run(main())
""", options=("-X", "dev"))
        self.assertEqual((status, told), (0, ""))


class Logging(DebugCase):
    def test_the_logger_is_that_of_asyncio(self):
        logger = logging.getLogger("asyncio")
        self.assertFalse(logger.disabled)
        loop = new_loop()
        loop.set_exception_handler(None)
        said = self.logged("ERROR", lambda: loop.call_exception_handler({"message": "told"}))
        loop.close()
        self.assertEqual(said, ["told"])
