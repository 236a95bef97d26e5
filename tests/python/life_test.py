"""The lifetime of a loop: run, stop, run again, nest, close; tasks and generators at its
end."""
import _asyncio
import asyncio
import contextvars
import gc
import sys
import threading
import weakref

from house import LoopCase, Planned, Witness, new_loop, run, turns


class Running(LoopCase):
    def test_it_says_whether_it_runs_and_is_closed(self):
        seen = []
        self.assertFalse(self.loop.is_running())
        self.loop.call_soon(lambda: (seen.append(self.loop.is_running()), self.loop.stop()))
        self.loop.run_forever()
        self.assertEqual(seen, [True])
        self.assertFalse(self.loop.is_running())
        self.assertFalse(self.loop.is_closed())
        self.assertRegex(repr(self.loop), r"^<.*running=False closed=False debug=False>$")
        self.loop.close()
        self.assertTrue(self.loop.is_closed())
        self.assertRegex(repr(self.loop), "closed=True")

    def test_it_runs_again_and_again(self):
        for i in range(20):
            self.assertEqual(self.go(self.give(i)), i)
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @staticmethod
    async def give(what):
        await asyncio.sleep(0)
        return what

    def test_a_coroutine_that_raises_raises_out_of_it(self):
        async def fail():
            raise Planned("out of it")
        with self.assertRaisesRegex(Planned, "out of it"):
            self.loop.run_until_complete(fail())
        self.assertEqual(self.go(self.give(1)), 1)

    def test_a_loop_that_stops_before_its_coroutine_ends_says_so(self):
        task = self.loop.create_task(asyncio.sleep(1000))
        self.loop.call_soon(self.loop.stop)
        with self.assertRaisesRegex(RuntimeError, "stopped before Future completed"):
            self.loop.run_until_complete(task)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            self.loop.run_until_complete(task)

    def test_what_is_no_coroutine_is_refused(self):
        self.assertRaises(TypeError, self.loop.run_until_complete, 5)
        future = self.loop.create_future()
        future.set_result(7)
        self.assertEqual(self.loop.run_until_complete(future), 7)

    def test_a_running_loop_refuses_to_run_inside_itself(self):
        wrong = []

        async def main():
            for nested in (self.loop.run_forever, lambda: self.loop.run_until_complete(coro)):
                try:
                    nested()
                except RuntimeError as each:
                    wrong.append(str(each))
        coro = turns()
        self.go(main())
        coro.close()
        self.assertEqual(wrong, ["This event loop is already running"] * 2)
        self.take_reports()

    def test_another_loop_refuses_to_run_inside_this_one(self):
        other = new_loop()
        wrong = []

        def nested():
            try:
                other.run_forever()
            except RuntimeError as each:
                wrong.append(str(each))
        self.loop.call_soon(nested)
        self.settle(1)
        other.close()
        self.assertEqual(wrong, ["Cannot run the event loop while another loop is running"])

    def test_the_running_loop_is_known_while_it_runs(self):
        seen = []
        self.loop.call_soon(lambda: seen.append(asyncio.get_running_loop()))
        self.settle(1)
        self.assertIs(seen[0], self.loop)
        self.assertRaises(RuntimeError, asyncio.get_running_loop)
        self.loop.call_soon(sys.exit)
        self.assertRaises(SystemExit, self.loop.run_forever)
        self.assertRaises(RuntimeError, asyncio.get_running_loop)


class Stopping(LoopCase):
    def test_stopped_before_it_runs_it_runs_one_turn(self):
        ran = []
        self.loop.stop()
        self.loop.call_soon(ran.append, 1)
        self.loop.call_soon(self.loop.call_soon, ran.append, 2)
        self.loop.run_forever()
        self.assertEqual(ran, [1])
        self.settle(1)
        self.assertEqual(ran, [1, 2])

    def test_stopped_by_a_callback_it_finishes_the_turn_and_not_the_next(self):
        ran = []
        self.loop.call_soon(self.loop.stop)
        self.loop.call_soon(ran.append, "same turn")
        self.loop.call_soon(lambda: self.loop.call_soon(ran.append, "next turn"))
        self.loop.run_forever()
        self.assertEqual(ran, ["same turn"])
        self.loop.stop()
        self.loop.run_forever()
        self.assertEqual(ran, ["same turn", "next turn"])

    def test_stopped_twice_is_stopped_once(self):
        self.loop.call_soon(self.loop.stop)
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        ran = []
        self.loop.call_soon(ran.append, 1)
        self.loop.call_soon(lambda: self.loop.call_soon(self.loop.stop))
        self.loop.run_forever()
        self.assertEqual(ran, [1])

    def test_stopped_by_a_timer_a_reader_and_another_thread(self):
        mine, peer = self.pair()
        self.loop.call_later(0.001, self.loop.stop)
        self.loop.run_forever()
        peer.send(b"x")
        self.loop.add_reader(mine, lambda: (self.loop.remove_reader(mine), self.loop.stop()))
        self.loop.run_forever()
        thread = threading.Thread(target=self.loop.call_soon_threadsafe, args=(self.loop.stop,))
        thread.start()
        self.loop.run_forever()
        thread.join()

    def test_stopped_by_a_callback_that_raises_it_stops(self):
        def fail():
            self.loop.stop()
            raise Planned
        self.loop.call_soon(fail)
        self.loop.run_forever()
        self.assertEqual([each[2] for each in self.take_reports()], ["Planned"])

    def test_a_stop_before_a_loop_was_left_by_an_exception_is_forgotten(self):
        def leave():
            self.loop.stop()
            raise KeyboardInterrupt
        self.loop.call_soon(leave)
        self.assertRaises(KeyboardInterrupt, self.loop.run_forever)
        ran = []
        self.loop.call_soon(lambda: self.loop.call_soon(ran.append, 1))
        self.loop.call_soon(lambda: self.loop.call_soon(self.loop.stop))
        self.loop.run_forever()
        self.assertEqual(ran, [1])


class Closing(LoopCase):
    def test_closed_twice_is_closed_once(self):
        self.loop.close()
        self.loop.close()

    def test_a_running_loop_refuses_to_be_closed(self):
        wrong = []

        def close():
            try:
                self.loop.close()
            except RuntimeError as each:
                wrong.append(str(each))
        self.loop.call_soon(close)
        self.settle(1)
        self.assertEqual(wrong, ["Cannot close a running event loop"])
        self.assertFalse(self.loop.is_closed())

    def test_a_closed_loop_refuses_what_would_need_it(self):
        loop, mine = self.loop, self.pair()[0]
        loop.close()
        refused = {
            "run_forever": loop.run_forever,
            "call_soon": lambda: loop.call_soon(int),
            "call_soon_threadsafe": lambda: loop.call_soon_threadsafe(int),
            "call_later": lambda: loop.call_later(1, int),
            "call_at": lambda: loop.call_at(1, int),
            "add_reader": lambda: loop.add_reader(mine, int),
            "add_writer": lambda: loop.add_writer(mine, int),
            "run_in_executor": lambda: loop.run_in_executor(None, int),
        }
        for name, call in refused.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "closed"):
                call()
        for coro in (turns(), loop.create_server(asyncio.Protocol, "127.0.0.1", 0)):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                try:
                    loop.run_until_complete(coro)
                finally:
                    coro.close()
        self.assertFalse(loop.remove_reader(mine))
        loop.set_debug(False)
        self.assertFalse(loop.get_debug())
        self.assertGreater(loop.time(), 0)

    def test_a_loop_that_is_not_closed_is_told_of_when_it_is_let_go_and_closed(self):
        loop = new_loop()
        loop.run_until_complete(turns())
        with self.assertWarnsRegex(ResourceWarning, "unclosed event loop"):
            del loop
            gc.collect()

    def test_a_loop_that_is_closed_is_collected(self):
        loop = new_loop()
        loop.call_later(100, print, loop)
        loop.run_until_complete(turns())
        gone = weakref.ref(loop)
        loop.close()
        del loop
        gc.collect()
        self.assertIsNone(gone())

    def test_a_transport_that_has_outlived_its_loop_does_no_harm(self):
        transport, _ = self.go(self.wire(Witness(self.loop)))
        transport.abort()
        self.settle()
        self.loop.close()
        transport.abort()
        self.assertTrue(transport.is_closing())

    def test_a_loop_may_be_closed_under_an_open_transport(self):
        """An open transport causes a warning when it is collected, and is closed."""
        mine, peer = self.pair()
        transport, protocol = self.loop.run_until_complete(
            self.loop.create_connection(lambda: Witness(self.loop), sock=mine))
        self.loop.close()
        with self.assertWarnsRegex(ResourceWarning, "unclosed transport"):
            del transport
            protocol.transport = protocol.loop = None
            gc.collect()

    def test_many_loops_are_made_and_closed_without_a_run(self):
        for _ in range(200):
            new_loop().close()


class Tasks(LoopCase):
    def test_futures_and_tasks_are_those_of_asyncio(self):
        future = self.loop.create_future()
        self.assertIs(type(future), _asyncio.Future)
        self.assertIs(future.get_loop(), self.loop)

        async def main():
            task = self.loop.create_task(turns(), name="mine")
            self.assertIs(type(task), _asyncio.Task)
            self.assertEqual(task.get_name(), "mine")
            await task
        self.go(main())

    def test_a_task_runs_in_the_context_it_is_given(self):
        colour = contextvars.ContextVar("colour", default="none")
        context = contextvars.copy_context()

        async def paint():
            colour.set("red")

        async def main():
            await self.loop.create_task(paint(), context=context)
        self.go(main())
        self.assertEqual((context[colour], colour.get()), ("red", "none"))

    def test_a_task_factory_makes_the_tasks(self):
        made = []

        def factory(loop, coro, **options):
            made.append(options)
            return asyncio.Task(coro, loop=loop, **options)
        self.assertIsNone(self.loop.get_task_factory())
        self.loop.set_task_factory(factory)
        self.assertIs(self.loop.get_task_factory(), factory)

        async def main():
            await self.loop.create_task(turns())
        self.loop.run_until_complete(main())
        self.assertEqual(len(made), 2)
        self.assertRaises(TypeError, self.loop.set_task_factory, 1)
        self.loop.set_task_factory(None)

    def test_an_eager_task_begins_at_once(self):
        if not hasattr(asyncio, "eager_task_factory"):
            self.skipTest("this Python has no eager tasks")
        began = []

        async def begin():
            began.append(1)

        async def main():
            self.loop.set_task_factory(asyncio.eager_task_factory)
            task = asyncio.create_task(begin())
            self.assertEqual((began, task.done()), ([1], True))
        self.go(main())
        self.loop.set_task_factory(None)

    def test_a_task_that_nobody_waits_for_reports_what_it_raised(self):
        async def fail():
            raise Planned("unheard")

        async def main():
            asyncio.create_task(fail())
            await turns()
        self.go(main())
        gc.collect()
        self.assertEqual([each[1:4] for each in self.take_reports()],
                         [("Task exception was never retrieved", "Planned", "unheard")])

    def test_a_task_that_is_let_go_while_it_waits_is_reported(self):
        async def wait():
            await self.loop.create_future()

        async def main():
            asyncio.create_task(wait())
            await turns()
        self.go(main())
        gc.collect()
        self.assertEqual([each[1] for each in self.take_reports()],
                         ["Task was destroyed but it is pending!"])

    def test_generators_that_are_not_finished_are_closed_at_the_end(self):
        closed = []

        async def numbers():
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(0)
                closed.append(1)

        async def main():
            async for number in (kept := numbers()):
                self.assertEqual(number, 1)
                return kept
        kept = self.go(main())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.assertEqual(closed, [1])
        del kept

    def test_a_generator_that_is_let_go_is_closed_by_the_loop(self):
        closed = []

        async def numbers():
            try:
                yield 1
            finally:
                closed.append(asyncio.get_running_loop())

        async def main():
            async for _ in numbers():
                break
            gc.collect()
            await turns()
        self.go(main())
        self.assertEqual(closed, [self.loop])

    def test_the_hooks_for_generators_are_as_before_after_a_run(self):
        before = sys.get_asyncgen_hooks()
        self.settle()
        self.assertEqual(sys.get_asyncgen_hooks(), before)
        self.loop.call_soon(sys.exit)
        self.assertRaises(SystemExit, self.loop.run_forever)
        self.assertEqual(sys.get_asyncgen_hooks(), before)

    def test_the_runner_of_asyncio_cancels_what_is_left(self):
        ended = []

        async def forever():
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(1)

        async def main():
            self.kept = asyncio.create_task(forever())
            await turns()
            return "done"
        self.assertEqual(run(main()), "done")
        self.assertEqual(ended, [1])
        del self.kept

    def test_cancellation_reaches_a_task_wherever_it_waits(self):
        async def sleeper():
            await asyncio.sleep(1000)

        async def waiter():
            await self.loop.create_future()

        async def reader():
            mine, _ = self.pair()
            await self.loop.sock_recv(mine, 1)

        async def locked():
            lock = asyncio.Lock()
            async with lock:
                await lock.acquire()

        async def main():
            for make in (sleeper, waiter, reader, locked):
                for before in range(3):
                    task = asyncio.create_task(make())
                    await turns(before)
                    task.cancel("enough")
                    with self.assertRaises(asyncio.CancelledError):
                        await task
        self.go(main())

    def test_names_are_found(self):
        async def main():
            found = await self.loop.getaddrinfo("127.0.0.1", 80, type=1)
            self.assertEqual(found[0][4], ("127.0.0.1", 80))
            found = await self.loop.getaddrinfo("localhost", None)
            self.assertTrue(found)
            host, service = await self.loop.getnameinfo(("127.0.0.1", 80), 3)
            self.assertEqual((host, service), ("127.0.0.1", "80"))
        self.go(main())
