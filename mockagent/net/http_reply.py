"""The answering side of one HTTP exchange: whole replies, streamed bodies, endings, the watch for a client that left.

h11 makes the bytes and so keeps honest replies correct; whoever wants incorrect ones replaces those bytes by a hook,
and the connection then ends, as its framing cannot be trusted any more. Knows nothing of what is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

import h11
import trio

from mockagent.net import sockets
from mockagent.net.carry import carry_out
from mockagent.net.channel import Broken, Bytes, Cut, Op, Rate
from mockagent.net.http_message import HeaderList, Request

Hook = Callable[[bytes], Sequence[Op]]
"""Takes the bytes that would be written and returns what is done in their place."""
Common = Callable[[], HeaderList]
"""Headers for every reply that does not have them already, such as `Date`."""
Successor = Callable[[trio.SocketStream, bytes], Awaitable[None]]
"""Goes on with a connection on which no more HTTP is spoken; gets what the client has sent behind the request."""

_CHUNK = 2**16
_FRAMING = frozenset({"content-length", "transfer-encoding"})


def reason_phrase(status: int) -> bytes:
    """The usual words for a status, or none for one that nobody has named."""
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


class Link:
    """One connection: its socket, its h11 state, and who reads from it at the moment."""

    def __init__(self, stream: trio.SocketStream, nursery: trio.Nursery, header_bytes: int) -> None:
        self.stream = stream
        self.h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=header_bytes)
        self.nursery = nursery
        self.disconnected = trio.Event()
        self.over = False
        """No other exchange may follow on this connection."""
        self.successor: Successor | None = None
        self.ended: Cut | None = None
        """How our side was ended, if it was."""
        self.at_end: list[Callable[[], None]] = []
        """Called once when the connection is gone."""
        self.user: object = None
        """Whatever the handler wants to remember from one exchange to the next."""
        self.gone = trio.Event()
        """Set once no task works for the connection any more."""
        self.waiting: trio.CancelScope | None = None
        """Around the wait for the next request, or, once our side has ended, for the end of the other."""
        self._keep = header_bytes
        self._watch_scope: trio.CancelScope | None = None
        self._watch_done = trio.Event()

    async def send(self, data: bytes) -> None:
        """Raises Broken."""
        if self.ended is not None:
            raise Broken("this connection was ended from here")
        try:
            await self.stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.over = True
            self.disconnected.set()
            raise Broken("the client is gone") from error
        except trio.Cancelled:
            self.over = True  # half a write may be out
            raise

    async def receive(self) -> bytes:
        """Some bytes, or none at the end of the client's side, however that came."""
        try:
            return bytes(await self.stream.receive_some(_CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.over = True
            return b""

    def watch(self) -> None:
        """Starts to read ahead, in order to see the client leave. What it sends meanwhile is kept for later."""
        ended = self.ended is not None and self.ended.how != "half"
        if self._watch_scope is None and not (ended or self.disconnected.is_set()):
            self._watch_scope = trio.CancelScope()
            self._watch_done = trio.Event()
            self.nursery.start_soon(self._watch, self._watch_scope, self._watch_done)

    async def _watch(self, scope: trio.CancelScope, done: trio.Event) -> None:
        kept = 0
        try:
            with scope:
                while kept <= self._keep:
                    data = await self.receive()
                    self.h11.receive_data(data)
                    if not data:
                        self.disconnected.set()
                        return
                    kept += len(data)
        finally:
            done.set()

    async def stop_watching(self) -> None:
        """Returns when nobody reads any more."""
        if self._watch_scope is not None:
            self._watch_scope.cancel()
            await self._watch_done.wait()
            self._watch_scope = None

    def forget(self) -> None:
        """What the handler remembers of the connection has an end, and `at_end` is called; the connection goes on."""
        calls, self.at_end = self.at_end, []
        self.user = None
        for call in calls:
            call()

    def hang_up(self) -> None:
        """No other exchange follows: one under way is the last, and without one the connection ends in order."""
        self.over = True
        if self.waiting is not None:
            self.waiting.cancel()

    def abort(self) -> None:
        """Resets the connection and cancels whatever works for it, a write that is stuck included."""
        sockets.abort(self.stream)
        self.nursery.cancel_scope.cancel()

    async def end(self, cut: Cut) -> None:
        """Ends the connection as `cut.how` says, behind what was written."""
        if self.ended is not None:
            return
        self.over, self.ended = True, cut
        await _ENDINGS[cut.how](self)

    async def _end_reset(self) -> None:
        await self.stop_watching()
        await sockets.reset(self.stream)
        self.disconnected.set()

    async def _end_half(self) -> None:
        sockets.half_close(self.stream)

    async def _end_fin(self) -> None:
        sockets.half_close(self.stream)
        self.nursery.start_soon(self._linger)

    async def _linger(self) -> None:
        await self.stop_watching()
        await sockets.linger(self.stream)
        self.disconnected.set()


_ENDINGS = {"close": Link._end_fin, "drop": Link._end_fin, "half": Link._end_half, "reset": Link._end_reset}


class Responder:
    """Answers one request, once: by `send`, by `start`, or by `take_over`."""

    def __init__(self, link: Link, request: Request, common: Common | None = None) -> None:
        self._link = link
        self._request = request
        self._common = common
        self._body: BodyChannel | None = None
        self.begun = False
        """Whether some of an answer may have left already."""

    @property
    def connection(self) -> Link:
        """The connection; the same object for all its exchanges."""
        return self._link

    @property
    def disconnected(self) -> trio.Event:
        """Set as soon as the client ends or resets its side. Looking at it starts the watch."""
        self._link.watch()
        return self._link.disconnected

    async def send(self, status: int, headers: HeaderList = (), body: bytes = b"", *, hook: Hook | None = None) -> None:
        """Sends a whole reply with its Content-Length. The body is left out where HTTP allows none (HEAD, 204, 304).

        Args:
            status: 200 to 999.
            headers: without framing headers; those are made here.
            body: what a GET would get.
            hook: gets the bytes of the reply and returns what is written in their place. The connection is kept
                afterwards only if that comes to the same bytes.

        Raises:
            Broken: when the client is gone.
            RuntimeError: when the request was answered already.
            h11.LocalProtocolError: for a status or header that cannot be sent.
        """
        head = self._head(status, headers, len(body))
        conn = self._link.h11
        data = conn.send(head)
        if body and self._request.method != "HEAD" and status not in (204, 304):
            data += conn.send(h11.Data(data=body))
        data += conn.send(h11.EndOfMessage())
        await self._write(data, hook)

    async def start(self, status: int, headers: HeaderList = (), *, hook: Hook | None = None) -> BodyChannel:
        """Sends the head of a reply, and returns the channel for its body.

        The body is chunked, or ends with the connection for an HTTP/1.0 client. From here on `disconnected` is watched.

        Args:
            status, headers, hook: as for `send`; the hook gets the head alone.

        Raises:
            Broken, RuntimeError, h11.LocalProtocolError: as for `send`.
        """
        head = self._head(status, headers, None)
        bodiless = self._request.method == "HEAD" or status in (204, 304)
        data = self._link.h11.send(head)
        self._body = BodyChannel(self._link, bodiless)
        self._link.watch()
        await self._write(data, hook)
        return self._body

    def take_over(self, successor: Successor) -> None:
        """Says who goes on with the connection, as soon as the handler has returned: all that belongs to the request
        can be let go then, however long the connection lasts. When the successor returns, it is closed."""
        self._begin()
        self._link.over = True
        self._link.successor = successor

    async def finish(self) -> None:
        """Ends a body that the handler has left open."""
        if self._body is not None:
            await self._body.close(Cut())

    def _begin(self) -> None:
        if self.begun:
            raise RuntimeError("this request has been answered already")
        self.begun = True

    def _head(self, status: int, headers: HeaderList, length: int | None) -> h11.Response:
        if self.begun:
            raise RuntimeError("this request has been answered already")
        fields = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
        if self._common is not None:
            given = {name.lower() for name, _ in fields}
            fields += [(name, value) for name, value in self._common() if name.lower() not in given]
        if length is not None and status != 204:
            fields.append(("Content-Length", str(length)))
        if self._link.over:
            fields.append(("Connection", "close"))
        raw = [(name.encode(), value.encode()) for name, value in fields]
        head = h11.Response(status_code=status, headers=raw, reason=reason_phrase(status))
        self._begin()
        return head

    async def _write(self, data: bytes, hook: Hook | None) -> None:
        if hook is None:
            await self._link.send(data)
            return
        ops = hook(data)
        if b"".join(op.data for op in ops if isinstance(op, (Bytes, Rate))) != data:
            self._link.over = True
        cut = await carry_out(ops, self._link.send)
        if cut is not None:
            await self._link.end(cut)


class BodyChannel:
    """The channel over the body of one reply. Bytes that leave in one send are one chunk."""

    def __init__(self, link: Link, bodiless: bool) -> None:
        self._link = link
        self._bodiless = bodiless
        self._closed = False

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out the operations in order; called by one task only.

        Raises:
            Broken: when the client is gone, or the body was ended.
        """
        if self._closed:
            raise Broken("this reply was ended from here")
        cut = await carry_out(ops, self._send)
        if cut is not None:
            await self.close(cut)

    async def close(self, how: Cut) -> None:
        """Ends the body: `close` with its last chunk, and the connection stays; `drop` without, and the connection
        ends; `half` and `reset` as for every connection."""
        if self._closed:
            return
        self._closed = True
        if how.how != "close":
            await self._link.end(how)
            return
        if self._link.ended is not None:
            return
        try:
            if data := self._link.h11.send(h11.EndOfMessage()):
                await self._link.send(data)
        except Broken:
            pass

    async def _send(self, data: bytes) -> None:
        if not self._bodiless:
            await self._link.send(self._link.h11.send(h11.Data(data=data)))
