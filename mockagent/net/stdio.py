"""Standard input and output as trio streams, and a channel over them.

Takes fds 0 and 1 away from everybody else in the process, so that a stray `print` or a child cannot get between the
protocol's bytes. A file description is made non-blocking only where nobody else can notice; that mode is shared with
every process that holds it, and a terminal left like that is unusable after a kill.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
from collections.abc import Sequence

import trio

from mockagent.net.carry import carry_out
from mockagent.net.channel import Broken, Cut, Op
from mockagent.net.lines import LIMIT, LineReader, Oversized

__all__ = ["LIMIT", "LineReader", "Oversized", "StdioChannel", "StdioStreams", "fill_standard_files", "open_stdio"]

_CHUNK = 2**16


class StdioStreams:
    """Both directions; `close` (or leaving it as a context manager) gives the files their blocking mode back."""

    def __init__(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream) -> None:
        self.receive = receive
        self.send = send

    def close(self) -> None:
        """Closes both at once. Doing it twice is harmless."""
        for stream in (self.receive, self.send):
            stream.close()  # type: ignore[union-attr]  # all our kinds have it; the ABCs do not

    def __enter__(self) -> StdioStreams:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_stdio(*, threaded: bool | None = None, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> StdioStreams:
    """Takes over standard input and output. Call it inside a trio run.

    Afterwards `stdin` reads as empty and `stdout` writes to `stderr` for the rest of the process; the true files are
    held by the streams alone, so that closing those is what the other side sees.

    Args:
        threaded: True makes blocking calls in threads, False polls; None polls where it is safe, which is a FIFO or a
            socket that none of the other standard files shares, on any system but Windows.
        stdin, stdout, stderr: the file descriptors, to be other ones in tests.

    Raises:
        OSError: when there are no file descriptors left.
    """
    identities = [_identity(fd) for fd in (stdin, stdout, stderr)]
    poll_in, poll_out = (
        _can_poll(identities[own], [other for at, other in enumerate(identities) if at != own])
        if threaded is None
        else not threaded
        for own in (0, 1)
    )
    # Asked before anything is opened: a number that was free then may be in use by now.
    there_in, there_out, there_err = (identity is not None for identity in identities)
    receive_fd = _take(stdin, there_in, None)
    send_fd = _take(stdout, there_out, stderr if there_err else None)
    receive: trio.abc.ReceiveStream = _poll(receive_fd) if poll_in else ThreadedReceiveStream(receive_fd)
    send: trio.abc.SendStream = _poll(send_fd) if poll_out else ThreadedSendStream(send_fd)
    return StdioStreams(receive, send)


def fill_standard_files() -> None:
    """Puts the null device where whoever started us has closed one of the standard files.

    Call it before anything opens a file that stays open, `trio.run` included: it would get such a number, and be
    taken for standard input or output.
    """
    for fd in range(3):
        if _identity(fd) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if sys.stderr is None:  # the interpreter has found it closed
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for the rest of the process


def _identity(fd: int) -> os.stat_result | None:
    try:
        return os.fstat(fd)
    except OSError:
        return None  # closed by whoever started us


def _can_poll(own: os.stat_result | None, others: Sequence[os.stat_result | None]) -> bool:
    """Whether nobody would notice that this file does not block any more."""
    if own is None or sys.platform == "win32":
        return False
    if not (stat.S_ISFIFO(own.st_mode) or stat.S_ISSOCK(own.st_mode)):
        return False
    return all(other is None or (own.st_dev, own.st_ino) != (other.st_dev, other.st_ino) for other in others)


def _take(fd: int, is_open: bool, instead: int | None) -> int:
    """Moves a file (if closed: the null device) to a descriptor of its own, and puts another (None: the same) there."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        taken = os.dup(fd if is_open else null)
        os.dup2(null if instead is None else instead, fd)
    finally:
        if null != fd:
            os.close(null)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(taken, os.O_BINARY)
    return taken


def _poll(fd: int) -> trio.lowlevel.FdStream:
    assert sys.platform != "win32"
    return trio.lowlevel.FdStream(fd)


class ThreadedReceiveStream(trio.abc.ReceiveStream):
    """Reads in a thread of its own, one chunk ahead; a cancelled receive loses nothing.

    The thread may be stuck in a read for ever, so it is a daemon, and it alone closes the file.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._token = trio.lowlevel.current_trio_token()
        self._wanted = threading.Semaphore(0)
        self._arrived = trio.Event()
        self._data: bytes | None = None
        self._held = memoryview(b"")
        self._closed = False
        self._reading = False
        self._thread: threading.Thread | None = None

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As in trio. Raises ClosedResourceError once closed."""
        await trio.lowlevel.checkpoint()
        if not self._held and not self._closed:
            self._ask()
            await self._arrived.wait()
            self._reading = False
            if not self._closed:
                assert self._data is not None
                self._held, self._data = memoryview(self._data), None
        if self._closed:
            raise trio.ClosedResourceError("file was already closed")
        data = bytes(self._held[:max_bytes])
        self._held = self._held[len(data) :]
        return data

    def _ask(self) -> None:
        if self._reading:
            return  # a cancelled receive has asked before
        self._reading = True
        self._arrived = trio.Event()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stdin", daemon=True)
            self._thread.start()
        self._wanted.release()

    def _work(self) -> None:
        try:
            while True:
                self._wanted.acquire()
                if self._closed:
                    return
                self._token.run_sync_soon(self._deliver, _read(self._fd))
        except trio.RunFinishedError:
            pass
        finally:
            os.close(self._fd)

    def _deliver(self, data: bytes) -> None:
        self._data = data
        self._arrived.set()

    def close(self) -> None:
        """Wakes a waiting receive. The file is closed as soon as the thread has come back from its read."""
        if self._closed:
            return
        self._closed = True
        self._arrived.set()
        if self._thread is None:
            os.close(self._fd)
        else:
            self._wanted.release()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            _wait(fd, reading=True)  # another process has left our file non-blocking
        except OSError:
            return b""  # a terminal that was hung up


def _wait(fd: int, *, reading: bool) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN if reading else select.POLLOUT)
    poll.poll()


class ThreadedSendStream(trio.abc.SendStream):
    """Writes in worker threads, one write at a time.

    A cancelled send leaves its thread behind with the write half done: nothing can be sent after it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._closed = False
        self._writing = False
        """A thread is in a write; it closes the file if that has become due. Guarded by the lock."""
        self._busy = False
        self._torn = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As in trio. Raises BrokenResourceError, ClosedResourceError."""
        if self._closed:
            raise trio.ClosedResourceError("file was already closed")
        if self._busy:
            raise trio.BusyResourceError("another task is sending")
        if self._torn:
            raise trio.BrokenResourceError("an earlier send was cancelled")
        self._busy = self._torn = True
        try:
            await trio.to_thread.run_sync(self._write, bytes(data), abandon_on_cancel=True)
            self._torn = False
        except OSError as error:
            raise trio.BrokenResourceError from error
        finally:
            self._busy = False

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    def _write(self, data: bytes) -> None:
        with self._lock:
            if self._closed:
                return
            self._writing = True
        try:
            view = memoryview(data)
            while view:
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:
                    _wait(self._fd, reading=False)
        finally:
            with self._lock:
                self._writing = False
                if self._closed:
                    os.close(self._fd)

    def close(self) -> None:
        """Closes at once, or behind the write that is under way in a thread left behind."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if not self._writing:
                os.close(self._fd)

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


class StdioChannel:
    """The channel over standard output. Every ending (close, half, drop, reset) closes it: a pipe knows no other."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out the operations in order; called by one task only.

        Raises:
            Broken: when nobody reads any more, or the channel was closed.
        """
        cut = await carry_out(ops, self._send)
        if cut is not None:
            await self.close(cut)

    async def close(self, how: Cut) -> None:
        """Closes standard output, whatever `how` says."""
        await self._stream.aclose()

    async def _send(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Broken("standard output is closed") from error
