"""Differences between asyncio versions in what they require of a loop, each detected once."""
import inspect
import sys

from asyncio import base_events

# From 3.13 on, a server is passed the transport that is attached or detached.
SERVER_TAKES_TRANSPORT = len(inspect.signature(base_events.Server._attach).parameters) > 1

# From 3.14 on, the exit of a child is reported as soon as it is reaped: until then a signal
# that the program sends cannot reach another process that has reused the PID.
REPORTS_END_AT_ONCE = sys.version_info >= (3, 14)
