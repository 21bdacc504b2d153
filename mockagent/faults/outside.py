"""What the engine asks of the process around it, as it sees it; who answers is none of its business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol

import msgspec

from mockagent.message import Message, Peer
from mockagent.scenario.model import Fault


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """Where a placeholder of a fault stands: what the host needs to know to fill it.

    Attributes:
        message: the one that is being matched or changed; None at a point in life.
        groups: what the regex of the fault's `when` caught.
        old: the value that `${value}` stands for; UNSET outside an `edit`.
    """

    peer: Peer | None = None
    session: str | None = None
    message: Message | None = None
    groups: Mapping[str, str | None] = {}
    old: Any = msgspec.UNSET


class Fill(Protocol):
    """Fills every placeholder in a value."""

    def __call__(self, value: Any, spot: Spot) -> Any:
        """Raises script.placeholders.Unset."""


class Report(Protocol):
    """Hears of each fault that fires, or that would have and could not."""

    def __call__(self, fault: Fault, subject: Message | str, effects: tuple[str, ...], what: str, spot: Spot) -> None:
        """`what` is `fired`, or `skipped: ` and the reason. `subject` is a message or the name of a point in life."""


class Save(Protocol):
    """Keeps what `save` read."""

    def __call__(self, peer: Peer | None, session: str | None, name: str, value: Any) -> None:
        """For `${saved.NAME}`, in the session or, without one, on the connection."""


Rng = Callable[[str, "str | None"], Random]

Belongs = Callable[[Fault, Spot], bool]
"""Whether a fault may look at this place: where several scenarios share a process, each one's faults act
on its own agent's."""
