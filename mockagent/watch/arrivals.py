"""A line for the person at the terminal for each connection that comes, and one for each that went wrong.

Looks at notes only. How the lines are written is `stderr`'s.
"""

from __future__ import annotations

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
