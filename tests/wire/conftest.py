"""A channel in memory, a director that plays and keeps time by hand, and messages to send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
import trio

from mockagent.faults.interface import Act, Life, NoFaults, Pass
from mockagent.message import Burst, Message, Peer
from mockagent.net.carry import carry_out
from mockagent.net.channel import Broken, Bytes, Cut, Op
from mockagent.scenario.model import Span, Step
from mockagent.watch.tap import Taps
from tests.harness import Notes


class Shelf:
    """What was written, write by write.

    Attributes:
        open: while it is not set, a write does not end.
        broken: the next write fails.
    """

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.cuts: list[Cut] = []
        self.open = trio.Event()
        self.open.set()
        self.broken = False

    async def write(self, ops: Sequence[Op]) -> None:
        cut = await carry_out(ops, self._send)
        if cut is not None:
            self.cuts.append(cut)

    async def _send(self, data: bytes) -> None:
        await self.open.wait()
        if self.broken:
            raise Broken("gone")
        self.writes.append(data)

    async def close(self, how: Cut) -> None:
        self.cuts.append(how)

    @property
    def lines(self) -> list[Any]:
        """The messages of all writes."""
        return [msgspec.json.decode(line)["n"] for line in b"".join(self.writes).splitlines()]


class Told(NoFaults):
    """Faults that do what the test says: `leave` gives the acts for a message, `frame` the operations for its bytes."""

    def __init__(self) -> None:
        self.leave: dict[str, Callable[[Message], Sequence[Act]]] = {}
        self.frame: Callable[[bytes], Sequence[Op]] = lambda data: (Bytes(data),)

    def watches(self, kind: str, neutral: str | None) -> bool:
        return kind in self.leave

    def leaving(self, message: Message) -> Sequence[Act]:
        acts = self.leave[message.kind](message)
        return acts or (Pass(message),)

    def framing(self, message: Message, data: bytes | Sequence[bytes]) -> Sequence[Op]:
        return self.frame(data if isinstance(data, bytes) else b"".join(data))


class Stagehand:
    """The director of a line, with everything in the hands of the test."""

    def __init__(self) -> None:
        self.faults = Told()
        self.notes = Notes()
        self.taps = Taps(self.notes)
        self.waits: list[tuple[Span, Callable[[], None]]] = []
        self.plays: list[tuple[Sequence[Step], Callable[[], None]]] = []
        self.lives: list[Life] = []
        self.wakes = 0
        self.commits: list[bool] = []
        self.through = True
        self.peer = Peer("c1", "acp", "stdio")

    def play(self, steps: Sequence[Step], message: Message, then: Callable[[], None]) -> bool:
        self.plays.append((steps, then))
        return self.through

    def later(self, span: Span, call: Callable[[], None]) -> Callable[[], None]:
        self.waits.append((span, call))
        return lambda: None

    def live(self, act: Life, peer: Peer) -> None:
        self.lives.append(act)

    def commit(self, *, final: bool) -> None:
        self.commits.append(final)

    def wake(self) -> None:
        self.wakes += 1

    def message(self, number: int, kind: str = "update:x", **more: Any) -> Message:
        return Message(kind, {"n": number}, self.peer, session="s", origin="turn", **more)

    def burst(self, *numbers: int, kind: str = "update:x") -> Burst:
        texts = [b'{"n":%d}' % number for number in numbers]
        return Burst(kind, "say", self.peer, "s", "turn", texts)


@pytest.fixture
def hand() -> Stagehand:
    return Stagehand()


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()
