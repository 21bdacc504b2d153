"""The server side of one WebSocket (RFC 6455), on a connection that an HTTP server has handed over.

trio-websocket does the handshake, reads, answers pings and closes. What we send ourselves is framed here and written in
bursts, through a stream of our own that lies between the library and the socket: it alone knows whose turn it is to
write, and it can leave out the library's pongs and close frames. Knows nothing of what the messages say.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from mockagent.net import sockets
from mockagent.net.carry import carry_out
from mockagent.net.channel import Broken, Cut, Op
from mockagent.net.frames import CLOSE, FIN, PONG, encode_fragments, encode_frame, encode_text, encode_texts

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from mockagent.net.http_message import HeaderList, Headers

__all__ = [
    "HandshakeFailed",
    "Incoming",
    "WebSocketChannel",
    "WebSocketPeer",
    "accept_websocket",
    "encode_fragments",
    "encode_frame",
    "encode_text",
    "encode_texts",
    "handshake_problem",
    "wants_websocket",
]

MAX_MESSAGE = 64 * 2**20
"""Bytes (in a text message: characters) that an incoming message may have, unless told otherwise."""
CLOSE_SECONDS = 2.0
"""How long an orderly end waits for the client's close frame."""
_QUEUE = 16  # incoming messages held, before the client has to wait
_PONGS = 64  # unsent pongs held for a client that does not read; RFC 6455, 5.5.3 lets us leave out older ones
_HANDSHAKE_SECONDS = 5.0
_CHUNK = 2**16
_UNSENDABLE = frozenset({1005, 1006, 1015})
"""Codes that stand for the absence of a close frame (RFC 6455, 7.4.1)."""
_OUR_VERDICTS = frozenset({1002, 1003, 1007, 1008, 1009})
"""Codes with which the library gives a client up without always telling it."""


class HandshakeFailed(Exception):
    """The library has refused a handshake, and has answered it."""


def handshake_problem(method: str, headers: Headers) -> tuple[int, str] | None:
    """Says why a request is no WebSocket handshake: an HTTP status and a sentence, or None when it is one.

    A 426 is to be sent with `Sec-WebSocket-Version: 13`. Source: RFC 6455, section 4.2.1.
    """
    if method != "GET":
        return 405, "a WebSocket handshake is a GET"
    if "websocket" not in headers.tokens("upgrade") or "upgrade" not in headers.tokens("connection"):
        return 426, "this address wants a WebSocket handshake"
    if headers.get("sec-websocket-version") != "13":
        return 426, "only version 13 of WebSocket is spoken here"
    if _key_length(headers.get("sec-websocket-key", "")) != 16:
        return 400, "Sec-WebSocket-Key has to be 16 bytes in Base64"
    return None


def wants_websocket(headers: Headers) -> bool:
    """Whether a request asks for an upgrade to WebSocket, well or badly."""
    return "websocket" in headers.tokens("upgrade")


def _key_length(key: str | None) -> int:
    try:
        return len(a2b_base64((key or "").encode(), strict_mode=True))
    except Base64Error:
        return -1


class _Wire(trio.abc.Stream):
    """What trio-websocket takes for the connection.

    Its sends return at once: a pong or close frame waits in a queue of its own until the channel has finished a write,
    so that a client that does not read can never stop the library's reader.
    """

    def __init__(self, stream: trio.SocketStream, replay: bytes, nursery: trio.Nursery) -> None:
        self.stream = stream
        self.accepted = trio.Event()
        """The handshake is over; the library would lose a message that it saw earlier."""
        self.lock = trio.StrictFIFOLock()
        self.send_pongs = True
        self.answers_ping: Callable[[], bool] | None = None
        self.send_close_frames = True
        self.mute = False
        """Nothing is sent any more."""
        self.connection: WebSocketConnection | None = None
        self._close_sent = False
        head, end, early = replay.partition(b"\r\n\r\n")
        self._head, self._early = head + end, early
        self._reading = trio.Lock()
        self._nursery = nursery
        self._queue: list[bytes] = []
        self._idle = trio.Event()
        self._idle.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        async with self._reading:
            if self._head:
                head, self._head = self._head, b""
                return head
            await self.accepted.wait()
            if self._early:
                early, self._early = self._early, b""
                return early
            return bytes(await self.stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self.queue(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    def queue(self, data: bytes) -> None:
        """Sends a control frame, or the answer to the handshake, as soon as it is its turn."""
        if self.mute:
            return
        if data[0] == FIN | PONG:
            if not self.send_pongs or (self.answers_ping is not None and not self.answers_ping()):
                return
            if len(self._queue) >= _PONGS:
                self._queue = [frame for frame in self._queue if frame[0] != FIN | PONG]
        elif data[0] == FIN | CLOSE:
            if not self.send_close_frames or self._close_sent:
                return
            self._close_sent = True
        self._queue.append(data)
        if self._idle.is_set():
            self._idle = trio.Event()
            self._nursery.start_soon(self._send_queued)

    async def _send_queued(self) -> None:
        """Sends until nothing is queued. If that fails, nothing is sent any more; the reader finds out by itself."""
        done = False
        try:
            while self._queue:
                async with self.lock:
                    data = b"".join(self._queue)
                    self._queue.clear()
                    if not self.mute:
                        await self.stream.send_all(data)
            done = True
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.mute = self.mute or not done
            self._idle.set()

    async def flushed(self) -> None:
        """Returns when nothing is queued any more."""
        await self._idle.wait()

    def end(self) -> None:
        """Ends our direction. A write that is stuck fails."""
        self.mute = True
        sockets.half_close(self.stream)

    async def linger(self) -> None:
        """Ends our direction, waits a while for the client to end its own, and closes."""
        self.end()
        try:
            with trio.move_on_after(sockets.LINGER):
                while await self.receive_some(_CHUNK):
                    pass  # beside the library's reader, which may have given up; nobody wants this any more
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.stream.socket.close()

    async def aclose(self) -> None:
        """The library's end of the connection, an orderly one: what is queued leaves first."""
        try:
            reason = self.connection.closed if self.connection is not None else None
            if reason is not None and reason.code in _OUR_VERDICTS:
                # Does nothing if it was said already.
                said = (reason.reason or "").encode()[:100].decode(errors="ignore").encode()
                self.queue(encode_frame(reason.code.to_bytes(2, "big") + said, CLOSE))
            with trio.move_on_after(sockets.LINGER):
                await self.flushed()
            await self.linger()
        finally:
            self.stream.socket.close()


class Incoming(msgspec.Struct, frozen=True):
    """One message from the client."""

    data: bytes
    binary: bool


class WebSocketChannel:
    """The outgoing side. The bytes of the operations are frames, as `encode_text` and the like make them.

    While a write is under way nothing else is sent, pongs included, as its pieces may be parts of one frame.
    """

    def __init__(self, wire: _Wire, connection: WebSocketConnection) -> None:
        self._wire = wire
        self._connection = connection
        self._closed = False
        self._ended = trio.Event()

    async def write(self, ops: Sequence[Op]) -> None:
        """Carries out the operations in order; called by one task only.

        Raises:
            Broken: when the client is gone, or the WebSocket was closed from either side.
        """
        if self._closed or self._connection.closed is not None:
            raise Broken("the WebSocket is closed")
        async with self._wire.lock:
            cut = await carry_out(ops, self._send)
        if cut is not None:
            await self.close(cut)

    async def _send(self, data: bytes) -> None:
        try:
            await self._wire.stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Broken("the client is gone") from error

    async def close(self, how: Cut) -> None:
        """Ends the WebSocket, and returns when that is done; doing it twice is harmless.

        `close` sends a close frame (code 1000 unless given) and waits a while for the client's. `drop` ends the TCP
        connection alone; so do the codes 1005, 1006 and 1015, which mean just that. `half` ends our direction and goes
        on reading. `reset` is a RST.
        """
        if self._closed:
            return
        self._closed = True
        try:
            await _ENDINGS[how.how](self, how)
        finally:
            self._ended.set()

    async def settled(self) -> None:
        """Returns when no close is under way: one that is cut short would be a reset."""
        if self._closed:
            await self._ended.wait()

    async def _end_in_order(self, how: Cut) -> None:
        code = 1000 if how.code is None else how.code
        if code in _UNSENDABLE or not self._wire.send_close_frames:
            await self._end_without_frame(how)
            return
        with trio.move_on_after(CLOSE_SECONDS):
            await self._connection.aclose(code, how.reason or None)

    async def _end_without_frame(self, how: Cut) -> None:
        await self._wire.linger()

    async def _end_half(self, how: Cut) -> None:
        self._wire.end()

    async def _end_reset(self, how: Cut) -> None:
        self._wire.mute = True
        await sockets.reset(self._wire.stream)


_ENDINGS = {
    "close": WebSocketChannel._end_in_order,
    "drop": WebSocketChannel._end_without_frame,
    "half": WebSocketChannel._end_half,
    "reset": WebSocketChannel._end_reset,
}


class WebSocketPeer:
    """One client. Iterating yields its messages until the WebSocket ends, for whatever reason.

    Attributes:
        channel: the outgoing side.
        subprotocol: the one that was agreed on.
        dead: whether `ping_loop` has found out that the client is gone.
    """

    def __init__(self, wire: _Wire, connection: WebSocketConnection) -> None:
        self.channel = WebSocketChannel(wire, connection)
        self.subprotocol = connection.subprotocol
        self.dead = False
        self._wire = wire
        self._connection = connection
        self._pings = 0

    @property
    def send_pongs(self) -> bool:
        """Whether pings are answered."""
        return self._wire.send_pongs

    @send_pongs.setter
    def send_pongs(self, value: bool) -> None:
        self._wire.send_pongs = value

    @property
    def answers_ping(self) -> Callable[[], bool] | None:
        """Asked before each pong whether it is sent; None: every ping is answered."""
        return self._wire.answers_ping

    @answers_ping.setter
    def answers_ping(self, ask: Callable[[], bool] | None) -> None:
        self._wire.answers_ping = ask

    @property
    def send_close_frames(self) -> bool:
        """Whether close frames are sent; without, every end is that of the TCP connection alone."""
        return self._wire.send_close_frames

    @send_close_frames.setter
    def send_close_frames(self, value: bool) -> None:
        self._wire.send_close_frames = value

    @property
    def closed(self) -> tuple[int, str] | None:
        """Code and reason once the WebSocket has ended or is ending; 1006 for an end without a close frame."""
        reason = self._connection.closed
        return None if reason is None else (reason.code, reason.reason or "")

    def __aiter__(self) -> WebSocketPeer:
        return self

    async def __anext__(self) -> Incoming:
        from trio_websocket import ConnectionClosed

        try:
            message = await self._connection.get_message()
        except ConnectionClosed:
            await self.channel.settled()
            raise StopAsyncIteration from None
        if isinstance(message, str):
            return Incoming(message.encode(), False)
        return Incoming(bytes(message), True)

    async def ping(self, payload: bytes | None = None) -> None:
        """Sends a ping and waits for its pong.

        Args:
            payload: at most 125 bytes, different from those still unanswered; None counts up.

        Raises:
            Broken: when the WebSocket has ended.
            ValueError: when the payload is in use.
        """
        from trio_websocket import ConnectionClosed

        if payload is None:
            self._pings += 1
            payload = self._pings.to_bytes(4, "big")
        try:
            await self._connection.ping(payload)
        except ConnectionClosed as error:
            raise Broken("the WebSocket is closed") from error

    async def ping_loop(self, interval: float, patience: float) -> None:
        """Pings again and again; returns when the WebSocket has ended.

        Args:
            interval: seconds from a pong to the next ping.
            patience: seconds without a pong after which the client counts as dead: the connection is reset, and a write
                that is stuck fails.
        """
        while self.closed is None:
            await trio.sleep(interval)
            with trio.move_on_after(patience) as scope:
                try:
                    await self.ping()
                except Broken:
                    return
            if scope.cancelled_caught and self.closed is None:
                self.dead = True
                self._wire.mute = True
                sockets.abort(self._wire.stream)
                return


class _Shelter:
    """Stands in for the nursery in which the library starts its reader, and keeps that alive.

    Answering a ping that crosses our own close frame is a protocol error to the library, and would end everything.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start_soon(self, reader: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._keep, reader)

    async def _keep(self, reader: Callable[[], Awaitable[None]]) -> None:
        from wsproto.utilities import LocalProtocolError

        while True:
            try:
                await reader()
            except LocalProtocolError:
                continue  # what upset it is consumed; it goes on behind that
            return


@asynccontextmanager
async def accept_websocket(
    stream: trio.SocketStream,
    head: bytes,
    *,
    extra_headers: HeaderList = (),
    subprotocol: str | None = None,
    max_message: int = MAX_MESSAGE,
) -> AsyncIterator[WebSocketPeer]:
    """Accepts a WebSocket; leaving the block closes it, in order if it is still open.

    Args:
        stream: the connection, as `Responder.take_over` hands it over.
        head: the bytes of the request, as `Request.head` makes them, and whatever was read behind it.
        extra_headers: more headers for the 101 reply.
        subprotocol: one of those that the client proposed, or None.
        max_message: limit for an incoming message; beyond it the WebSocket is closed with 1009.

    Raises:
        HandshakeFailed: when the request is no valid handshake (ask `handshake_problem` first).
    """
    from trio_websocket import wrap_server_stream

    failure: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            wire = _Wire(stream, head, nursery)
            try:
                with trio.move_on_after(_HANDSHAKE_SECONDS):
                    shelter = cast("trio.Nursery", _Shelter(nursery))
                    request = await wrap_server_stream(shelter, wire, _QUEUE, max_message, _CHUNK)
                    raw = [(name.encode(), value.encode()) for name, value in extra_headers]
                    wire.connection = await request.accept(subprotocol=subprotocol, extra_headers=raw)
                    wire.accepted.set()
                    await wire.flushed()
                if wire.connection is None:
                    raise HandshakeFailed("no valid handshake")
                peer = WebSocketPeer(wire, wire.connection)
                try:
                    yield peer
                except Exception:
                    await peer.channel.close(Cut(code=1011))
                    raise
                await peer.channel.close(Cut())
                await wire.aclose()
            except Exception as error:
                failure = error  # bare, not in the nursery's group
            nursery.cancel_scope.cancel()
    finally:
        stream.socket.close()
    if failure is not None:
        raise failure
