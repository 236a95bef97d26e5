import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__version__: str

_T = TypeVar("_T")

class Loop(asyncio.SelectorEventLoop):
    def __init__(self, *, backend: str | None = ..., watchdog: float | None = ...) -> None: ...

class SocketTransport(asyncio.Transport): ...

class EventLoopPolicy(asyncio.DefaultEventLoopPolicy): ...

def new_event_loop(*, backend: str | None = ..., watchdog: float | None = ...) -> Loop: ...
def run(
    main: Coroutine[Any, Any, _T],
    *,
    debug: bool | None = ...,
    backend: str | None = ...,
    watchdog: float | None = ...,
) -> _T: ...
def install() -> None: ...
def metrics(loop: asyncio.AbstractEventLoop | None = ...) -> dict[str, Any]: ...
def serve_admin(
    address: str = ...,
    *,
    loop: asyncio.AbstractEventLoop | None = ...,
    token: str | None = ...,
    title: str | None = ...,
) -> str: ...
