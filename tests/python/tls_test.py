"""TLS: connections, handshakes that fail or hang, ends without close_notify, start_tls."""
import asyncio
import gc
import os
import socket
import ssl
import tempfile
import weakref

from house import (BufferedWitness, LoopCase, UNRAISABLE, Witness, certificate, client_context,
                   server_context, turns)

NAME = {"server_hostname": "localhost"}


class TlsCase(LoopCase):
    async def connect(self, make=Witness, client=None, server=None, kind="tcp", **options):
        """Two ends of a connection: (transport, protocol) of the client, and of the
        server."""
        mine, peer = self.pair(kind)
        ends = await asyncio.gather(
            self.loop.create_connection(lambda: make(self.loop), sock=mine,
                                        ssl=client or client_context(), **NAME, **options),
            self.loop.connect_accepted_socket(lambda: Witness(self.loop), peer,
                                              ssl=server or server_context(), **options))
        for transport, _ in ends:
            self.abort_at_end(transport)
        return ends

    async def end(self, *ends):
        for transport, _ in ends:
            transport.close()
        for _, protocol in ends:
            await protocol.until_lost()


class Talking(TlsCase):
    def test_bytes_go_both_ways_in_each_version(self):
        async def main():
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = ssl.create_default_context(cafile=certificate()[0])
                context.minimum_version = context.maximum_version = version
                (one, mine), (two, theirs) = await self.connect(client=context)
                for size in (1, 100, 20_000, 1_000_000):
                    data = os.urandom(size)
                    for transport, protocol in ((one, theirs), (two, mine)):
                        protocol.data.clear()
                        transport.write(data)
                        await protocol.until(lambda: len(protocol.data) == size)
                        self.assertTrue(protocol.data == data)
                await self.end((one, mine), (two, theirs))
                for protocol in (mine, theirs):
                    self.assertEqual(protocol.seen[-1], ("connection_lost", None))
        self.go(main())

    def test_a_transport_is_one_of_asyncio_and_tells_of_its_session(self):
        async def main():
            context = ssl.create_default_context(cafile=certificate()[0])
            context.set_alpn_protocols(["one", "two"])
            offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            offered.load_cert_chain(*certificate())
            offered.set_alpn_protocols(["two"])
            (one, mine), two = await self.connect(client=context, server=offered)
            self.assertIsInstance(one, asyncio.Transport)
            self.assertIs(one.get_extra_info("sslcontext"), context)
            told = one.get_extra_info("ssl_object")
            self.assertIsInstance(told, ssl.SSLObject)
            self.assertEqual(told.selected_alpn_protocol(), "two")
            self.assertEqual(one.get_extra_info("cipher"), told.cipher())
            self.assertIn("subject", one.get_extra_info("peercert"))
            self.assertIsNone(one.get_extra_info("compression"))
            self.assertEqual(one.get_extra_info("peername"),
                             two[0].get_extra_info("sockname"))
            self.assertIs(one.get_protocol(), mine)
            self.assertFalse(one.can_write_eof())
            with self.assertRaises(NotImplementedError):
                one.write_eof()
            self.assertTrue(one.is_reading())
            await self.end((one, mine), two)
        self.go(main())

    def test_every_kind_of_bytes_is_written_as_it_was(self):
        async def main():
            ends = (one, _), (_, theirs) = await self.connect()
            data = bytearray(b"a" * 100_000)
            one.write(data)
            data[:] = b"b" * 100_000
            one.write(memoryview(b"view"))
            one.writelines([b"li", bytearray(b"nes")])
            one.write(b"")
            for wrong in ("text", 5, None):
                with self.assertRaises(TypeError):
                    one.write(wrong)
            await theirs.until(lambda: len(theirs.data) == 100_009)
            self.assertTrue(theirs.data == b"a" * 100_000 + b"viewlines")
            await self.end(*ends)
        self.go(main())

    def test_reading_is_paused_and_resumed(self):
        async def main():
            ends = (one, mine), (two, _) = await self.connect()
            one.pause_reading()
            self.assertFalse(one.is_reading())
            two.write(b"x" * 300_000)
            await turns(20)
            self.assertEqual(mine.data, b"")
            one.resume_reading()
            await mine.until(lambda: len(mine.data) == 300_000)
            await self.end(*ends)
        self.go(main())

    def test_a_slow_reader_pauses_the_writer(self):
        async def main():
            ends = (one, mine), (two, theirs) = await self.connect()
            two.pause_reading()
            one.set_write_buffer_limits(high=10_000)
            sent = 0
            while "pause_writing" not in mine.names():
                one.write(bytes(100_000))
                sent += 100_000
                await turns(2)
            two.resume_reading()
            await mine.until("resume_writing")
            await theirs.until(lambda: len(theirs.data) == sent)
            await self.end(*ends)
        self.go(main())

    def test_a_buffered_protocol_is_told_through_its_buffers(self):
        async def main():
            ends = (_, mine), (two, _) = await self.connect(BufferedWitness)
            data = os.urandom(100_000)
            two.write(data)
            await mine.until(lambda: len(mine.data) == 100_000)
            self.assertTrue(mine.data == data)
            await self.end(*ends)
        self.go(main())

    def test_close_sends_what_is_pending(self):
        async def main():
            (one, mine), (_, theirs) = await self.connect()
            one.write(bytes(2 << 20))
            one.close()
            await theirs.until_lost()
            self.assertEqual(len(theirs.data), 2 << 20)
            await mine.until_lost()
        self.go(main())

    def test_abort_ends_at_once(self):
        async def main():
            (one, mine), (_, theirs) = await self.connect()
            one.write(bytes(2 << 20))
            one.abort()
            self.assertTrue(one.is_closing())
            await mine.until_lost()
            await theirs.until_lost()
        self.go(main())

    def test_over_unix_sockets_and_servers(self):
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")

                async def serve(reader, writer):
                    writer.write((await reader.readline()).upper())
                    writer.close()
                server = await asyncio.start_unix_server(serve, path, ssl=server_context())
                for _ in range(3):
                    reader, writer = await asyncio.open_unix_connection(
                        path, ssl=client_context(), **NAME)
                    writer.write(b"hello\n")
                    self.assertEqual(await reader.read(), b"HELLO\n")
                    writer.close()
                    await writer.wait_closed()
                server.close()
                await server.wait_closed()
        self.go(main())

    def test_a_connection_that_has_ended_is_collected(self):
        async def main():
            ends = (one, mine), (two, theirs) = await self.connect()
            one.write(b"x")
            await self.end(*ends)
            return [weakref.ref(each) for each in (one, mine, two, theirs)]
        gone = self.go(main())
        self.settle()
        gc.collect()
        self.assertEqual([each() for each in gone], [None] * 4)


class Failing(TlsCase):
    def test_a_certificate_that_is_not_trusted_is_refused(self):
        async def main():
            mine, peer = self.pair("tcp")
            serving = asyncio.ensure_future(self.loop.connect_accepted_socket(
                lambda: Witness(self.loop), peer, ssl=server_context()))
            with self.assertRaises(ssl.SSLCertVerificationError):
                await self.loop.create_connection(
                    lambda: Witness(self.loop), sock=mine, ssl=ssl.create_default_context(),
                    **NAME)
            await asyncio.wait([serving])
            self.assertIsInstance(serving.exception(), (ssl.SSLError, ConnectionError))
        self.go(main())

    def test_a_name_that_is_another_is_refused(self):
        async def main():
            mine, peer = self.pair("tcp")
            serving = asyncio.ensure_future(self.loop.connect_accepted_socket(
                lambda: Witness(self.loop), peer, ssl=server_context()))
            with self.assertRaises(ssl.SSLCertVerificationError):
                await self.loop.create_connection(
                    lambda: Witness(self.loop), sock=mine, ssl=client_context(),
                    server_hostname="another.test")
            await asyncio.wait([serving])
            self.assertIsInstance(serving.exception(), (ssl.SSLError, ConnectionError))
        self.go(main())

    def test_a_server_that_says_nothing_is_given_up(self):
        async def main():
            mine, peer = self.pair("tcp")
            with self.assertRaisesRegex(ConnectionAbortedError, "handshake"):
                await self.loop.create_connection(
                    lambda: Witness(self.loop), sock=mine, ssl=client_context(),
                    ssl_handshake_timeout=0.02, **NAME)
        self.go(main())

    def test_a_client_that_says_nothing_is_dropped(self):
        async def main():
            made = []

            def factory():
                made.append(Witness(self.loop))
                return made[-1]
            server = await self.loop.create_server(factory, "127.0.0.1", 0, ssl=server_context(),
                                                   ssl_handshake_timeout=0.02)
            with socket.create_connection(server.sockets[0].getsockname()) as client:
                client.setblocking(False)
                self.assertEqual(await self.loop.sock_recv(client, 1), b"")
            self.assertEqual([each.seen for each in made], [[]])
            server.close()
            await server.wait_closed()
        self.go(main())

    def test_timeouts_that_are_none_are_refused(self):
        async def main():
            for wrong in ({"ssl_handshake_timeout": 0}, {"ssl_handshake_timeout": -1},
                          {"ssl_shutdown_timeout": 0}):
                mine, _ = self.pair()
                with self.assertRaises(ValueError):
                    await self.loop.create_connection(
                        lambda: Witness(self.loop), sock=mine, ssl=client_context(), **NAME,
                        **wrong)
                mine.close()
            await turns()
        self.go(main())
        gc.collect()
        UNRAISABLE.clear()  # stock leaves a partly made transport

    def test_what_is_no_tls_is_an_error_as_on_stock(self):
        async def scenario(loop, seen, bytes_sent, half):
            mine, peer = socket.socketpair()
            peer.setblocking(False)
            connecting = asyncio.ensure_future(loop.create_connection(
                lambda: Witness(loop, None, seen), sock=mine, ssl=client_context(), **NAME))
            await turns(3)
            peer.send(bytes_sent)
            if half:
                peer.shutdown(socket.SHUT_WR)
            await asyncio.wait([connecting])
            seen.append(("raised", type(connecting.exception()).__name__))
            peer.close()
        for bytes_sent in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 99,
                           b"\x15\x03\x03\x00\x02\x02\x28"):
            seen = self.same_as_stock(scenario, bytes_sent, True)
            self.assertEqual(seen[-1][0], "raised")

    def test_an_end_in_the_middle_of_a_handshake_is_an_error_as_on_stock(self):
        async def scenario(loop, seen, steps):
            mine, peer = socket.socketpair()
            peer.setblocking(False)
            connecting = asyncio.ensure_future(loop.create_connection(
                lambda: Witness(loop, None, seen), sock=mine, ssl=client_context(), **NAME))
            hello = await loop.sock_recv(peer, 1 << 16)
            if steps:
                inbox, outbox = ssl.MemoryBIO(), ssl.MemoryBIO()
                served = server_context().wrap_bio(inbox, outbox, server_side=True)
                inbox.write(hello)
                try:
                    served.do_handshake()
                except ssl.SSLWantReadError:
                    pass
                answer = outbox.read()
                peer.send(answer[:len(answer) // 2])
            peer.close()
            await asyncio.wait([connecting])
            seen.append(("raised", type(connecting.exception()).__name__))
        for steps in (0, 1):
            seen = self.same_as_stock(scenario, steps)
            self.assertEqual(seen[-1][0], "raised")

    def test_an_end_without_a_goodbye_is_told_as_on_stock(self):
        """A peer that aborts the connection cannot send close_notify."""
        async def scenario(loop, seen, make, wait):
            mine, theirs = socket.socketpair()
            protocol, peer = make(loop, None, seen), Witness(loop)
            (one, _), (two, _) = await asyncio.gather(
                loop.create_connection(lambda: protocol, sock=mine, ssl=client_context(), **NAME),
                loop.connect_accepted_socket(lambda: peer, theirs, ssl=server_context()))
            two.write(b"last words")
            await protocol.until(lambda: len(protocol.data) == 10)
            if wait:
                one.write(b"unanswered")
                await peer.until(lambda: len(peer.data) == 10)
            two.abort()
            await protocol.until_lost()
        for make in (Witness, BufferedWitness):
            for wait in (False, True):
                seen = self.same_as_stock(scenario, make, wait)
                self.assertEqual(seen[-1][0], "connection_lost")

    def test_a_peer_that_never_says_goodbye_is_given_up(self):
        async def main():
            mine, peer = self.pair()
            inbox, outbox = ssl.MemoryBIO(), ssl.MemoryBIO()
            served = server_context().wrap_bio(inbox, outbox, server_side=True)

            async def handshake():
                while True:
                    try:
                        served.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        await self.loop.sock_sendall(peer, outbox.read())
                        inbox.write(await self.loop.sock_recv(peer, 1 << 16))
                await self.loop.sock_sendall(peer, outbox.read())
            (transport, protocol), _ = await asyncio.gather(
                self.loop.create_connection(
                    lambda: Witness(self.loop), sock=mine, ssl=client_context(),
                    ssl_shutdown_timeout=0.02, **NAME), handshake())
            transport.close()
            await protocol.until_lost()
            self.assertEqual(protocol.seen[-1][0], "connection_lost")
        self.go(main())
        self.take_reports()

    def test_garbage_after_the_handshake_is_told_as_on_stock(self):
        async def scenario(loop, seen):
            mine, theirs = socket.socketpair()
            raw = theirs.dup()
            raw.setblocking(False)
            protocol, peer = Witness(loop, None, seen), Witness(loop)
            (one, _), (two, _) = await asyncio.gather(
                loop.create_connection(lambda: protocol, sock=mine, ssl=client_context(), **NAME),
                loop.connect_accepted_socket(lambda: peer, theirs, ssl=server_context()))
            await turns(5)
            raw.send(b"this is no record of TLS at all")
            await protocol.until_lost()
            raw.close()
            two.abort()
            await peer.until_lost()
        self.assertEqual(self.same_as_stock(scenario)[-1][0], "connection_lost")


class Upgrading(TlsCase):
    async def upgrade(self, first, second, client=None, server=None):
        """start_tls on both ends, given as (transport, protocol); return both transports."""
        upgraded = await asyncio.gather(
            self.loop.start_tls(*first, client or client_context(), **NAME),
            self.loop.start_tls(*second, server or server_context(), server_side=True))
        for transport in upgraded:
            self.abort_at_end(transport)
        return upgraded

    async def plain(self):
        mine, peer = self.pair("tcp")
        return (await self.loop.create_connection(lambda: Witness(self.loop), sock=mine),
                await self.loop.connect_accepted_socket(lambda: Witness(self.loop), peer))

    def test_a_plain_connection_becomes_a_secure_one(self):
        async def main():
            first, second = await self.plain()
            first[0].write(b"plain")
            await second[1].until(lambda: second[1].data == b"plain")
            one, two = await self.upgrade(first, second)
            self.assertIsNot(one, first[0])
            self.assertIsNotNone(one.get_extra_info("ssl_object"))
            one.write(b"secure")
            await second[1].until(lambda: second[1].data == b"plainsecure")
            two.write(b"back" * 50_000)
            await first[1].until(lambda: len(first[1].data) == 200_000)
            await self.end((one, first[1]), (two, second[1]))
            self.assertEqual(first[1].names().count("connection_made"), 1)
        self.go(main())

    def test_a_secure_connection_carries_another(self):
        async def main():
            first, second = await self.plain()
            one, two = await self.upgrade(first, second)
            inner = await self.upgrade((one, first[1]), (two, second[1]))
            inner[0].write(b"x" * 100_000)
            await second[1].until(lambda: len(second[1].data) == 100_000)
            await self.end((inner[0], first[1]), (inner[1], second[1]))
        self.go(main())

    def test_streams_are_upgraded(self):
        async def main():
            async def serve(reader, writer):
                self.assertEqual(await reader.readline(), b"STARTTLS\n")
                writer.write(b"go ahead\n")
                await writer.start_tls(server_context())
                writer.write((await reader.readline()).upper())
                writer.close()
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"STARTTLS\n")
            await reader.readline()
            await writer.start_tls(client_context(), **NAME)
            writer.write(b"hello\n")
            self.assertEqual(await reader.read(), b"HELLO\n")
            writer.close()
            await writer.wait_closed()
            server.close()
            await server.wait_closed()
        self.go(main())

    def test_an_upgrade_that_fails_ends_the_connection(self):
        async def main():
            first, second = await self.plain()
            with self.assertRaises(ssl.SSLCertVerificationError):
                await self.upgrade(first, second, client=ssl.create_default_context())
            await turns(10)
            for transport, _ in (first, second):
                self.assertTrue(transport.is_closing())
        self.go(main())

    def test_an_upgrade_without_an_answer_is_given_up(self):
        async def main():
            first, second = await self.plain()
            with self.assertRaises(ConnectionAbortedError):
                await self.loop.start_tls(*first, client_context(), **NAME,
                                          ssl_handshake_timeout=0.02)
            second[0].abort()
            await second[1].until_lost()
        self.go(main())

    def test_what_cannot_be_upgraded_is_refused(self):
        async def main():
            first, second = await self.plain()
            with self.assertRaises(TypeError):
                await self.loop.start_tls(*first, None)
            with self.assertRaises(TypeError):
                await self.loop.start_tls(asyncio.Transport(), first[1], client_context())
            await self.end(first, second)
        self.go(main())
