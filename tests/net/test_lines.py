"""Lines out of a stream of bytes that may be cut anywhere."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st

from mockagent.net.lines import Line, LineReader, LineSplitter, Oversized


class Chunks(trio.abc.ReceiveStream):
    """A stream that gives out what it was given, piece by piece, and then ends as told."""

    def __init__(self, *chunks: bytes, error: Exception | None = None) -> None:
        self.chunks = list(chunks)
        self.error = error

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if self.chunks:
            return self.chunks.pop(0)
        if self.error:
            raise self.error
        return b""

    async def aclose(self) -> None:
        raise AssertionError("the reader does not own the stream")


def split(chunks: list[bytes], limit: int = 10**6) -> list[Line]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.end()


def in_one_go(data: bytes, limit: int) -> list[bytes | None]:
    """The rule, written down in the plainest way; None stands for an oversized line."""
    raw = data.split(b"\n")
    if not raw[-1]:
        raw.pop()
    return [None if len(line) > limit else line.removesuffix(b"\r") for line in raw]


@given(st.lists(st.lists(st.sampled_from(b"ab\r\n"), min_size=1).map(bytes)), st.integers(0, 8))
def test_lines_do_not_depend_on_where_the_bytes_are_cut(chunks: list[bytes], limit: int) -> None:
    got = [None if isinstance(line, Oversized) else line for line in split(chunks, limit)]
    assert got == in_one_go(b"".join(chunks), limit)


def test_an_oversized_line_is_reported_before_it_ends_and_is_not_held() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"x" * 11) == [Oversized(11)]
    assert splitter.feed(b"x" * 1000) == []
    assert splitter.feed(b"x\ngood\n") == [b"good"]


def test_the_limit_is_kept_inside_one_large_read() -> None:
    assert split([b"a\n" + b"x" * 11 + b"\nb\n" + b"y" * 12], 10) == [b"a", Oversized(11), b"b", Oversized(12)]


async def test_iterating_yields_each_line() -> None:
    reader = LineReader(Chunks(b"one\ntw", b"o\r\n\nthree\nlast"))
    assert [line async for line in reader] == [b"one", b"two", b"", b"three", b"last"]


async def test_batches_hold_what_one_read_completed() -> None:
    reader = LineReader(Chunks(b"one\ntwo\nth", b"r", b"ee\n", b"end"))
    assert [batch async for batch in reader.batches()] == [[b"one", b"two"], [b"three"], [b"end"]]


async def test_a_batch_after_single_lines_loses_none() -> None:
    reader = LineReader(Chunks(b"one\ntwo\nthree\n"))
    assert await anext(reader) == b"one"
    assert await reader.next_batch() == [b"two", b"three"]
    assert await reader.next_batch() is None


async def test_a_broken_stream_ends_like_any_other() -> None:
    for error in (trio.BrokenResourceError(), trio.ClosedResourceError()):
        reader = LineReader(Chunks(b"one\ntwo", error=error))
        assert [line async for line in reader] == [b"one", b"two"]
