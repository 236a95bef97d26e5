"""Stream transports: their type, their writes, and their end."""
import array
import asyncio
import contextlib
import gc
import os
import socket
import struct
import weakref

from house import BufferedWitness, LoopCase, Witness, receive, turns

KINDS = ("unix", "tcp")


class TransportCase(LoopCase):
    def both(self, scenario, make=Witness):
        """Run scenario(transport, protocol, peer) over a Unix pair and over TCP."""
        for kind in KINDS:
            with self.subTest(kind):
                self.go(self.over(scenario, make, kind))

    async def over(self, scenario, make, kind):
        protocol = make(self.loop)
        transport, peer = await self.wire(protocol, kind)
        await scenario(transport, protocol, peer)
        if not transport.is_closing():
            transport.abort()
        await protocol.until_lost()

    @staticmethod
    async def written(transport, peer, size):
        """Close the transport; return everything that arrives."""
        transport.close()
        loop = asyncio.get_running_loop()
        got = await receive(loop, peer, size)
        assert await loop.sock_recv(peer, 1) == b""
        return got


class Being(TransportCase):
    def test_transports_are_those_of_asyncio(self):
        async def scenario(transport, protocol, peer):
            self.assertIsInstance(transport, asyncio.Transport)
            self.assertIsInstance(transport, asyncio.ReadTransport)
            self.assertIsInstance(transport, asyncio.WriteTransport)
            self.assertIs(transport.get_protocol(), protocol)
            self.assertIs(protocol.transport, transport)
            self.assertFalse(transport.is_closing())
            self.assertTrue(transport.is_reading())
            self.assertTrue(transport.can_write_eof())
            self.assertEqual(transport.get_write_buffer_size(), 0)
            self.assertIs(weakref.ref(transport)(), transport)
        self.both(scenario)

    def test_they_tell_of_their_socket_and_addresses(self):
        async def scenario(transport, protocol, peer):
            told = transport.get_extra_info("socket")
            self.assertEqual(told.fileno() >= 0, True)
            self.assertEqual(told.family, peer.family)
            self.assertFalse(hasattr(told, "recv") and not isinstance(
                told, asyncio.trsock.TransportSocket))
            self.assertEqual(transport.get_extra_info("sockname"), peer.getpeername())
            self.assertEqual(transport.get_extra_info("peername"), peer.getsockname())
            self.assertIsNone(transport.get_extra_info("nothing"))
            self.assertEqual(transport.get_extra_info("nothing", 5), 5)
            self.assertIsNone(transport.get_extra_info("sslcontext"))
        self.both(scenario)

    def test_tcp_is_told_not_to_delay(self):
        async def scenario(transport, protocol, peer):
            if peer.family == socket.AF_INET:
                told = transport.get_extra_info("socket")
                self.assertTrue(told.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        self.both(scenario)

    def test_what_they_say_of_themselves_follows_their_state(self):
        async def scenario(transport, protocol, peer):
            open_, name = repr(transport), type(transport).__name__
            self.assertIn(name, open_)
            transport.close()
            await protocol.until_lost()
            self.assertNotEqual(repr(transport), open_)
            self.assertIn("clos", repr(transport))
        self.both(scenario)

    def test_a_protocol_can_be_changed_for_another(self):
        async def scenario(transport, protocol, peer):
            other, third = BufferedWitness(self.loop), Witness(self.loop)
            peer.send(b"first")
            await protocol.until(lambda: protocol.data == b"first")
            transport.set_protocol(other)
            self.assertIs(transport.get_protocol(), other)
            peer.send(b"second")
            await other.until(lambda: other.data == b"second")
            transport.set_protocol(third)
            peer.send(b"third")
            peer.shutdown(socket.SHUT_WR)
            await third.until_lost()
            self.assertEqual(third.data, b"third")
            self.assertEqual((protocol.data, other.data), (b"first", b"second"))
            protocol.seen.append(("connection_lost", None))
        self.both(scenario)

    def test_a_protocol_can_be_changed_while_it_is_told_of_data(self):
        class Changing(Witness):
            def data_received(self, data):
                super().data_received(data)
                self.transport.set_protocol(self.next)

        async def scenario(transport, protocol, peer):
            protocol.next = BufferedWitness(self.loop)
            peer.send(b"one")
            await protocol.until(lambda: protocol.data)
            peer.send(b"two")
            await protocol.next.until(lambda: protocol.next.data)
            self.assertEqual((protocol.data, protocol.next.data), (b"one", b"two"))
            transport.abort()
            await protocol.next.until_lost()
            protocol.seen.append(("connection_lost", None))
        self.both(scenario, Changing)

    def test_a_closed_transport_and_its_protocol_are_collected(self):
        async def main():
            protocol = Witness(self.loop)
            mine, peer = socket.socketpair()
            transport, _ = await self.loop.create_connection(lambda: protocol, sock=mine)
            transport.write(b"x")
            transport.close()
            await protocol.until_lost()
            peer.close()
            return weakref.ref(transport), weakref.ref(protocol)
        gone = self.go(main())
        gc.collect()
        self.assertEqual([each() for each in gone], [None, None])

    def test_one_that_is_let_go_unclosed_is_told_of_and_closed(self):
        async def main():
            mine, peer = self.pair()
            transport, protocol = await self.loop.create_connection(
                lambda: Witness(self.loop), sock=mine)
            transport.pause_reading()
            protocol.transport = None
            await turns()
        with self.assertWarnsRegex(ResourceWarning, "unclosed transport"):
            self.go(main())
            gc.collect()


class Writing(TransportCase):
    def test_every_kind_of_bytes_is_written(self):
        whole = bytes(range(256)) * 40
        kinds = (whole, bytearray(whole), memoryview(whole), memoryview(bytearray(whole)))

        async def scenario(transport, protocol, peer):
            for data in kinds:
                transport.write(data)
            self.assertEqual(await self.written(transport, peer, 4 * len(whole)), 4 * whole)
        self.both(scenario)

    def test_what_is_no_bytes_is_refused(self):
        async def scenario(transport, protocol, peer):
            for wrong in ("text", 5, None, [b"list"]):
                with self.assertRaises(TypeError):
                    transport.write(wrong)
            with self.assertRaises(TypeError):
                transport.writelines(5)
            with self.assertRaises(TypeError):
                transport.writelines([b"good", "text"])
        self.both(scenario)

    def test_nothing_is_written_of_nothing(self):
        async def scenario(transport, protocol, peer):
            transport.write(b"")
            transport.write(bytearray())
            transport.writelines([])
            transport.writelines([b"", b""])
            transport.write(b"x")
            self.assertEqual(await self.written(transport, peer, 1), b"x")
        self.both(scenario)

    def test_what_is_changed_after_it_was_written_is_sent_as_it_was(self):
        async def scenario(transport, protocol, peer):
            size = 8 << 20
            data = bytearray(b"a" * size)
            transport.write(data)
            data[:] = b"b" * size
            view = memoryview(bytearray(b"c" * size))
            transport.write(view)
            view[:] = b"d" * size
            view.release()
            data.clear()
            got = await self.written(transport, peer, 2 * size)
            self.assertTrue(got == b"a" * size + b"c" * size)
        self.both(scenario)

    def test_a_view_of_wide_items_is_written_as_its_bytes(self):
        items = memoryview(array.array("I", range(1000)))

        async def scenario(transport, protocol, peer):
            transport.write(items.cast("B"))
            transport.writelines([items.cast("B")[:400], items.cast("B")[400:]])
            got = await self.written(transport, peer, 8000)
            self.assertEqual(got, 2 * bytes(items))
        self.both(scenario)

    def test_lines_are_written_one_after_the_other(self):
        lines = [b"%d\n" % i for i in range(5000)]

        async def scenario(transport, protocol, peer):
            transport.writelines(lines)
            transport.writelines(iter(lines))
            transport.writelines([bytearray(b"x"), memoryview(b"y")])
            want = 2 * b"".join(lines) + b"xy"
            self.assertEqual(await self.written(transport, peer, len(want)), want)
        self.both(scenario)

    def test_many_small_writes_arrive_in_order(self):
        async def scenario(transport, protocol, peer):
            for i in range(20000):
                transport.write(struct.pack("!I", i))
            got = await self.written(transport, peer, 80000)
            self.assertEqual(struct.unpack("!20000I", got), tuple(range(20000)))
        self.both(scenario)

    def test_a_write_is_sent_at_once(self):
        """Not at the end of the iteration: a caller that writes and then blocks has
        written."""
        async def scenario(transport, protocol, peer):
            transport.write(b"now")
            peer.setblocking(True)
            peer.settimeout(10)
            self.assertEqual(peer.recv(10), b"now")
        self.both(scenario)

    def test_writes_behind_one_that_waits_keep_their_place(self):
        async def scenario(transport, protocol, peer):
            size = 4 << 20
            transport.write(b"a" * size)
            for piece in (b"b", bytearray(b"c"), memoryview(b"d")):
                transport.write(piece)
            transport.writelines([b"e", b"f" * size])
            transport.write(b"g")
            self.assertGreater(transport.get_write_buffer_size(), 0)
            got = await self.written(transport, peer, 2 * size + 5)
            self.assertTrue(got == b"a" * size + b"bcde" + b"f" * size + b"g")
        self.both(scenario)

    def test_writes_from_the_callbacks_of_a_protocol_arrive(self):
        class Echo(Witness):
            def data_received(self, data):
                super().data_received(data)
                self.transport.write(data)

        async def scenario(transport, protocol, peer):
            for size in (1, 1000, 100_000):
                await self.loop.sock_sendall(peer, b"x" * size)
                self.assertEqual(await receive(self.loop, peer, size), b"x" * size)
        self.both(scenario, Echo)


class Ending(TransportCase):
    def test_a_peer_that_ends_is_told_of_and_lost(self):
        async def scenario(transport, protocol, peer):
            peer.send(b"last")
            peer.close()
            await protocol.until_lost()
            self.assertEqual(protocol.data, b"last")
            self.assertEqual(protocol.seen[-2:], [("eof_received",), ("connection_lost", None)])
            self.assertTrue(transport.is_closing())
        self.both(scenario)

    def test_a_protocol_that_keeps_it_open_may_go_on_writing(self):
        async def scenario(transport, protocol, peer):
            protocol.keep_open = True
            peer.shutdown(socket.SHUT_WR)
            await protocol.until("eof_received")
            await turns()
            self.assertFalse(transport.is_closing())
            transport.write(b"still here")
            self.assertEqual(await self.written(transport, peer, 10), b"still here")
        self.both(scenario)

    def test_an_end_is_written_after_all_that_came_before(self):
        async def scenario(transport, protocol, peer):
            size = 4 << 20
            transport.write(bytes(size))
            transport.write_eof()
            transport.write_eof()
            self.assertEqual(len(await receive(self.loop, peer, size + 1)), size)
            self.assertFalse(transport.is_closing())
            peer.send(b"and back")
            await protocol.until(lambda: protocol.data == b"and back")
        self.both(scenario)

    def test_a_write_after_an_end_is_refused(self):
        async def scenario(transport, protocol, peer):
            transport.write_eof()
            with self.assertRaises(RuntimeError):
                transport.write(b"too late")
            with self.assertRaises(RuntimeError):
                transport.writelines([b"too late"])
        self.both(scenario)

    def test_close_sends_what_is_pending(self):
        async def scenario(transport, protocol, peer):
            size = 4 << 20
            transport.write(bytes(size))
            transport.close()
            self.assertTrue(transport.is_closing())
            self.assertEqual(protocol.names(), ["connection_made", "pause_writing"])
            self.assertEqual(len(await receive(self.loop, peer, size + 1)), size)
            await protocol.until_lost()
            self.assertEqual(protocol.seen[-1], ("connection_lost", None))
            transport.close()
        self.both(scenario)

    def test_once_closed_it_hears_no_more(self):
        async def scenario(transport, protocol, peer):
            transport.write(bytes(4 << 20))
            peer.send(b"unheard")
            transport.close()
            await turns()
            transport.abort()
            await protocol.until_lost()
            self.assertEqual((protocol.data, protocol.seen[-1]), (b"", ("connection_lost", None)))
        self.both(scenario)

    def test_abort_drops_what_is_pending(self):
        async def scenario(transport, protocol, peer):
            transport.write(bytes(4 << 20))
            transport.abort()
            self.assertTrue(transport.is_closing())
            self.assertNotIn("connection_lost", protocol.names())
            await protocol.until_lost()
            self.assertEqual(protocol.seen[-1], ("connection_lost", None))
            self.assertEqual(transport.get_write_buffer_size(), 0)
            with contextlib.suppress(ConnectionResetError):
                self.assertLess(len(await receive(self.loop, peer, 4 << 20)), 4 << 20)
        self.both(scenario)

    def test_abort_after_close_drops_what_is_pending(self):
        async def scenario(transport, protocol, peer):
            transport.write(bytes(4 << 20))
            transport.close()
            await turns()
            self.assertNotIn("connection_lost", protocol.names())
            transport.abort()
            await protocol.until_lost()
        self.both(scenario)

    def test_connection_lost_is_never_told_inside_the_call_that_ends_it(self):
        async def scenario(transport, protocol, peer):
            transport.close()
            self.assertEqual(protocol.names(), ["connection_made"])
            await protocol.until_lost()
            self.assertEqual(protocol.names().count("connection_lost"), 1)
        self.both(scenario)

    def test_a_protocol_may_close_or_abort_in_each_of_its_callbacks(self):
        for name in ("connection_made", "data_received", "eof_received"):
            for how in ("close", "abort"):
                class Ends(Witness):
                    def told(self, what, *args):
                        super().told(what, *args)
                        if what == name:
                            getattr(self.transport, how)()

                async def scenario(transport, protocol, peer):
                    with contextlib.suppress(OSError):
                        peer.send(b"x")
                        peer.shutdown(socket.SHUT_WR)
                    await protocol.until_lost()
                    await turns()
                    self.assertEqual(protocol.names().count("connection_lost"), 1)
                self.both(scenario, Ends)

    def test_writes_to_a_peer_that_is_gone_end_the_connection(self):
        async def scenario(transport, protocol, peer):
            transport.pause_reading()
            peer.close()
            for _ in range(4):
                transport.write(b"is anybody there")
                await turns()
            transport.resume_reading()
            await protocol.until_lost()
            self.assertIn(protocol.seen[-1][1], (None, "BrokenPipeError", "ConnectionResetError"))
        self.both(scenario)

    def test_a_peer_that_resets_is_an_error(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, "tcp")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            await protocol.until_lost()
            self.assertEqual(protocol.seen[-1], ("connection_lost", "ConnectionResetError"))
        self.go(main())

    def test_writes_to_a_lost_connection_are_dropped_with_a_warning(self):
        async def main():
            protocol = Witness(self.loop)
            transport, _ = await self.wire(protocol)
            transport.abort()
            await protocol.until_lost()
            with self.assertLogs("asyncio", "WARNING"):
                for _ in range(10):
                    transport.write(b"dropped")
        self.go(main())

    def test_a_descriptor_is_closed_with_its_transport(self):
        async def scenario(transport, protocol, peer):
            fd = transport.get_extra_info("socket").fileno()
            os.fstat(fd)
            transport.close()
            await protocol.until_lost()
            await turns()
            with self.assertRaises(OSError):
                os.fstat(fd)
        self.both(scenario)

    def test_a_connection_whose_socket_has_data_from_before_is_told_of_it(self):
        async def main():
            mine, peer = self.pair()
            peer.send(b"early")
            peer.shutdown(socket.SHUT_WR)
            protocol = Witness(self.loop)
            await self.loop.create_connection(lambda: protocol, sock=mine)
            await protocol.until_lost()
            self.assertEqual(protocol.names(), ["connection_made", "data_received",
                                                "eof_received", "connection_lost"])
        self.go(main())
