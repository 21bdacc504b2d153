"""Server-sent events: encoder and incremental parser, after the WHATWG HTML standard, section 9.2.

Pure functions over bytes; no I/O, and no idea what the data means. The parser is what a client needs, and what tests
judge the encoder by.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_BOM = b"\xef\xbb\xbf"


def encode_event(
    name: str | None,
    data: bytes,
    *,
    newline: bytes = b"\n",
    comment: str | None = None,
    blank: bool = True,
    id: str | None = None,
) -> bytes:
    """Encodes one event.

    Args:
        name: the event type; None leaves the line out (the client then sees `message`).
        data: the payload; each of its lines becomes a `data` line.
        newline: what ends a line: LF, CR or CRLF.
        comment: a comment in front of the event, one line for each of its lines.
        blank: whether the blank line follows that makes the client dispatch the event.
        id: the event's id, for `Last-Event-ID`.

    Raises:
        ValueError: if the name or the id has a line break in it.
    """
    lines: list[bytes] = []
    if comment is not None:
        lines += [b": " + line for line in _lines(comment.encode())]
    if name is not None:
        lines.append(b"event: " + _one_line(name))
    if id is not None:
        lines.append(b"id: " + _one_line(id))
    lines += [b"data: " + line for line in _lines(data)]
    if blank:
        lines.append(b"")
    return newline.join(lines) + newline


def encode_comment(text: str = "", *, newline: bytes = b"\n") -> bytes:
    """Encodes a comment with a blank line behind it: a sign of life that is no event."""
    return b"".join(b": " + line + newline for line in _lines(text.encode())) + newline


def encode_events(name: str | None, items: Sequence[bytes]) -> bytes:
    """Encodes many events of one type; the same bytes as `encode_event` for each, at the cost of one join."""
    if not items:
        return b""
    prefix = b"data: " if name is None else b"event: " + _one_line(name) + b"\ndata: "
    data = prefix + (b"\n\n" + prefix).join(items) + b"\n\n"
    breaks = len(items) * (2 if name is None else 3)
    if data.count(b"\n") != breaks or b"\r" in data:
        return b"".join(encode_event(name, item) for item in items)
    return data


def _one_line(text: str) -> bytes:
    if "\n" in text or "\r" in text:
        raise ValueError(f"line break in a field of an event: {text!r}")
    return text.encode()


def _lines(data: bytes) -> list[bytes]:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.split(b"\n")


class SseEvent(msgspec.Struct, frozen=True):
    """One event as a client dispatches it. `data` is as it came; `text` decodes it as the standard says."""

    name: str
    data: bytes
    id: str = ""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class SseComment(msgspec.Struct, frozen=True):
    """A comment line, without its colon and one space."""

    text: str


class SseParser:
    """Turns the bytes of a stream, cut anywhere, into events.

    Args:
        comments: whether comments are handed out too; else they are dropped.
        limit: bytes that one event may have before `feed` raises ValueError.

    Attributes:
        last_event_id: what a client sends as `Last-Event-ID` when it comes back.
        retry: milliseconds to wait before that, when the stream said so.
    """

    def __init__(self, *, comments: bool = False, limit: int = 64 * 2**20) -> None:
        self.last_event_id = ""
        self.retry: int | None = None
        self._comments = comments
        self._limit = limit
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, data: bytes) -> list[SseEvent | SseComment]:
        """Takes some more bytes; returns what they completed.

        Raises:
            ValueError: when an event, or a line, is longer than the limit.
        """
        if not data:
            return []
        ends_in_cr = data.endswith(b"\r")
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]  # the second half of a CRLF; its CR has ended the line already
        self._after_cr = ends_in_cr
        lines = _lines(data)
        if len(lines) > 1 and self._tail:
            lines[0] = b"".join(self._tail) + lines[0]
            self._tail.clear()
            self._tail_size = 0
        rest = lines.pop()
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        out: list[SseEvent | SseComment] = []
        for line in lines:
            self._line(line, out)
        if self._tail_size + self._data_size > self._limit:
            raise ValueError(f"an event is longer than {self._limit} bytes")
        return out

    def close(self) -> bool:
        """The stream has ended. Returns whether an event was begun and is lost, as its blank line never came."""
        lost = bool(self._data or self._name or self._tail)
        self._tail, self._tail_size, self._name, self._data, self._data_size = [], 0, "", [], 0
        return lost

    def _line(self, line: bytes, out: list[SseEvent | SseComment]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(out)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self.last_event_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value)
        elif not field and self._comments:
            out.append(SseComment(value.decode("utf-8", "replace")))

    def _dispatch(self, out: list[SseEvent | SseComment]) -> None:
        # A `data` line counts even when empty; an event without any is dropped, its name with it.
        if self._data:
            out.append(SseEvent(self._name or "message", b"\n".join(self._data), self.last_event_id))
        self._name, self._data, self._data_size = "", [], 0
