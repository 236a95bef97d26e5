"""Readers of asyncio's streams: asyncio's own are fed from C, all others from Python."""
import asyncio
import contextlib
import fcntl
import sys
import termios
import unittest
from unittest import mock

from house import LoopCase, turns, weft_only


async def until(happened):
    while not happened():
        await asyncio.sleep(0)


class Noting(asyncio.StreamReader):
    """Records how much it is fed."""

    def __init__(self, seen, **more):
        super().__init__(**more)
        self.seen = seen

    def feed_data(self, data):
        self.seen.append(("fed", len(data)))
        super().feed_data(data)


class Feeding(LoopCase):
    @contextlib.asynccontextmanager
    async def stream(self, loop, reader=None, kind=asyncio.StreamReaderProtocol, **more):
        """(reader, its protocol, the socket at the other end) of a connection."""
        mine, peer = self.pair()
        known = reader or asyncio.StreamReader(loop=loop, **more)
        transport, protocol = await loop.create_connection(
            lambda: kind(known, loop=loop), sock=mine)
        yield known, protocol, peer
        transport.abort()
        await turns()

    def test_what_is_sent_is_read_in_order_by_every_way_to_read(self):
        async def scenario(loop, seen):
            async with self.stream(loop) as (reader, _, peer):
                peer.send(b"one\ntwo\nthree;four")
                seen.append(await reader.readline())
                seen.append(await reader.readexactly(4))
                seen.append(await reader.readuntil(b";"))
                seen.append(await reader.read(2))
                seen.append(await reader.read(100))
                waiting = loop.create_task(reader.read(100))
                await turns()
                peer.send(b"five")
                seen.append(await waiting)
                peer.close()
                seen.append(await reader.read())
                seen.append(reader.at_eof())
        self.same_as_stock(scenario)

    def test_a_megabyte_comes_whole(self):
        async def main():
            async with self.stream(self.loop) as (reader, _, peer):
                data = bytes(range(256)) * 4096
                sending = self.loop.create_task(self.loop.sock_sendall(peer, data))
                self.assertEqual(await reader.readexactly(len(data)), data)
                await sending
        self.go(main())

    def test_a_reader_with_twice_its_limit_pauses_and_reading_resumes(self):
        async def scenario(loop, seen):
            async with self.stream(loop, limit=1000) as (reader, protocol, peer):
                for size, total in ((1999, 1999), (1, 2000), (1, 2001), (500, 2001)):
                    peer.send(b"x" * size)
                    await until(lambda: len(reader._buffer) >= total)
                    seen.append((protocol._transport.is_reading(), len(reader._buffer)))
                seen.append(len(await reader.readexactly(2501)))
                seen.append(protocol._transport.is_reading())
        self.assertEqual(self.same_as_stock(scenario)[:3],
                         [(True, 1999), (True, 2000), (False, 2001)])

    def test_a_wait_that_was_cancelled_takes_nothing(self):
        async def scenario(loop, seen):
            async with self.stream(loop) as (reader, _, peer):
                waiting = loop.create_task(reader.read(100))
                await turns()
                peer.send(b"bytes")
                waiting.cancel()
                seen.append(type((await asyncio.gather(waiting, return_exceptions=True))[0]))
                seen.append(await reader.read(100))
        self.same_as_stock(scenario)

    def test_bytes_for_a_reader_that_is_gone_are_dropped(self):
        async def scenario(loop, seen):
            def unheld(_, loop):
                return asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop)
            async with self.stream(loop, kind=unheld) as (_, protocol, peer):
                peer.send(b"bytes")
                sock = protocol._transport.get_extra_info("socket")
                await until(lambda: fcntl.ioctl(sock, termios.FIONREAD, bytes(4)) == bytes(4))
                seen.append(protocol._transport.is_closing())
        self.same_as_stock(scenario)

    def test_bytes_after_the_end_are_a_fault_of_who_told_the_end(self):
        async def scenario(loop, seen):
            async with self.stream(loop) as (reader, protocol, peer):
                reader.feed_eof()
                peer.send(b"bytes")
                await until(lambda: protocol._transport is None)
        self.assertEqual(self.same_as_stock(scenario)[0][2], "AssertionError")

    def test_a_buffer_that_cannot_grow_ends_the_connection(self):
        async def scenario(loop, seen):
            async with self.stream(loop) as (reader, protocol, peer):
                with memoryview(reader._buffer):
                    peer.send(b"bytes")
                    await until(lambda: protocol._transport is None)
        self.assertEqual(self.same_as_stock(scenario)[0][2], "BufferError")

    def test_a_reader_of_ones_own_is_fed_by_its_own_method(self):
        async def scenario(loop, seen):
            reader = Noting(seen, loop=loop)
            async with self.stream(loop, reader) as (_, _, peer):
                peer.send(b"bytes")
                seen.append(await reader.read(100))
        self.assertEqual(self.same_as_stock(scenario), [("fed", 5), b"bytes"])

    def test_a_protocol_of_ones_own_gets_the_bytes_itself(self):
        class Doubling(asyncio.StreamReaderProtocol):
            def data_received(self, data):
                super().data_received(data * 2)

        async def scenario(loop, seen):
            async with self.stream(loop, kind=Doubling) as (reader, _, peer):
                peer.send(b"twice")
                seen.append(await reader.read(100))
        self.assertEqual(self.same_as_stock(scenario), [b"twicetwice"])

    def test_a_method_put_into_a_class_is_called(self):
        async def scenario(loop, seen, owner, name):
            real = getattr(owner, name)

            def noted(self, *args):
                seen.append((name, *args))
                real(self, *args)
            async with self.stream(loop) as (reader, _, peer):
                with mock.patch.object(owner, name, noted):
                    peer.send(b"bytes")
                    seen.append(await reader.read(100))
                peer.send(b"more")
                seen.append(await reader.read(100))
        for owner, name, args in ((asyncio.StreamReader, "feed_data", (b"bytes",)),
                                  (asyncio.StreamReader, "_wakeup_waiter", ()),
                                  (asyncio.StreamReaderProtocol, "data_received", (b"bytes",))):
            with self.subTest(name):
                self.assertEqual(self.same_as_stock(scenario, owner, name),
                                 [(name, *args), b"bytes", b"more"])

    def test_a_method_put_into_an_object_is_called(self):
        async def scenario(loop, seen, of_reader, name):
            async with self.stream(loop) as (reader, protocol, peer):
                owner = reader if of_reader else protocol
                real = getattr(owner, name)

                def noted(*args):
                    seen.append((name, *args))
                    real(*args)
                with mock.patch.object(owner, name, noted):
                    peer.send(b"bytes")
                    seen.append(await reader.read(100))
        for of_reader, name, args in ((True, "feed_data", (b"bytes",)),
                                      (True, "_wakeup_waiter", ()),
                                      (False, "data_received", (b"bytes",))):
            with self.subTest(name):
                self.assertEqual(self.same_as_stock(scenario, of_reader, name),
                                 [(name, *args), b"bytes"])

    def test_the_method_of_another_reader_gets_what_is_that_readers(self):
        async def scenario(loop, seen):
            other = asyncio.StreamReader(loop=loop)
            async with self.stream(loop) as (reader, _, peer):
                with mock.patch.object(reader, "feed_data", other.feed_data):
                    peer.send(b"bytes")
                    seen.append(await other.read(100))
                seen.append(len(reader._buffer))
        self.assertEqual(self.same_as_stock(scenario), [b"bytes", 0])

    @weft_only
    @unittest.skipIf(sys.version_info >= (3, 15), "not known yet")
    def test_asyncios_own_reader_is_fed_without_calls_of_python(self):
        called = []

        def note(frame, event, arg):
            if event == "call":
                called.append(frame.f_code.co_name)

        async def main():
            async with self.stream(self.loop) as (reader, _, peer):
                sys.setprofile(note)
                try:
                    peer.send(b"bytes")
                    self.assertEqual(await reader.read(100), b"bytes")
                finally:
                    sys.setprofile(None)
        self.go(main())
        self.assertIn("read", called)
        self.assertFalse({"data_received", "feed_data", "_wakeup_waiter"} & set(called))


if __name__ == "__main__":
    unittest.main()
