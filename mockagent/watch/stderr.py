"""What the process says to the person at the terminal.

Whoever reads these words, or does not, must not be able to hold anything up, and a stderr that is gone or full ends
nothing: a client that starts its agent with a pipe for stderr seldom reads it. It must not know what is said.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

#: A line is left out when so many bytes wait in the pipe (it takes four times as many): last words need room too.
MOST_UNREAD: Final = 16 * 2**10
#: Last words are given up when nobody takes any of them for so long (seconds).
PATIENCE: Final = 2.0

_NOBODY = (OSError, ValueError, AttributeError)
"""There is no stderr, it is closed, or it is no file."""


def to_stderr(line: str) -> None:
    """Writes a line, unless nobody has taken what was written before. Never waits, never fails."""
    if _unread() < MOST_UNREAD:
        _write(f"mockagent: {line}\n", 0)


def insist(line: str) -> None:
    """Writes a line, as it is, that is said once and so is not left out; see `last_words`."""
    last_words(line + "\n")


def last_words(text: str) -> None:
    """Writes a text of any length, and waits for its reader as long as there is one. Never fails."""
    _write(text, PATIENCE)


def _write(text: str, patience: float) -> None:
    try:
        sys.stderr.flush()
        fd = sys.stderr.fileno()
    except _NOBODY:
        with suppress(*_NOBODY):
            sys.stderr.write(text)  # an object that stands in for the file
        return
    data = text.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    with suppress(*_NOBODY):
        while data and _takes_some(fd, patience):
            data = data[os.write(fd, data[:_PIECE]) :]


_PIECE = 512
"""Bytes that a pipe which takes any takes at once, on every system (POSIX, PIPE_BUF)."""


def _takes_some(fd: int, patience: float) -> bool:
    if sys.platform == "win32":
        return True  # nothing but sockets can be asked there
    import select

    return bool(select.select([], [fd], [], patience)[1])


def _unread() -> int:
    """Bytes that wait in a pipe to be read; 0 for anything else."""
    if sys.platform == "win32":
        return 0
    import fcntl
    import stat
    import termios

    try:
        fd = sys.stderr.fileno()
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return 0
        return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    except _NOBODY:
        return 0
