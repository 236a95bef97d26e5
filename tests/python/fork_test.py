"""fork: the child may exit, execute another program, or run a loop of its own.  It
cannot use the loop of its parent, and does not affect it."""
from house import LoopCase, child, not_in_debug, weft_only

# A loop in use: it watches a descriptor, waits for a timer, and has a connection.  `inside`
# forks in a callback; the child runs `what`, and must leave with os._exit.
FORK = """
import os, signal, socket, threading, time
def in_child(loop, held):
    signal.alarm(30)
    status = 1
    try:
        {what}
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(status)

def fork(loop, held):
    pid = os.fork()
    if pid == 0:
        in_child(loop, held)
    return pid

def end(pid):
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == {status}, status

async def echo(loop, held):
    reader, writer = held
    for i in range(10):
        writer.write(b"%d\\n" % i)
        assert int(await asyncio.wait_for(reader.readline(), 30)) == i

async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line)

async def main():
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    held = await asyncio.open_connection(*server.sockets[0].getsockname())
    timer = loop.call_later(1000, print)
    await echo(loop, held)
    if {inside}:
        end(fork(loop, held))
    else:
        # In a thread of its own, the child has no loop that runs.
        await asyncio.to_thread(lambda: end(fork(loop, held)))
    await echo(loop, held)
    await asyncio.sleep(0.001)
    heard = loop.create_future()
    threading.Thread(target=loop.call_soon_threadsafe, args=(heard.set_result, 1)).start()
    await heard
    timer.cancel()
    held[1].close()
    server.close()
    await house.turns()
house.run(main())
print("the parent is well")
"""
OWN = """
        async def own():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            mine = await asyncio.open_connection(*server.sockets[0].getsockname())
            await echo(None, mine)
            await asyncio.to_thread(int)
            await asyncio.sleep(0.001)
            mine[1].close()
            server.close()
        house.run(own())
"""


class Fork(LoopCase):
    outside = True

    def fork(self, what, status=0, inside=True):
        got, out, told = child(FORK.format(what=what.strip(), status=status, inside=inside),
                               options=("-W", "ignore::DeprecationWarning"))
        self.assertEqual((got, out), (0, "the parent is well\n"), told)

    def test_a_child_may_end(self):
        self.fork("os._exit(7)", 7)

    def test_a_child_may_be_killed(self):
        self.fork("os.kill(os.getpid(), signal.SIGKILL)", -9)

    def test_a_child_may_become_another_program(self):
        self.fork("os.execv('/bin/sh', ['sh', '-c', 'exit 5'])", 5)

    def test_a_child_may_run_a_loop_of_its_own(self):
        self.fork(OWN)

    def test_a_child_forked_by_another_thread_may_run_a_loop_of_its_own(self):
        self.fork(OWN, inside=False)

    def test_a_child_may_run_one_loop_of_its_own_after_another(self):
        self.fork(OWN + "        house.run(own())\n        house.run(own())\n")

    def test_a_child_may_let_the_loop_of_its_parent_go(self):
        self.fork("import gc; held = loop = None; gc.collect()")

    def test_a_child_has_no_running_loop(self):
        self.fork("assert asyncio._get_running_loop() is None")

    def test_a_child_may_fork_again(self):
        self.fork("""
        pid = os.fork()
        if pid == 0:
            house.run(house.turns())
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        """)

    @weft_only
    def test_a_child_that_runs_the_loop_of_its_parent_is_refused(self):
        self.fork("""
        for use in (loop.run_forever, lambda: loop.run_until_complete(loop.create_future())):
            try:
                use()
            except RuntimeError:
                pass
            else:
                os._exit(9)
        """)

    @weft_only
    @not_in_debug
    def test_a_child_that_uses_the_loop_of_its_parent_does_not_disturb_it(self):
        """Each call is refused or has no effect: nothing hangs, and the parent is not
        affected."""
        self.fork("""
        for use in (lambda: loop.call_soon(os._exit, 9), lambda: loop.call_later(0, os._exit, 9),
                    lambda: loop.call_soon_threadsafe(os._exit, 9), loop.stop,
                    lambda: held[1].write(b"not mine"), lambda: loop.add_reader(0, print),
                    lambda: loop.remove_reader(0), lambda: held[1].close(),
                    lambda: held[1].transport.abort(), loop.close):
            try:
                use()
            except (RuntimeError, OSError, ValueError):
                pass
        """.replace('b"not mine"', 'b""'))

    @weft_only
    @not_in_debug
    def test_a_child_may_close_the_loop_of_its_parent_that_does_not_run(self):
        got, out, told = child("""
import os
loop = house.new_loop()
loop.run_until_complete(asyncio.sleep(0.001))
pid = os.fork()
if pid == 0:
    try:
        loop.run_until_complete(loop.create_future())
    except RuntimeError:
        loop.close()
        house.run(house.turns())
        os._exit(4)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
loop.run_until_complete(asyncio.sleep(0.001))
loop.run_until_complete(loop.run_in_executor(None, int))
loop.close()
print("well")
""", options=("-W", "ignore"))
        self.assertEqual((got, out), (0, "well\n"), told)

    def test_processes_that_multiprocessing_forks_run_loops_of_their_own(self):
        got, out, told = child("""
import multiprocessing
def work(queue):
    async def main():
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(pow, 3, 3)
    queue.put(house.run(main()))
async def main():
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    workers = [fork.Process(target=work, args=(queue,)) for _ in range(3)]
    for each in workers:
        each.start()
    got = [await asyncio.to_thread(queue.get) for _ in workers]
    for each in workers:
        each.join()
        assert each.exitcode == 0, each.exitcode
    print(sum(got))
house.run(main())
""", options=("-W", "ignore::DeprecationWarning"))
        self.assertEqual((got, out), (0, "81\n"), told)
