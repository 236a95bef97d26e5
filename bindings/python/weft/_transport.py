"""What happens once per connection; the rest is in Stream, in C."""
import socket
import warnings

from asyncio import base_events, constants, futures, trsock
from asyncio.log import logger
from asyncio.transports import BaseTransport

from . import _core
from ._compat import SERVER_TAKES_TRANSPORT

_HIGH_WATER = 64 * 1024


def _address(query):
    try:
        return query()
    except OSError:
        return None


def set_limits(transport, high, low, default=_HIGH_WATER):
    """Sets the watermarks of a write buffer, with asyncio's defaults."""
    if high is None:
        high = default if low is None else 4 * low
    if low is None:
        low = high // 4
    if not high >= low >= 0:
        raise ValueError(f'high ({high!r}) must be >= low ({low!r}) must be >= 0')
    transport._set_marks(high, low)


class SocketTransport(_core.Stream):
    """The transport of a connected socket: TCP, Unix, or a socket pair."""

    __slots__ = ()

    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.TRY_NATIVE

    def __init__(self, loop, sock, protocol, waiter=None, extra=None, server=None,
                 context=None):
        BaseTransport.__init__(self, extra)  # the mixin's __init__ would set C members
        self._extra["socket"] = trsock.TransportSocket(sock)
        self._extra["sockname"] = _address(sock.getsockname)
        if "peername" not in self._extra:
            self._extra["peername"] = _address(sock.getpeername)
        self._start(loop, sock, protocol, server, context)
        self._set_marks(_HIGH_WATER, _HIGH_WATER // 4)
        if server is not None:
            server._attach(self) if SERVER_TAKES_TRANSPORT else server._attach()
        loop._transports[self._sock_fd] = self
        base_events._set_nodelay(sock)
        loop.call_soon(protocol.connection_made, self, context=context)
        # Nothing is read, and no waiter is woken, before connection_made().
        loop.call_soon(self._start_reading, context=context)
        if waiter is not None:
            loop.call_soon(futures._set_result_unless_cancelled, waiter, None, context=context)

    def __repr__(self):
        info = [self.__class__.__name__]
        if self._sock is None:
            info.append("closed")
        elif self._closing:
            info.append("closing")
        info.append(f"fd={self._sock_fd}")
        if self._loop is not None and not self._loop.is_closed():
            info.append("read=polling" if self.is_reading() else "read=idle")
            size = self.get_write_buffer_size()
            info.append(f"write=<{'polling' if size else 'idle'}, bufsize={size}>")
        return f"<{' '.join(info)}>"

    def __del__(self, _warn=warnings.warn):
        if self._sock is not None:
            _warn(f"unclosed transport {self!r}", ResourceWarning, source=self)
            self._sock.close()

    def can_write_eof(self):
        return True

    def set_write_buffer_limits(self, high=None, low=None):
        set_limits(self, high, low)

    def get_write_buffer_limits(self):
        return (self._low_water, self._high_water)

    def _fatal_error(self, exc, message="Fatal error on transport"):
        if isinstance(exc, OSError):
            if self._loop.get_debug():
                logger.debug("%r: %s", self, message, exc_info=True)
        else:
            self._report(exc, message)
        self._force_close(exc)

    def _report(self, exc, message):
        self._loop.call_exception_handler({
            "message": message,
            "exception": exc,
            "transport": self,
            "protocol": self._protocol,
        })

    def _report_flow_control(self, exc, method):
        self._report(exc, f"protocol.{method}() failed")

    def _warn_lost(self):
        logger.warning("socket.send() raised exception.")

    def _call_connection_lost(self, exc):
        sock, server, waiter = self._sock, self._server, self._empty_waiter
        try:
            if self._protocol_connected:
                self._protocol.connection_lost(exc)
        finally:
            self._release()
            sock.close()
            if server is not None:
                server._detach(self) if SERVER_TAKES_TRANSPORT else server._detach()
            if waiter is not None and not waiter.done():
                waiter.set_exception(ConnectionError("Connection is closed by peer"))

    # Required by asyncio's sendfile(): no writes until the file is sent.

    def _make_empty_waiter(self):
        if self._empty_waiter is not None:
            raise RuntimeError("Empty waiter is already set")
        self._empty_waiter = self._loop.create_future()
        if not self.get_write_buffer_size():
            self._empty_waiter.set_result(None)
        return self._empty_waiter

    def _reset_empty_waiter(self):
        del self._empty_waiter  # reads as None from now on
