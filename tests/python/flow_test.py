"""Flow control: watermarks, slow readers, pause and resume, and buffered protocols."""
import asyncio
import socket
import sys
import unittest

from house import LOOP, BufferedWitness, LoopCase, Witness, fill, receive, turns


class Writing(LoopCase):
    async def full(self, **limits):
        """(transport, protocol, peer) of a connection whose kernel buffers are full."""
        protocol = Witness(self.loop)
        transport, peer = await self.wire(protocol)
        if limits:
            transport.set_write_buffer_limits(**limits)
        while not transport.get_write_buffer_size():
            transport.write(bytes(4096))
        return transport, protocol, peer

    def test_the_marks_are_those_that_were_set(self):
        async def main():
            transport, _ = await self.wire(Witness(self.loop))
            for given, want in (({}, (16384, 65536)), ({"high": 100}, (25, 100)),
                                ({"low": 100}, (100, 400)), ({"high": 0}, (0, 0)),
                                ({"high": 10, "low": 10}, (10, 10)),
                                ({"high": 1 << 40, "low": 1}, (1, 1 << 40))):
                transport.set_write_buffer_limits(**given)
                self.assertEqual(transport.get_write_buffer_limits(), want)
            for wrong in ({"high": 1, "low": 2}, {"high": -1}, {"high": 5, "low": -1}):
                with self.assertRaises(ValueError):
                    transport.set_write_buffer_limits(**wrong)
        self.go(main())

    def test_a_protocol_is_paused_above_the_high_mark_and_not_at_it(self):
        async def main():
            transport, protocol, peer = await self.full(high=100_000)
            at = 100_000 - transport.get_write_buffer_size()
            transport.write(bytes(at))
            self.assertEqual(transport.get_write_buffer_size(), 100_000)
            self.assertNotIn("pause_writing", protocol.names())
            transport.write(b"x")
            self.assertIn("pause_writing", protocol.names())
            transport.write(b"x" * 1000)
            self.assertEqual(protocol.names().count("pause_writing"), 1)
        self.go(main())

    def test_a_protocol_is_resumed_at_the_low_mark(self):
        async def main():
            transport, protocol, peer = await self.full(high=100_000, low=1000)
            transport.write(bytes(2 << 20))
            self.assertIn("pause_writing", protocol.names())
            while "resume_writing" not in protocol.names():
                self.assertGreater(transport.get_write_buffer_size(), 1000)
                await self.loop.sock_recv(peer, 4096)
                await turns(2)
            self.assertLessEqual(transport.get_write_buffer_size(), 1000)
        self.go(main())

    def test_marks_that_are_lowered_pause_what_is_written_next(self):
        async def main():
            transport, protocol, peer = await self.full(high=10 << 20)
            transport.write(bytes(1 << 20))
            self.assertNotIn("pause_writing", protocol.names())
            transport.set_write_buffer_limits(high=10)
            transport.write(b"x")
            self.assertIn("pause_writing", protocol.names())
        self.go(main())

    def test_a_high_mark_of_nothing_pauses_for_any_byte_that_waits(self):
        async def main():
            transport, protocol, peer = await self.full(high=0)
            self.assertIn("pause_writing", protocol.names())
            size = transport.get_write_buffer_size()
            while "resume_writing" not in protocol.names():
                await self.loop.sock_recv(peer, 1 << 16)
                await turns(1)
            self.assertGreater(size, transport.get_write_buffer_size())
            self.assertEqual(transport.get_write_buffer_size(), 0)
        self.go(main())

    @unittest.skipIf(LOOP == "asyncio", "stock loses the connection twice")
    def test_a_protocol_may_write_and_close_when_it_is_resumed(self):
        class Writes(Witness):
            def resume_writing(self):
                super().resume_writing()
                self.transport.write(b"the end")
                self.transport.close()

        async def main():
            protocol = Writes(self.loop)
            transport, peer = await self.wire(protocol)
            transport.write(bytes(1 << 20))
            got = await receive(self.loop, peer, (1 << 20) + 100)
            self.assertEqual(got[-7:], b"the end")
            await protocol.until_lost()
            self.assertEqual(len(got), (1 << 20) + 7)
        self.go(main())

    def test_a_slow_reader_gets_a_huge_write_whole(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, "tcp")
            block = bytes(range(251)) * 4177  # not a power of two, so that nothing is aligned
            whole = block * 16
            transport.write(whole)
            transport.close()
            got, take = bytearray(), 1
            while more := await self.loop.sock_recv(peer, take):
                got += more
                take = min(take * 2 + 1, 1 << 18)
            self.assertTrue(got == whole)
            await protocol.until_lost()
        self.go(main())

    def test_a_stream_writer_drains_against_a_slow_reader(self):
        async def main():
            mine, peer = self.pair()
            reader, writer = await asyncio.open_connection(sock=mine)

            async def write():
                for i in range(200):
                    writer.write(bytes([i]) * 10_000)
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
            writing = asyncio.create_task(write())
            got = await receive(self.loop, peer, 3_000_000)
            await writing
            self.assertEqual(got, b"".join(bytes([i]) * 10_000 for i in range(200)))
        self.go(main())

    def test_a_paused_protocol_is_told_when_the_connection_is_lost(self):
        async def main():
            transport, protocol, peer = await self.full(high=0)
            transport.abort()
            await protocol.until_lost()
            self.assertNotIn("resume_writing", protocol.names())
        self.go(main())

    def test_drain_raises_when_the_connection_is_lost(self):
        async def main():
            mine, peer = self.pair()
            reader, writer = await asyncio.open_connection(sock=mine)
            fill(peer)
            writer.write(bytes(1 << 20))
            waiting = asyncio.create_task(writer.drain())
            await turns()
            peer.close()
            with self.assertRaises(ConnectionError):
                await waiting
            writer.close()
            try:
                await writer.wait_closed()
            except ConnectionError:
                pass
        self.go(main())


class Reading(LoopCase):
    def test_nothing_is_received_while_it_is_paused_and_all_of_it_after(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            transport.pause_reading()
            self.assertFalse(transport.is_reading())
            peer.send(b"held back")
            peer.shutdown(socket.SHUT_WR)
            await turns(10)
            self.assertEqual(protocol.names(), ["connection_made"])
            transport.resume_reading()
            self.assertTrue(transport.is_reading())
            await protocol.until_lost()
            self.assertEqual(protocol.data, b"held back")
        self.go(main())

    def test_pausing_and_resuming_twice_is_once(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            for _ in range(2):
                transport.pause_reading()
                transport.pause_reading()
                transport.resume_reading()
                transport.resume_reading()
            peer.send(b"x")
            await protocol.until(lambda: protocol.data)
        self.go(main())

    @unittest.skipIf(LOOP == "asyncio" and sys.version_info < (3, 12), "stock forgets the pause")
    def test_paused_in_connection_made_it_waits_to_be_resumed(self):
        class Paused(Witness):
            def connection_made(self, transport):
                super().connection_made(transport)
                transport.pause_reading()

        async def main():
            mine, peer = self.pair()
            peer.send(b"early")
            protocol = Paused(self.loop)
            transport, _ = await self.loop.create_connection(lambda: protocol, sock=mine)
            await turns(10)
            self.assertEqual(protocol.data, b"")
            transport.resume_reading()
            await protocol.until(lambda: protocol.data == b"early")
            transport.close()
            await protocol.until_lost()
        self.go(main())

    def test_paused_in_data_received_nothing_more_comes(self):
        class Pauses(Witness):
            def data_received(self, data):
                super().data_received(data)
                self.transport.pause_reading()

        async def main():
            protocol = Pauses(self.loop)
            transport, peer = await self.wire(protocol)
            sent = fill(peer)
            got = 0
            while got < sent:
                await protocol.until(lambda: len(protocol.data) > got)
                got = len(protocol.data)
                await turns(3)
                self.assertEqual(len(protocol.data), got)
                transport.resume_reading()
            self.assertEqual(got, sent)
        self.go(main())

    def test_resumed_and_paused_again_in_the_same_turn_nothing_comes(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            transport.pause_reading()
            peer.send(b"x")
            for _ in range(5):
                transport.resume_reading()
                transport.pause_reading()
                await turns(2)
            self.assertEqual(protocol.data, b"")
            transport.resume_reading()
            await protocol.until(lambda: protocol.data)
        self.go(main())

    def test_a_closed_transport_is_neither_paused_nor_resumed(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            transport.close()
            self.assertFalse(transport.is_reading())
            transport.pause_reading()
            transport.resume_reading()
            await protocol.until_lost()
            self.assertFalse(transport.is_reading())
        self.go(main())

    def test_a_paused_transport_still_writes(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            transport.pause_reading()
            transport.write(bytes(1 << 20))
            self.assertEqual(len(await receive(self.loop, peer, 1 << 20)), 1 << 20)
        self.go(main())

    def test_a_paused_transport_that_is_closed_is_lost(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            transport.pause_reading()
            peer.close()
            transport.close()
            await protocol.until_lost()
        self.go(main())

    def test_a_stream_reader_holds_back_what_is_beyond_its_limit(self):
        async def main():
            mine, peer = self.pair()
            reader, writer = await asyncio.open_connection(sock=mine, limit=1000)
            sent = fill(peer)
            await turns(20)
            more = 0
            try:
                more = peer.send(bytes(1 << 22))
            except BlockingIOError:
                pass
            peer.shutdown(socket.SHUT_WR)
            self.assertEqual(len(await reader.read()), sent + more)
            self.assertLess(more, 1 << 20)
            writer.close()
            await writer.wait_closed()
        self.go(main())


class Buffered(LoopCase):
    def test_what_comes_is_in_the_buffers_of_the_protocol(self):
        async def main():
            for size in (1, 7, 1000, 1 << 16):
                protocol = BufferedWitness(self.loop)
                protocol.size = size
                transport, peer = await self.wire(protocol)
                whole = bytes(range(256)) * (20 if size == 1 else 200)
                sending = asyncio.create_task(self.loop.sock_sendall(peer, whole))
                await protocol.until(lambda: len(protocol.data) == len(whole))
                await sending
                self.assertEqual(protocol.data, whole)
                peer.shutdown(socket.SHUT_WR)
                await protocol.until_lost()
                self.assertEqual(protocol.names()[-2:], ["eof_received", "connection_lost"])
        self.go(main())

    def test_a_buffer_may_be_any_that_can_be_written(self):
        class One(BufferedWitness):
            def get_buffer(self, sizehint):
                self.buffer = bytearray(100)
                return memoryview(self.buffer)[10:20]

            def buffer_updated(self, count):
                self.buffer = self.buffer[10:]
                super().buffer_updated(count)

        async def main():
            protocol = One(self.loop)
            transport, peer = await self.wire(protocol)
            peer.send(b"0123456789abcdefgh")
            await protocol.until(lambda: len(protocol.data) == 18)
            self.assertEqual(protocol.data, b"0123456789abcdefgh")
        self.go(main())

    def test_a_buffer_may_be_resized_as_soon_as_it_was_filled(self):
        """The loop holds no view of the buffer when it calls buffer_updated()."""
        class Resizes(BufferedWitness):
            def get_buffer(self, sizehint):
                self.buffer = bytearray(64)
                return self.buffer

            def buffer_updated(self, count):
                self.buffer.extend(b"more")
                del self.buffer[count:]
                super().buffer_updated(count)

        async def main():
            protocol = Resizes(self.loop)
            transport, peer = await self.wire(protocol)
            for i in range(5):
                peer.send(b"abc")
                await protocol.until(lambda: len(protocol.data) == 3 * (i + 1))
            transport.pause_reading()
            protocol.buffer.extend(bytes(1000))
            transport.resume_reading()
            peer.send(b"end")
            await protocol.until(lambda: protocol.data.endswith(b"end"))
        self.go(main())

    def test_the_hint_is_a_number(self):
        class Hinted(BufferedWitness):
            def get_buffer(self, sizehint):
                self.told("hint", type(sizehint))
                return super().get_buffer(sizehint)

        async def main():
            protocol = Hinted(self.loop)
            transport, peer = await self.wire(protocol)
            peer.send(b"x")
            await protocol.until(lambda: protocol.data)
            self.assertIn(("hint", int), protocol.seen)
        self.go(main())

    def test_a_buffered_protocol_may_pause_and_close_when_it_is_told(self):
        class Ends(BufferedWitness):
            def buffer_updated(self, count):
                super().buffer_updated(count)
                self.transport.pause_reading()
                self.transport.close()

        async def main():
            protocol = Ends(self.loop)
            transport, peer = await self.wire(protocol)
            peer.send(b"x" * 5000)
            await protocol.until_lost()
            self.assertEqual(len(protocol.data), 1024)
        self.go(main())
