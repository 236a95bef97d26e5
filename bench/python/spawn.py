"""The row py.subprocess: start /bin/true and wait for its end, one at a time.  Prints the median
wall time in microseconds.

    spawn.py LOOP      LOOP: asyncio, uvloop, weft
"""
import asyncio
import functools
import statistics
import sys
import time

from loops import new_loop

WARM, SPAWNS = 20, 200


async def spawn():
    """The wall time of one process."""
    begin = time.perf_counter()
    process = await asyncio.create_subprocess_exec("/bin/true")
    if await process.wait() != 0:
        sys.exit(f"/bin/true: {process.returncode}")
    return time.perf_counter() - begin


async def measure():
    taken = [await spawn() for _ in range(WARM + SPAWNS)]
    print(statistics.median(taken[WARM:]) * 1e6)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=functools.partial(new_loop, sys.argv[1])) as runner:
        runner.run(measure())
