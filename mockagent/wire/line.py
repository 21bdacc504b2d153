"""One outgoing channel: the queue of what is to leave, and the one task that writes it.

Putting something in is synchronous and never waits; the writer drains whenever whoever put it in has returned, so that
a burst leaves in few writes and nothing is ever held back across a wait. What a fault wants of a message's bytes
(`framing`) happens here; everything before that is `wire.outgoing`'s. Knows no protocol: a `Framer` encodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import trio

from mockagent.faults.interface import Faults, Life
from mockagent.message import Burst, Fate, Message, Peer
from mockagent.net.channel import Broken, Bytes, Channel, Cut, Op, Pause, Rate
from mockagent.scenario.model import Span, Step
from mockagent.watch.tap import Taps

QUEUE_MESSAGES = 1024
"""Messages that may wait in a line before a turn has to pause."""

QUEUE_BYTES = 1 << 20
"""Bytes, likewise."""

FLOOD_BYTES = 1 << 24
"""Bytes of unread answers after which a peer is not read from."""

WRITE_BYTES = 1 << 18
"""Bytes put into one write at most; more waits for the next, so that memory stays bounded."""


class Framer(Protocol):
    """How a binding puts JSON texts on its channel."""

    def encode(self, message: Message) -> bytes | list[bytes]:
        """The bytes of one message, with its framing; a list where a fault wants several frames."""

    def encode_burst(self, burst: Burst) -> bytes:
        """The bytes of many messages, each with its framing."""


class Director(Protocol):
    """What messages on their way out need of the world around them when a fault asks for more than bytes."""

    @property
    def faults(self) -> Faults:
        """Asked at the hooks."""

    @property
    def taps(self) -> Taps:
        """Shown what really leaves."""

    def play(self, steps: Sequence[Step], message: Message, then: Callable[[], None]) -> bool:
        """Plays the steps of a fault in the session of a message, to the peer of that message.

        Returns:
            True if they are through already; else `then` is called when they are.
        """

    def later(self, span: Span, call: Callable[[], None]) -> Callable[[], None]:
        """Calls after a logical wait; returns what calls it off."""

    def live(self, act: Life, peer: Peer) -> None:
        """Does to the process, or to the reading side of a peer, what a fault asks."""

    def commit(self, *, final: bool) -> None:
        """Something is about to leave: what it tells of is kept first. Not `final`: it is a piece of something."""

    def wake(self) -> None:
        """There is room again, or something has left."""

    def awaits_more(self, line: Line) -> bool:
        """Whether something plays that may still say more; if so, the line is stirred when that has ended."""


class Barrier:
    """Stands in the queue and lets nothing pass until it opens."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = False


Entry = Message | Burst | Barrier | Life | Op


class Line:
    """Queue and writer of one channel.

    Args:
        peer: who is at the other end.
        framer: encodes.
        director: faults, taps, and the rest of the world.
        channel: what to write to; None: it is opened later, and until then everything waits.
        lasting: outlives its channel: what has not left when that ends waits for the next one.

    Attributes:
        broken: nothing can leave any more, whoever ended it.
        ended: it was our side that ended it.
    """

    def __init__(
        self,
        peer: Peer,
        framer: Framer,
        director: Director,
        channel: Channel | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        self.peer = peer
        self._lasting = lasting
        self.broken = False
        self.ended = False
        self._channel = channel
        self._framer = framer
        self._director = director
        self._queue: deque[Entry] = deque()
        self._messages = 0
        self._bytes = 0
        self._something = trio.Event()
        self._drained = trio.Event()
        self._drained.set()

    # --- putting in

    @property
    def room(self) -> int:
        """How many more messages may come before a turn has to pause; for a broken line there is always room."""
        if self.broken:
            return QUEUE_MESSAGES
        return 0 if self._bytes >= QUEUE_BYTES else max(QUEUE_MESSAGES - self._messages, 0)

    @property
    def idle(self) -> bool:
        """Whether nothing waits in the queue."""
        return not self._queue

    def put(self, message: Message) -> None:
        """A message leaves behind what is in the queue; into a broken line it is lost, and the taps are told."""
        if self.broken:
            self._director.taps.saw(message, "out", Fate.UNSENT)
            return
        if message.raw is None:
            message.raw = message.text
        self._queue.append(message)
        self._messages += 1
        self._bytes += len(message.raw)
        self._stir()

    def put_burst(self, burst: Burst) -> None:
        """Many messages leave behind what is in the queue."""
        if self.broken:
            self._tell_unsent(burst)
            return
        self._queue.append(burst)
        self._messages += len(burst.texts)
        self._bytes += _size(burst)
        self._stir()

    def put_life(self, act: Life) -> None:
        """Something happens to the channel, or to the process, behind what is in the queue."""
        if act.stderr is not None or act.child is not None or act.exit is not None:
            self._queue.append(act)
        if act.stall_write is not None:
            self._queue.append(Pause(act.stall_write))
        if act.cut is not None:
            self._queue.append(act.cut)
        self._stir()

    def hold_back(self, span: Span) -> None:
        """Nothing that comes behind leaves before a logical wait is over."""
        barrier = Barrier()
        self._queue.append(barrier)
        self._director.later(span, partial(self._open, barrier))

    def _open(self, barrier: Barrier) -> None:
        barrier.open = True
        self._stir()

    def cut(self, how: Cut) -> None:
        """The channel ends behind what is in the queue now."""
        self._queue.append(how)
        self._stir()

    def sign(self, data: bytes) -> None:
        """Bytes that are no message leave behind what is in the queue (a sign of life)."""
        if not self.broken:
            self._queue.append(Bytes(data))
            self._stir()

    def open(self, channel: Channel) -> None:
        """The channel is there; `run` has still to be started."""
        self._channel = channel
        self.ended = False
        self._stir()

    def take_back(self) -> list[Message | Burst]:
        """Empties the queue; what waited in it for a channel is the caller's to put in again."""
        left, self._queue = self._queue, deque()
        self._messages = self._bytes = 0
        return [entry for entry in left if isinstance(entry, Message | Burst)]

    def write_off(self) -> None:
        """What waits belongs to a play that has ended. It leaves all the same, and the taps see it now, not then."""
        left, self._queue = self._queue, deque()
        for entry in left:
            if isinstance(entry, Message):
                self._queue.extend(self._frame(entry))
                self._messages -= 1
                self._bytes -= _size(entry)
            elif isinstance(entry, Burst):
                self._queue.append(self._frame_burst(entry))
                self._messages -= len(entry.texts)
                self._bytes -= _size(entry)
            else:
                self._queue.append(entry)

    def forsake(self) -> None:
        """Nobody takes what is left over: the task of `run` was cancelled, because the other side has gone."""
        self._break()

    def look_again(self) -> None:
        """What was kept back may leave."""
        self._stir()

    def _stir(self) -> None:
        if self._drained.is_set():
            self._drained = trio.Event()
        self._something.set()

    # --- writing

    async def run(self) -> None:
        """Writes until the channel is cut or breaks. The only task that touches the channel."""
        assert self._channel is not None
        try:
            while not self.ended:
                batch = self._take()
                if batch:
                    await self._write(self._channel, batch)
                    continue
                if not self._queue:
                    self._drained.set()
                self._something = trio.Event()
                await self._something.wait()
        except Broken:
            pass
        finally:
            if self._lasting:
                self._channel = None
            else:
                self._break()

    async def with_room(self) -> None:
        """Waits while so much is queued that nothing more should be read from this peer (its answers would pile up)."""
        while self._bytes > FLOOD_BYTES and not self.broken:
            await self._drained.wait()

    async def drained(self) -> None:
        """Waits until everything put in so far has been written, or cannot be."""
        while not self._drained.is_set() and not self.broken:
            await self._drained.wait()

    def _take(self) -> list[Entry]:
        """The next entries that go into one write."""
        batch: list[Entry] = []
        size = 0
        keep = self._kept_back() if self._director.faults.lag else 0
        while len(self._queue) > keep and size < WRITE_BYTES:
            entry = self._queue[0]
            if isinstance(entry, Barrier):
                if not entry.open:
                    break
                self._queue.popleft()
                continue
            self._queue.popleft()
            batch.append(entry)
            if isinstance(entry, Life | Pause | Cut):
                break
            size += len(entry.data) if isinstance(entry, Bytes | Rate) else _size(entry)
        return batch

    def _kept_back(self) -> int:
        """How many messages at the end wait, because a fault may want them in one write with what comes behind them.

        Only what a turn says while it plays is worth waiting for: behind it comes more, its reply at least.
        """
        keep = 0
        if self.room > 0 and self._director.awaits_more(self):
            for entry in reversed(self._queue):
                if keep == self._director.faults.lag or not _says_on(entry):
                    break
                keep += 1
        return keep

    async def _write(self, channel: Channel, batch: list[Entry]) -> None:
        ops: list[Op] = []
        count = size = 0
        for entry in batch:
            if isinstance(entry, Message):
                ops.extend(self._frame(entry))
                count += 1
                size += _size(entry)
            elif isinstance(entry, Burst):
                ops.append(self._frame_burst(entry))
                count += len(entry.texts)
                size += _size(entry)
            elif isinstance(entry, Op):
                ops.append(entry)
        self._director.commit(final=not all(isinstance(entry, Burst) for entry in batch))
        try:
            await channel.write(ops)
        except (Broken, trio.Cancelled):
            if count:
                self._director.taps.lost(self.peer, count)
            raise
        finally:
            self._messages -= count
            self._bytes -= size
        if isinstance(batch[-1], Life):
            self._director.live(batch[-1], self.peer)
        if any(isinstance(op, Cut) for op in ops):
            self.ended = True
        self._director.wake()

    def _frame(self, message: Message) -> Sequence[Op]:
        data = self._framer.encode(message)
        ops: Sequence[Op] = (Bytes(data if isinstance(data, bytes) else b"".join(data)),)
        if message.plan:
            ops = self._director.faults.framing(message, data)
        self._director.taps.saw(message, "out", Fate.DAMAGED if message.damaged else Fate.INTACT)
        return ops

    def _frame_burst(self, burst: Burst) -> Bytes:
        self._director.taps.saw_burst(burst)
        return Bytes(self._framer.encode_burst(burst))

    def _break(self) -> None:
        """Nothing leaves any more: what is left over is lost, and the taps are told."""
        self.broken = True
        left, self._queue = self._queue, deque()
        self._messages = self._bytes = 0
        for entry in left:
            if isinstance(entry, Message):
                self._director.taps.saw(entry, "out", Fate.UNSENT)
            elif isinstance(entry, Burst):
                self._tell_unsent(entry)
        self._drained.set()
        self._director.wake()

    def _tell_unsent(self, burst: Burst) -> None:
        for message in burst.messages():
            self._director.taps.saw(message, "out", Fate.UNSENT)


def _says_on(entry: Entry) -> bool:
    """Whether it is part of what a turn says, and nobody has to answer it."""
    if isinstance(entry, Message) and (entry.kind.startswith(("request:", "reply:")) or _gathers(entry)):
        return False
    return isinstance(entry, Message | Burst) and entry.origin == "turn"


def _gathers(message: Message) -> bool:
    return any(name == "coalesce" for name, _ in message.plan)


def _size(entry: Message | Burst) -> int:
    if isinstance(entry, Burst):
        return sum(map(len, entry.texts))
    return len(entry.raw or b"")
