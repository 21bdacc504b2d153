"""Where the show appears: lines that stay, and on a terminal a part below them that changes.

Knows nothing of agents. In a pipe, or on a terminal that cannot move its cursor, there is no changing part, and what
stays is plain text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType

import trio
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mockagent.demo.lines import ASCII, UNICODE, Glyphs

_FRAME = 0.08
"""Seconds between two pictures of the changing part."""

_NARROW = 20
"""Columns below which a terminal is treated as if it had them."""


class _Console(Console):
    """A console whose reader may leave (`mockagent demo | head`)."""

    left: Callable[[], None] | None = None

    def on_broken_pipe(self) -> None:
        """Nothing can be shown any more; Python's own flush at the end must not complain about it."""
        self.quiet = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        if self.left is not None:
            self.left()


class Screen:
    """Prints lines.

    Args:
        console: what to print on.
        live: whether there is a changing part.

    Attributes:
        region: makes the lines of the changing part; the number counts pictures.
    """

    def __init__(self, console: Console, *, live: bool) -> None:
        self.live = live
        self.region: Callable[[int], Sequence[Text]] = lambda frame: ()
        self._console = console
        self._live: Live | None = None
        self._frame = 0

    @classmethod
    def standard(cls) -> Screen:
        """Standard output, with colours and a changing part as far as it can show them."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        terminal = sys.stdout.isatty()
        console = _Console(
            highlight=False, emoji=False, markup=False, soft_wrap=True, force_terminal=None if terminal else False
        )
        return cls(console, live=terminal and not console.is_dumb_terminal)

    @property
    def width(self) -> int:
        """Columns that a line may take."""
        return max(self._console.width, _NARROW)

    @property
    def glyphs(self) -> Glyphs:
        """Signs that can be shown here."""
        return UNICODE if self._console.encoding.lower().startswith("utf") else ASCII

    def settle(self, lines: Sequence[Text]) -> None:
        """Prints lines that stay."""
        for line in lines:
            self._console.print(line, soft_wrap=True)

    def when_left(self, left: Callable[[], None]) -> None:
        """Sets what is called once nobody reads any more."""
        if isinstance(self._console, _Console):
            self._console.left = left

    async def run(self) -> None:
        """Keeps the changing part up to date, for ever."""
        while self._live is not None:
            await trio.sleep(_FRAME)
            self._frame += 1
            self._live.update(self._picture(), refresh=True)
        await trio.sleep_forever()

    def _picture(self) -> Group:
        rows = list(self.region(self._frame))
        for row in rows:
            row.no_wrap = True
            row.overflow = "ellipsis"
        return Group(*rows[-max(self._console.height - 2, 3) :])

    def __enter__(self) -> Screen:
        if self.live:
            self._live = Live(
                self._picture(),
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(Group(), refresh=True)
            self._live.stop()
            self._live = None
