"""Exceptions in every callback of a protocol: the effects are the same as on the stock
loop.

Each scenario is the whole life of a connection, in steps that end with a call of the
protocol, so that the observations do not depend on timing.
"""
import asyncio
import gc
import os
import socket
import sys

from house import (BufferedWitness, DatagramWitness, LoopCase, Notes, Planned, Witness,
                   UNRAISABLE, client_context, server_context, turns)


async def connect(loop, protocol, tls):
    """(transport, transport of the peer, protocol of the peer); the peer may have
    failed."""
    mine, peer = socket.socketpair()
    ended = Witness(loop)
    serve = asyncio.ensure_future(loop.connect_accepted_socket(
        lambda: ended, peer, ssl=server_context() if tls else None), loop=loop)
    secure = {"ssl": client_context(), "server_hostname": "localhost"} if tls else {}
    transport, _ = await loop.create_connection(lambda: protocol, sock=mine, **secure)
    try:
        return transport, (await serve)[0], ended
    except ConnectionError:
        return transport, None, None


async def life(loop, seen, make, fail, tls):
    """Receive, fill up, drain, and get the end, unless the connection is lost before."""
    protocol = make(loop, fail, seen)
    transport, peer, peer_protocol = await connect(loop, protocol, tls)

    def lost():
        return "connection_lost" in protocol.names()
    await turns(5)
    if not peer:
        await protocol.until_lost()
        return
    if not lost():
        peer.write(b"hello")
        await protocol.until(lambda: len(protocol.data) == 5 or lost())
    if not lost():
        transport.set_write_buffer_limits(high=1000)
        for _ in range(2):  # TLS accepts the first one whole; the second finds no room
            transport.write(bytes(3 << 20))
        await protocol.until(lambda: "resume_writing" in protocol.names() or lost())
        await peer_protocol.until(lambda: len(peer_protocol.data) == 6 << 20 or lost())
    if not lost():
        peer.close() if tls else peer.write_eof()
        await protocol.until(lost)
    peer.close()
    await peer_protocol.until_lost()
    await turns(5)


STREAM = ("connection_made", "eof_received", "pause_writing", "resume_writing", "connection_lost")


class Streams(LoopCase):
    def check(self, make, fail, tls=False):
        with self.subTest(fail=fail):
            seen = self.same_as_stock(life, make, fail, tls)
            self.assertIn("report", [each[0] for each in seen])

    def test_a_life_without_exceptions_is_told_in_the_same_order(self):
        for make in (Witness, BufferedWitness):
            for tls in (False, True):
                seen = self.same_as_stock(life, make, None, tls)
                self.assertEqual(seen[0], ("connection_made",))
                self.assertEqual(seen[-1], ("connection_lost", None))

    def test_exceptions_in_the_callbacks_of_a_protocol(self):
        for fail in STREAM + ("data_received",):
            self.check(Witness, fail)

    def test_exceptions_in_the_callbacks_of_a_buffered_protocol(self):
        for fail in STREAM + ("get_buffer", "buffer_updated"):
            self.check(BufferedWitness, fail)

    def test_exceptions_in_the_callbacks_of_a_protocol_over_tls(self):
        for fail in STREAM[1:] + ("data_received",):
            self.check(Witness, fail, tls=True)

    def test_exceptions_in_the_callbacks_of_a_buffered_protocol_over_tls(self):
        for fail in ("get_buffer", "buffer_updated", "eof_received", "connection_lost"):
            self.check(BufferedWitness, fail, tls=True)

    def test_a_buffer_of_no_size_or_of_no_kind_is_a_fatal_error(self):
        class Wrong(BufferedWitness):
            def get_buffer(self, sizehint):
                return self.given
        for given in (bytearray(), b"cannot be written", 5, None):
            Wrong.given = given
            with self.subTest(given=given):
                seen = self.same_as_stock(life, Wrong, None, False)
                self.assertEqual(seen[-1][0], "connection_lost")

    def test_what_leaves_the_loop_leaves_it_from_a_protocol_too(self):
        for kind in (KeyboardInterrupt, SystemExit):
            for name in ("data_received", "eof_received"):
                with self.subTest(kind=kind, name=name):
                    self.leave(kind, name)

    def leave(self, kind, name):
        protocol = Witness(self.loop)

        def raising(*_):
            raise kind
        setattr(protocol, name, raising)
        transport, peer = self.go(self.wire(protocol))
        if name == "eof_received":
            peer.shutdown(socket.SHUT_WR)
        else:
            peer.send(b"x")
        with self.assertRaises(kind):
            self.loop.run_forever()
        transport.abort()
        self.settle()
        self.assertIn("connection_lost", protocol.names())
        self.take_reports()

    def test_a_factory_that_raises_is_reported_and_the_server_goes_on(self):
        async def scenario(loop, seen):
            protocols = iter([Planned, Witness(loop)])

            def factory():
                given = next(protocols)
                if given is Planned:
                    raise Planned("no protocol")
                return given
            loop.set_debug(True)  # without it nothing is reported
            server = await loop.create_server(factory, "127.0.0.1", 0)
            address = server.sockets[0].getsockname()
            _, first = await asyncio.open_connection(*address)
            while not seen:
                await asyncio.sleep(0)
            reader, second = await asyncio.open_connection(*address)
            second.write_eof()
            seen.append((await reader.read(),))
            for writer in (first, second):
                writer.close()
                await writer.wait_closed()
            server.close()
            await server.wait_closed()
        seen = self.same_as_stock(scenario)
        self.assertIn("report", [each[0] for each in seen])
        gc.collect()
        UNRAISABLE.clear()  # stock leaves the socket to the collector, which warns

    def test_a_factory_that_raises_for_a_client_raises_out_of_the_connect(self):
        async def scenario(loop, seen):
            mine, peer = socket.socketpair()

            def factory():
                raise Planned("no protocol")
            try:
                await loop.create_connection(factory, sock=mine)
            except Planned as wrong:
                seen.append(str(wrong))
            mine.close()
            peer.close()
        self.assertEqual(self.same_as_stock(scenario), ["no protocol"])


class Datagrams(LoopCase):
    def test_exceptions_in_the_callbacks_of_a_datagram_protocol(self):
        async def scenario(loop, seen, fail):
            protocol = DatagramWitness(loop, fail, seen)
            transport, _ = await loop.create_datagram_endpoint(
                lambda: protocol, local_addr=("127.0.0.1", 0))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                for data in (b"one", b"two"):
                    peer.sendto(data, transport.get_extra_info("sockname"))
                    await protocol.until(lambda: ("datagram_received", data) in protocol.seen)
            await turns()
            transport.close()
            await protocol.until_lost()
            await turns()
        for fail in ("connection_made", "datagram_received", "connection_lost"):
            with self.subTest(fail):
                seen = self.same_as_stock(scenario, fail)
                self.assertIn("report", [each[0] for each in seen])

    def test_an_exception_in_error_received(self):
        async def scenario(loop, seen, fail):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
                gone.bind(("127.0.0.1", 0))
                address = gone.getsockname()
            protocol = DatagramWitness(loop, fail, seen)
            transport, _ = await loop.create_datagram_endpoint(
                lambda: protocol, remote_addr=address)
            transport.sendto(b"nobody is there")
            await protocol.until("error_received")
            await turns()
            transport.close()
            await protocol.until_lost()
            await turns()
        for fail in (None, "error_received"):
            with self.subTest(fail):
                self.assertIn(("error_received", "ConnectionRefusedError"),
                              self.same_as_stock(scenario, fail))


class Pipes(LoopCase):
    def test_exceptions_in_the_callbacks_of_a_reading_pipe(self):
        async def scenario(loop, seen, fail):
            out, into = os.pipe()
            protocol = Witness(loop, fail, seen)
            transport, _ = await loop.connect_read_pipe(lambda: protocol, open(out, "rb", 0))
            os.write(into, b"hello")
            await protocol.until(lambda: len(protocol.data) == 5)
            os.close(into)
            await protocol.until_lost()
            await turns()
        for fail in ("connection_made", "data_received", "eof_received", "connection_lost"):
            if fail == "eof_received" and sys.version_info < (3, 13):
                continue  # the caller of eof_received does not close the pipe if it raises
            with self.subTest(fail):
                self.same_as_stock(scenario, fail)

    def test_exceptions_in_the_callbacks_of_a_writing_pipe(self):
        async def scenario(loop, seen, fail):
            out, into = os.pipe()
            protocol = Witness(loop, fail, seen)
            transport, _ = await loop.connect_write_pipe(lambda: protocol, open(into, "wb", 0))
            os.set_blocking(out, False)
            transport.set_write_buffer_limits(high=1000)
            transport.write(bytes(1 << 20))
            got = 0

            def read():
                nonlocal got
                got += len(os.read(out, 1 << 16))
                if got == 1 << 20:
                    loop.remove_reader(out)
                    done.set_result(None)
            done = loop.create_future()
            loop.add_reader(out, read)
            await done
            await protocol.until("resume_writing")
            transport.close()
            await protocol.until_lost()
            os.close(out)
            await turns()
        for fail in ("connection_made", "pause_writing", "resume_writing", "connection_lost"):
            with self.subTest(fail):
                self.assertIn("report", [e[0] for e in self.same_as_stock(scenario, fail)])


class ProcessWitness(Notes, asyncio.SubprocessProtocol):
    def pipe_data_received(self, fd, data):
        self.told("pipe_data_received", fd, data)

    def pipe_connection_lost(self, fd, exc):
        self.told("pipe_connection_lost", fd, type(exc).__name__)

    def process_exited(self):
        self.told("process_exited")


class Processes(LoopCase):
    def test_exceptions_in_the_callbacks_of_a_process_protocol(self):
        async def scenario(loop, seen, fail):
            protocol = ProcessWitness(loop, fail)
            transport, _ = await loop.subprocess_exec(
                lambda: protocol, "cat", stdout=-1, stdin=-1, stderr=None)
            transport.get_pipe_transport(0).write(b"hello")
            await protocol.until("pipe_data_received")
            transport.get_pipe_transport(0).close()
            await protocol.until_lost()
            await turns()
            transport.close()
            # Whether the process ends before or after its pipes depends on timing.
            seen += sorted(protocol.seen)
        for fail in ("connection_made", "pipe_data_received", "pipe_connection_lost",
                     "process_exited", "connection_lost"):
            with self.subTest(fail):
                seen = self.same_as_stock(scenario, fail)
                self.assertIn("report", [each[0] for each in seen])
