"""The endings of a TCP connection, each as the peer can tell it from the others.

Works on connected sockets only and knows nothing of what was said over them. A plain `close` is not enough for any of
them: with unread input in the kernel it turns into a reset, and a reset throws away what has not been delivered.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress

import trio

DRAIN = 2.0
"""Seconds that a reset waits, at most, for the bytes written before it to be acknowledged."""
LINGER = 1.0
"""Seconds that an orderly end waits, at most, for the peer to end its side."""
_LOOK_AGAIN = 0.001


def address(sock: trio.socket.SocketType) -> tuple[str, int] | None:
    """Host and port of the peer, or None where a socket has none (it is gone, or is not TCP)."""
    try:
        name = sock.getpeername()
    except OSError:
        return None
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


def allow_many(wanted: int = 16_384) -> None:
    """Lets this process have more sockets open than shells usually allow (a thousand), as far as the system lets it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def drain(stream: trio.SocketStream, limit: float = DRAIN) -> None:
    """Waits until the peer's kernel has acknowledged every byte that was sent, at most `limit` seconds."""
    with trio.move_on_after(limit):
        while _unsent(stream.socket):  # noqa: ASYNC110
            await trio.sleep(_LOOK_AGAIN)  # the kernel has no event for it


def _unsent(sock: trio.socket.SocketType) -> int:
    """Bytes that were sent and not yet acknowledged; 0 where the platform does not tell."""
    try:
        if sys.platform == "linux":
            import fcntl
            import termios

            raw = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4)
            return int.from_bytes(raw, sys.byteorder)
        if sys.platform == "darwin":
            so_nwrite = 0x1024  # sys/socket.h; the module `socket` does not name it
            return int(sock.getsockopt(socket.SOL_SOCKET, so_nwrite))
    except OSError:
        pass
    return 0


def abort(stream: trio.SocketStream) -> None:
    """Closes at once with a RST; what the peer has not got yet is lost."""
    # struct linger has two ints, on Windows two unsigned shorts.
    linger = struct.pack("HH" if sys.platform == "win32" else "ii", 1, 0)
    with suppress(OSError):
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    stream.socket.close()


async def reset(stream: trio.SocketStream) -> None:
    """Closes with a RST behind what was written: that is delivered first."""
    try:
        if sys.platform not in ("linux", "darwin"):
            await trio.sleep(0.05)  # nothing to look at there; on loopback this is long enough
        await drain(stream)
    finally:
        abort(stream)


def half_close(stream: trio.SocketStream) -> None:
    """Ends our direction only; the peer can go on sending. A send under way in another task fails.

    Harmless on a connection that is gone.
    """
    with suppress(OSError):
        stream.socket.shutdown(socket.SHUT_WR)


async def linger(stream: trio.SocketStream, limit: float = LINGER) -> None:
    """Ends in order: FIN, then reads and forgets until the peer ends too (at most `limit` seconds), then closes."""
    try:
        with trio.move_on_after(limit):
            half_close(stream)
            while await stream.receive_some():
                pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        stream.socket.close()
