"""Where versions of asyncio differ in what they ask of a loop: each is asked here, once."""
import inspect
import sys

from asyncio import base_events

# From 3.13 on a server is told which transport comes and goes.
TELLS_SERVER = len(inspect.signature(base_events.Server._attach).parameters) > 1

# From 3.14 on the end of a child is told as soon as it is reaped: until then a signal that the
# program sends cannot reach another process that has its number.
TELLS_END_AT_ONCE = sys.version_info >= (3, 14)
