"""One ACP connection over Streamable HTTP: which of its streams a message takes, and what becomes of them at the end.

Source: ACP proposal "Streamable HTTP & WebSocket Transport", routing; `docs/transports.md` says where released clients
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trio

from mockagent.acp.connection import Connection
from mockagent.acp.exchange import Exchange
from mockagent.acp.stream import Stream
from mockagent.message import Burst, Message, Peer
from mockagent.net.channel import Cut, Op
from mockagent.script.agent import Agent
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import escaped

ON_CONNECTION = frozenset({"session/new", "session/load"})
"""Methods whose replies take the connection's stream, although they name a session."""

MOST_STREAMS = 1024
"""Session streams of one connection."""
FAREWELL = 1.0
"""Seconds that streams get for what is queued when their connection ends."""


class HttpConnection:
    """One ACP connection over HTTP.

    Args:
        backstage: what all connections share.
        agent: who plays.
        peer: its name.
        id: its `Acp-Connection-Id`.

    Attributes:
        main: the connection's own stream.
        streams: those of sessions.
        greeting: the answer to `initialize`, while that is under way.
        busy: requests under way.
        seen: when the last one ended.
        cookie_missed: a request came without the cookie; noted once.
    """

    def __init__(self, backstage: Backstage, agent: Agent, peer: Peer, id: str) -> None:
        self.id = id
        self.agent = agent
        self.peer = peer
        self.main = Stream(backstage, peer)
        self.streams: dict[str, Stream] = {}
        self.greeting: Greeting | None = None
        self.busy = 0
        self.seen = trio.current_time()
        self.cookie_missed = False
        self.gone = False
        self._backstage = backstage
        self.out = Outgoing(peer, backstage, self._route)
        self.connection = Connection(backstage, agent, peer, self.out)

    # --- which stream

    def _route(self, session: str | None, message: Message | None) -> Line:
        """The line for a message: its session's, once the client knows of that stream, and else the connection's."""
        if self.greeting is not None and (message is None or message.method == "initialize") and session is None:
            return self.greeting.line
        if message is not None and message.kind.startswith("reply:") and message.method in ON_CONNECTION:
            if message.method == "session/new" and session is not None and session not in self.streams:
                self.streams[session] = Stream(self._backstage, self.peer)
            return self.main.line
        stream = self.streams.get(session) if session is not None else None
        return self.main.line if stream is None else stream.line

    def stream(self, session: str | None) -> Stream | None:
        """The stream that a GET asks for; None: it would be one too many. A session need not be known yet: released
        clients open its stream before they load it."""
        if session is None:
            return self.main
        found = self.streams.get(session)
        if found is None and len(self.streams) < MOST_STREAMS:
            found = self.streams[session] = Stream(self._backstage, self.peer)
        return found

    def left(self, session: str | None) -> None:
        """A GET has ended: a stream that nobody waits for and nobody sends to is forgotten."""
        stream = self.streams.get(session) if session is not None else None
        if session is None or stream is None or session in self.connection.outputs:
            return
        if stream.line.idle and not stream.taken:
            del self.streams[session]

    @property
    def lines(self) -> list[Line]:
        """The lines of all streams."""
        return [stream.line for stream in self._all()]

    @property
    def idle_since(self) -> float | None:
        """Since when the client has shown no sign of life, or None while something is open."""
        if self.busy:
            return None
        return self.seen

    # --- the end

    def close(self, how: Cut) -> None:
        """The client is gone, or goes: what was sent still leaves, then every stream ends."""
        self.gone = True
        self.connection.lost()
        for stream in self._all():
            if stream.taken:
                stream.line.cut(how)
            else:
                stream.drop()

    async def closed(self) -> None:
        """Returns when every stream has ended; those that take too long lose what they hold."""
        try:
            with trio.move_on_after(FAREWELL):
                for stream in self._all():
                    await stream.ended()
        finally:
            for stream in self._all():
                stream.drop()

    def _all(self) -> list[Stream]:
        return [self.main, *self.streams.values()]


class Greeting:
    """The answer to `initialize`: the one message that leaves as the reply to its own POST. Framer and channel of its
    line."""

    def __init__(self, backstage: Backstage, peer: Peer, exchange: Exchange, headers: Mapping[str, str]) -> None:
        self.line = Line(peer, self, backstage, self)
        self.done = trio.Event()
        self._exchange = exchange
        self._headers = headers
        self._body: bytes | None = None
        self._sent = False

    def encode(self, message: Message) -> bytes:
        """The JSON text; HTTP has one reply to a request."""
        if self._body is not None:
            return b""
        shape = message.shape
        self._body = escaped(message.text) if shape is not None and shape.escape_ascii else message.text
        return self._body

    def encode_burst(self, burst: Burst) -> bytes:
        """There are none."""
        return b""

    async def write(self, ops: Sequence[Op]) -> None:
        """Sends the reply, or ends the connection as a fault wants."""
        if self._sent:
            return
        if self._body is not None:
            self._sent = True
            await self._exchange.reply(200, self._body, self._headers, ops=ops)
        elif ops and isinstance(ops[-1], Cut):
            self._sent = True
            await self._exchange.end(ops[-1])
        if self._sent:
            self.done.set()

    async def close(self, how: Cut) -> None:
        """See `Channel`."""
        await self.write([how])
