"""Callbacks: order, contexts, handles, cancellation, and exceptions."""
import asyncio
import contextvars
import gc
import weakref

from house import LoopCase, Planned, new_loop, weft_only

COLOUR = contextvars.ContextVar("colour", default="none")


class Order(LoopCase):
    def test_callbacks_run_in_the_order_they_were_given_in(self):
        ran = []
        for i in range(5000):
            self.loop.call_soon(ran.append, i)
        self.settle(1)
        self.assertEqual(ran, list(range(5000)))

    def test_a_callback_given_by_a_callback_waits_for_the_next_turn(self):
        ran = []

        def first():
            ran.append("first")
            self.loop.call_soon(ran.append, "third")
        self.loop.call_soon(first)
        self.loop.call_soon(ran.append, "second")
        self.settle()
        self.assertEqual(ran, ["first", "second", "third"])

    def test_callbacks_that_go_on_forever_do_not_keep_a_timer_from_firing(self):
        def again():
            self.loop.call_soon(again)
        again()
        self.loop.call_later(0.005, self.loop.stop)
        self.loop.run_forever()

    def test_callbacks_that_go_on_forever_do_not_keep_a_reader_from_being_called(self):
        mine, peer = self.pair()

        def again():
            self.loop.call_soon(again)
        again()
        peer.send(b"x")
        self.loop.add_reader(mine, lambda: (self.loop.remove_reader(mine), self.loop.stop()))
        self.loop.run_forever()

    def test_a_callback_takes_any_number_of_arguments(self):
        got = []
        for count in range(12):
            self.loop.call_soon(lambda *args: got.append(args), *range(count))
        self.settle(1)
        self.assertEqual(got, [tuple(range(count)) for count in range(12)])

    def test_any_callable_is_called(self):
        got = []

        class Called:
            def __call__(self, *args):
                got.append(args)

            def method(self, *args):
                got.append(args)
        for each in (Called(), Called().method, lambda *args: got.append(args), got.append):
            self.loop.call_soon(each, 1)
        self.settle(1)
        self.assertEqual(got, [(1,), (1,), (1,), 1])

    def test_the_ready_callbacks_may_be_many_more_than_at_any_time_before(self):
        ran = []

        def grow(depth):
            ran.append(depth)
            if depth:
                self.loop.call_soon(grow, depth - 1)
                self.loop.call_soon(grow, depth - 1)
        self.loop.call_soon(grow, 12)
        self.settle(14)
        self.assertEqual(ran, [depth for depth in range(12, -1, -1)
                               for _ in range(2 ** (12 - depth))])

    def test_one_turn_of_many_callbacks_may_add_as_many_again(self):
        ran = []
        for i in range(3000):
            self.loop.call_soon(lambda i=i: self.loop.call_soon(ran.append, i))
        self.settle()
        self.assertEqual(ran, list(range(3000)))


class Contexts(LoopCase):
    def test_a_callback_runs_in_a_copy_of_the_context_in_which_it_was_given(self):
        seen = []
        COLOUR.set("none")
        self.loop.call_soon(lambda: (seen.append(COLOUR.get()), COLOUR.set("lost")))
        COLOUR.set("red")
        self.loop.call_soon(lambda: seen.append(COLOUR.get()))
        self.loop.call_later(0, lambda: seen.append(COLOUR.get()))
        self.loop.call_soon_threadsafe(lambda: seen.append(COLOUR.get()))
        COLOUR.set("green")
        self.settle()
        self.loop.run_until_complete(asyncio.sleep(0.001))
        self.assertEqual(sorted(seen), ["none", "red", "red", "red"])
        self.assertEqual(COLOUR.get(), "green")
        COLOUR.set("none")

    def test_a_context_that_is_given_is_used_itself(self):
        context = contextvars.copy_context()
        seen = []
        self.loop.call_soon(COLOUR.set, "blue", context=context)
        self.settle(1)
        self.assertEqual(context[COLOUR], "blue")
        for call in (self.loop.call_soon, self.loop.call_soon_threadsafe):
            call(lambda: seen.append(COLOUR.get()), context=context)
        self.loop.call_later(0, lambda: seen.append(COLOUR.get()), context=context)
        self.loop.call_at(0, lambda: seen.append(COLOUR.get()), context=context)
        self.loop.run_until_complete(asyncio.sleep(0.001))
        self.assertEqual(seen, ["blue"] * 4)

    def test_a_context_that_is_in_use_is_reported_and_the_loop_goes_on(self):
        context = contextvars.copy_context()
        context.run(self.loop.call_soon, lambda: None, context=context)

        def enter_again():
            context.run(lambda: self.loop.call_soon(lambda: None))
        self.loop.call_soon(enter_again, context=context)
        self.settle()
        self.assertEqual([each[2] for each in self.take_reports()], ["RuntimeError"])

    def test_a_reader_runs_in_the_context_in_which_it_was_added(self):
        mine, peer = self.pair()
        seen = []
        token = COLOUR.set("yellow")

        def ready():
            seen.append(COLOUR.get())
            self.loop.remove_reader(mine)
            self.loop.stop()
        self.loop.add_reader(mine, ready)
        COLOUR.reset(token)
        peer.send(b"x")
        self.loop.run_forever()
        self.assertEqual(seen, ["yellow"])

    def test_what_a_protocol_is_told_runs_in_one_context(self):
        seen = []

        class Coloured(asyncio.Protocol):
            def connection_made(self, transport):
                seen.append(COLOUR.get())

            def data_received(self, data):
                seen.append(COLOUR.get())

            def connection_lost(self, exc):
                seen.append(COLOUR.get())
                lost.set_result(None)

        async def main():
            token = COLOUR.set("brown")
            _, peer = await self.wire(Coloured())
            COLOUR.reset(token)
            peer.send(b"x")
            peer.shutdown(1)
            await lost
        lost = self.loop.create_future()
        self.go(main())
        self.assertEqual(seen, ["brown"] * 3)


class Handles(LoopCase):
    def every_handle(self, callback):
        loop = self.loop
        return {"call_soon": loop.call_soon(callback),
                "call_soon_threadsafe": loop.call_soon_threadsafe(callback),
                "call_later": loop.call_later(0, callback),
                "call_at": loop.call_at(loop.time(), callback)}

    def test_handles_are_those_of_asyncio(self):
        for name, handle in self.every_handle(int).items():
            with self.subTest(name):
                self.assertIsInstance(handle, asyncio.Handle)
                timed = isinstance(handle, asyncio.TimerHandle)
                self.assertEqual(timed, name in ("call_later", "call_at"))
                self.assertFalse(handle.cancelled())
                self.assertIn("int", repr(handle))

    def test_a_cancelled_callback_does_not_run(self):
        ran = []
        for name, handle in self.every_handle(lambda: ran.append(1)).items():
            with self.subTest(name):
                handle.cancel()
                self.assertTrue(handle.cancelled())
                handle.cancel()
                self.assertIn("cancelled", repr(handle))
        self.loop.run_until_complete(asyncio.sleep(0.002))
        self.assertEqual(ran, [])

    def test_a_callback_may_cancel_itself_and_those_before_and_after_it(self):
        ran, handles = [], []

        def cancel_all():
            ran.append("cancels")
            for handle in handles:
                handle.cancel()
        handles.append(self.loop.call_soon(ran.append, "before"))
        handles.append(self.loop.call_soon(cancel_all))
        handles.append(self.loop.call_soon(ran.append, "after"))
        handles.append(self.loop.call_later(0, ran.append, "later"))
        self.loop.run_until_complete(asyncio.sleep(0.002))
        self.assertEqual(ran, ["before", "cancels"])
        self.assertEqual([handle.cancelled() for handle in handles], [True] * 4)

    def test_a_handle_may_be_cancelled_after_it_has_run_and_after_the_loop_is_closed(self):
        handles = list(self.every_handle(int).values())
        late = self.loop.call_later(1000, int)
        self.loop.run_until_complete(asyncio.sleep(0.002))
        for handle in handles[:2]:
            handle.cancel()
        self.loop.close()
        for handle in handles + [late]:
            handle.cancel()
            handle.cancel()
            self.assertTrue(handle.cancelled())

    def test_a_handle_keeps_its_callback_until_it_has_run_and_no_longer(self):
        class Callback:
            def __call__(self):
                pass
        for cancel in (False, True):
            callback = Callback()
            gone = weakref.ref(callback)
            handle = self.loop.call_soon(callback)
            del callback
            self.assertIsNotNone(gone())
            if cancel:
                handle.cancel()
            self.settle(1)
            del handle
            gc.collect()
            self.assertIsNone(gone())

    def test_the_arguments_of_a_cancelled_callback_are_let_go_at_once(self):
        class Held:
            pass
        held = Held()
        gone = weakref.ref(held)
        handle = self.loop.call_later(1000, print, held)
        del held
        handle.cancel()
        gc.collect()
        self.assertIsNone(gone())

    def test_a_timer_handle_tells_when_it_is_due_and_sorts_by_it(self):
        now = self.loop.time()
        early, late = self.loop.call_at(now + 500, int), self.loop.call_at(now + 1000, int)
        self.assertEqual((early.when(), late.when()), (now + 500, now + 1000))
        self.assertTrue(early < late and late > early and early <= late and late >= early)
        self.assertNotEqual(early, late)
        self.assertEqual(early, early)
        self.assertEqual(len({early, late}), 2)
        early.cancel()
        late.cancel()
        self.assertEqual(early.when(), now + 500)

    def test_a_handle_can_be_referred_to_weakly(self):
        handle = self.loop.call_soon(int)
        self.assertIs(weakref.ref(handle)(), handle)

    @weft_only
    def test_a_handle_of_another_loop_may_be_cancelled(self):
        other = new_loop()
        handle = other.call_later(0, self.fail)
        self.loop.call_soon(handle.cancel)
        self.settle(1)
        other.call_later(0.001, other.stop)
        other.run_forever()
        other.close()

    def test_what_is_still_waiting_when_the_loop_closes_is_let_go(self):
        class Held:
            pass
        held = Held()
        gone = weakref.ref(held)
        self.loop.call_soon(print, held)
        self.loop.call_later(10, print, held)
        self.loop.call_later(1e6, print, held)
        self.loop.close()
        del held
        gc.collect()
        self.assertIsNone(gone())


class Raising(LoopCase):
    def test_an_exception_is_reported_and_the_callbacks_after_it_run(self):
        ran = []

        def fail():
            raise Planned("on purpose")
        handle = self.loop.call_soon(fail)
        self.loop.call_soon(ran.append, 1)
        self.loop.call_later(0, fail)
        self.loop.run_until_complete(asyncio.sleep(0.002))
        self.assertEqual(ran, [1])
        self.assertEqual(len(self.reports), 2)
        for each in self.reports:
            self.assertIsInstance(each["exception"], Planned)
            self.assertRegex(each["message"], "^Exception in callback .*fail")
        self.assertIs(self.reports[0]["handle"], handle)
        self.reports.clear()

    def test_system_exit_and_keyboard_interrupt_leave_the_loop(self):
        for kind in (SystemExit, KeyboardInterrupt):
            ran = []

            def fail():
                raise kind()
            for call in (self.loop.call_soon, lambda f: self.loop.call_later(0, f)):
                call(fail)
                self.assertRaises(kind, self.loop.run_forever)
                self.assertFalse(self.loop.is_running())
            self.loop.call_soon(ran.append, 1)
            self.settle(1)
            self.assertEqual(ran, [1])

    def test_what_came_after_a_callback_that_left_the_loop_runs_when_it_runs_again(self):
        ran = []

        def leave():
            raise KeyboardInterrupt
        self.loop.call_soon(leave)
        self.loop.call_soon(ran.append, 1)
        self.assertRaises(KeyboardInterrupt, self.loop.run_forever)
        self.settle(1)
        self.assertEqual(ran, [1])

    def test_a_base_exception_of_another_kind_is_reported(self):
        class Odd(BaseException):
            pass

        def fail():
            raise Odd
        self.loop.call_soon(fail)
        self.settle()
        self.assertEqual([type(each["exception"]) for each in self.reports], [Odd])
        self.reports.clear()

    def test_without_a_handler_it_is_logged(self):
        self.loop.set_exception_handler(None)
        self.assertIsNone(self.loop.get_exception_handler())
        with self.assertLogs("asyncio", "ERROR") as logged:
            self.loop.call_soon(lambda: 1 / 0)
            self.settle()
        self.assertRegex(logged.output[0], "Exception in callback")
        self.assertIs(logged.records[0].exc_info[0], ZeroDivisionError)

    def test_a_handler_that_raises_is_logged_and_the_loop_goes_on(self):
        def handler(loop, context):
            raise Planned
        self.loop.set_exception_handler(handler)
        with self.assertLogs("asyncio", "ERROR") as logged:
            self.loop.call_soon(lambda: 1 / 0)
            self.settle()
        self.assertRegex(logged.output[0], "Unhandled error in exception handler")

    def test_a_handler_that_leaves_leaves_the_loop(self):
        def handler(loop, context):
            raise KeyboardInterrupt
        self.loop.set_exception_handler(handler)
        self.loop.call_soon(lambda: 1 / 0)
        self.assertRaises(KeyboardInterrupt, self.loop.run_forever)

    def test_what_is_no_handler_is_refused(self):
        self.assertRaises(TypeError, self.loop.set_exception_handler, 1)
        handler = self.loop.get_exception_handler()
        self.assertTrue(callable(handler))

    def test_the_default_handler_can_be_asked_for_by_another(self):
        self.loop.set_exception_handler(lambda loop, context: loop.default_exception_handler(
            {**context, "extra": "added"}))
        with self.assertLogs("asyncio", "ERROR") as logged:
            self.loop.call_exception_handler({"message": "told by hand"})
        self.assertRegex(logged.output[0], "(?s)told by hand.*extra: 'added'")


class Misuse(LoopCase):
    def test_what_is_missing_or_too_much_is_a_type_error(self):
        for call in (lambda: self.loop.call_soon(),
                     lambda: self.loop.call_soon_threadsafe(),
                     lambda: self.loop.call_later(1),
                     lambda: self.loop.call_at(1),
                     lambda: self.loop.call_later("soon", print),
                     lambda: self.loop.call_soon(print, colour=1),
                     lambda: self.loop.call_later(1, print, colour=1)):
            self.assertRaises(TypeError, call)

    def test_what_is_no_context_is_refused_or_reported(self):
        try:
            self.loop.call_soon(int, context=5)
        except TypeError:
            return
        self.settle()
        self.assertEqual([each[2] for each in self.take_reports()], ["AttributeError"])
