"""What a writer can do to an outgoing channel: bytes, pauses and endings.

Operations are plain values, so that a fault can put any list of them in the place of one write, and a test can look at
them. Nothing here does any I/O, and nothing in `net` imports anything of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

Ending = Literal["close", "reset", "half", "drop"]


class Bytes(msgspec.Struct, frozen=True):
    """Bytes that leave in a write of their own when `alone`, else together with their neighbours."""

    data: bytes
    alone: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Nothing is written on this channel for a while (wall-clock seconds; `inf` for ever)."""

    seconds: float


class Rate(msgspec.Struct, frozen=True):
    """Bytes that drip out at a limited rate."""

    data: bytes
    bytes_per_second: float


class Cut(msgspec.Struct, frozen=True):
    """The channel ends here, after what was written before has gone.

    `close` is the orderly end, `reset` a TCP RST, `half` shuts down our direction only, `drop` leaves out the
    protocol's own ending (no close frame, no last chunk). `code` and `reason` make it a WebSocket close frame.
    """

    how: Ending = "close"
    code: int | None = None
    reason: str = ""


Op = Bytes | Pause | Rate | Cut


class Broken(Exception):
    """The other side is gone: nothing written from now on can arrive."""


class Channel(Protocol):
    """One outgoing stream of frames: stdout, a WebSocket, the body of one HTTP reply."""

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out the operations in order; called by one task only. Raises Broken."""

    async def close(self, how: Cut) -> None:
        """Ends the channel; doing it twice is harmless."""
