"""Corner cases: callbacks that end their caller, reused descriptor numbers, loops that
are closed, calls that fail in the middle."""
import asyncio
import socket
import tempfile
import threading

from house import LOOP, LoopCase, Witness, child, turns


class Readers(LoopCase):
    def test_a_reader_that_is_replaced_may_remove_others_as_it_goes(self):
        mine, peer = self.pair()
        got, loop = [], self.loop

        class Leaving:
            def call(self):
                pass

            def __del__(self):
                loop.remove_writer(mine)

        async def main():
            loop.add_writer(mine, lambda: None)
            loop.add_reader(mine, Leaving().call)
            loop.add_reader(mine, lambda: got.append(mine.recv(10)))
            peer.send(b"x")
            while not got:
                await turns()
            self.assertTrue(loop.remove_reader(mine))
        self.go(main())
        self.assertEqual(got, [b"x"])

    def test_a_reader_stays_when_another_waits_for_the_same_number(self):
        async def main():
            loop = self.loop
            mine, peer = self.pair()
            peer.send(b"first")
            self.assertEqual(await loop.sock_recv(mine, 10), b"first")
            waiting = asyncio.ensure_future(loop.sock_recv(mine, 10))
            await turns()
            peer.send(b"more")
            await waiting
            number = mine.fileno()
            mine.close()
            mine, peer = self.pair()
            self.assertEqual(mine.fileno(), number)
            got = []
            loop.add_reader(mine, lambda: got.append(mine.recv(10)))
            sending = asyncio.ensure_future(loop.sock_sendall(mine, bytes(10_000_000)))
            await turns()
            peer.send(b"hi")
            while not got:
                await turns()
            self.assertEqual(got, [b"hi"])
            sending.cancel()
            await asyncio.wait([sending])
            loop.remove_reader(mine)
        self.go(main())

    def test_a_device_that_cannot_be_waited_for_is_refused(self):
        with open("/dev/null", "rb") as null:
            self.assertRaises(PermissionError, self.loop.add_reader, null, int)


class Sockets(LoopCase):
    def test_a_socket_that_blocks_lets_other_threads_answer(self):
        mine, peer = socket.socketpair()
        with mine, peer:
            timer = threading.Timer(0.05, peer.send, (b"hi",))
            timer.start()
            self.assertEqual(self.go(self.loop.sock_recv(mine, 10)), b"hi")
            timer.join()

    def test_a_call_that_is_closed_lets_another_wait(self):
        async def main():
            mine, peer = self.pair()
            call = self.loop.sock_recv(mine, 10)
            call.send(None)
            call.close()
            waiting = asyncio.ensure_future(self.loop.sock_recv(mine, 10))
            await turns()
            peer.send(b"hi")
            self.assertEqual(await waiting, b"hi")
        self.go(main())

    def test_a_wait_on_a_closed_loop_is_refused(self):
        mine, _ = self.pair()
        call = self.loop.sock_recv(mine, 10)
        self.loop.close()
        with self.assertRaisesRegex(RuntimeError, "Event loop is closed"):
            call.send(None)


class Transports(LoopCase):
    def test_a_list_with_something_wrong_in_it_is_not_sent_in_part(self):
        async def main():
            transport, peer = await self.wire(Witness(self.loop))
            with self.assertRaises(TypeError):
                transport.writelines([b"part", "no bytes"])
            transport.write(b"whole")
            self.assertEqual(await self.loop.sock_recv(peer, 100), b"whole")
            transport.abort()
        self.go(main())

    def test_a_file_is_sent_to_its_end_though_reading_goes_on_meanwhile(self):
        async def main():
            protocol = Witness(self.loop)
            transport, peer = await self.wire(protocol)
            with tempfile.TemporaryFile() as file:
                file.write(bytes(3_000_000))
                file.seek(0)
                sending = asyncio.ensure_future(self.loop.sendfile(transport, file))
                while not transport._empty_waiter:
                    await turns()
                await turns()
                transport.resume_reading()
                left = 3_000_000
                while left:
                    left -= len(await self.loop.sock_recv(peer, 1 << 18))
                self.assertEqual(await sending, 3_000_000)
            transport.abort()
            await protocol.until_lost()
        if LOOP == "weft":
            self.go(main())


class Processes(LoopCase):
    def test_a_child_that_somebody_else_has_reaped_has_ended(self):
        status, out, told = child("""
import asyncio, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
async def main():
    for _ in range(10):
        process = await asyncio.create_subprocess_exec("true")
        print(await process.wait())
house.run(main())
""")
        self.assertEqual((status, out.split()), (0, ["255"] * 10), told)
