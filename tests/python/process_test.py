"""Child processes: no threads for them, none left behind, all of their output."""
import asyncio
import os
import signal
import subprocess
import sys
import threading

from house import LOOP, LoopCase, Notes, child, children, new_loop, turns

PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT


class Streams(LoopCase):
    async def run_child(self, *words, data=None, **options):
        process = await asyncio.create_subprocess_exec(*words, **options)
        out, told = await process.communicate(data)
        return process.returncode, out, told

    def test_what_a_process_says_and_ends_with_is_known(self):
        async def main():
            got = await self.run_child("sh", "-c", "echo out; echo told >&2; exit 3",
                                       stdout=PIPE, stderr=PIPE)
            self.assertEqual(got, (3, b"out\n", b"told\n"))
            got = await self.run_child("sh", "-c", "echo out; echo told >&2",
                                       stdout=PIPE, stderr=STDOUT)
            self.assertEqual(got, (0, b"out\ntold\n", None))
            self.assertEqual(await self.run_child("true", stdin=DEVNULL), (0, None, None))
        self.go(main())

    def test_a_shell_runs_a_line(self):
        async def main():
            process = await asyncio.create_subprocess_shell("exit $((3 + 4))")
            self.assertEqual(await process.wait(), 7)
            self.assertEqual(await process.wait(), 7)
            self.assertEqual(process.returncode, 7)
        self.go(main())

    def test_what_is_sent_comes_back(self):
        async def main():
            data = os.urandom(1 << 16) * 32
            status, out, _ = await self.run_child("cat", data=data, stdin=PIPE, stdout=PIPE)
            self.assertTrue((status, out) == (0, data))
            self.assertEqual((await self.run_child("cat", data=b"", stdin=PIPE, stdout=PIPE))[1],
                             b"")
        self.go(main())

    def test_a_process_that_does_not_read_what_it_is_sent_ends_all_the_same(self):
        async def main():
            status, out, _ = await self.run_child("true", data=bytes(1 << 20), stdin=PIPE)
            self.assertEqual(status, 0)
        self.go(main())

    def test_a_conversation_line_by_line(self):
        async def main():
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
            for i in range(20):
                process.stdin.write(b"%d\n" % i)
                await process.stdin.drain()
                self.assertEqual(await process.stdout.readline(), b"%d\n" % i)
            process.stdin.close()
            self.assertEqual(await process.wait(), 0)
            self.assertEqual(await process.stdout.read(), b"")
        self.go(main())

    def test_a_process_is_killed_ended_and_signalled(self):
        async def main():
            for how, want in ((lambda p: p.kill(), -9), (lambda p: p.terminate(), -15),
                              (lambda p: p.send_signal(signal.SIGUSR1), -signal.SIGUSR1)):
                process = await asyncio.create_subprocess_exec("cat", stdin=PIPE)
                self.assertIsNone(process.returncode)
                how(process)
                self.assertEqual(await process.wait(), want)
                with self.assertRaises(ProcessLookupError):
                    process.send_signal(signal.SIGKILL)
        self.go(main())

    def test_many_at_once_all_end(self):
        async def main():
            got = await asyncio.gather(*(self.run_child("sh", "-c", f"echo {i}; exit {i}",
                                                        stdout=PIPE) for i in range(25)))
            self.assertEqual(got, [(i, b"%d\n" % i, None) for i in range(25)])
        self.go(main())

    def test_two_wait_for_one_process(self):
        async def main():
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE)
            waiting = [asyncio.ensure_future(process.wait()) for _ in range(3)]
            await turns()
            waiting[0].cancel()
            process.stdin.close()
            self.assertEqual(await asyncio.gather(*waiting[1:]), [0, 0])
        self.go(main())

    def test_a_wait_that_is_cancelled_leaves_the_process_alone(self):
        async def main():
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
            for wait in (lambda: process.wait(), lambda: process.communicate()):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(wait(), 0.005)
            self.assertIsNone(process.returncode)
            process.kill()
            self.assertEqual(await process.wait(), -9)
        self.go(main())

    def test_a_program_that_is_not_there_is_an_error(self):
        async def main():
            with self.assertRaises(FileNotFoundError):
                await asyncio.create_subprocess_exec("/no/such/program", stdin=PIPE, stdout=PIPE)
            with self.assertRaises(PermissionError):
                await asyncio.create_subprocess_exec("/etc/passwd")
            with self.assertRaises(OSError):
                await asyncio.create_subprocess_exec("true", cwd="/no/such/folder")
        self.go(main())

    def test_the_options_of_popen_are_its_own(self):
        async def main():
            got = await self.run_child("sh", "-c", f"pwd; echo $COLOUR; cat <&{out}", stdout=PIPE,
                                       cwd="/", env={**os.environ, "COLOUR": "red"},
                                       pass_fds=(out,), start_new_session=True)
            self.assertEqual(got, (0, b"/\nred\ninherited", None))
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        os.write(into, b"inherited")
        os.close(into)
        self.go(main())

    def test_options_that_make_no_sense_are_refused(self):
        async def main():
            for options in ({"text": True}, {"universal_newlines": True}, {"shell": True},
                            {"bufsize": 100}, {"encoding": "utf-8"}):
                with self.assertRaises(ValueError):
                    await asyncio.create_subprocess_exec("true", **options)
            with self.assertRaises(TypeError):
                await asyncio.create_subprocess_exec(5)
        self.go(main())

    def test_a_start_cancelled_at_every_turn_leaves_no_process(self):
        """A process that was already started is killed and reaped."""
        async def main():
            for wait in range(12):
                starting = asyncio.ensure_future(asyncio.create_subprocess_exec(
                    "cat", stdin=PIPE, stdout=PIPE))
                await turns(wait)
                starting.cancel()
                try:
                    process = await starting
                except asyncio.CancelledError:
                    continue
                process.kill()
                await process.communicate()
                break
            while children():
                await asyncio.sleep(0.001)
        self.go(main())


class ProcessWitness(Notes, asyncio.SubprocessProtocol):
    def __init__(self, loop):
        super().__init__(loop)
        self.said = {1: bytearray(), 2: bytearray()}

    def pipe_data_received(self, fd, data):
        self.said[fd] += data
        self.told("pipe_data_received", fd)

    def pipe_connection_lost(self, fd, exc):
        self.told("pipe_connection_lost", fd)

    def process_exited(self):
        self.told("process_exited")


class Protocols(LoopCase):
    async def start(self, *words, **options):
        options = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, **options}
        return await self.loop.subprocess_exec(
            lambda: ProcessWitness(self.loop), *words, **options)

    def test_a_protocol_is_told_of_all_that_happens(self):
        async def main():
            transport, protocol = await self.start("sh", "-c", "cat; echo told >&2; exit 5")
            self.assertIsInstance(transport, asyncio.SubprocessTransport)
            self.assertGreater(transport.get_pid(), 0)
            self.assertIsNone(transport.get_returncode())
            pipe = transport.get_pipe_transport(0)
            self.assertIsInstance(pipe, asyncio.WriteTransport)
            self.assertIsInstance(transport.get_pipe_transport(1), asyncio.ReadTransport)
            self.assertIsNone(transport.get_pipe_transport(7))
            pipe.write(b"hello")
            pipe.close()
            await protocol.until_lost()
            self.assertEqual(protocol.said, {1: b"hello", 2: b"told\n"})
            self.assertEqual(transport.get_returncode(), 5)
            names = protocol.names()
            self.assertEqual((names[0], names[-1]), ("connection_made", "connection_lost"))
            self.assertEqual(names.count("process_exited"), 1)
            for fd in (0, 1, 2):
                self.assertIn(("pipe_connection_lost", fd), protocol.seen)
            transport.close()
            self.assertTrue(transport.is_closing())
        self.go(main())

    def test_close_kills_a_process_that_runs(self):
        async def main():
            transport, protocol = await self.start("cat")
            transport.close()
            transport.close()
            await protocol.until_lost()
            self.assertEqual(transport.get_returncode(), -9)
        self.go(main())

    def test_its_signals_arrive(self):
        async def main():
            for how, want in (("kill", -9), ("terminate", -15)):
                transport, protocol = await self.start("cat")
                getattr(transport, how)()
                await protocol.until_lost()
                self.assertEqual(transport.get_returncode(), want)
                with self.assertRaises(ProcessLookupError):
                    transport.kill()
                transport.close()
        self.go(main())

    def test_an_exit_is_told_while_its_pipes_are_still_held_by_another(self):
        async def main():
            transport, protocol = await self.start("sh", "-c", "exec 3<&0; cat <&3 & exit 4")
            await protocol.until("process_exited")
            self.assertEqual(transport.get_returncode(), 4)
            self.assertNotIn("connection_lost", protocol.names())
            transport.get_pipe_transport(0).close()
            await protocol.until_lost()
            transport.close()
        self.go(main())


class Waiting(LoopCase):
    def test_no_thread_is_started_for_a_process(self):
        if LOOP == "asyncio" and sys.version_info < (3, 12):
            self.skipTest("stock starts one for each")

        async def main():
            processes = [await asyncio.create_subprocess_exec("cat", stdin=PIPE)
                         for _ in range(5)]
            self.assertEqual(threading.active_count(), before)
            self.assertLessEqual(set(os.listdir("/proc/self/task")), tasks)
            for process in processes:
                process.stdin.close()
                await process.wait()
            self.assertEqual(threading.active_count(), before)
        before, tasks = threading.active_count(), set(os.listdir("/proc/self/task"))
        self.go(main())

    def test_a_process_that_has_ended_is_not_left_as_a_zombie(self):
        async def main():
            for _ in range(3):
                process = await asyncio.create_subprocess_exec("true")
                await process.wait()
                self.assertNotIn(b"%d" % process.pid, children())
        self.go(main())

    def test_children_that_are_not_the_loops_are_left_to_others(self):
        async def main():
            other = subprocess.Popen(["cat"], stdin=PIPE)
            mine = await asyncio.create_subprocess_exec("cat", stdin=PIPE)
            other.stdin.close()
            mine.stdin.close()
            await mine.wait()
            self.assertEqual(await asyncio.to_thread(other.wait), 0)
        self.go(main())

    def test_processes_run_on_a_loop_that_is_not_in_the_main_thread(self):
        seen = []

        async def main():
            process = await asyncio.create_subprocess_exec("sh", "-c", "echo hi", stdout=PIPE)
            seen.append((await process.communicate(), process.returncode))

        def thread():
            loop = new_loop()
            loop.run_until_complete(main())
            loop.run_until_complete(turns())
            loop.close()
        started = threading.Thread(target=thread)
        started.start()
        started.join()
        self.assertEqual(seen, [((b"hi\n", None), 0)])

    def test_a_program_may_end_while_its_processes_run(self):
        status, out, told = child("""
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1)
    print(process.pid)
house.run(main())
print("the end")
""", options=("-W", "ignore"))
        self.assertEqual((status, out.splitlines()[-1]), (0, "the end"), told)

    def test_signals_of_children_that_come_with_others_lose_nobody(self):
        """The kernel reports several exits with one signal."""
        async def main():
            for _ in range(3):
                processes = [await asyncio.create_subprocess_exec("cat", stdin=PIPE)
                             for _ in range(10)]
                for process in processes:
                    process.kill()
                self.assertEqual([await process.wait() for process in processes], [-9] * 10)
        self.go(main())
