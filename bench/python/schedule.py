"""Rows of callbacks, tasks and timers, the same for every loop: CPU time of the process in
nanoseconds, per operation.

    schedule.py LOOP ROW      LOOP: asyncio, uvloop, weft

    py.call_soon.batch    a callback that is scheduled with a thousand others
    py.call_soon.chain    a callback that the previous one schedules
    py.sleep0.1           asyncio.sleep(0) in the only task
    py.sleep0.100         the same, in a hundred concurrent tasks
    py.future_wake        scheduling a future's result and waking the task that waits for it
    py.timer_cancel       starting and canceling a timer, while a thousand others are set
    py.threadsafe         a callback that another thread schedules

A row is a function that prepares the measurement and returns a function run(count), which does
`count` operations.
"""
import asyncio
import sys
import threading
import time

from loops import new_loop

BATCH = 1000
TASKS = 100
OTHERS = 1000
CANCELS = 100  # in one iteration


def nothing():
    pass


def never():
    sys.exit("a timer that was cancelled has fired")


def call_soon_batch(loop):
    call_soon = loop.call_soon

    def run(count):
        left = count // BATCH

        def turn():
            nonlocal left
            if left == 0:
                loop.stop()
                return
            left -= 1
            for _ in range(BATCH - 1):
                call_soon(nothing)
            call_soon(turn)

        call_soon(turn)
        loop.run_forever()
    return run


def call_soon_chain(loop):
    call_soon = loop.call_soon

    def run(count):
        left = count

        def link():
            nonlocal left
            left -= 1
            if left:
                call_soon(link)
            else:
                loop.stop()

        call_soon(link)
        loop.run_forever()
    return run


async def sleep_often(count):
    for _ in range(count):
        await asyncio.sleep(0)


def sleep0_one(loop):
    return lambda count: loop.run_until_complete(sleep_often(count))


def sleep0_many(loop):
    async def sleep_all(count):
        await asyncio.gather(*(sleep_often(count // TASKS) for _ in range(TASKS)))
    return lambda count: loop.run_until_complete(sleep_all(count))


def future_wake(loop):
    async def wait_often(count):
        for _ in range(count):
            future = loop.create_future()
            loop.call_soon(future.set_result, None)
            await future
    return lambda count: loop.run_until_complete(wait_often(count))


def timer_cancel(loop):
    call_later = loop.call_later
    for i in range(OTHERS):
        call_later(600 + i, never)

    def run(count):
        left = count // CANCELS

        def turn():
            nonlocal left
            if left == 0:
                loop.stop()
                return
            left -= 1
            for i in range(CANCELS):
                call_later(60 + i, never).cancel()
            # Work that a loop defers to its next iteration is part of the cost.
            loop.call_soon(turn)

        loop.call_soon(turn)
        loop.run_forever()
    return run


def threadsafe(loop):
    call_soon_threadsafe = loop.call_soon_threadsafe

    def post(count):
        for _ in range(count - 1):
            call_soon_threadsafe(nothing)
        call_soon_threadsafe(loop.stop)

    def run(count):
        thread = threading.Thread(target=post, args=(count,))
        thread.start()
        loop.run_forever()
        thread.join()
    return run


ROWS = {
    "py.call_soon.batch": (call_soon_batch, 1_000_000),
    "py.call_soon.chain": (call_soon_chain, 400_000),
    "py.sleep0.1": (sleep0_one, 300_000),
    "py.sleep0.100": (sleep0_many, 500_000),
    "py.future_wake": (future_wake, 200_000),
    "py.timer_cancel": (timer_cancel, 300_000),
    "py.threadsafe": (threadsafe, 300_000),
}


def main():
    loop = new_loop(sys.argv[1])
    prepare, count = ROWS[sys.argv[2]]
    run = prepare(loop)
    run(count // 10)
    begin = time.process_time_ns()
    run(count)
    print((time.process_time_ns() - begin) / count)
    loop.close()


if __name__ == "__main__":
    main()
