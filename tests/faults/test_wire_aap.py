"""AAP's bytes: events, chunks, lengths and endings, looked at from the other end of a real socket."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mockagent.net.sse import SseComment, SseParser
from tests.faults.wire import RESET, Aap, Reply, serving

TALK = "sessions: {auto_title: null}\nturns: [{steps: [{say: one}, {say: 'zwö'}, {say: three}]}]\n"


async def streamed(aap: Aap, stream: str = "delta") -> Reply:
    reply = await aap.turn(await aap.new(), stream=stream)
    return reply


# --- events


@pytest.mark.parametrize(
    ("newline", "event"),
    [
        ("crlf", b'event: text_delta\r\ndata: {"delta":"one"}\r\n\r\n'),
        ("cr", b'event: text_delta\rdata: {"delta":"one"}\r\r'),
        ("double", b'event: text_delta\n\ndata: {"delta":"one"}\n\n\n\n'),
        ("none", b'event: text_deltadata: {"delta":"one"}'),
    ],
)
async def test_line_endings_of_an_event(newline: str, event: bytes) -> None:
    async with serving(TALK + f"faults: [{{at: say, when: {{nth: 1}}, newline: {newline}}}]") as server:
        assert event in (await streamed(await server.aap())).body


async def test_a_comment_before_an_event_is_no_event() -> None:
    async with serving(TALK + "faults: [{at: say, comment: keep-alive}]") as server:
        reply = await streamed(await server.aap())
        assert reply.body.count(b": keep-alive\n") == 3
        assert reply.told == ["one", "zwö", "three"]
        assert [made.text for made in SseParser(comments=True).feed(reply.body) if isinstance(made, SseComment)] == [
            "keep-alive"
        ] * 3


async def test_an_event_without_its_blank_line_is_lost_at_the_end_of_the_stream() -> None:
    async with serving(TALK + "faults: [{at: stop, no_blank: true}]") as server:
        reply = await streamed(await server.aap())
        assert reply.complete
        assert reply.body.endswith(b'data: {"stopReason":"end_turn"}\n')
        assert [name for name, _ in reply.events][-1] == "text_delta"


async def test_odd_data_in_a_good_stream() -> None:
    faults = """
faults:
  - {at: say, when: {nth: 1}, bytes: {before: "event: text_delta\\ndata: {oops\\n\\n"}}
  - at: say
    when: {nth: 2}
    bytes: {before: "event: text_delta\\ndata:\\n\\n", after: "event: surprise\\ndata: 1\\n\\n"}
"""
    async with serving(TALK + faults) as server:
        reply = await streamed(await server.aap())
        assert [data for name, data in reply.events if name == "text_delta"] == [
            "{oops", {"delta": "one"}, "", {"delta": "zwö"}, {"delta": "three"},
        ]  # fmt: skip
        assert ("surprise", 1) in reply.events


async def test_only_ascii_leaves_in_events_and_in_json() -> None:
    async with serving(
        TALK + "faults: [{at: say, escape: ascii}, {at: 'reply:POST /sessions/*/turns', escape: ascii}]"
    ) as server:
        aap = await server.aap()
        reply = await streamed(aap)
        assert reply.body.isascii()
        assert reply.told == ["one", "zwö", "three"]
        reply = await streamed(aap, "none")
        assert reply.body.isascii()
        assert reply.json["messages"][0]["content"]


async def test_a_split_event_comes_in_several_chunks_with_pauses(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, split: {at: utf8, pause: 4s}}]") as server:
        aap = await server.aap()
        session = await aap.new()
        start = trio.current_time()
        reply = await aap.turn(session)
        assert reply.told == ["one", "zwö", "three"]
        head = next(chunk for chunk in reply.chunks if chunk.endswith(b"\xc3"))
        assert reply.chunks[reply.chunks.index(head) + 1].startswith(b"\xb6")
        assert trio.current_time() - start == 4


async def test_a_split_into_messages_makes_events_that_are_no_json() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, split: {parts: 2, into: messages}}]") as server:
        reply = await streamed(await server.aap())
        pieces = [data for name, data in reply.events if name == "text_delta"][:2]
        assert "".join(map(str, pieces)) == '{"delta":"one"}'


async def test_a_stream_drips_and_a_whole_reply_too(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: turn, rate: 50B/s}]") as server:
        aap = await server.aap()
        session = await aap.new()
        for mode in ("delta", "none"):
            start = trio.current_time()
            reply = await aap.turn(session, stream=mode)
            assert reply.complete
            assert trio.current_time() - start == pytest.approx(len(reply.body) / 50, abs=1)


# --- lengths and endings


async def test_a_truncated_event_is_cut_in_its_middle_and_the_stream_goes_on() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, truncate: 27}]") as server:
        reply = await streamed(await server.aap())
        assert b'data: {"devent: text_delta\n' in reply.body or b"event: text_delta\ndata: {" in reply.body
        assert reply.complete


async def test_a_truncated_reply_has_a_wrong_length() -> None:
    async with serving(TALK + "faults: [{at: turn, when: {nth: 1}, truncate: 12}]") as server:
        aap = await server.aap()
        reply = await streamed(aap, "none")
        assert not reply.complete
        assert reply.body == b'{"stopReason'
        assert int(reply.headers["content-length"]) > 12


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("mode", ["delta", "message"])
async def test_a_stream_ends_before_turn_stop(how: str, mode: str) -> None:
    async with serving(TALK + f"faults: [{{at: say, when: {{nth: 2}}, disconnect: {how}}}]") as server:
        aap = await server.aap()
        reply = await streamed(aap, mode)
        assert [name for name, _ in reply.events][1:] == [{"delta": "text_delta", "message": "text"}[mode]] * 2
        assert reply.complete is (how == "close"), "only an orderly end has the last chunk"
        if how == "close":
            assert (await aap.call("GET", "/meta")).status == 200
        else:
            assert await aap.raw.rest() == (RESET if how == "reset" else b"")


@pytest.mark.parametrize("how", ["close", "reset", "half"])
async def test_a_connection_ends_before_any_reply_and_behind_a_whole_one(how: str) -> None:
    end = RESET if how == "reset" else b""
    async with serving(f"faults: [{{at: GET /meta, when: {{nth: 1}}, disconnect: {how}, drop: true}}]") as server:
        aap = await server.aap()
        await aap.ask("GET", "/meta")
        assert await aap.raw.rest() == end
    async with serving(f"faults: [{{at: 'reply:GET /meta', when: {{nth: 1}}, disconnect: {how}}}]") as server:
        aap = await server.aap()
        assert (await aap.call("GET", "/meta")).complete
        assert await aap.raw.rest() == end


async def test_a_reply_is_cut_in_its_middle_by_a_reset() -> None:
    async with serving("faults: [{at: GET /meta, truncate: 10, disconnect: reset}]") as server:
        aap = await server.aap()
        reply = await aap.call("GET", "/meta")
        assert (reply.body, reply.complete) == (b'{"version"', False)
        assert aap.raw.ended == RESET


async def test_a_stream_stalls_and_goes_on_or_never_does(autojump_clock: Any) -> None:
    faults = "faults: [{at: say, when: {nth: 1}, stall: {write: 60s}}, {at: stop, stall: {write: forever}}]"
    async with serving(TALK + faults) as server:
        aap = await server.aap()
        session = await aap.new()
        start = trio.current_time()
        await aap.begin(session)
        assert await aap.raw.until(b'"one"}') is not None
        assert trio.current_time() == start
        assert await aap.raw.until(b"turn_stop") is not None
        assert trio.current_time() - start == 60
        assert b"end_turn" in (await aap.raw.until(b"\n\n") or b"")
        assert await aap.raw.quiet(600), "neither the last chunk nor an end"


async def test_a_stalled_reader_takes_the_next_request_late(autojump_clock: Any) -> None:
    async with serving("faults: [{at: GET /meta, when: {nth: 1}, stall: {read: 10s}}]") as server:
        aap = await server.aap()
        start = trio.current_time()
        await aap.call("GET", "/meta")
        await aap.call("GET", "/meta")
        assert trio.current_time() - start == 10


async def test_a_client_that_leaves_is_not_noticed_if_a_fault_says_so(autojump_clock: Any) -> None:
    turns = "turns: [{steps: [{say: one}, {wait: 5s}, {say: two}]}]\n"
    async with serving(turns + "faults: [{at: cancel, ignore: cancel}]") as server:
        aap = await server.aap()
        session = await aap.new()
        await aap.begin(session)
        await aap.raw.until(b'"one"}')
        server.streams[-1].socket.close()
        await trio.sleep(10)
        history = await (await server.aap()).call("GET", f"/sessions/{session}/history?type=full")
        assert b"two" in history.body


async def test_heartbeats_go_on_through_a_long_silence(autojump_clock: Any) -> None:
    """A comment a second for a minute: steps send what is no event."""
    beat = '{repeat: {times: 60, every: 1s, steps: [{send: ": ping\\n\\n"}]}}'
    turns = f"turns: [{{steps: [{{say: one}}, {beat}, {{say: two}}]}}]\n"
    async with serving(turns) as server:
        aap = await server.aap()
        reply = await streamed(aap)
        assert reply.body.count(b": ping\n\n") == 60
        assert reply.told == ["one", "two"]
