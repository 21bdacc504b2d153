"""One HTTP exchange below `/acp`: a request, and how it may be answered when faults act on HTTP itself.

    GET|POST|DELETE /acp -> faults.arriving -> endpoint -> reply:... -> faults.leaving -> faults.framing -> client

These messages are the transport's own; what travels in them are the messages of ACP, and those alone are shown to the
taps. Knows no method of ACP.

Source: ACP proposal "Streamable HTTP & WebSocket Transport"; RFC 9110.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import trio

from mockagent.faults.answer import http_error
from mockagent.faults.interface import Act, Delay, Drop, Hold, Life, Pass, Play, Reply, Resend
from mockagent.message import HttpHead, Message, Peer
from mockagent.net.channel import Broken, Bytes, Cut, Op, Rate
from mockagent.net.http_message import Request
from mockagent.net.http_reply import BodyChannel, Responder, Successor
from mockagent.scenario.model import Span
from mockagent.wire.backstage import Backstage

_JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class Exchange:
    """A request that is being answered.

    Args:
        backstage: what all connections share.
        peer: who asks.
        request: what was asked.
        responder: answers it.
        session: the session that it names, or None.
        data: its body, if that is JSON.
        common: headers that every answer to it has (CORS, cookies).

    Attributes:
        headers: those of the request.
        resend: what a fault wants sent again on the stream that this request opens.
    """

    def __init__(
        self,
        backstage: Backstage,
        peer: Peer,
        request: Request,
        responder: Responder,
        *,
        session: str | None = None,
        data: Any = None,
        common: Mapping[str, str] | None = None,
    ) -> None:
        self.headers = request.headers
        self.peer = peer
        self.resend: str | None = None
        self._backstage = backstage
        self._request = request
        self._responder = responder
        self._common = dict(common or {})
        kind = f"{request.method} /acp"
        self.message = Message(kind, data, peer, session=session, id=(id(self),), method=kind, http=_head_of(request))

    # --- what faults make of the request

    async def admit(self) -> bool:
        """Whether the request reaches its endpoint; if a fault takes that's place, it has been answered.

        Raises:
            Broken: the client gets no answer.
        """
        faults = self._backstage.faults
        if not faults.watches(self.message.kind, None):
            return True
        admitted = False
        for act in faults.arriving(self.message):
            if isinstance(act, Pass):
                admitted = True
            elif isinstance(act, Resend):
                self.resend = act.which
            elif isinstance(act, Reply):
                await self._reply_of_fault(act)
            else:
                await self._carry(act)
        return admitted

    async def _reply_of_fault(self, act: Reply) -> None:
        if act.error is not None:
            status, headers, body = http_error(act.error)
            await self.reply(status, body, headers)
        else:
            await self.reply(200, act.result)

    # --- answering

    async def reply(
        self,
        status: int,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        ops: Sequence[Op] | None = None,
    ) -> None:
        """Answers with a whole reply.

        Args:
            status: of the reply.
            data: its body: JSON, a text as it is, bytes as they are, or None for none.
            headers: beside those that follow from the body.
            ops: what is written in place of the body's bytes.

        Raises:
            Broken: the client is gone, or gets no answer.
        """
        usual: Mapping[str, str] = {} if data is None else _TEXT if isinstance(data, str) else _JSON
        message = self._reply_message(HttpHead(status=status, headers={**usual, **self._common, **(headers or {})}))
        if not isinstance(data, bytes):
            message.data = data
        body = data if isinstance(data, bytes) else None
        await self._answer(message, lambda passed: self._send_whole(passed, body, ops))

    async def open_stream(self, headers: Mapping[str, str]) -> BodyChannel | None:
        """Answers with a body that is written bit by bit.

        Returns:
            Its channel; None: a fault has put something else in its place.

        Raises:
            Broken: the client is gone, or gets no answer.
        """
        message = self._reply_message(HttpHead(status=200, headers={**headers, **self._common}))
        opened: list[BodyChannel] = []

        async def start(passed: Message) -> None:
            head = passed.http or HttpHead()
            if passed.data is None and head.status == 200:
                opened.append(await self._responder.start(head.status, list(head.headers.items())))
            else:
                await self._send_whole(passed, None, None)

        await self._answer(message, start)
        return opened[0] if opened else None

    async def upgraded(self, headers: Mapping[str, str]) -> list[tuple[str, str]] | None:
        """Asks whether the answer may be 101.

        Returns:
            The headers it is to have; None: a fault has put something else in its place.
        """
        message = self._reply_message(HttpHead(status=101, headers={**self._common, **headers}))
        passed: list[Message] = []

        async def keep(one: Message) -> None:
            if one.data is None and one.http is not None and one.http.status == 101:
                passed.append(one)
            else:
                await self._send_whole(one, None, None)

        await self._answer(message, keep)
        return list(passed[0].http.headers.items()) if passed and passed[0].http is not None else None

    def _reply_message(self, head: HttpHead) -> Message:
        asked = self.message
        return Message(
            f"reply:{asked.kind}",
            None,
            self.peer,
            session=asked.session,
            id=asked.id,
            method=asked.method,
            origin="handler",
            http=head,
        )

    async def _answer(self, message: Message, send: Callable[[Message], Awaitable[None]]) -> None:
        faults = self._backstage.faults
        if not faults.watches(message.kind, None):
            await send(message)
            return
        sent = False
        for act in faults.leaving(message):
            if isinstance(act, Hold):
                await self._held(act)
            if isinstance(act, Pass | Hold):
                if not sent:  # HTTP has one reply to a request
                    sent = True
                    await send(act.message)
            else:
                await self._carry(act)

    async def _send_whole(self, message: Message, body: bytes | None, ops: Sequence[Op] | None) -> None:
        head = message.http or HttpHead()
        if body is None:
            body = b"" if message.data is None else _encoded(message)
        if message.plan:
            ops = self._backstage.faults.framing(message, body)
        headers = list(head.headers.items())
        if ops is None or list(ops) == [Bytes(body)]:
            await self._responder.send(head.status, headers, body)
            return
        written = b"".join(op.data for op in ops if isinstance(op, Bytes | Rate))
        told = written if len(written) >= len(body) else body  # what is cut off is missing, what is added is counted

        def instead(whole: bytes) -> Sequence[Op]:
            return [Bytes(whole[: len(whole) - len(told)]), *ops]

        await self._responder.send(head.status, headers, told, hook=instead)

    # --- what faults want beside that

    async def _carry(self, act: Act) -> None:
        if isinstance(act, Delay):
            await self._logically(act.span)
        elif isinstance(act, Play):
            self._backstage.play(act.steps, self.message, _nothing)
        elif isinstance(act, Life):
            await self._live(act)
        elif isinstance(act, Drop):
            await self.silence()

    async def silence(self) -> None:
        """The client waits for its answer until it leaves.

        Raises:
            Broken: always, in the end.
        """
        await self._responder.disconnected.wait()
        raise Broken("the client left without an answer")

    async def _held(self, act: Hold) -> None:
        """There is no event on HTTP itself but time."""
        if isinstance(act.until, str):
            await self.silence()
        else:
            await self._logically(act.until)

    async def _logically(self, span: Span) -> None:
        over = trio.Event()
        self._backstage.later(span, over.set)
        await over.wait()

    async def _live(self, act: Life) -> None:
        self._backstage.live(act, self.peer)
        if act.stall_write is not None:
            await trio.sleep(act.stall_write)
        if act.cut is not None:
            await self.end(act.cut)

    async def end(self, cut: Cut) -> None:
        """Ends the TCP connection as `cut` says.

        Raises:
            Broken: always, if nothing was answered before.
        """
        if self._responder.begun:
            await self._responder.connection.end(cut)
            return
        await self._responder.send(204, hook=lambda whole: [cut])
        raise Broken("a fault has ended the connection")

    @property
    def disconnected(self) -> trio.Event:
        """Set when the client ends its side."""
        return self._responder.disconnected

    def take_over(self, successor: Successor) -> None:
        """Says who goes on with the TCP connection; gets the request, as bytes, with what came behind it."""
        head = self._request.head()
        self._responder.take_over(lambda stream, behind: successor(stream, head + behind))


def _head_of(request: Request) -> HttpHead:
    return HttpHead(
        method=request.method,
        path=request.path,
        query={name: values[0] for name, values in request.query.items()},
        headers=dict(request.headers.items()),
    )


def _encoded(message: Message) -> bytes:
    if isinstance(message.data, str):
        return message.data.encode()
    return msgspec.json.encode(message.data)


def _nothing() -> None:
    pass
