"""Cancellation at every await of a TLS connect, and at every loop iteration during it.

Each sweep starts with a cancellation before the first step, and cancels one step later each
time, until an attempt completes.  After each attempt, both ends are closed and nothing is
left.
"""
import asyncio
import types

from house import (LoopCase, Witness, client_context, descriptors, server_context, turns)

NAME = {"server_hostname": "localhost"}
ENOUGH = 200  # more steps than any connect takes


@types.coroutine
def counted(coro, on_step):
    """Run a coroutine, and call on_step(number) at each of its awaits."""
    number, step, argument = 0, coro.send, None
    while True:
        try:
            awaited = step(argument)
        except StopIteration as end:
            return end.value
        number += 1
        on_step(number)
        try:
            step, argument = coro.send, (yield awaited)
        except BaseException as wrong:
            step, argument = coro.throw, wrong


class Sweep(LoopCase):
    """attempt() returns a coroutine to cancel; its result is the list of transports to close."""

    def cancel_at_await(self, coro, number):
        """A task that is canceled at its await with that number."""
        def on_step(now):
            if now == number:
                self.loop.call_soon(task.cancel)
        if number == 0:
            task = self.loop.create_task(coro)
            task.cancel()
            return task
        return (task := self.loop.create_task(self.count(coro, on_step)))

    @staticmethod
    async def count(coro, on_step):
        return await counted(coro, on_step)

    def cancel_at_turn(self, coro, number):
        """A task that is canceled after that many loop iterations."""
        task = self.loop.create_task(coro)

        def turn(left):
            if left:
                self.loop.call_soon(turn, left - 1)
            else:
                task.cancel()
        turn(number)
        return task

    async def sweep(self, cancel, attempt):
        """The number of steps until it was too late to cancel."""
        for number in range(ENOUGH):
            before = descriptors()
            try:
                transports = await cancel(attempt(), number)
            except (asyncio.CancelledError, ConnectionError):
                transports = None
            for transport in transports or ():
                transport.close()
            while len(descriptors()) > len(before):
                await turns()
            await turns(3)
            if transports:
                return number
        self.fail("it is never too late")

    def check(self, prepare, least):
        """Sweep in both ways; there are more than `least` steps."""
        for cancel, want in ((self.cancel_at_await, least), (self.cancel_at_turn, least)):
            with self.subTest(cancel.__name__):
                async def main():
                    attempt, end = await prepare()
                    try:
                        return await self.sweep(cancel, attempt)
                    finally:
                        await end()
                self.assertGreater(self.go(main()), want)
        self.assertEqual(self.take_reports(), [])


class Connecting(Sweep):
    async def server(self, **options):
        server = await self.loop.create_server(lambda: Witness(self.loop), "127.0.0.1", 0,
                                               **options)
        address = server.sockets[0].getsockname()

        async def end():
            server.close()
            await server.wait_closed()
            await turns()
        return address, end

    def test_a_client_that_connects_is_cancelled_everywhere(self):
        async def prepare():
            address, end = await self.server(ssl=server_context())

            async def attempt():
                transport, _ = await self.loop.create_connection(
                    lambda: Witness(self.loop), *address, ssl=client_context(), **NAME)
                return [transport]
            return attempt, end
        self.check(prepare, 1)

    def test_a_stream_that_connects_is_cancelled_everywhere(self):
        async def prepare():
            address, end = await self.server(ssl=server_context())

            async def attempt():
                _, writer = await asyncio.open_connection(*address, ssl=client_context(), **NAME)
                return [writer]
            return attempt, end
        self.check(prepare, 1)

    def test_a_server_that_takes_over_a_socket_is_cancelled_everywhere(self):
        async def prepare():
            async def attempt():
                mine, peer = self.pair("tcp")
                connecting = asyncio.ensure_future(self.connect(peer))
                made = []
                try:
                    made.append((await self.loop.connect_accepted_socket(
                        lambda: Witness(self.loop), mine, ssl=server_context()))[0])
                    return [*made, await connecting]
                except BaseException:
                    await self.give_up(connecting, made)
                    raise
            return attempt, turns
        self.check(prepare, 0)

    def test_an_upgrade_is_cancelled_everywhere(self):
        async def prepare():
            async def attempt():
                mine, peer = self.pair("tcp")
                other = asyncio.ensure_future(self.accept(peer))
                made = []
                try:
                    one, ours = await self.loop.create_connection(
                        lambda: Witness(self.loop), sock=mine)
                    made.append(one)
                    made.append(await self.loop.start_tls(one, ours, client_context(), **NAME))
                    return [made[1], await other]
                except BaseException:
                    await self.give_up(other, made)
                    if not made:
                        mine.close()
                    peer.close()
                    raise
            return attempt, turns
        self.check(prepare, 1)

    @staticmethod
    async def give_up(connecting, made):
        """Cancel `connecting`, and abort the transports that exist already; last first."""
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled() and not connecting.exception():
            connecting.result().abort()
        for transport in reversed(made):
            transport.abort()

    async def connect(self, sock):
        return (await self.loop.create_connection(
            lambda: Witness(self.loop), sock=sock, ssl=client_context(), **NAME))[0]

    async def accept(self, sock):
        transport, protocol = await self.loop.connect_accepted_socket(
            lambda: Witness(self.loop), sock)
        try:
            return await self.loop.start_tls(transport, protocol, server_context(),
                                             server_side=True)
        except BaseException:
            transport.abort()
            raise

    def test_a_loop_that_ends_in_the_middle_of_a_connect_leaves_nothing(self):
        """As in asyncio.run, and in other code that cancels all tasks."""
        async def main(wait):
            address, end = await self.server(ssl=server_context())
            connecting = asyncio.ensure_future(asyncio.open_connection(
                *address, ssl=client_context(), **NAME))
            await turns(wait)
            connecting.cancel()
            await asyncio.wait([connecting])
            if not connecting.cancelled():
                connecting.result()[1].close()
            await end()
            await turns(5)
        for wait in range(12):
            self.go(main(wait))

    def test_many_that_are_cancelled_at_once_leave_nothing(self):
        async def main():
            address, end = await self.server(ssl=server_context())
            before = descriptors()
            for wait in (0, 1, 2, 4, 8):
                connecting = [asyncio.ensure_future(self.loop.create_connection(
                    lambda: Witness(self.loop), *address, ssl=client_context(), **NAME))
                    for _ in range(10)]
                await turns(wait)
                for each in connecting:
                    each.cancel()
                await asyncio.wait(connecting)
                for each in connecting:
                    if not each.cancelled() and not each.exception():
                        each.result()[0].abort()
                while len(descriptors()) > len(before):
                    await turns()
            await end()
        self.go(main())
