"""sock_*: raw sockets on the loop."""
import asyncio
import contextlib
import errno
import os
import socket
import tempfile

from house import LoopCase, fill, receive, turns


class Streams(LoopCase):
    def test_what_is_there_is_received_at_once_and_what_is_not_is_waited_for(self):
        async def main():
            for kind in ("unix", "tcp"):
                mine, peer = self.pair(kind)
                peer.send(b"there")
                self.assertEqual(await self.loop.sock_recv(mine, 100), b"there")
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 100))
                await turns()
                self.assertFalse(waiting.done())
                peer.send(b"late")
                self.assertEqual(await waiting, b"late")
                peer.close()
                self.assertEqual(await self.loop.sock_recv(mine, 100), b"")
        self.go(main())

    def test_only_as_much_as_was_asked_for_is_received(self):
        async def main():
            mine, peer = self.pair()
            peer.send(b"abcdef")
            self.assertEqual(await self.loop.sock_recv(mine, 2), b"ab")
            self.assertEqual(await self.loop.sock_recv(mine, 0), b"")
            self.assertEqual(await self.loop.sock_recv(mine, 1 << 20), b"cdef")
            with self.assertRaises(ValueError):
                await self.loop.sock_recv(mine, -1)
        self.go(main())

    def test_it_is_received_into_any_buffer(self):
        async def main():
            mine, peer = self.pair()
            for buffer in (bytearray(10), memoryview(bytearray(10)), bytearray(3)):
                peer.send(b"abc")
                self.assertEqual(await self.loop.sock_recv_into(mine, buffer), 3)
                self.assertEqual(bytes(buffer[:3]), b"abc")
            waiting = asyncio.ensure_future(self.loop.sock_recv_into(mine, buffer))
            await turns()
            peer.send(b"d")
            self.assertEqual(await waiting, 1)
            self.assertEqual(bytes(buffer), b"dbc")
            with self.assertRaises((TypeError, BufferError)):
                await self.loop.sock_recv_into(mine, b"fixed")
        self.go(main())

    def test_all_is_sent_also_against_a_slow_reader(self):
        async def main():
            for kind in ("unix", "tcp"):
                mine, peer = self.pair(kind)
                whole = bytes(range(256)) * 20000
                for data in (whole, bytearray(whole), memoryview(whole)):
                    sending = asyncio.ensure_future(self.loop.sock_sendall(mine, data))
                    self.assertTrue(await receive(self.loop, peer, len(whole)) == whole)
                    self.assertIsNone(await sending)
        self.go(main())

    def test_a_socket_is_read_and_written_at_the_same_time(self):
        async def main():
            mine, peer = self.pair()
            size = 2 << 20

            async def both(sock, byte):
                got, _ = await asyncio.gather(receive(self.loop, sock, size),
                                              self.loop.sock_sendall(sock, byte * size))
                return got
            got = await asyncio.gather(both(mine, b"a"), both(peer, b"b"))
            self.assertTrue(got == [b"b" * size, b"a" * size])
        self.go(main())

    def test_a_wait_ends_when_its_number_stands_for_another_socket(self):
        async def use_socket(sock, peer):
            received = asyncio.ensure_future(self.loop.sock_recv(sock, 10))
            await turns()
            peer.send(b"x")
            self.assertEqual(await received, b"x")

        async def use_reader(sock, peer):
            ready = self.loop.create_future()
            self.loop.add_reader(sock, lambda: ready.done() or ready.set_result(None))
            peer.send(b"x")
            await ready
            self.loop.remove_reader(sock)

        async def main():
            for use in (use_socket, use_reader):
                mine, peer = self.pair()
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns()
                number = mine.fileno()
                os.close(mine.detach())
                heir, other = self.pair()
                self.assertEqual(heir.fileno(), number)
                await use(heir, other)
                with self.assertRaises(OSError) as caught:
                    await waiting
                self.assertEqual(caught.exception.errno, errno.EBADF)
        self.go(main())

    def test_two_that_wait_for_one_socket_are_kept_apart_or_refused_but_none_hangs(self):
        """On stock the second waiter replaces the first, which then waits forever."""
        async def main():
            mine, peer = self.pair()
            first = asyncio.ensure_future(self.loop.sock_recv(mine, 1))
            await turns()
            second = asyncio.ensure_future(self.loop.sock_recv(mine, 1))
            await turns()
            peer.send(b"ab")
            await asyncio.wait([second])
            if isinstance(second.exception(), RuntimeError):
                self.assertEqual(await first, b"a")
                return
            self.assertIn(second.result(), (b"a", b"b"))
            first.cancel()
            await asyncio.wait([first])
        self.go(main())

    def test_a_cancelled_receive_takes_no_data(self):
        async def main():
            mine, peer = self.pair()
            for wait in range(4):
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns(wait)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
                peer.send(b"kept")
                self.assertEqual(await self.loop.sock_recv(mine, 10), b"kept")
        self.go(main())

    def test_a_receive_cancelled_when_it_has_data_already_either_gives_or_keeps_it(self):
        async def main():
            mine, peer = self.pair()
            for _ in range(20):
                waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
                await turns(2)
                peer.send(b"x")
                waiting.cancel()
                try:
                    got = await waiting
                except asyncio.CancelledError:
                    got = await self.loop.sock_recv(mine, 10)
                self.assertEqual(got, b"x")
        self.go(main())

    def test_a_cancelled_send_stops_sending(self):
        async def main():
            mine, peer = self.pair()
            before = fill(mine)
            sending = asyncio.ensure_future(self.loop.sock_sendall(mine, bytes(1 << 20)))
            await turns()
            sending.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await sending
            await receive(self.loop, peer, before)
            await turns(5)
            with self.assertRaises(BlockingIOError):
                peer.recv(1)
        self.go(main())

    def test_errors_are_those_of_the_socket(self):
        async def main():
            mine, peer = self.pair()
            peer.close()
            with self.assertRaises(BrokenPipeError):
                await self.loop.sock_sendall(mine, b"x" * 10)
            mine.close()
            with self.assertRaises((OSError, ValueError)):
                await self.loop.sock_recv(mine, 1)
        self.go(main())

    def test_a_socket_that_blocks_is_refused_in_debug_mode(self):
        self.loop.set_debug(True)
        mine, peer = self.pair()
        mine.setblocking(True)

        async def main():
            for call in (lambda: self.loop.sock_recv(mine, 1),
                         lambda: self.loop.sock_recv_into(mine, bytearray(1)),
                         lambda: self.loop.sock_sendall(mine, b"x"),
                         lambda: self.loop.sock_connect(mine, ("127.0.0.1", 1)),
                         lambda: self.loop.sock_accept(mine)):
                with self.assertRaisesRegex(ValueError, "non-blocking"):
                    await call()
        self.go(main())


class Connecting(LoopCase):
    def listener(self, path=None):
        sock = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        sock.bind(path or ("127.0.0.1", 0))
        sock.listen()
        sock.setblocking(False)
        self.addCleanup(sock.close)
        return sock

    def client(self, family=socket.AF_INET):
        sock = socket.socket(family)
        sock.setblocking(False)
        self.addCleanup(sock.close)
        return sock

    def test_who_connects_is_accepted(self):
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                for path in (None, os.path.join(folder, "socket")):
                    listener = self.listener(path)
                    accepting = asyncio.ensure_future(self.loop.sock_accept(listener))
                    await turns()
                    client = self.client(listener.family)
                    await self.loop.sock_connect(client, listener.getsockname())
                    accepted, address = await accepting
                    with accepted:
                        self.assertEqual(accepted.gettimeout(), 0)
                        self.assertEqual(address, client.getsockname())
                        await self.loop.sock_sendall(client, b"hello")
                        self.assertEqual(await self.loop.sock_recv(accepted, 10), b"hello")
        self.go(main())

    def test_a_name_is_looked_up(self):
        async def main():
            listener = self.listener()
            client = self.client()
            await self.loop.sock_connect(client, ("localhost", listener.getsockname()[1]))
            accepted, _ = await self.loop.sock_accept(listener)
            accepted.close()
        self.go(main())

    def test_nobody_there_is_an_error(self):
        async def main():
            listener = self.listener()
            address = listener.getsockname()
            listener.close()
            with self.assertRaises(ConnectionRefusedError):
                await self.loop.sock_connect(self.client(), address)
            with self.assertRaises(FileNotFoundError):
                await self.loop.sock_connect(self.client(socket.AF_UNIX), "/nowhere/at/all")
        self.go(main())

    def test_a_cancelled_accept_accepts_nobody(self):
        async def main():
            listener = self.listener()
            for wait in range(3):
                accepting = asyncio.ensure_future(self.loop.sock_accept(listener))
                await turns(wait)
                accepting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await accepting
            await self.loop.sock_connect(self.client(), listener.getsockname())
            accepted, _ = await self.loop.sock_accept(listener)
            accepted.close()
        self.go(main())

    def test_a_connect_that_waits_can_be_cancelled(self):
        """A connect to a listener with a full queue waits."""
        async def main():
            listener = socket.create_server(("127.0.0.1", 0), backlog=0)
            self.addCleanup(listener.close)
            with contextlib.ExitStack() as full:
                for _ in range(8):
                    client = full.enter_context(socket.socket())
                    client.setblocking(False)
                    connecting = asyncio.ensure_future(
                        self.loop.sock_connect(client, listener.getsockname()))
                    await turns(10)
                    if not connecting.done():
                        connecting.cancel()
                        with self.assertRaises(asyncio.CancelledError):
                            await connecting
                        return
                    await connecting
            self.skipTest("this kernel lets everybody in")
        self.go(main())


class Datagrams(LoopCase):
    def socket(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        self.addCleanup(sock.close)
        return sock

    def test_datagrams_come_with_the_address_of_who_sent_them(self):
        async def main():
            one, two = self.socket(), self.socket()
            waiting = asyncio.ensure_future(self.loop.sock_recvfrom(two, 100))
            await turns()
            self.assertEqual(await self.loop.sock_sendto(one, b"hello", two.getsockname()), 5)
            self.assertEqual(await waiting, (b"hello", one.getsockname()))
            buffer = bytearray(10)
            await self.loop.sock_sendto(one, b"more", two.getsockname())
            self.assertEqual(await self.loop.sock_recvfrom_into(two, buffer),
                             (4, one.getsockname()))
            await self.loop.sock_sendto(one, b"again", two.getsockname())
            self.assertEqual(await self.loop.sock_recvfrom_into(two, buffer, 3),
                             (3, one.getsockname()))
            self.assertEqual(bytes(buffer[:5]), b"agae\0")
            await self.loop.sock_sendto(one, b"", two.getsockname())
            self.assertEqual(await self.loop.sock_recvfrom(two, 10), (b"", one.getsockname()))
        self.go(main())

    def test_a_buffer_smaller_than_asked_for_is_refused(self):
        async def main():
            with self.assertRaises(ValueError):
                await self.loop.sock_recvfrom_into(self.socket(), bytearray(2), 3)
        self.go(main())

    def test_a_cancelled_wait_takes_no_datagram(self):
        async def main():
            one, two = self.socket(), self.socket()
            for wait in range(3):
                waiting = asyncio.ensure_future(self.loop.sock_recvfrom(two, 100))
                await turns(wait)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
            await self.loop.sock_sendto(one, b"kept", two.getsockname())
            self.assertEqual((await self.loop.sock_recvfrom(two, 100))[0], b"kept")
        self.go(main())

    def test_a_datagram_waits_for_room(self):
        async def main():
            one, two = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
            for each in (one, two):
                each.setblocking(False)
                self.addCleanup(each.close)
            with tempfile.TemporaryDirectory() as folder:
                address = os.path.join(folder, "two")
                two.bind(address)
                count = 0
                with contextlib.suppress(BlockingIOError):
                    while True:
                        one.sendto(b"x", address)
                        count += 1
                self.assertGreater(count, 0)
                sending = asyncio.ensure_future(self.loop.sock_sendto(one, b"last", address))
                await turns()
                for _ in range(count):
                    self.assertEqual(await self.loop.sock_recv(two, 10), b"x")
                self.assertEqual(await sending, 4)
                self.assertEqual(await self.loop.sock_recv(two, 10), b"last")
        self.go(main())
