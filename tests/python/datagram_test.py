"""Datagram endpoints."""
import asyncio
import os
import socket
import sys
import tempfile

from house import DatagramWitness, LoopCase, turns


class Addressed(DatagramWitness):
    def datagram_received(self, data, addr):
        self.told("datagram_received", data, addr)


class Endpoints(LoopCase):
    async def endpoint(self, make=DatagramWitness, **options):
        options = options or {"local_addr": ("127.0.0.1", 0)}
        transport, protocol = await self.loop.create_datagram_endpoint(
            lambda: make(self.loop), **options)
        self.abort_at_end(transport)
        return transport, protocol

    async def end(self, *endpoints):
        for transport, protocol in endpoints:
            transport.close()
            await protocol.until_lost()

    def test_an_endpoint_is_that_of_asyncio_and_tells_of_itself(self):
        async def main():
            transport, protocol = await self.endpoint()
            if sys.version_info >= (3, 12):  # in 3.11 stock's own is not one either
                self.assertIsInstance(transport, asyncio.DatagramTransport)
            self.assertIs(transport.get_protocol(), protocol)
            name = transport.get_extra_info("sockname")
            self.assertEqual(name[0], "127.0.0.1")
            told = transport.get_extra_info("socket")
            self.assertEqual(told.getsockname(), name)
            self.assertEqual(told.type, socket.SOCK_DGRAM)
            self.assertIsNone(transport.get_extra_info("peername"))
            self.assertFalse(transport.is_closing())
            self.assertEqual(transport.get_write_buffer_size(), 0)
            await self.end((transport, protocol))
            self.assertTrue(transport.is_closing())
            self.assertEqual(protocol.seen, [("connection_made",), ("connection_lost", None)])
        self.go(main())

    def test_datagrams_go_to_whom_they_are_addressed(self):
        async def main():
            one, two = await self.endpoint(Addressed), await self.endpoint(Addressed)
            names = [each[0].get_extra_info("sockname") for each in (one, two)]
            for data in (b"bytes", bytearray(b"array"), memoryview(b"view")):
                one[0].sendto(data, names[1])
            await two[1].until(lambda: len(two[1].seen) == 4)
            self.assertEqual(two[1].seen[1:], [("datagram_received", data, names[0])
                                               for data in (b"bytes", b"array", b"view")])
            two[0].sendto(b"back", names[0])
            await one[1].until("datagram_received")
            await self.end(one, two)
        self.go(main())

    def test_an_endpoint_with_one_peer_needs_no_address(self):
        async def main():
            one = await self.endpoint(Addressed)
            name = one[0].get_extra_info("sockname")
            two = await self.endpoint(Addressed, remote_addr=name)
            self.assertEqual(two[0].get_extra_info("peername"), name)
            two[0].sendto(b"plain")
            two[0].sendto(b"named", name)
            await one[1].until(lambda: len(one[1].seen) == 3)
            with self.assertRaises(ValueError):
                two[0].sendto(b"astray", ("127.0.0.1", 9))
            one[0].sendto(b"back", two[0].get_extra_info("sockname"))
            await two[1].until("datagram_received")
            await self.end(one, two)
        self.go(main())

    def test_many_datagrams_keep_their_order_and_size(self):
        async def main():
            one, two = await self.endpoint(), await self.endpoint()
            name = two[0].get_extra_info("sockname")
            sent = []
            for i in range(300):
                sent.append(bytes([i % 251]) * (1 + i * 37 % 1400))
                one[0].sendto(sent[-1], name)
                if i % 20 == 19:
                    await two[1].until(lambda: len(two[1].seen) == i + 2)
            self.assertEqual([each[1] for each in two[1].seen[1:]], sent)
            await self.end(one, two)
        self.go(main())

    def test_the_largest_datagram_is_received_whole(self):
        async def main():
            one, two = await self.endpoint(), await self.endpoint()
            data = os.urandom(65507)
            one[0].sendto(data, two[0].get_extra_info("sockname"))
            await two[1].until("datagram_received")
            self.assertTrue(two[1].seen[1][1] == data)
            await self.end(one, two)
        self.go(main())

    def test_one_too_large_is_told_to_error_received(self):
        async def main():
            one, two = await self.endpoint(), await self.endpoint()
            name = two[0].get_extra_info("sockname")
            one[0].sendto(bytes(70000), name)
            await one[1].until("error_received")
            one[0].sendto(b"goes on", name)
            await two[1].until("datagram_received")
            await self.end(one, two)
        self.go(main())

    def test_nobody_there_is_told_to_error_received(self):
        async def main():
            gone = await self.endpoint()
            name = gone[0].get_extra_info("sockname")
            await self.end(gone)
            one = await self.endpoint(remote_addr=name)
            one[0].sendto(b"hello?")
            await one[1].until("error_received")
            self.assertIn(("error_received", "ConnectionRefusedError"), one[1].seen)
            self.assertFalse(one[0].is_closing())
            await self.end(one)
        self.go(main())

    def test_what_is_no_bytes_is_refused(self):
        async def main():
            one = await self.endpoint()
            for wrong in ("text", 5, None):
                with self.assertRaises(TypeError):
                    one[0].sendto(wrong, ("127.0.0.1", 9))
            await self.end(one)
        self.go(main())

    def test_what_waits_for_room_is_sent_in_order_and_controls_the_flow(self):
        """Unix datagrams wait for their reader, so that the sender's buffer fills."""
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                name = os.path.join(folder, "reader")
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
                    reader.bind(name)
                    reader.setblocking(False)
                    transport, protocol = await self.endpoint(
                        family=socket.AF_UNIX, remote_addr=name)
                    transport.set_write_buffer_limits(high=2000)
                    for i in range(2000):
                        transport.sendto(b"%04d" % i)
                    self.assertIn("pause_writing", protocol.names())
                    self.assertGreater(transport.get_write_buffer_size(), 2000)
                    got = [await self.loop.sock_recv(reader, 100) for _ in range(2000)]
                    self.assertEqual(got, [b"%04d" % i for i in range(2000)])
                    await protocol.until("resume_writing")
                    self.assertEqual(transport.get_write_buffer_size(), 0)
                    await self.end((transport, protocol))
        self.go(main())

    def test_close_sends_what_waits_and_abort_drops_it(self):
        async def main():
            for how in ("close", "abort"):
                with tempfile.TemporaryDirectory() as folder:
                    name = os.path.join(folder, "reader")
                    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
                        reader.bind(name)
                        reader.setblocking(False)
                        transport, protocol = await self.endpoint(
                            family=socket.AF_UNIX, remote_addr=name)
                        for i in range(1000):
                            transport.sendto(b"x")
                        self.assertGreater(transport.get_write_buffer_size(), 0)
                        getattr(transport, how)()
                        if how == "close":
                            for _ in range(1000):
                                await self.loop.sock_recv(reader, 10)
                        await protocol.until_lost()
        self.go(main())

    def test_a_protocol_may_close_when_it_is_told_of_a_datagram(self):
        class Ends(DatagramWitness):
            def datagram_received(self, data, addr):
                super().datagram_received(data, addr)
                self.transport.close()

        async def main():
            one, two = await self.endpoint(), await self.endpoint(Ends)
            for _ in range(5):
                one[0].sendto(b"x", two[0].get_extra_info("sockname"))
            await two[1].until_lost()
            self.assertEqual(two[1].names().count("datagram_received"), 1)
            await self.end(one)
        self.go(main())

    def test_a_socket_made_elsewhere_is_used(self):
        async def main():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("127.0.0.1", 0))
            one = await self.endpoint(sock=sock)
            two = await self.endpoint()
            two[0].sendto(b"x", sock.getsockname())
            await one[1].until("datagram_received")
            await self.end(one, two)
        self.go(main())

    def test_two_endpoints_may_share_a_port_if_both_say_so(self):
        async def main():
            one = await self.endpoint(local_addr=("127.0.0.1", 0), reuse_port=True)
            name = one[0].get_extra_info("sockname")
            two = await self.endpoint(local_addr=name, reuse_port=True)
            with self.assertRaises(OSError):
                await self.endpoint(local_addr=name)
            await self.end(one, two)
        self.go(main())

    def test_it_may_be_told_to_broadcast(self):
        async def main():
            one = await self.endpoint(local_addr=("127.0.0.1", 0), allow_broadcast=True)
            told = one[0].get_extra_info("socket")
            self.assertTrue(told.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST))
            await self.end(one)
        self.go(main())

    def test_an_empty_datagram_is_received_and_sent_by_a_socket(self):
        async def main():
            one = await self.endpoint()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.sendto(b"", one[0].get_extra_info("sockname"))
            await one[1].until("datagram_received")
            self.assertEqual(one[1].seen[1], ("datagram_received", b""))
            await self.end(one)
        self.go(main())

    def test_a_closed_endpoint_sends_nothing(self):
        async def main():
            one, two = await self.endpoint(), await self.endpoint()
            one[0].abort()
            await one[1].until_lost()
            await turns()
            self.assertEqual(two[1].seen, [("connection_made",)])
            await self.end(two)
        self.go(main())
