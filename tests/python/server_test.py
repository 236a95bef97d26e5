"""Servers and clients: TCP, Unix, sockets made elsewhere, and their errors."""
import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import unittest

from house import LoopCase, Witness, receive, turns


class Echo(Witness):
    def data_received(self, data):
        super().data_received(data)
        self.transport.write(data)


class ServerCase(LoopCase):
    async def serve(self, make=None, **options):
        """(server, its address, the protocols that it makes)"""
        made = []

        def factory():
            made.append((make or Echo)(self.loop))
            return made[-1]
        if "path" in options:
            server = await self.loop.create_unix_server(factory, **options)
        else:
            options = options if "sock" in options else {"host": "127.0.0.1", "port": 0, **options}
            server = await self.loop.create_server(factory, **options)
        self.addCleanup(server.close)
        return server, server.sockets[0].getsockname(), made

    async def connect(self, address):
        sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        sock.setblocking(False)
        self.addCleanup(sock.close)
        await self.loop.sock_connect(sock, address)
        return sock

    async def end(self, server, made):
        server.close()
        for protocol in made:
            await protocol.until("connection_made")
            if not protocol.transport.is_closing():
                protocol.transport.abort()
            await protocol.until_lost()
        await server.wait_closed()
        await turns()


class Serving(ServerCase):
    def test_clients_are_served_over_tcp_and_unix(self):
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                for options in ({}, {"path": os.path.join(folder, "socket")}):
                    server, address, made = await self.serve(**options)
                    clients = [await self.connect(address) for _ in range(10)]
                    for i, client in enumerate(clients):
                        await self.loop.sock_sendall(client, b"hello %d" % i)
                    for i, client in enumerate(clients):
                        self.assertEqual(await receive(self.loop, client, 7), b"hello %d" % i)
                        client.close()
                    await asyncio.gather(*(each.until_lost() for each in made))
                    self.assertEqual(len(made), 10)
                    await self.end(server, made)
        self.go(main())

    def test_many_clients_at_once_are_all_accepted(self):
        async def main():
            server, address, made = await self.serve(backlog=200)
            clients = [socket.create_connection(address) for _ in range(150)]
            while len(made) < 150 or not all(each.transport for each in made):
                await turns()
            for client in clients:
                client.close()
            await self.end(server, made)
        self.go(main())

    def test_a_server_tells_of_itself(self):
        async def main():
            server, address, made = await self.serve()
            self.assertIsInstance(server, asyncio.AbstractServer)
            self.assertIs(server.get_loop(), self.loop)
            self.assertTrue(server.is_serving())
            self.assertIsInstance(server.sockets, tuple)
            self.assertEqual(server.sockets[0].getsockname(), address)
            await self.end(server, made)
            self.assertFalse(server.is_serving())
            self.assertEqual(server.sockets, ())
        self.go(main())

    def test_a_server_may_begin_later(self):
        async def main():
            server, address, made = await self.serve(start_serving=False)
            self.assertFalse(server.is_serving())
            with self.assertRaises(ConnectionRefusedError):
                await self.connect(address)
            await server.start_serving()
            await server.start_serving()
            (await self.connect(address)).close()
            while not made:
                await turns()
            await self.end(server, made)
        self.go(main())

    def test_serve_forever_ends_when_it_is_cancelled_and_closes_the_server(self):
        async def main():
            server, address, made = await self.serve(start_serving=False)
            serving = asyncio.ensure_future(server.serve_forever())
            await turns()
            self.assertTrue(server.is_serving())
            with self.assertRaises(RuntimeError):
                await server.serve_forever()
            serving.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await serving
            self.assertFalse(server.is_serving())
        self.go(main())

    def test_a_server_may_be_left_by_a_with(self):
        async def main():
            server, address, made = await self.serve()
            async with server as entered:
                self.assertIs(entered, server)
            self.assertFalse(server.is_serving())
        self.go(main())

    def test_closed_while_clients_wait_in_its_queue_they_are_let_go(self):
        async def main():
            server, address, made = await self.serve()
            client = socket.create_connection(address)
            server.close()
            client.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(await self.loop.sock_recv(client, 1), b"")
            client.close()
            await self.end(server, [each for each in made if each.transport])
        self.go(main())

    def test_connections_outlive_the_server_that_accepted_them(self):
        async def main():
            server, address, made = await self.serve()
            client = await self.connect(address)
            while not (made and made[0].transport):
                await turns()
            server.close()
            await turns()
            await self.loop.sock_sendall(client, b"still there")
            self.assertEqual(await receive(self.loop, client, 11), b"still there")
            await self.end(server, made)
        self.go(main())

    @unittest.skipIf(sys.version_info < (3, 13), "not in this Python")
    def test_a_server_closes_or_aborts_its_clients(self):
        async def main():
            for how in ("close_clients", "abort_clients"):
                server, address, made = await self.serve()
                client = await self.connect(address)
                while not (made and made[0].transport):
                    await turns()
                server.close()
                getattr(server, how)()
                await made[0].until_lost()
                await server.wait_closed()
                client.close()
        self.go(main())

    def test_two_servers_may_share_a_port(self):
        async def main():
            first, address, made = await self.serve(reuse_port=True)
            second, same, also = await self.serve(port=address[1], reuse_port=True)
            self.assertEqual(address, same)
            clients = [await self.connect(address) for _ in range(20)]
            while len(made) + len(also) < 20:
                await turns()
            for client in clients:
                client.close()
            await self.end(first, made)
            await self.end(second, also)
        self.go(main())

    def test_a_port_in_use_is_an_error_that_names_it(self):
        async def main():
            server, address, made = await self.serve()
            with self.assertRaises(OSError) as raised:
                await self.serve(port=address[1])
            self.assertIn(str(address[1]), str(raised.exception))
            await self.end(server, made)
        self.go(main())

    def test_a_socket_made_elsewhere_is_served(self):
        async def main():
            sock = socket.create_server(("127.0.0.1", 0))
            server, address, made = await self.serve(sock=sock)
            client = await self.connect(address)
            await self.loop.sock_sendall(client, b"x")
            self.assertEqual(await self.loop.sock_recv(client, 1), b"x")
            await self.end(server, made)
        self.go(main())

    def test_wrong_options_are_refused(self):
        async def main():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                for options in ({"sock": datagrams}, {"host": "127.0.0.1", "sock": datagrams},
                                {}, {"host": "127.0.0.1", "ssl_handshake_timeout": 1}):
                    with self.assertRaises(ValueError):
                        await self.loop.create_server(asyncio.Protocol, **options)
                with self.assertRaises(TypeError):
                    await self.loop.create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=True)
        self.go(main())

    def test_a_file_in_the_place_of_a_unix_socket_is_left_alone(self):
        async def main():
            with tempfile.NamedTemporaryFile() as file:
                with self.assertRaises(OSError):
                    await self.serve(path=file.name)
                self.assertTrue(os.path.exists(file.name))
        self.go(main())

    def test_a_unix_server_takes_the_place_of_one_that_is_gone(self):
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")
                with socket.socket(socket.AF_UNIX) as gone:
                    gone.bind(path)
                server, address, made = await self.serve(path=path)
                client = await self.connect(path)
                await self.loop.sock_sendall(client, b"x")
                self.assertEqual(await self.loop.sock_recv(client, 1), b"x")
                await self.end(server, made)
        self.go(main())

    def test_streams_serve_and_connect(self):
        async def main():
            async def serve(reader, writer):
                writer.write((await reader.readline()).upper())
                await writer.drain()
                writer.close()
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            answers = []
            for i in range(5):
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writer.write(b"line %d\n" % i)
                answers.append(await reader.read())
                writer.close()
                await writer.wait_closed()
            self.assertEqual(answers, [b"LINE %d\n" % i for i in range(5)])
            server.close()
            await server.wait_closed()
        self.go(main())


class Clients(ServerCase):
    async def talk(self, **options):
        protocol = Witness(self.loop)
        transport, given = await self.loop.create_connection(lambda: protocol, **options)
        self.assertIs(given, protocol)
        transport.write(b"hello")
        await protocol.until(lambda: protocol.data == b"hello")
        transport.close()
        await protocol.until_lost()
        return transport

    def test_a_client_connects_by_address_and_by_name(self):
        async def main():
            server, (host, port), made = await self.serve()
            await self.talk(host=host, port=port)
            await self.talk(host="localhost", port=port, family=socket.AF_INET)
            await self.talk(host="localhost", port=str(port), family=socket.AF_INET,
                            happy_eyeballs_delay=0.25)
            await self.talk(host="localhost", port=port, happy_eyeballs_delay=0.25, interleave=1)
            await self.talk(host=host, port=port, local_addr=("127.0.0.1", 0))
            await self.end(server, made)
        self.go(main())

    def test_a_client_tries_the_addresses_of_a_name_in_turn(self):
        async def main():
            server, (_, port), made = await self.serve()
            nobody = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", port))
            somebody = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))

            async def found(*args, **options):
                return [nobody, somebody]
            self.loop.getaddrinfo = found
            await self.talk(host="two.addresses", port=port)
            await self.talk(host="two.addresses", port=port, happy_eyeballs_delay=0.05)

            async def none(*args, **options):
                return [nobody, nobody]
            self.loop.getaddrinfo = none
            with self.assertRaises(OSError):
                await self.talk(host="two.addresses", port=port)
            del self.loop.getaddrinfo
            await self.end(server, made)
        self.go(main())

    def test_a_client_connects_to_a_unix_socket(self):
        async def main():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")
                server, _, made = await self.serve(path=path)
                protocol = Witness(self.loop)
                transport, _ = await self.loop.create_unix_connection(lambda: protocol, path)
                self.assertEqual(transport.get_extra_info("peername"), path)
                transport.write(b"x")
                await protocol.until(lambda: protocol.data)
                transport.close()
                await protocol.until_lost()
                with self.assertRaises(FileNotFoundError):
                    await self.loop.create_unix_connection(Witness, path + ".not")
                await self.end(server, made)
        self.go(main())

    def test_an_accepted_socket_is_adopted(self):
        async def main():
            mine, peer = self.pair("tcp")
            transport, protocol = await self.loop.connect_accepted_socket(
                lambda: Echo(self.loop), mine)
            await self.loop.sock_sendall(peer, b"adopted")
            self.assertEqual(await receive(self.loop, peer, 7), b"adopted")
            peer.close()
            await protocol.until_lost()
        self.go(main())

    def test_nobody_there_is_an_error(self):
        async def main():
            server, (host, port), made = await self.serve()
            await self.end(server, made)
            for options in ({}, {"happy_eyeballs_delay": 0.05}):
                with self.assertRaises(ConnectionRefusedError):
                    await self.loop.create_connection(Witness, host, port, **options)
        self.go(main())

    def test_a_name_that_is_none_is_an_error(self):
        async def main():
            async def none(*args, **options):
                raise socket.gaierror(socket.EAI_NONAME, "no such name")
            self.loop.getaddrinfo = none
            with self.assertRaises(socket.gaierror):
                await self.loop.create_connection(Witness, "no.such.name", 80)
            del self.loop.getaddrinfo
        self.go(main())

    def test_a_connect_cancelled_at_every_turn_leaves_nothing(self):
        async def main():
            server, (host, port), made = await self.serve()
            for wait in range(20):
                connecting = asyncio.ensure_future(
                    self.loop.create_connection(lambda: Witness(self.loop), host, port))
                await turns(wait)
                connecting.cancel()
                try:
                    transport, protocol = await connecting
                except asyncio.CancelledError:
                    continue
                transport.close()
                await protocol.until_lost()
                break
            else:
                self.fail("it never connects")
            await turns(5)
            await self.end(server, [each for each in made if each.transport])
        self.go(main())

    def test_wrong_options_are_refused(self):
        async def main():
            mine, peer = self.pair()
            for options in ({}, {"host": "127.0.0.1", "port": 1, "sock": mine},
                            {"sock": mine, "ssl": True},
                            {"host": "127.0.0.1", "port": 1, "server_hostname": "x"},
                            {"sock": mine, "ssl_handshake_timeout": 1}):
                with self.assertRaises(ValueError):
                    await self.loop.create_connection(Witness, **options)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                with self.assertRaises(ValueError):
                    await self.loop.create_connection(Witness, sock=datagrams)
        self.go(main())
