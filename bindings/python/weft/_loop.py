"""The loop: asyncio's own SelectorEventLoop, in which LoopCore, in C, handles each callback
and each packet.

Everything else is asyncio's: making connections, accepting in servers, resolving names,
shutting down executors and generators.  So each version of Python keeps its own interface
and semantics.
"""
import asyncio
import collections.abc
import os
import selectors
import signal
import socket
import sys
import threading

from asyncio import base_events, events, format_helpers, streams, unix_events
from asyncio.log import logger

try:
    import ssl
except ImportError:  # Python may be built without it
    ssl = None

from . import _core
from ._compat import REPORTS_END_AT_ONCE
from ._transport import SocketTransport


class _Selector:
    """Replaces the selector of asyncio's loop: reports what LoopCore watches."""

    def __init__(self, loop):
        self._is_watched = loop._is_watched

    def get_key(self, fd):
        mask = (selectors.EVENT_READ * self._is_watched(fd, False)
                | selectors.EVENT_WRITE * self._is_watched(fd, True))
        if not mask:
            raise KeyError(f"{fd!r} is not registered")
        return selectors.SelectorKey(fd, fd, mask, None)

    def close(self):
        self._is_watched = None


def _check_socket(loop, sock):
    base_events._check_ssl_socket(sock)
    if loop._debug and sock.gettimeout() != 0:
        raise ValueError("the socket must be non-blocking")


collections.abc.Coroutine.register(_core.SockCall)  # required by asyncio.create_task()


def _move_read(protocol, tls):
    """Data that a client sent before the server started TLS is the start of its handshake."""
    reader = protocol._stream_reader
    if reader is not None and reader._buffer:
        tls._incoming.write(reader._buffer)
        reader._buffer.clear()


class Loop(_core.LoopCore, asyncio.SelectorEventLoop):
    """An asyncio event loop on weft."""

    def __init__(self, *, backend=None, watchdog=None):
        if watchdog is not None and not 0 < watchdog < 1e6:
            raise ValueError(f"watchdog must be a number of seconds, not {watchdog!r}")
        if backend is None:
            backend = os.environ.get("WEFT_BACKEND") or "epoll"
        self._open(backend, watchdog or 0.0)
        try:
            super().__init__(_Selector(self))
        except BaseException:
            self._closed = True
            self._dispose()
            raise

    # --- running -------------------------------------------------------------

    def run_forever(self):
        self._check_closed()
        self._check_running()
        self._set_coroutine_origin_tracking(self._debug)
        hooks = sys.get_asyncgen_hooks()
        is_woken = self._take_wakeup_fd()
        try:
            self._thread_id = threading.get_ident()
            sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook,
                                   finalizer=self._asyncgen_finalizer_hook)
            events._set_running_loop(self)
            self._run()
        finally:
            self._stopping = False
            self._thread_id = None
            try:
                try:
                    events._set_running_loop(None)
                except MemoryError:
                    events._set_running_loop(None)  # it allocates an object; retry
            finally:
                self._set_coroutine_origin_tracking(False)
                sys.set_asyncgen_hooks(*hooks)
                if is_woken:
                    self._give_wakeup_fd()

    def _take_wakeup_fd(self):
        """Make a signal that arrives just before a wait end the wait, unless another wakeup fd
        is set.  Returns true if this must be undone."""
        if threading.current_thread() is not threading.main_thread():
            return False
        try:
            old = signal.set_wakeup_fd(self._csock.fileno(), warn_on_full_buffer=False)
            if old not in (-1, self._csock.fileno()):
                signal.set_wakeup_fd(old)
            return old == -1
        except ValueError:  # a subinterpreter has no signals
            return False

    def _give_wakeup_fd(self):
        if not self._signal_handlers:  # signal handlers keep it, as in asyncio
            signal.set_wakeup_fd(-1)

    def remove_signal_handler(self, sig):
        removed = super().remove_signal_handler(sig)
        if removed and self.is_running():
            self._take_wakeup_fd()
        return removed

    def _run_in_debug(self, handle):
        if getattr(handle, "_cancelled", False):
            return
        self._current_handle = handle
        try:
            started = self.time()
            handle._run()
            took = self.time() - started
            if took >= self.slow_callback_duration:
                name = (base_events._format_handle(handle)
                        if isinstance(handle, events.Handle) else repr(handle))
                logger.warning("Executing %s took %.3f seconds", name, took)
        finally:
            self._current_handle = None
            handle = None  # a traceback of a task's exception may keep this frame alive

    def _report_failed_callback(self, handle, exc):
        context = {"exception": exc}
        if isinstance(handle, events.Handle):
            what = format_helpers._format_callback_source(handle._callback, handle._args)
            context["handle"] = handle
            if handle._source_traceback:
                context["source_traceback"] = handle._source_traceback
        else:
            what = repr(handle)
            context["transport"] = handle
        self.call_exception_handler({"message": f"Exception in callback {what}", **context})

    def close(self):
        try:
            super().close()
        finally:
            if self.is_closed():
                self._dispose()

    # --- connections ---------------------------------------------------------

    def _make_socket_transport(self, sock, protocol, waiter=None, *, extra=None, server=None,
                               context=None):
        return SocketTransport(self, sock, protocol, waiter, extra, server, context)

    def _make_ssl_transport(self, rawsock, protocol, sslcontext, waiter=None, *,
                            server_side=False, server_hostname=None, extra=None, server=None,
                            ssl_handshake_timeout=None, ssl_shutdown_timeout=None,
                            context=None):
        tls = _core.TLSProtocol(self, protocol, sslcontext, waiter, server_side,
                                server_hostname, ssl_handshake_timeout=ssl_handshake_timeout,
                                ssl_shutdown_timeout=ssl_shutdown_timeout)
        SocketTransport(self, rawsock, tls, extra=extra, server=server, context=context)
        return tls._app_transport

    async def start_tls(self, transport, protocol, sslcontext, *, server_side=False,
                        server_hostname=None, ssl_handshake_timeout=None,
                        ssl_shutdown_timeout=None):
        if ssl is None:
            raise RuntimeError("Python ssl module is not available")
        if not isinstance(sslcontext, ssl.SSLContext):
            raise TypeError("sslcontext is expected to be an instance of ssl.SSLContext, "
                            f"got {sslcontext!r}")
        if not getattr(transport, "_start_tls_compatible", False):
            raise TypeError(f"transport {transport!r} is not supported by start_tls()")
        waiter = self.create_future()
        tls = _core.TLSProtocol(self, protocol, sslcontext, waiter, server_side,
                                server_hostname, call_connection_made=False,
                                ssl_handshake_timeout=ssl_handshake_timeout,
                                ssl_shutdown_timeout=ssl_shutdown_timeout)
        # Nothing may be read before the new protocol has its transport.
        transport.pause_reading()
        if server_side and isinstance(protocol, streams.StreamReaderProtocol):
            _move_read(protocol, tls)
        transport.set_protocol(tls)
        made = self.call_soon(tls.connection_made, transport)
        resumed = self.call_soon(transport.resume_reading)
        try:
            await waiter
        except BaseException:
            transport.close()
            made.cancel()
            resumed.cancel()
            waiter = None  # its exception's traceback refers to this frame
            raise
        return tls._app_transport

    # --- sockets -------------------------------------------------------------
    #
    # LoopCore implements sock_recv() and sock_sendall() for plain sockets.  For other sockets,
    # and in debug mode, it calls the methods here.  Less frequent calls are only here.
    #
    # Each method tries the system call first, and waits only if it must.  It waits outside of
    # the except clause, so that an exception from the wait is not chained to BlockingIOError.

    async def _retry(self, sock, wait, method, *args):
        _check_socket(self, sock)
        while True:
            try:
                return getattr(sock, method)(*args)
            except (BlockingIOError, InterruptedError):
                pass
            await wait(sock)

    async def _sock_recv(self, sock, n):
        return await self._retry(sock, self._wait_readable, "recv", n)

    async def sock_recv_into(self, sock, buf):
        return await self._retry(sock, self._wait_readable, "recv_into", buf)

    async def sock_recvfrom(self, sock, bufsize):
        return await self._retry(sock, self._wait_readable, "recvfrom", bufsize)

    async def sock_recvfrom_into(self, sock, buf, nbytes=0):
        return await self._retry(sock, self._wait_readable, "recvfrom_into", buf,
                                 nbytes or len(buf))

    async def sock_sendto(self, sock, data, address):
        return await self._retry(sock, self._wait_writable, "sendto", data, address)

    async def sock_accept(self, sock):
        conn, address = await self._retry(sock, self._wait_readable, "accept")
        conn.setblocking(False)
        return conn, address

    async def _sock_sendall(self, sock, data):
        _check_socket(self, sock)
        try:
            sent = sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent == len(data):
            return
        with memoryview(data) as view, view.cast("B") as rest:
            while sent < len(rest):
                await self._wait_writable(sock)
                try:
                    sent += sock.send(rest[sent:])
                except (BlockingIOError, InterruptedError):
                    pass

    async def sock_connect(self, sock, address):
        _check_socket(self, sock)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            resolved = await self._ensure_resolved(
                address, family=sock.family, type=sock.type, proto=sock.proto, loop=self)
            address = resolved[0][4]
        try:
            sock.connect(address)
            return
        except (BlockingIOError, InterruptedError):
            pass
        await self._wait_writable(sock)
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error != 0:
            raise OSError(error, f"Connect call failed {address}")

    # --- child processes -----------------------------------------------------

    async def _make_subprocess_transport(self, protocol, args, shell, stdin, stdout, stderr,
                                         bufsize, extra=None, **kwargs):
        waiter = self.create_future()
        transport = unix_events._UnixSubprocessTransport(
            self, protocol, args, shell, stdin, stdout, stderr, bufsize,
            waiter=waiter, extra=extra, **kwargs)

        def ended(pid, code):
            if REPORTS_END_AT_ONCE:
                transport._process_exited(code)
            else:  # one round later, so that remaining data of its pipes comes first
                self.call_soon(transport._process_exited, code)

        try:
            self._watch_child(transport.get_pid(), ended)
        except ProcessLookupError:  # reaped elsewhere: reported as asyncio does
            self.call_soon(ended, transport.get_pid(), 255)
        except BaseException:
            transport.close()
            raise
        try:
            await waiter
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:
            transport.close()
            await transport._wait()
            raise
        return transport
