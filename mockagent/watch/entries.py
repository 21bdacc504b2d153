"""One line of a journal as a value, and how messages become such lines.

Shared by the journal on disk and the one in memory. Knows the wording of a line, and neither files nor subscribers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from mockagent.message import Direction, Fate, Message, Peer

#: Of input that is no message, so much is kept (bytes).
MALFORMED_KEPT: Final = 64 * 1024


def _fallback(value: Any) -> Any:
    return repr(value)


_encode = msgspec.json.Encoder(enc_hook=_fallback).encode
_decode = msgspec.json.Decoder().decode


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """One line.

    Attributes:
        time: ISO 8601 with milliseconds, UTC.
        seq: number of the line, from 1.
        direction: `in` or `out` for messages and malformed input; None for events.
        peer, protocol, transport: the connection.
        kind, session, origin: as in `Message`.
        fate: `intact`, `damaged`, `unsent`, or `lost` when the connection broke before it could leave.
        damaged: names of the effects that changed it.
        wire: what faults did to its bytes, as a fault writes it.
        message: the JSON of the message; UNSET when it has none.
        text: what left instead of JSON, when a scenario sends something that is none.
        http: method, path, query or status, and headers.
        malformed: why the input is no message; `bytes` is that input, with `\\x..` for what is not UTF-8.
        event: name of something else that happened; `detail` is more about it.
        neutral: the protocol-neutral kind; known in memory only.
    """

    time: str = ""
    seq: int = 0
    direction: Literal["in", "out"] | None = None
    peer: str | None = None
    protocol: str | None = None
    transport: str | None = None
    session: str | None = None
    kind: str | None = None
    origin: str | None = None
    fate: str = "intact"
    damaged: tuple[str, ...] = ()
    wire: dict[str, Any] = {}
    http: dict[str, Any] | None = None
    message: Any = msgspec.UNSET
    text: str | None = None
    malformed: str | None = None
    bytes: str | None = None
    event: str | None = None
    detail: dict[str, Any] = {}
    neutral: str | None = None

    @property
    def params(self) -> Any:
        """`params` of a JSON-RPC message, the body of any other; None when there is none."""
        if isinstance(self.message, dict):
            return self.message.get("params") if "jsonrpc" in self.message else self.message
        return None if self.message is msgspec.UNSET else self.message


class Stamp:
    """Turns epoch seconds into ISO 8601 with milliseconds, remembering the second it was in last."""

    __slots__ = ("_prefix", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""

    def iso(self, seconds: float) -> str:
        """The time of `seconds` since the epoch, UTC."""
        millis = round(seconds * 1000)
        second, rest = divmod(millis, 1000)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._prefix}{rest:03d}Z"


def encode_line(value: Any) -> bytes:
    """JSON text of a line or part of one. Never fails: text that has no UTF-8 form is escaped."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError, TypeError, OverflowError):
        import json

        try:
            return json.dumps(value, default=repr, skipkeys=True, separators=(",", ":")).encode()
        except (RecursionError, ValueError):
            return _encode({"time": "", "seq": 0, "event": "unwritable"})


def head_of(message: Message, direction: Direction, fate: Fate) -> dict[str, Any]:
    """The members of a line that stand before the message itself, without `time` and `seq`."""
    head = place_of(message.peer, direction)
    if message.session is not None:
        head["session"] = message.session
    head["kind"] = message.kind
    head["origin"] = message.origin
    if direction == "out" and fate is not Fate.INTACT:
        head["fate"] = fate.value
    if message.damaged:
        head["damaged"] = message.damaged
    if message.plan or message.shape is not None:
        head["wire"] = wire_of(message)
    return head


def wire_of(message: Message) -> dict[str, Any]:
    """What faults do to the bytes of a message, under the names and in the notation of their effects."""
    done = {name: _WIRE.get(name, _same)(value) for name, value in message.plan}
    shape = message.shape
    if shape is not None:
        newline = None if shape.newline is None else _NEWLINES.get(shape.newline)
        done |= {"newline": newline, "comment": shape.comment, "escape": "ascii" if shape.escape_ascii else None}
        done |= {"binary": shape.binary or None, "no_blank": shape.no_blank or None, "event_name": shape.event_name}
    return {name: value for name, value in done.items() if value is not None}


def _same(value: Any) -> Any:
    return value


def _split(value: dict[str, Any]) -> dict[str, Any]:
    left = {key: part for key, part in value.items() if part is not None}
    return left | ({"pause": f"{left['pause'] * 1000:g}ms"} if "pause" in left else {})


_WIRE: dict[str, Callable[[Any], Any]] = {"split": _split, "rate": lambda value: f"{value:g}B/s"}
_NEWLINES = {b"\r\n": "crlf", b"\r": "cr", b"": "none", b"\n\n": "double"}


def place_of(peer: Peer, direction: Direction) -> dict[str, Any]:
    """Direction and connection."""
    return {"direction": direction, "peer": peer.id, "protocol": peer.protocol, "transport": peer.transport}


def json_text(text: bytes, message: Message, direction: Direction) -> bytes | None:
    """The text of a message as it can stand inside a line, or None when it is no JSON (a scenario sent such)."""
    if direction == "out" and message.raw is not None:
        try:
            _decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return _escaped(text)
    if b"\n" in text or b"\r" in text:
        return encode_line(_decode(text))
    return text


def _escaped(text: bytes) -> bytes | None:
    """JSON that only a lone surrogate keeps from being read stays JSON; anything else is none."""
    if b"\\u" not in text:
        return None
    import json

    try:
        return json.dumps(json.loads(text), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None


def printable(data: bytes) -> str:
    """Bytes as text: what is not UTF-8 as `\\x..`; a long input is cut, and says so."""
    cut = data[:MALFORMED_KEPT].decode(errors="backslashreplace")
    return cut if len(data) <= MALFORMED_KEPT else f"{cut}... ({len(data)} bytes)"
