"""Files sent over transports and sockets."""
import asyncio
import io
import os
import socket
import tempfile

from house import LoopCase, Witness, client_context, receive, server_context, turns

SIZE = (2 << 20) + 12345
WHOLE = os.urandom(1 << 16) * (SIZE // (1 << 16) + 1)
WHOLE = WHOLE[:SIZE]


class Files(LoopCase):
    def setUp(self):
        super().setUp()
        self.file = tempfile.TemporaryFile()
        self.addCleanup(self.file.close)
        self.file.write(WHOLE)
        self.file.seek(0)

    def lengthen(self):
        """Make the file larger than all kernel buffers."""
        self.file.truncate(64 << 20)

    def both_kinds(self, send):
        """Run send(kind) over a Unix pair and over TCP."""
        for kind in ("unix", "tcp"):
            with self.subTest(kind):
                self.file.seek(0)
                self.go(send(kind))


class Transports(Files):
    def test_a_file_is_sent_whole_between_what_is_written_before_and_after(self):
        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            receiving = asyncio.ensure_future(receive(self.loop, peer, SIZE + 100))
            transport.write(b"before")
            self.assertEqual(await self.loop.sendfile(transport, self.file), SIZE)
            self.assertEqual(self.file.tell(), SIZE)
            transport.write(b"after")
            transport.close()
            self.assertTrue(await receiving == b"before" + WHOLE + b"after")
            await protocol.until_lost()
        self.both_kinds(send)

    def test_a_file_waits_for_writes_that_wait(self):
        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            transport.write(bytes(4 << 20))
            sending = asyncio.ensure_future(self.loop.sendfile(transport, self.file))
            await turns()
            got = await receive(self.loop, peer, (4 << 20) + SIZE)
            self.assertEqual(await sending, SIZE)
            self.assertTrue(got[4 << 20:] == WHOLE)
        self.both_kinds(send)

    def test_a_part_of_a_file_is_sent(self):
        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            self.assertEqual(await self.loop.sendfile(transport, self.file, 1000, 500), 500)
            self.assertEqual(await receive(self.loop, peer, 500), WHOLE[1000:1500])
            self.assertEqual(self.file.tell(), 1500)
            self.assertEqual(await self.loop.sendfile(transport, self.file, SIZE - 7, 100), 7)
            self.assertEqual(await receive(self.loop, peer, 7), WHOLE[-7:])
            self.assertEqual(await self.loop.sendfile(transport, self.file, SIZE + 7), 0)
        self.both_kinds(send)

    def test_reading_is_paused_while_a_file_is_sent_and_goes_on_after(self):
        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            sending = asyncio.ensure_future(self.loop.sendfile(transport, self.file))
            await turns()
            peer.send(b"meanwhile")
            self.assertTrue(await receive(self.loop, peer, SIZE) == WHOLE)
            await sending
            await protocol.until(lambda: protocol.data == b"meanwhile")
        self.both_kinds(send)

    def test_what_has_no_descriptor_is_sent_by_reading_it(self):
        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            receiving = asyncio.ensure_future(receive(self.loop, peer, SIZE))
            self.assertEqual(await self.loop.sendfile(transport, io.BytesIO(WHOLE)), SIZE)
            self.assertTrue(await receiving == WHOLE)
            with self.assertRaises(asyncio.SendfileNotAvailableError):
                await self.loop.sendfile(transport, io.BytesIO(WHOLE), fallback=False)
        self.both_kinds(send)

    def test_a_closing_transport_and_a_text_file_are_refused(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            with open(__file__, encoding="utf-8") as text, self.assertRaises(ValueError):
                await self.loop.sock_sendfile(peer, text)
            transport.close()
            with self.assertRaisesRegex(RuntimeError, "closing"):
                await self.loop.sendfile(transport, self.file)
            await protocol.until_lost()
        self.go(main())

    def test_a_peer_that_goes_away_is_an_error_and_ends_the_connection(self):
        self.lengthen()

        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            sending = asyncio.ensure_future(self.loop.sendfile(transport, self.file))
            await receive(self.loop, peer, 1000)
            peer.close()
            with self.assertRaises(ConnectionError):
                await sending
            await protocol.until_lost()
        self.both_kinds(send)

    def test_a_cancelled_send_stops(self):
        self.lengthen()

        async def send(kind):
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol, kind)
            sending = asyncio.ensure_future(self.loop.sendfile(transport, self.file))
            await receive(self.loop, peer, 1000)
            sending.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await sending
            transport.abort()
            await protocol.until_lost()
        self.both_kinds(send)

    def test_over_tls_a_file_is_read_and_encrypted(self):
        async def main():
            mine, peer = self.pair("tcp")
            served, client = Witness(self.loop), Witness(self.loop)
            (transport, _), (other, _) = await asyncio.gather(
                self.loop.create_connection(lambda: client, sock=mine, ssl=client_context(),
                                            server_hostname="localhost"),
                self.loop.connect_accepted_socket(lambda: served, peer, ssl=server_context()))
            self.assertEqual(await self.loop.sendfile(transport, self.file), SIZE)
            await served.until(lambda: len(served.data) == SIZE)
            self.assertTrue(served.data == WHOLE)
            with self.assertRaises((asyncio.SendfileNotAvailableError, RuntimeError)):
                await self.loop.sendfile(transport, self.file, fallback=False)
            for each in (transport, other):
                each.abort()
            await asyncio.gather(served.until_lost(), client.until_lost())
        self.go(main())


class Sockets(Files):
    def test_a_file_is_sent_whole_or_in_part(self):
        async def send(kind):
            mine, peer = self.pair(kind)
            receiving = asyncio.ensure_future(receive(self.loop, peer, SIZE))
            self.assertEqual(await self.loop.sock_sendfile(mine, self.file), SIZE)
            self.assertTrue(await receiving == WHOLE)
            self.assertEqual(self.file.tell(), SIZE)
            self.assertEqual(await self.loop.sock_sendfile(mine, self.file, 5, 10), 10)
            self.assertEqual(await receive(self.loop, peer, 10), WHOLE[5:15])
        self.both_kinds(send)

    def test_what_has_no_descriptor_is_sent_by_reading_it(self):
        async def send(kind):
            mine, peer = self.pair(kind)
            receiving = asyncio.ensure_future(receive(self.loop, peer, SIZE))
            self.assertEqual(await self.loop.sock_sendfile(mine, io.BytesIO(WHOLE)), SIZE)
            self.assertTrue(await receiving == WHOLE)
            with self.assertRaises(asyncio.SendfileNotAvailableError):
                await self.loop.sock_sendfile(mine, io.BytesIO(b"x"), fallback=False)
        self.both_kinds(send)

    def test_a_wrong_count_or_place_is_refused(self):
        async def main():
            mine, peer = self.pair()
            for offset, count in ((-1, None), (0, 0), (0, -1)):
                with self.assertRaises(ValueError):
                    await self.loop.sock_sendfile(mine, self.file, offset, count)
            with self.assertRaises(TypeError):
                await self.loop.sock_sendfile(mine, self.file, 0, "many")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.setblocking(False)
                with self.assertRaises(ValueError):
                    await self.loop.sock_sendfile(datagrams, self.file)
        self.go(main())

    def test_a_cancelled_send_stops_where_it_was(self):
        self.lengthen()

        async def send(kind):
            mine, peer = self.pair(kind)
            sending = asyncio.ensure_future(self.loop.sock_sendfile(mine, self.file))
            await receive(self.loop, peer, 1000)
            sending.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await sending
            await turns(5)
            mine.close()
            rest = await receive(self.loop, peer, 64 << 20)
            self.assertLess(len(rest), (64 << 20) - 1000)
            self.assertTrue(rest[:SIZE - 1000] == WHOLE[1000:][:len(rest)])
        self.both_kinds(send)

    def test_a_file_that_was_shortened_ends_early(self):
        async def main():
            mine, peer = self.pair()
            self.file.truncate(5000)
            self.assertEqual(await self.loop.sock_sendfile(mine, self.file, 0, 10_000), 5000)
            self.assertEqual(await receive(self.loop, peer, 5000), WHOLE[:5000])
        self.go(main())
