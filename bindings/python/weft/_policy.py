"""An event loop policy that creates weft loops.  Programs on Python 3.12 and later should
use loop_factory=weft.new_event_loop instead."""
import asyncio
import warnings

from ._loop import Loop

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _Base = asyncio.DefaultEventLoopPolicy


class EventLoopPolicy(_Base):
    """Creates weft loops."""

    def _loop_factory(self):
        return Loop()


def set_policy(policy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(policy)
