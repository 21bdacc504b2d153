"""The SSE encoder, judged by a parser, and the parser, judged by the examples and rules of the HTML standard."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.net.sse import SseComment, SseEvent, SseParser, encode_comment, encode_event, encode_events

NEWLINES = st.sampled_from([b"\n", b"\r", b"\r\n"])
NAMES = st.none() | st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)


def parse(data: bytes) -> list[SseEvent | SseComment]:
    return SseParser().feed(data)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:stop] for start, stop in pairwise(edges)]


@given(st.lists(st.tuples(NAMES, st.binary(), NEWLINES, st.none() | st.just("beat"))), st.lists(st.integers(0)))
def test_what_is_encoded_is_parsed_under_every_split(
    events: list[tuple[str | None, bytes, bytes, str | None]], cuts: list[int]
) -> None:
    data = b"".join(encode_event(name, text, newline=nl, comment=note) for name, text, nl, note in events)
    parser = SseParser()
    got = [event for piece in pieces(data, cuts) for event in parser.feed(piece)]
    plain = [text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for _, text, _, _ in events]
    assert got == [SseEvent(name or "message", text) for (name, *_), text in zip(events, plain, strict=True)]
    assert not parser.close()


@given(st.binary(), st.lists(st.integers(0)))
def test_any_bytes_parse_alike_whole_and_in_pieces(data: bytes, cuts: list[int]) -> None:
    whole, parts = SseParser(comments=True), SseParser(comments=True)
    assert whole.feed(data) == [event for piece in pieces(data, cuts) for event in parts.feed(piece)]
    assert whole.close() == parts.close()
    assert whole.last_event_id == parts.last_event_id


@given(NAMES, st.lists(st.binary()))
def test_a_burst_is_the_same_bytes_as_its_events(name: str | None, items: list[bytes]) -> None:
    assert encode_events(name, items) == b"".join(encode_event(name, item) for item in items)


def test_an_event_looks_as_people_expect() -> None:
    assert encode_event("text_delta", b'{"a":1}') == b'event: text_delta\ndata: {"a":1}\n\n'
    assert encode_event(None, b"a", id="7", comment="x", newline=b"\r\n") == b": x\r\nid: 7\r\ndata: a\r\n\r\n"
    assert encode_event("e", b"a", blank=False) == b"event: e\ndata: a\n"
    assert encode_comment("beat") == b": beat\n\n"


@pytest.mark.parametrize("field", [{"name": "a\nb"}, {"name": "a\r"}, {"name": "a", "id": "1\n"}])
def test_a_field_cannot_smuggle_a_line_in(field: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_event(field["name"], b"", id=field.get("id"))


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [SseEvent("message", b"YHOO\n+2\n10")]),
        (b"data\n\ndata\ndata\n\ndata:", [SseEvent("message", b""), SseEvent("message", b"\n")]),
        (b"data:test\n\ndata: test\n\n", [SseEvent("message", b"test"), SseEvent("message", b"test")]),
        (b"data:  two\n\n", [SseEvent("message", b" two")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent("message", b"a")]),
        (b"\n\xef\xbb\xbfdata: a\n\n", []),
        (b": note\n\nevent: x\n\ndata: a\n\n", [SseEvent("message", b"a")]),
        (b"data: a\n", []),
        (b"data: a\r\rdata: b\r\n\r\n", [SseEvent("message", b"a"), SseEvent("message", b"b")]),
        (b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", [
            SseEvent("message", b"a", "1"), SseEvent("message", b"b", "1"), SseEvent("message", b"c", ""),
        ]),
        (b"id: a\0b\ndata: a\n\n", [SseEvent("message", b"a")]),
        (b"odd: a\nDATA: b\n data: c\n\n", []),
    ],
)  # fmt: skip
def test_the_grammar_of_the_standard(stream: bytes, events: list[SseEvent]) -> None:
    assert parse(stream) == events


def test_an_event_without_its_blank_line_is_lost_and_reported() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.close()
    assert not parser.close()


def test_comments_are_handed_out_on_request() -> None:
    assert SseParser(comments=True).feed(b": a\n:b\n") == [SseComment("a"), SseComment("b")]


def test_retry_takes_digits_only() -> None:
    parser = SseParser()
    parser.feed(b"retry: 250\nretry: 1s\n")
    assert parser.retry == 250


def test_broken_utf8_is_replaced_in_the_text() -> None:
    (event,) = parse(b"data: a\xff\n\n")
    assert isinstance(event, SseEvent)
    assert event.text == "a�"


@pytest.mark.parametrize("piece", [b"a", b"data: a\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    parser = SseParser(limit=10)
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        for _ in range(20):
            parser.feed(piece)
