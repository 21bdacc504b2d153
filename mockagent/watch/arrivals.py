"""A line for the person at the terminal for each connection that comes, and one for each that went wrong.

Looks at notes only. Whoever reads these lines must not be able to hold anything up: a line that would not go into the
pipe at once is left out.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Any

from mockagent.message import Burst, Direction, Fate, Message, Peer

_OVER = {"ws": "WebSocket", "http": "HTTP", "stdio": "stdio", "memory": "memory"}


class Arrivals:
    """A tap that tells who connects.

    Args:
        write: takes one line without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`; messages are not told of."""

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`."""

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`."""
        if event == "connected" and peer is not None:
            where = f" from {detail['address']}" if detail.get("address") else ""
            plays = f", plays {detail['agent']}" if detail.get("agent") else ""
            self._write(f"{peer.id}: {peer.protocol.upper()} over {_OVER[peer.transport]}{where}{plays}")
        elif event == "refused" and "why" in detail:
            self._write(f"{peer.id if peer is not None else '-'}: refused: {detail['why']}")

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`."""

    def close(self) -> None:
        """See `Tap`."""


def to_stderr(line: str) -> None:
    """Writes a line, unless nobody has taken what was written before: what has to be said later needs room too."""
    data = f"mockagent: {line}\n".encode()
    try:
        fd = sys.stderr.fileno()
        if _unread(fd) < _MOST_UNREAD and select.select([], [fd], [], 0)[1]:
            os.write(fd, data)
    except (ImportError, OSError, ValueError, AttributeError):
        pass  # there is no stderr, or one that cannot be asked (Windows)


_MOST_UNREAD = 16 * 2**10
"""Bytes in the pipe; it takes four times as many."""


def _unread(fd: int) -> int:
    """Bytes that wait in a pipe to be read; 0 for anything else."""
    import fcntl
    import stat
    import termios

    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return 0
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)
