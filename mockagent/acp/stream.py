"""One stream of server-sent events of an ACP connection over HTTP, across the GETs that open it again and again.

What is sent waits in the stream's line until a GET is there, and goes on waiting when one has ended: the line outlives
its channels. The stream is the line's framer, and its channel as long as a client reads. It does not know which
messages belong to it.

Source: ACP proposal "Streamable HTTP & WebSocket Transport"; WHATWG HTML, server-sent events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import trio

from mockagent.acp.exchange import Exchange
from mockagent.message import Burst, Message, Peer
from mockagent.net.channel import Cut, Op
from mockagent.net.http_reply import BodyChannel
from mockagent.net.sse import encode_comment, encode_event, encode_events
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import cut, escaped

HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

SIGN_OF_LIFE = 15.0
"""Seconds between two comments on a stream, which tell proxies, and us, that somebody is still there."""

REMEMBERED = 10_000
"""Messages kept for a fault that wants to send them again."""

PATIENCE = 0.25
"""Seconds that a second GET waits for the first one to be seen to have ended."""


class Stream:
    """The messages of a connection, or of one of its sessions, on their way to a client that reads them over HTTP.

    Args:
        backstage: what all connections share.
        peer: the connection.

    Attributes:
        line: where messages are put.
        opened: a client has asked for it at least once.
        taken: a client reads it just now.
    """

    def __init__(self, backstage: Backstage, peer: Peer) -> None:
        self._backstage = backstage
        self._peer = peer
        self.line = Line(peer, self, backstage, lasting=True)
        self.opened = False
        self.taken = False
        self._free = trio.Event()
        self._free.set()
        self._body: BodyChannel | None = None
        self._flying: list[Message | Burst] = []
        self._lost: deque[Message | Burst] = deque(maxlen=REMEMBERED)
        self._past: deque[Message | Burst] = deque(maxlen=REMEMBERED)

    # --- for endpoints

    async def free(self) -> bool:
        """Whether nobody reads it. One who has just left may not have been noticed, so this waits a moment."""
        with trio.move_on_after(PATIENCE):
            await self._free.wait()
        return not self.taken

    async def serve(self, exchange: Exchange, out: Outgoing) -> None:
        """Sends what there is to the client of a GET; returns when the client has left, or we have ended it.

        Args:
            exchange: the GET; `free` was asked right before.
            out: the connection's way out, for faults at `ping`.

        Raises:
            Broken: the client is gone, or gets no answer.
        """
        self.opened = self.taken = True
        self._free = trio.Event()
        try:
            self._send_again(exchange.resend)
            body = await exchange.open_stream(HEADERS)
            if body is None:
                return
            self._body = body
            self.line.open(self)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_left, exchange, nursery.cancel_scope)
                nursery.start_soon(self._keep_alive, out)
                await self.line.run()
                nursery.cancel_scope.cancel()
            await body.close(Cut())
        finally:
            self._lost += self._flying
            self._flying = []
            self._body = None
            self.taken = False
            self._free.set()

    async def ended(self) -> None:
        """Returns when nobody reads it any more."""
        await self._free.wait()

    def drop(self) -> None:
        """Nobody will come again: what waits is lost."""
        self.line.forsake()

    async def _keep_alive(self, out: Outgoing) -> None:
        while True:
            await trio.sleep(SIGN_OF_LIFE)
            life = self._backstage.point("ping", out)
            if not (life is not None and life.ignore):
                self.line.sign(encode_comment())

    # --- sending again

    def _send_again(self, which: str | None) -> None:
        """What a GET that is not the first gets of the past. Without a fault: what has not left yet, and no more."""
        if which is None:
            return
        waiting = self.line.take_back()
        again = {"none": [], "unseen": list(self._lost), "all": list(self._past)}[which]
        if which == "none":
            for entry in waiting:
                self._tell_unsent(entry)
            waiting = []
        self._lost.clear()
        for entry in again:
            self._put(_clean(entry))
        for entry in waiting:
            self._put(entry)

    def _put(self, entry: Message | Burst) -> None:
        if isinstance(entry, Message):
            self.line.put(entry)
        else:
            self.line.put_burst(entry)

    def _tell_unsent(self, entry: Message | Burst) -> None:
        """A line that is forsaken tells the taps."""
        line = Line(self._peer, self, self._backstage)
        line.put(entry) if isinstance(entry, Message) else line.put_burst(entry)
        line.forsake()

    def _note(self, entry: Message | Burst) -> None:
        self._flying.append(entry)
        if self._backstage.faults.watches("GET /acp", None):
            self._past.append(entry)

    # --- framer

    def encode(self, message: Message) -> bytes | list[bytes]:
        """One event, in the form that a fault wants."""
        self._note(message)
        shape = message.shape
        if shape is None:
            return encode_event(None, message.text)
        text = escaped(message.text) if shape.escape_ascii else message.text
        newline = b"\n" if shape.newline is None else shape.newline
        made = [
            encode_event(shape.event_name, piece, newline=newline, comment=shape.comment, blank=not shape.no_blank)
            for piece in (cut(text, shape.pieces) if shape.pieces else [text])
        ]
        return made if len(made) > 1 else made[0]

    def encode_burst(self, burst: Burst) -> bytes:
        """Many events."""
        self._note(burst)
        return encode_events(None, burst.texts)

    # --- channel

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out operations. Raises Broken."""
        assert self._body is not None
        await self._body.write(ops)
        self._lost += [entry for entry in self._flying if isinstance(entry, Message) and "truncate" in entry.damaged]
        self._flying = []

    async def close(self, how: Cut) -> None:
        """Ends the reply as `how` says."""
        if self._body is not None:
            await self._body.close(how)


def _clean(entry: Message | Burst) -> Message | Burst:
    """As it was before faults; what is sent again is not faulted."""
    if isinstance(entry, Burst):
        return entry
    twin = entry.copy()
    twin.shape, twin.plan, twin.damaged, twin.origin = None, (), ("resend",), "fault"
    return twin


async def _until_left(exchange: Exchange, writing: trio.CancelScope) -> None:
    await exchange.disconnected.wait()
    writing.cancel()
