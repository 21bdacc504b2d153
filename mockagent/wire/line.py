"""One outgoing channel: the queue of what is to leave, and the one task that writes it.

Everything that leaves goes through here, in order: faults (`leaving`), encoding, faults (`framing`), the write, and the
taps. Putting something in is synchronous and never waits; the writer drains whenever whoever put it in has returned, so
that a burst leaves in few writes and nothing is ever held back across a wait. Knows no protocol: a `Framer` encodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import trio

from mockagent.faults.interface import Act, Delay, Drop, Faults, Hold, Life, Pass, Play, Reply
from mockagent.message import NO_ID, Burst, Fate, Message, Peer
from mockagent.net.channel import Broken, Bytes, Channel, Cut, Op, Pause
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


class Route(Protocol):
    """Where the messages of a connection go: one line, or one of several."""

    def send(self, message: Message) -> None:
        """A rendered message is on its way out."""

    def send_burst(self, burst: Burst) -> None:
        """Many messages of one kind and session."""

    def room_for(self, session: str | None) -> int:
        """How many more messages of a session may come before its turn has to pause."""

    def release(self, event: str, name: str | None = None) -> None:
        """Lets go of what is held until an event."""

    def live(self, act: Life, session: str | None = None) -> None:
        """Something happens to the channel on which the session's messages leave."""

    def hold(self, act: Hold, call: Callable[[], None]) -> None:
        """Calls when what a message is held for has come; `release` tells of events."""

    def on_new_id(self, call: Callable[[Any, Any], object]) -> None:
        """Calls with the old and the new id when a fault lets a request of ours leave under another one."""


class Director(Protocol):
    """What a line needs of the world around it when a fault asks for more than bytes."""

    def play(
        self, steps: Sequence[Step], session: str | None, message: Message | None, then: Callable[[], None]
    ) -> bool:
        """Plays the steps of a fault in a session.

        Returns:
            True if they are through already; else `then` is called when they are.
        """

    def later(self, span: Span, call: Callable[[], None]) -> Callable[[], None]:
        """Calls after a logical wait; returns what calls it off."""

    def live(self, act: Life, peer: Peer) -> None:
        """Does to the process or to the reading side what a fault asks."""

    def wake(self) -> None:
        """There is room again."""


class Gate:
    """Stands in the queue and lets nothing pass until it opens."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = False


Entry = Message | Burst | Gate | Life | Pause | Cut


class Line:
    """Queue and writer of one channel.

    Args:
        peer: who is at the other end.
        channel: what to write to; this line's task is the only one that does.
        framer: encodes.
        faults: asked at `leaving` and `framing`.
        taps: shown what really leaves.
        director: plays steps and keeps time for faults.
    """

    def __init__(
        self, peer: Peer, channel: Channel, framer: Framer, faults: Faults, taps: Taps, director: Director
    ) -> None:
        self.peer = peer
        self.broken = False  # the other side is gone, or we have ended it
        self._channel = channel
        self._framer = framer
        self._faults = faults
        self._taps = taps
        self._director = director
        self._queue: deque[Entry] = deque()
        self._messages = 0
        self._bytes = 0
        self._held: list[tuple[str, str | None, object, Callable[[], None]]] = []
        self._new_id: Callable[[Any, Any], object] | None = None
        self._owed = 0  # messages that faults hold back and that will still be put in
        self._last: Cut | None = None
        self._something = trio.Event()
        self._drained = trio.Event()
        self._drained.set()
        self.ended = False

    # --- putting in

    @property
    def room(self) -> int:
        """How many more messages may come before a turn has to pause; for a broken line there is always room."""
        if self.broken:
            return QUEUE_MESSAGES
        return 0 if self._bytes >= QUEUE_BYTES else max(QUEUE_MESSAGES - self._messages, 0)

    def room_for(self, session: str | None) -> int:
        """The same, asked by session; bindings with several channels have several answers."""
        return self.room

    @property
    def queued_bytes(self) -> int:
        """Roughly how many bytes wait."""
        return self._bytes

    def send(self, message: Message) -> None:
        """A rendered message is on its way out."""
        if message.origin != "fault" and self._faults.watches(message.kind, message.neutral):
            self._act(message, self._faults.leaving(message))
        else:
            self._put(message)
        if message.method and message.kind.startswith("reply:"):
            self._release("reply", message.method, but=message.id)

    def send_burst(self, burst: Burst) -> None:
        """Many messages of one kind; with a fault watching them they go one by one."""
        if self._faults.watches(burst.kind, burst.neutral):
            for message in burst.messages():
                self.send(message)
            return
        self._queue.append(burst)
        self._messages += len(burst.texts)
        self._bytes += sum(map(len, burst.texts))
        self._stir()

    def cut(self, how: Cut) -> None:
        """The channel ends behind what is in the queue now."""
        self._queue.append(how)
        self._stir()

    def finish(self, how: Cut) -> None:
        """The channel ends once all that was put in has left, what faults hold back and what they play included."""
        self._last = how
        self._end_if_due()

    def _end_if_due(self) -> None:
        if self._last is not None and not self._owed:
            how, self._last = self._last, None
            self.cut(how)

    def forsake(self) -> None:
        """Nobody takes what is left over: the task of `run` was cancelled, because the other side has gone."""
        self._break()

    def _put(self, message: Message) -> None:
        if message.raw is None:
            message.raw = message.text
        self._queue.append(message)
        self._messages += 1
        self._bytes += len(message.raw)
        self._stir()

    def _act(self, message: Message, acts: Sequence[Act]) -> None:
        for index, act in enumerate(acts):
            if isinstance(act, Pass):
                if act.message is not message and message.kind.startswith("request:"):
                    self._renamed(message, act.message)
                self._put(act.message)
            elif isinstance(act, Drop | Reply):
                self._taps.saw(message, "out", Fate.UNSENT)
            elif isinstance(act, Delay):
                self._gate(act.span)
            elif isinstance(act, Hold):
                self._owed += 1
                self.hold(act, partial(self._put_late, act.message))
            elif isinstance(act, Play):
                # What stands behind the steps waits for them; other messages pass.
                rest = partial(self._act_late, message, acts[index + 1 :])
                if not self._director.play(act.steps, message.session, message, rest):
                    self._owed += 1
                    return
            elif isinstance(act, Life):
                self.live(act, message.session)

    def _put_late(self, message: Message) -> None:
        self._owed -= 1
        self._put(message)
        self._end_if_due()

    def _act_late(self, message: Message, acts: Sequence[Act]) -> None:
        self._owed -= 1
        self._act(message, acts)
        self._end_if_due()

    def _renamed(self, before: Message, after: Message) -> None:
        """The answer will carry the id that really left."""
        id = after.data.get("id", NO_ID) if isinstance(after.data, dict) else NO_ID
        if id is not NO_ID and id != before.id and self._new_id is not None:
            self._new_id(before.id, id)

    def live(self, act: Life, session: str | None = None) -> None:
        """Something happens to this channel, or to the process, behind what is in the queue now."""
        if act.stderr is not None or act.exit is not None or act.stall_read is not None:
            self._queue.append(act)
        if act.stall_write is not None:
            self._queue.append(Pause(act.stall_write))
        if act.cut is not None:
            self._queue.append(act.cut)
        self._stir()

    def _gate(self, span: Span) -> None:
        gate = Gate()
        self._queue.append(gate)
        self._director.later(span, partial(self._open, gate))

    def _open(self, gate: Gate) -> None:
        gate.open = True
        self._stir()

    def hold(self, act: Hold, call: Callable[[], None]) -> None:
        """See `Route.hold`."""
        if not isinstance(act.until, str):
            self._director.later(act.until, call)
            return
        name = act.message.method if act.until == "reply" else act.message.session
        self._held.append((act.until, name, act.message.id, call))

    def release(self, event: str, name: str | None = None) -> None:
        """Lets go of what is held until an event.

        Args:
            event: `turn_ended`, `next_prompt`.
            name: the session's id.
        """
        self._release(event, name, but=NO_ID)

    def _release(self, event: str, name: str | None, *, but: object) -> None:
        """A reply that is held until another one of its method leaves is not let go by itself."""
        for entry in list(self._held):
            until, wanted, id, call = entry
            if until == event and name == wanted and (but is NO_ID or id != but):
                self._held.remove(entry)
                call()

    def on_new_id(self, call: Callable[[Any, Any], object]) -> None:
        """See `Route.on_new_id`."""
        self._new_id = call

    def _stir(self) -> None:
        if self._drained.is_set():
            self._drained = trio.Event()
        self._something.set()

    # --- writing

    async def run(self) -> None:
        """Writes until the channel is cut or breaks. The only task that touches the channel."""
        try:
            while not self.ended:
                batch = self._take()
                if batch:
                    await self._write(batch)
                    continue
                if not self._queue:
                    self._drained.set()
                self._something = trio.Event()
                await self._something.wait()
        except Broken:
            self._break()
        finally:
            self.broken = True
            self._drained.set()
            self._director.wake()

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
        while self._queue and size < WRITE_BYTES:
            entry = self._queue[0]
            if isinstance(entry, Gate):
                if not entry.open:
                    break
                self._queue.popleft()
                continue
            self._queue.popleft()
            batch.append(entry)
            if isinstance(entry, Life | Pause | Cut):
                break
            size += _size(entry)
        return batch

    async def _write(self, batch: list[Entry]) -> None:
        ops: list[Op] = []
        count = size = 0
        for entry in batch:
            if isinstance(entry, Message):
                ops.extend(self._frame(entry))
                count += 1
                size += _size(entry)
            elif isinstance(entry, Burst):
                self._taps.saw_burst(entry)
                ops.append(Bytes(self._framer.encode_burst(entry)))
                count += len(entry.texts)
                size += _size(entry)
            elif isinstance(entry, Cut | Pause):
                ops.append(entry)
        try:
            await self._channel.write(ops)
        except Broken:
            self._taps.lost(self.peer, count)
            raise
        self._messages -= count
        self._bytes -= size
        if isinstance(batch[-1], Life):
            self._director.live(batch[-1], self.peer)
        if any(isinstance(op, Cut) for op in ops):
            self.ended = True
        self._director.wake()

    def _frame(self, message: Message) -> Sequence[Op]:
        data = self._framer.encode(message)
        whole = data if isinstance(data, bytes) else b"".join(data)
        ops: Sequence[Op] = (Bytes(whole),)
        if message.origin != "fault" and self._faults.watches(message.kind, message.neutral):
            ops = self._faults.framing(message, data)
        self._taps.saw(message, "out", Fate.DAMAGED if message.damaged else Fate.INTACT)
        return ops

    def _break(self) -> None:
        """The other side is gone: what is left over never leaves, and the taps are told."""
        left = [entry for entry in self._queue if isinstance(entry, Message)]
        self._queue.clear()
        self._messages = self._bytes = 0
        for message in left:
            self._taps.saw(message, "out", Fate.UNSENT)


def _size(entry: Message | Burst) -> int:
    if isinstance(entry, Burst):
        return sum(map(len, entry.texts))
    return len(entry.raw or b"")
