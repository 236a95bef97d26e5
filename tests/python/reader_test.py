"""Readers and writers of descriptors: their notifications, and descriptor numbers that
are closed and reused."""
import asyncio
import os
import socket

from house import LoopCase, Witness, fill, turns


class Readers(LoopCase):
    async def heard(self, add, fd):
        """Wait until the descriptor is ready once."""
        ready = self.loop.create_future()
        add(fd, lambda: ready.done() or ready.set_result(None))
        await ready

    def test_a_reader_is_called_as_long_as_there_is_something(self):
        mine, peer = self.pair()
        calls = []

        def ready():
            calls.append(1)
            if len(calls) == 3:
                mine.recv(10)
                self.loop.call_soon(self.loop.stop)
        self.loop.add_reader(mine, ready)
        peer.send(b"x")
        self.loop.run_forever()
        self.assertEqual(len(calls), 3)
        self.assertTrue(self.loop.remove_reader(mine))
        self.assertFalse(self.loop.remove_reader(mine))

    def test_a_writer_is_called_as_long_as_there_is_room(self):
        mine, peer = self.pair()
        calls = []

        def ready():
            calls.append(1)
            if len(calls) == 3:
                fill(mine)
                self.loop.call_soon(self.loop.stop)
        self.loop.add_writer(mine, ready)
        self.loop.run_forever()
        self.settle()
        self.assertEqual(len(calls), 3)
        self.assertTrue(self.loop.remove_writer(mine))
        self.assertFalse(self.loop.remove_writer(mine))

    def test_numbers_and_whatever_has_one_are_the_same(self):
        mine, peer = self.pair()
        self.loop.add_reader(mine.fileno(), int)
        self.assertTrue(self.loop.remove_reader(mine))
        self.loop.add_writer(mine, int)
        self.assertTrue(self.loop.remove_writer(mine.fileno()))

    def test_a_later_callback_takes_the_place_of_an_earlier(self):
        mine, peer = self.pair()
        called = []
        self.loop.add_reader(mine, called.append, "old")
        self.loop.add_reader(mine, lambda: (called.append("new"), self.loop.remove_reader(mine)))
        peer.send(b"x")
        self.settle(5)
        self.assertEqual(called, ["new"])

    def test_one_taken_away_when_it_is_due_already_is_not_called(self):
        """Both are ready at once; the one that is called first removes the other."""
        pairs = [self.pair() for _ in range(2)]
        called = []

        def ready(mine, other):
            called.append(mine)
            self.loop.remove_reader(mine)
            self.loop.remove_reader(other)
        (one, to_one), (two, to_two) = pairs
        self.loop.add_reader(one, ready, one, two)
        self.loop.add_reader(two, ready, two, one)
        to_one.send(b"x")
        to_two.send(b"x")
        self.settle(5)
        self.assertEqual(len(called), 1)

    def test_a_reader_and_a_writer_of_one_descriptor_do_not_disturb_each_other(self):
        mine, peer = self.pair()
        heard = []

        async def main():
            self.loop.add_reader(mine, lambda: (heard.append(mine.recv(10)),
                                                self.loop.remove_reader(mine)))
            await self.heard(self.loop.add_writer, mine)
            self.loop.remove_writer(mine)
            peer.send(b"after")
            while not heard:
                await asyncio.sleep(0)
            await self.heard(self.loop.add_writer, mine)
            self.loop.remove_writer(mine)
        self.go(main())
        self.assertEqual(heard, [b"after"])

    def test_a_reader_hears_the_end_and_an_error(self):
        async def main():
            mine, peer = self.pair()
            peer.close()
            await self.heard(self.loop.add_reader, mine)
            self.loop.remove_reader(mine)
            await self.heard(self.loop.add_writer, mine)
            self.loop.remove_writer(mine)
        self.go(main())

    def test_pipes_are_heard_too(self):
        async def main():
            out, into = os.pipe()
            waiting = asyncio.ensure_future(self.heard(self.loop.add_reader, out))
            await turns()
            self.assertFalse(waiting.done())
            os.write(into, b"x")
            await waiting
            self.loop.remove_reader(out)
            os.close(out)
            await self.heard(self.loop.add_writer, into)
            self.loop.remove_writer(into)
            os.close(into)
        self.go(main())

    def test_many_descriptors_are_heard_each_once(self):
        pairs = [self.pair() for _ in range(100)]
        heard = []

        def ready(i, mine):
            heard.append(i)
            mine.recv(1)
            self.loop.remove_reader(mine)
        for i, (mine, peer) in enumerate(pairs):
            self.loop.add_reader(mine, ready, i, mine)
            peer.send(b"x")
        while len(heard) < 100:
            self.settle(1)
        self.assertEqual(sorted(heard), list(range(100)))

    def test_what_is_no_descriptor_is_refused(self):
        for wrong in (-1, "text", None, object()):
            with self.assertRaises((ValueError, TypeError)):
                self.loop.add_reader(wrong, int)
            with self.assertRaises((ValueError, TypeError)):
                self.loop.remove_writer(wrong)
        closed = socket.socket()
        closed.close()
        with self.assertRaises(ValueError):
            self.loop.add_reader(closed, int)

    def test_a_file_on_disk_is_refused(self):
        with open(__file__, "rb") as file:
            with self.assertRaises(PermissionError):
                self.loop.add_reader(file, int)
            self.assertFalse(self.loop.remove_reader(file))

    def test_the_descriptor_of_a_transport_is_refused(self):
        async def main():
            transport, _ = await self.wire(Witness(self.loop))
            fd = transport.get_extra_info("socket").fileno()
            for call in (self.loop.add_reader, self.loop.add_writer):
                with self.assertRaisesRegex(RuntimeError, "used by transport"):
                    call(fd, int)
            with self.assertRaisesRegex(RuntimeError, "used by transport"):
                self.loop.remove_reader(fd)
        self.go(main())


class Reuse(LoopCase):
    """A descriptor number that is closed, and then refers to another file."""

    def again(self, number):
        """A new pair; one end has that descriptor number."""
        one, two = socket.socketpair()
        if two.fileno() == number:
            one, two = two, one
        if one.fileno() != number:
            os.dup2(one.fileno(), number)
            one.close()
            one = socket.socket(fileno=number)
        one.setblocking(False)
        two.setblocking(False)
        self.addCleanup(one.close)
        self.addCleanup(two.close)
        return one, two

    def test_a_new_socket_of_an_old_number_is_read_by_its_own_reader(self):
        heard = []
        number = self.pair()[0].detach()
        os.close(number)
        for i in range(5):
            mine, peer = self.again(number)
            self.loop.add_reader(number, lambda i=i, mine=mine: (
                heard.append((i, mine.recv(10))), self.loop.stop()))
            peer.send(b"%d" % i)
            self.loop.run_forever()
            self.loop.remove_reader(number)
            mine.close()
            peer.close()
        self.assertEqual(heard, [(i, b"%d" % i) for i in range(5)])

    def test_a_socket_closed_between_two_waits_leaves_nothing_to_the_next_of_its_number(self):
        async def main():
            mine, peer = self.pair()
            number = mine.fileno()
            for i in range(20):
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns(2)
                peer.send(b"%d" % i)
                self.assertEqual(await waiting, b"%d" % i)
                mine.close()
                peer.close()
                mine, peer = self.again(number)
        self.go(main())

    def test_a_cancelled_wait_leaves_nothing_to_the_next_socket_of_its_number(self):
        async def main():
            mine, peer = self.pair()
            number = mine.fileno()
            for call in (lambda: self.loop.sock_recv(mine, 10),
                         lambda: self.loop.sock_recv_into(mine, bytearray(10))):
                waiting = asyncio.ensure_future(call())
                await turns(2)
                waiting.cancel()
                await asyncio.wait([waiting])
                mine.close()
                peer.close()
                mine, peer = self.again(number)
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns(2)
                self.assertFalse(waiting.done())
                peer.send(b"mine")
                self.assertEqual(await waiting, b"mine")
        self.go(main())

    def test_a_writer_that_waits_for_room_is_not_taken_for_another(self):
        async def main():
            mine, peer = self.pair()
            number = mine.fileno()
            for _ in range(5):
                fill(mine)
                waiting = asyncio.ensure_future(self.loop.sock_sendall(mine, b"x" * 100))
                await turns(2)
                waiting.cancel()
                await asyncio.wait([waiting])
                mine.close()
                peer.close()
                mine, peer = self.again(number)
                await self.loop.sock_sendall(mine, b"new")
                self.assertEqual(await self.loop.sock_recv(peer, 10), b"new")
        self.go(main())

    def test_a_transport_gets_the_number_of_a_socket_that_was_waited_on(self):
        async def main():
            mine, peer = self.pair()
            number = mine.fileno()
            for i in range(5):
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns(2)
                peer.send(b"x")
                await waiting
                mine.close()
                peer.close()
                mine, peer = self.again(number)
                protocol = Witness(self.loop)
                transport, _ = await self.loop.create_connection(lambda: protocol, sock=mine)
                peer.send(b"for the transport")
                await protocol.until(lambda: protocol.data == b"for the transport")
                transport.close()
                await protocol.until_lost()
                await turns()
                peer.close()
                mine, peer = self.again(number) if i % 2 else socket.socketpair()
                for each in (mine, peer):
                    each.setblocking(False)
                    self.addCleanup(each.close)
                number = mine.fileno()
        self.go(main())

    def test_the_same_file_under_another_number_is_heard_there(self):
        """epoll tracks files, not descriptor numbers: a copy keeps the registration."""
        async def main():
            mine, peer = self.pair()
            waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 1))
            await turns(2)
            peer.send(b"ab")
            await waiting
            with mine.dup() as copy:
                mine.close()
                self.assertEqual(await self.loop.sock_recv(copy, 1), b"b")
                waiting = asyncio.ensure_future(self.loop.sock_recv(copy, 1))
                await turns(2)
                peer.send(b"c")
                self.assertEqual(await waiting, b"c")
        self.go(main())

    def test_a_reader_closed_without_being_taken_away_does_not_keep_the_loop_busy(self):
        mine, peer = socket.socketpair()
        calls = []
        self.loop.add_reader(mine, calls.append, 1)
        self.settle()
        number = mine.fileno()
        mine.close()
        peer.close()
        self.settle()
        self.loop.run_until_complete(asyncio.sleep(0.005))
        self.loop.remove_reader(number)
        self.assertLess(len(calls), 50)
