"""One HTTP exchange of AAP: a request, and the line on which its answer leaves.

The answer is a whole reply or a stream of events. It is put into the line as messages, so that faults and taps see each
of them; the exchange is the framer and the channel of its line, and makes HTTP of what comes out there. It knows no
endpoint.

A reply's bytes are its body: what a fault adds is counted in its Content-Length, what a fault cuts off is missing.

Source: AAP endpoints page (response modes); RFC 9110; WHATWG HTML, server-sent events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import trio

from mockagent.aap import kinds
from mockagent.faults.answer import http_error
from mockagent.faults.interface import Life
from mockagent.message import Burst, HttpHead, Message, Origin, Peer, Shape
from mockagent.net.carry import carry_out
from mockagent.net.channel import Broken, Bytes, Cut, Op, Rate
from mockagent.net.http_reply import BodyChannel, Responder
from mockagent.net.sse import encode_event, encode_events
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import cut, escaped

END = Cut()
"""Ends the answer in order; unlike a `close` that a fault wants, it leaves the connection open."""

STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class AnswerLine(Line):
    """The line of one exchange. What a fault wants behind the end of the answer happens to the connection."""

    def __init__(self, exchange: Exchange, backstage: Backstage) -> None:
        super().__init__(exchange.peer, exchange, backstage, exchange)
        self._exchange = exchange
        self._answered = False

    def put_life(self, act: Life) -> None:
        """Something happens to the channel, or behind the answer to the connection."""
        if self._answered:
            self._exchange.behind(act)
        else:
            super().put_life(act)

    def cut(self, how: Cut) -> None:
        """The answer ends behind what is in the queue now."""
        self._answered = self._answered or how is END
        super().cut(how)


class Exchange:
    """A request that is being answered.

    Args:
        backstage: what all connections share.
        message: the request.
        responder: answers it.
        common: headers that belong to every answer on this request (CORS).

    Attributes:
        message: the request, as faults have left it.
        line: where the answer leaves.
        streaming: a stream of events was begun.
        complete: nothing more belongs to the answer.
        settled: it is complete, and nothing can hold it up.
        on_left: called when the client goes, and at the end.
        on_over: called at the end.
    """

    def __init__(self, backstage: Backstage, message: Message, responder: Responder, common: Mapping[str, str]) -> None:
        self.backstage = backstage
        self.message = message
        self.peer: Peer = message.peer
        self.line = AnswerLine(self, backstage)
        self.out = Outgoing(self.peer, backstage, self.line)
        self.streaming = False
        self.settled = False
        self.complete = False
        self.on_left: Callable[[], None] = _nothing
        self.on_over: Callable[[], None] = _nothing
        self._responder = responder
        self._common = common
        self._head: HttpHead | None = None
        self._relabelled = False
        self._encoded = b""
        self._body: BodyChannel | None = None
        self._sent = False
        self._gone = False
        self._behind: list[Life] = []
        self._over = False

    # --- answering

    def reply(
        self,
        status: int,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        neutral: str | None = None,
        session: str | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Answers with a whole reply.

        Args:
            status: of the reply.
            data: its body: JSON, or a text as it is; None for none.
            headers: beside those that follow from the body.
            neutral: the reply's neutral kind.
            session: the session it belongs to, if the request did not say.
            then: what has to come behind it.
        """
        self._send_reply(HttpHead(status=status, headers=dict(headers or {})), data, neutral, session, then)
        self.finish()

    def fail(self, error: Any) -> None:
        """Answers with an error: a name of the table, `{code, message}`, or `{status, headers, body}`."""
        status, headers, body = http_error(error)
        self.reply(status, body, headers)

    def answer_turn(self, body: Any) -> None:
        """Answers a turn without a stream."""
        self.reply(200, body, neutral="stop")

    def open_stream(self) -> None:
        """Answers with a stream of events, up to `finish`."""
        self.streaming = True
        self._send_reply(HttpHead(status=200, headers=dict(STREAM)), None)

    def event(self, name: str, data: Any, origin: Origin) -> None:
        """Sends one event."""
        kind = kinds.event(name)
        self.out.send(
            Message(kind, data, self.peer, neutral=kinds.LEAVING.get(kind), session=self.message.session, origin=origin)
        )

    def events(self, name: str, texts: list[bytes], origin: Origin) -> None:
        """Sends many events of one name, their data encoded already."""
        kind = kinds.event(name)
        neutral = kinds.LEAVING[kind]
        self.out.send_burst(Burst(kind, neutral, self.peer, self.message.session or "", origin, texts))

    def raw(self, payload: Any, origin: Origin) -> None:
        """Sends what a scenario wrote into the stream: `{event, data}`, or bytes as they are."""
        shape = None
        data = payload
        if isinstance(payload, dict):
            data, shape = payload.get("data"), Shape(event_name=payload.get("event"))
        raw = data.encode() if isinstance(data, str) else None
        session = self.message.session
        self.out.send(
            Message("raw", data, self.peer, raw=raw, session=session, origin=origin, shape=shape, damaged=("send",))
        )

    def finish(self) -> None:
        """The answer is complete; saying so twice is harmless."""
        if self.complete:
            return
        self.complete = True
        self.settled = not (self.streaming or self.backstage.faults.watches(kinds.reply(self.message.kind), "stop"))
        self.out.finish(END)

    def _send_reply(
        self,
        head: HttpHead,
        data: Any,
        neutral: str | None = None,
        session: str | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        kind = kinds.reply(self.message.kind)
        if self.backstage.faults.watches(kind, neutral):
            for other in self.backstage.connections.values():
                if other is not self.out:
                    other.release("reply", self.message.method)
        message = Message(
            kind,
            data,
            self.peer,
            neutral=neutral,
            raw=b"" if data is None else None,
            session=session or self.message.session,
            id=self.message.id,
            method=self.message.method,
            origin="handler",
            http=head,
        )
        self._complete(head.headers, data)  # before a fault edits it: what that takes out stays out
        message.agent = self.message.agent
        message.follow = then
        self.out.send(message)

    # --- the life of the exchange

    def point(self, point: str, session: str | None) -> None:
        """A point in life has come, for faults."""
        self.backstage.point(point, self.out, session)

    def behind(self, act: Life) -> None:
        """Something happens to the connection, behind the answer."""
        if self._over:
            self._responder.connection.nursery.start_soon(self._live, act)
        else:
            self._behind.append(act)

    async def _live(self, act: Life) -> None:
        self.backstage.live(act, self.peer)
        if act.stall_write is not None:
            await trio.sleep(act.stall_write)
        if act.cut is not None:
            await self._responder.connection.end(act.cut)

    async def run(self) -> None:
        """Writes the answer; returns when it has left, or the client has.

        Raises:
            Broken: the client left before everything was sent; so the answer gets no end that it does not have.
        """
        try:
            await self._write_out()
            while self._behind:
                await self._live(self._behind.pop(0))
        finally:
            self._over = True
            self.on_left()
            self.on_over()
        if self._gone or not self._responder.begun:
            raise Broken("the client left without an answer, or in the middle of one")

    async def _write_out(self) -> None:
        if self.settled:
            await self.line.run()
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, nursery.cancel_scope)
                await self.line.run()
                nursery.cancel_scope.cancel()

    async def _watch(self, writing: trio.CancelScope) -> None:
        await self._responder.disconnected.wait()
        self._gone = True
        self.on_left()
        writing.cancel()
        self.line.forsake()

    # --- framer

    def encode(self, message: Message) -> bytes | list[bytes]:
        """The body of a reply, or an event."""
        if message.kind.startswith("reply:"):
            return self._encode_reply(message)
        if not self._streams:
            return b""  # a fault has put a whole reply in the place of the stream
        shape = message.shape
        if shape is None:
            return message.text if message.kind == "raw" else encode_event(message.kind[6:], message.text)
        name = shape.event_name if message.kind == "raw" else message.kind[6:]
        return _shaped(name if shape.event_name is None else shape.event_name, message.text, shape)

    def encode_burst(self, burst: Burst) -> bytes:
        """Many events of one name."""
        return encode_events(burst.kind[6:], burst.texts) if self._streams else b""

    def _encode_reply(self, message: Message) -> bytes:
        if self._head is not None:
            return b""  # HTTP has one reply to a request
        self._head = message.http or HttpHead()
        replaced = bool({"error", "result"} & set(message.damaged))
        self._relabelled = self.streaming and "edit" in message.damaged and not replaced
        if self._streams or message.data is None:
            self._encoded = b""
        elif isinstance(message.data, str):
            self._encoded = message.data.encode()
        else:
            self._encoded = message.text
        if message.shape is not None and message.shape.escape_ascii:
            self._encoded = escaped(self._encoded)
        if replaced:
            self._complete(self._head.headers, message.data)
        return self._encoded

    @property
    def _streams(self) -> bool:
        """Whether events follow: the head says so, or an edit has only given the stream another name."""
        if self._head is None:
            return False
        if self._relabelled:
            return True
        headers = self._head.headers.items()
        return any(name.lower() == "content-type" and value.startswith("text/event-stream") for name, value in headers)

    def _complete(self, headers: dict[str, str], data: Any) -> None:
        """Adds what every answer has."""
        usual: Mapping[str, str] = {} if data is None else _TEXT if isinstance(data, str) else _JSON
        given = {name.lower() for name in headers}
        for name, value in {**usual, **self._common}.items():
            if name.lower() not in given:
                headers[name] = value

    # --- channel

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out operations. Raises Broken."""
        ended = any(op is END for op in ops)
        work = [op for op in ops if op is not END]
        if self._body is not None:
            await self._body.write(work)
        elif self._head is None:
            await self._say_nothing(work, ended)
        elif self._streams:
            self._body = await self._responder.start(self._head.status, list(self._head.headers.items()))
            await self._body.write(work)
        elif not self._sent:
            self._sent = True
            await self._send_whole(work)
        if ended and self._body is not None:
            await self._body.close(Cut())

    async def close(self, how: Cut) -> None:
        """Ends the answer as `how` says."""
        await self.write([how])

    async def _send_whole(self, ops: list[Op]) -> None:
        assert self._head is not None
        status, headers = self._head.status, list(self._head.headers.items())
        if ops == [Bytes(self._encoded)]:
            await self._responder.send(status, headers, self._encoded)
            return
        written = b"".join(op.data for op in ops if isinstance(op, Bytes | Rate))
        body = written if len(written) >= len(self._encoded) else self._encoded
        bodiless = self.message.kind.startswith("HEAD ") or status in (204, 304)

        def instead(whole: bytes) -> Sequence[Op]:
            head = whole if bodiless else whole[: len(whole) - len(body)]
            return [Bytes(head), *(op for op in ops if not (bodiless and isinstance(op, Bytes | Rate)))]

        await self._responder.send(status, headers, body, hook=instead)

    async def _say_nothing(self, ops: list[Op], ended: bool) -> None:
        """No reply has left: the connection ends as a fault says, or the client waits in vain."""
        cut = await carry_out(ops, _nowhere)
        if cut is not None:
            await self._responder.send(204, hook=lambda whole: [cut])
        elif ended:
            await self._responder.disconnected.wait()
            raise Broken("the client left without an answer")


async def _nowhere(data: bytes) -> None:
    pass


def _nothing() -> None:
    pass


def _shaped(name: str | None, text: bytes, shape: Shape) -> bytes | list[bytes]:
    """An event in the form that a fault wants."""
    if shape.escape_ascii:
        text = escaped(text)
    newline = b"\n" if shape.newline is None else shape.newline
    pieces = cut(text, shape.pieces) if shape.pieces else [text]
    made = [
        encode_event(name, piece, newline=newline, comment=shape.comment, blank=not shape.no_blank) for piece in pieces
    ]
    return made if len(made) > 1 else made[0]


def delta(text: str) -> bytes:
    """The data of a delta event."""
    return b'{"delta":' + _encode(text) + b"}"


_encode = msgspec.json.Encoder().encode
