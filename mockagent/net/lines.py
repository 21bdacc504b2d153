"""Splits a stream of bytes into lines, many at a time and with a bound on their length.

Knows nothing of what a line holds. A line that is too long costs its sender that line and nothing else.
"""

from __future__ import annotations

import msgspec
import trio

LIMIT = 64 * 2**20
"""Bytes that a line may have, unless told otherwise."""
_CHUNK = 2**16


class Oversized(msgspec.Struct, frozen=True):
    """Stands in the place of a line longer than the limit; `length` bytes of it had come when it was given up."""

    length: int


Line = bytes | Oversized


class LineSplitter:
    """The rule itself, without I/O: lines end with LF, and one CR before it is not part of them.

    Args:
        limit: bytes that a line may have (its CR counts, its LF does not).
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[Line]:
        """Takes some more bytes; returns the lines that they completed."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        out: list[Line] = []
        if pieces:
            self._finish_first(pieces[0], out)
            if len(data) <= self._limit:
                out += [piece[:-1] if piece.endswith(b"\r") else piece for piece in pieces[1:]]
            else:
                out += [self._checked(piece) for piece in pieces[1:]]
        self._keep(rest, out)
        return out

    def end(self) -> list[Line]:
        """The stream has ended: what is left counts as a line, if it is anything."""
        out: list[Line] = []
        if self._parts:
            self._finish_first(b"", out)
        self._skipping = False
        return out

    def _finish_first(self, piece: bytes, out: list[Line]) -> None:
        """Ends the line that was begun by earlier bytes."""
        if self._skipping:
            self._skipping = False
        elif self._parts:
            self._parts.append(piece)
            whole = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            out.append(self._checked(whole))
        else:
            out.append(self._checked(piece))

    def _checked(self, piece: bytes) -> Line:
        if len(piece) > self._limit:
            return Oversized(len(piece))
        return piece[:-1] if piece.endswith(b"\r") else piece

    def _keep(self, rest: bytes, out: list[Line]) -> None:
        if not rest or self._skipping:
            return
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._limit:
            out.append(Oversized(self._size))
            self._parts.clear()
            self._size = 0
            self._skipping = True


class LineReader:
    """Async iterator over the lines of a stream, without their line ends.

    Iterating yields one line at a time and waits only when none is left over from the last read; `batches` yields
    lists of them. A stream that breaks or is closed here ends like one at EOF; a last line without LF is a line.

    Args:
        stream: where the bytes come from; it stays the caller's to close.
        limit: bytes that a line may have; a longer one yields an `Oversized` once, and is skipped.
    """

    def __init__(self, stream: trio.abc.ReceiveStream, *, limit: int = LIMIT) -> None:
        self._stream = stream
        self._splitter = LineSplitter(limit)
        self._ready: list[Line] = []
        self._next = 0
        self._ended = False

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> Line:
        if self._next >= len(self._ready):
            batch = await self.next_batch()
            if batch is None:
                raise StopAsyncIteration
            self._ready, self._next = batch, 0
        line = self._ready[self._next]
        self._next += 1
        return line

    def batches(self) -> Batches:
        """The same lines, as lists of all that one read completed; never an empty list."""
        return Batches(self)

    async def next_batch(self) -> list[Line] | None:
        """Waits for at least one line. Returns None at the end."""
        if self._next < len(self._ready):
            batch, self._ready, self._next = self._ready[self._next :], [], 0
            return batch
        while not self._ended:
            data = await self._receive()
            batch = self._splitter.feed(data) if data else self._splitter.end()
            self._ended = not data
            if batch:
                return batch
        return None

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._stream.receive_some(_CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""


class Batches:
    """What `LineReader.batches` returns."""

    def __init__(self, reader: LineReader) -> None:
        self._reader = reader

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> list[Line]:
        batch = await self._reader.next_batch()
        if batch is None:
            raise StopAsyncIteration
        return batch
