"""Pipes, terminals and other files that are read and written as streams."""
import asyncio
import fcntl
import os
import pty
import socket
import sys
import termios

from house import LoopCase, Witness, turns


def capacity(pipe):
    return fcntl.fcntl(pipe, 1032)  # F_GETPIPE_SZ


class PipeCase(LoopCase):
    def pipe(self):
        """Both ends as files, closed at the end of the test."""
        out, into = os.pipe()
        return self.file(out, "rb"), self.file(into, "wb")

    def file(self, fd, mode):
        file = open(fd, mode, 0)
        self.addCleanup(file.close)
        return file

    def terminal(self):
        """Both ends of a terminal without echo and without line buffering."""
        master, slave = pty.openpty()
        settings = termios.tcgetattr(slave)
        settings[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        return self.file(master, "wb"), self.file(slave, "rb")

    async def reading(self, file):
        transport, protocol = await self.loop.connect_read_pipe(lambda: Witness(self.loop), file)
        self.addCleanup(self.settle)
        self.addCleanup(transport.close)
        return transport, protocol

    async def writing(self, file):
        transport, protocol = await self.loop.connect_write_pipe(lambda: Witness(self.loop), file)
        self.addCleanup(self.settle)
        self.abort_at_end(transport)
        return transport, protocol

    async def take(self, file, size):
        """Read `size` bytes from a pipe, or up to its end."""
        fd = file.fileno()
        os.set_blocking(fd, False)
        data, done = bytearray(), self.loop.create_future()

        def ready():
            more = os.read(fd, size - len(data))
            data.extend(more)
            if not more or len(data) == size:
                self.loop.remove_reader(fd)
                done.set_result(None)
        self.loop.add_reader(fd, ready)
        await done
        return bytes(data)


class Reading(PipeCase):
    def test_what_is_written_is_received_up_to_its_end(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.reading(out)
            self.assertIsInstance(transport, asyncio.ReadTransport)
            if sys.version_info >= (3, 12):
                self.assertTrue(transport.is_reading())
            self.assertIs(transport.get_extra_info("pipe"), out)
            for i in range(10):
                into.write(b"%d" % i)
                await protocol.until(lambda: len(protocol.data) == i + 1)
            into.close()
            await protocol.until_lost()
            self.assertEqual(protocol.data, b"0123456789")
            self.assertEqual(protocol.seen[-2:], [("eof_received",), ("connection_lost", None)])
        self.go(main())

    def test_reading_is_paused_and_resumed(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.reading(out)
            await turns()
            transport.pause_reading()
            if sys.version_info >= (3, 12):
                self.assertFalse(transport.is_reading())
            into.write(b"held")
            await turns(5)
            self.assertEqual(protocol.data, b"")
            transport.resume_reading()
            await protocol.until(lambda: protocol.data == b"held")
            transport.close()
            await protocol.until_lost()
            into.close()
        self.go(main())

    def test_a_closed_one_hears_no_more(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.reading(out)
            into.write(b"unheard")
            transport.close()
            transport.close()
            self.assertTrue(transport.is_closing())
            await protocol.until_lost()
            self.assertEqual(protocol.data, b"")
            into.close()
        self.go(main())

    def test_a_terminal_is_read(self):
        async def main():
            master, slave = self.terminal()
            transport, protocol = await self.reading(slave)
            master.write(b"typed")
            await protocol.until(lambda: protocol.data == b"typed")
            transport.close()
            await protocol.until_lost()
            master.close()
        self.go(main())

    def test_a_socket_is_read_as_a_pipe(self):
        async def main():
            mine, peer = socket.socketpair()
            transport, protocol = await self.reading(self.file(mine.detach(), "rb"))
            peer.send(b"hello")
            peer.close()
            await protocol.until_lost()
            self.assertEqual(protocol.data, b"hello")
        self.go(main())

    def test_a_file_on_disk_is_refused(self):
        async def main():
            with open(__file__, "rb") as file:
                with self.assertRaises(ValueError):
                    await self.loop.connect_read_pipe(lambda: Witness(self.loop), file)
        self.go(main())

    def test_a_stream_reader_reads_lines_of_a_pipe(self):
        async def main():
            out, into = self.pipe()
            reader = asyncio.StreamReader()
            await self.loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), out)
            into.write(b"one\ntwo\nthree")
            into.close()
            self.assertEqual([line async for line in reader], [b"one\n", b"two\n", b"three"])
            await turns()
        self.go(main())


class Writing(PipeCase):
    def test_what_is_written_arrives(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.writing(into)
            self.assertIsInstance(transport, asyncio.WriteTransport)
            self.assertTrue(transport.can_write_eof())
            transport.write(b"bytes ")
            transport.write(bytearray(b"array "))
            transport.write(memoryview(b"view "))
            transport.writelines([b"li", b"nes"])
            self.assertEqual(await self.take(out, 22), b"bytes array view lines")
            transport.write(b"")
            transport.close()
            await protocol.until_lost()
            self.assertEqual(out.read(10), b"")
        self.go(main())

    def test_a_huge_write_waits_for_its_reader_and_controls_the_flow(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.writing(into)
            whole = os.urandom(1 << 16) * 20
            transport.write(whole)
            transport.write(b"end")
            self.assertIn("pause_writing", protocol.names())
            self.assertEqual(transport.get_write_buffer_size(), len(whole) + 3 - capacity(into))
            self.assertTrue(await self.take(out, len(whole) + 3) == whole + b"end")
            await protocol.until("resume_writing")
            transport.write_eof()
            await protocol.until_lost()
            self.assertEqual(out.read(1), b"")
        self.go(main())

    def test_close_sends_what_waits_and_abort_drops_it(self):
        async def main():
            for how in ("close", "abort"):
                out, into = self.pipe()
                room = capacity(into)
                transport, protocol = await self.writing(into)
                transport.write(bytes(1 << 20))
                getattr(transport, how)()
                got = await self.take(out, 1 << 21)
                self.assertEqual(len(got), 1 << 20 if how == "close" else room)
                await protocol.until_lost()
                out.close()
        self.go(main())

    def test_a_reader_that_goes_away_is_noticed(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.writing(into)
            await turns()
            out.close()
            await protocol.until_lost()
            self.assertTrue(transport.is_closing())
        self.go(main())

    def test_a_reader_that_goes_away_under_a_write_is_an_error(self):
        async def main():
            out, into = self.pipe()
            transport, protocol = await self.writing(into)
            transport.write(bytes(1 << 20))
            out.close()
            await protocol.until_lost()
            self.assertEqual(protocol.seen[-1], ("connection_lost", "BrokenPipeError"))
        self.go(main())

    def test_a_terminal_is_written(self):
        async def main():
            master, slave = self.terminal()
            transport, protocol = await self.writing(master)
            transport.write(b"shown")
            self.assertEqual(await self.take(slave, 5), b"shown")
            transport.close()
            await protocol.until_lost()
            slave.close()
        self.go(main())

    def test_both_ends_of_one_pipe_talk(self):
        async def main():
            out, into = self.pipe()
            (_, heard), (writer, told) = await self.reading(out), await self.writing(into)
            for size in (1, 1000, 100_000):
                writer.write(b"x" * size)
                want = len(heard.data) + size
                await heard.until(lambda: len(heard.data) >= want)
            writer.close()
            await heard.until_lost()
            await told.until_lost()
            self.assertEqual(len(heard.data), 101_001)
        self.go(main())
