"""Bytes on the pipe of a real process: each read is one write of the agent."""

from __future__ import annotations

import json
import signal
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.faults.wire import CWD, RESET, Client, kinds, process, said

QUIET = "legality: unspecified\nsessions: {auto_title: null}\n"
TALK = QUIET + "turns: [{steps: [{say: one}, {say: 'zwö'}, {say: three}]}]\n"


@pytest.fixture
def agent(tmp_path: Path):
    """Starts a scenario; gives the process and a client that talks to it."""

    @asynccontextmanager
    async def start(scenario: str, *args: str):
        file = tmp_path / "scenario.yaml"
        file.write_text(scenario, encoding="utf-8")
        async with process("acp", *args, files=file) as child:
            yield child, Client(child)

    return start


async def writes(client: Client, until: str = "stopReason") -> list[bytes]:
    """Prompts, and returns the writes that come up to the reply."""
    session = await client.new()
    before = len(client.raw.pieces)
    await client.prompt(session)
    await client.raw.until(until.encode())
    return [data for _, data in client.raw.pieces[before:]]


# --- framing


async def test_without_a_fault_a_burst_is_one_write_of_whole_lines(agent: Any) -> None:
    async with agent(TALK) as (_, client):
        [data] = await writes(client)
        assert data.count(b"\n") == 4
        assert data.endswith(b"\n")
        assert not [line for line in data.splitlines() if "jsonrpc" not in json.loads(line)]


@pytest.mark.parametrize(
    ("newline", "end"), [("crlf", b"}\r\n{"), ("cr", b"}\r{"), ("none", b"}{"), ("double", b"}\n\n{")]
)
async def test_line_endings(agent: Any, newline: str, end: bytes) -> None:
    async with agent(TALK + f"faults: [{{at: say, newline: {newline}}}]") as (_, client):
        data = b"".join(await writes(client))
        assert data.count(end) == 3


async def test_bytes_stand_before_a_message_on_its_line_and_behind_its_line_end(agent: Any) -> None:
    faults = r"""
faults:
  - {at: say, when: {nth: 1}, bytes: {before: "\e[0m"}}
  - {at: say, when: {nth: 2}, bytes: {before: "DEBUG: starting\n", after: "# done\n"}}
"""
    async with agent(TALK + faults) as (_, client):
        lines = b"".join(await writes(client)).split(b"\n")
        assert said([json.loads(lines[0].removeprefix(b"\x1b[0m"))]) == ["one"]
        assert lines[1] == b"DEBUG: starting"
        assert said([json.loads(lines[2])]) == ["zwö"]
        assert lines[3] == b"# done"


async def test_a_split_is_several_writes(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 2}, split: {at: [5, 10]}}]") as (_, client):
        first, a, b, c, last = await writes(client)
        assert first.endswith(b"\n")
        assert (len(a), len(b)) == (5, 5)
        assert said([json.loads(a + b + c)]) == ["zwö"]
        assert last.startswith(b"{")


async def test_a_split_cuts_into_equal_parts_or_inside_a_character_with_a_pause(agent: Any) -> None:
    faults = """
faults:
  - {at: say, when: {nth: 1}, split: {parts: 4}}
  - {at: say, when: {nth: 2}, split: {at: utf8, pause: 300ms}}
"""
    async with agent(TALK + faults) as (_, client):
        session = await client.new()
        before = len(client.raw.pieces)
        await client.prompt(session)
        await client.raw.until(b"stopReason")
        pieces = client.raw.pieces[before:]
        parts = [data for _, data in pieces]
        assert max(map(len, parts[:4])) - min(map(len, parts[:4])) <= 1
        assert said([json.loads(b"".join(parts[:4]))]) == ["one"]
        (t, head), (u, tail), *_ = pieces[4:]
        assert head.endswith(b"\xc3")
        assert tail.startswith(b"\xb6")
        assert u - t >= 0.25


async def test_a_split_into_messages_makes_lines_that_are_no_json(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 1}, split: {parts: 2, into: messages}}]") as (_, client):
        session = await client.new()
        messages = await client.turn(session)
        assert [type(message) for message in messages[:2]] == [bytes, bytes]
        assert said([json.loads(messages[0] + messages[1])]) == ["one"]


async def test_a_truncated_line_runs_into_the_next_one(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 1}, truncate: 40}]") as (_, client):
        lines = b"".join(await writes(client)).split(b"\n")
        assert lines[0][40:].startswith(b'{"jsonrpc"')
        assert len(lines) == 4, "three lines and their end; the first holds one message and a piece"


async def test_only_ascii_leaves_where_that_is_wanted_and_means_the_same(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, escape: ascii}]") as (_, client):
        data = b"".join(await writes(client))
        assert b"zw\\u00f6" in data
        assert data.isascii()
        assert said([json.loads(line) for line in data.splitlines()[:3]]) == ["one", "zwö", "three"]


async def test_bytes_drip_at_a_rate(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 1}, rate: 600B/s}]") as (_, client):
        session = await client.new()
        before = len(client.raw.pieces)
        await client.prompt(session)
        await client.raw.until(b"\n")
        pieces = client.raw.pieces[before:]
        assert len(pieces) >= 5
        assert max(len(data) for _, data in pieces[:-1]) <= 30
        size = sum(len(data) for _, data in pieces)
        assert pieces[-1][0] - pieces[0][0] >= (size - 60) / 600


async def test_wire_effects_at_a_request_hold_until_its_reply_has_left(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: turn, when: {nth: 1}, newline: crlf}]") as (_, client):
        session = await client.new()
        for count in (4, 0):
            before = len(client.raw.pieces)
            await client.prompt(session)
            await client.raw.until(b"stopReason")
            await client.call("session/list")
            data = b"".join(data for _, data in client.raw.pieces[before:])
            assert data.count(b"\r\n") == count


async def test_a_lone_surrogate_and_a_nul_can_be_sent(agent: Any) -> None:
    turns = r"""
turns:
  - steps:
      - send: '{"jsonrpc":"2.0","method":"_lone","params":{"text":"\ud800"}}'
      - say: "a\0b\e[31m"
"""
    async with agent(QUIET + turns) as (_, client):
        data = b"".join(await writes(client))
        assert rb'"text":"\ud800"' in data
        assert b"a\\u0000b\\u001b[31m" in data
        assert not {0, 27} & set(data)


@pytest.mark.parametrize("wait", ["0s", "100ms"])
async def test_a_reply_and_the_messages_before_it_leave_in_one_write(agent: Any, wait: str) -> None:
    turns = f"turns: [{{steps: [{{say: one}}, {{after: {wait}, say: two}}, {{after: {wait}, say: three}}]}}]\n"
    async with agent(QUIET + turns + 'faults: [{at: "reply:session/prompt", coalesce: 3}]') as (_, client):
        *_, last = await writes(client)
        assert kinds([json.loads(line) for line in last.splitlines()])[-3:] == ["agent_message_chunk"] * 2 + ["result"]


async def test_what_waits_for_one_write_leaves_when_the_client_is_asked_or_the_turn_is_over(agent: Any) -> None:
    turns = """
turns:
  - when: {prompt: ask}
    steps: [{say: one}, {ask: {title: May I?}}, {say: two}]
  - steps: [{say: one}, {stop: end_turn}, {say: behind}]
"""
    async with agent(QUIET + turns + 'faults: [{at: "update:plan", coalesce: 5000}]') as (_, client):
        session = await client.new()
        client.answers["session/request_permission"] = {"outcome": {"outcome": "cancelled"}}
        assert kinds(await client.turn(session, "ask")) == [
            "agent_message_chunk",
            "session/request_permission",
            "result",
        ]
        assert kinds(await client.turn(session)) == ["agent_message_chunk", "result"]
        assert said([await client.next()]) == ["behind"]


# --- order and answers, over a pipe as anywhere else


async def test_order_and_answers(agent: Any) -> None:
    faults = """
sessions: {page_size: 1, stored: [{id: a, updated_at: 1h ago}, {id: b, updated_at: 2h ago}]}
turns: [{steps: [{say: one}, {say: two}, {say: three}]}]
faults:
  - {at: say, when: {nth: 1}, hold: {until: turn_ended}}
  - {at: say, when: {nth: 2}, copies: 2, play_before: [{say: before}], play_after: [{say: after}]}
  - {at: say, when: {nth: 3}, delay: 300ms, edit: {set: /params/update/content/text, to: "${value}!"}}
  - {at: create, when: {nth: 1}, hold: {until: reply}}
  - {at: list, when: {nth: 2}, cursor: repeat}
  - {at: list, when: {nth: 3}, error: invalid_cursor}
"""
    async with agent("legality: unspecified\n" + faults) as (_, client):
        await client.initialize()
        ids = [await client.request("session/new", cwd=CWD, mcpServers=[]) for _ in range(2)]
        replies = [await client.next(), await client.next()]
        assert [reply["id"] for reply in replies] == ids[::-1]
        session = replies[1]["result"]["sessionId"]
        start = trio.current_time()
        assert said(await client.turn(session)) == ["before", "two", "two", "after", "three!"]
        assert trio.current_time() - start >= 0.3
        assert "one" in said([await client.next(), await client.next()])
        first = (await client.call("session/list"))["result"]["nextCursor"]
        assert (await client.call("session/list", cursor=first))["result"]["nextCursor"] == first
        assert (await client.call("session/list", cursor=first))["error"]["code"] == -32602


# --- noise on stderr


async def test_stderr_gets_text_bytes_and_more_of_it(agent: Any) -> None:
    faults = """
faults:
  - {at: start, stderr: "starting up\\n"}
  - {at: turn, when: {nth: 1}, stderr: {text: "0123456789", bytes: 300005}}
  - {at: session/list, stderr: {text: "tick\\n", every: 20ms}}
"""
    async with agent(TALK + faults) as (child, client):
        assert await child.stderr.until(b"starting up\n") is not None
        session = await client.new()
        got = bytearray()

        async def drain() -> None:
            while len(got) < 300005:
                got.extend(await child.stderr.exactly(1) or b"!")
                got.extend(child.stderr.take(len(child.stderr.held)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            assert kinds(await client.turn(session))[-1] == "result"
        assert bytes(got[:300005]) == (b"0123456789" * 30001)[:300005]
        await client.call("session/list")
        for _ in range(3):
            assert await child.stderr.until(b"tick\n") is not None


# --- ends


@pytest.mark.parametrize("how", ["close", "half", "reset"])
async def test_a_closed_stdout_comes_behind_what_was_said_and_the_process_stays(agent: Any, how: str) -> None:
    async with agent(TALK + f"faults: [{{at: say, when: {{nth: 2}}, disconnect: {how}}}]") as (child, client):
        session = await client.new()
        await client.prompt(session)
        assert said(await client.rest()) == ["one", "zwö"]
        assert client.raw.ended == b""
        with trio.move_on_after(0.3):
            await child.ended()
        assert child.child.returncode is None
        assert await child.leave() == 0


@pytest.mark.parametrize(
    ("effect", "status"),
    [("exit: 0", 0), ("exit: {code: 7}", 7), ("exit: {signal: SIGKILL}", -9), ("exit: {signal: TERM}", -15)],
)
async def test_a_process_exits_in_the_middle_of_a_turn_behind_what_was_said(
    agent: Any, effect: str, status: int
) -> None:
    fault = f"{{at: say, when: {{nth: 2}}, {effect}, stderr: 'last words\\n'}}"
    async with agent(TALK + f"faults: [{fault.replace(chr(39), chr(34))}]") as (child, client):
        await client.prompt(await client.new())
        assert said(await client.rest()) == ["one", "zwö"]
        assert await child.ended() == status
        assert b"last words\n" in await child.stderr.rest()


async def test_an_error_leaves_before_the_process_does(agent: Any) -> None:
    async with agent(QUIET + "faults: [{at: session/load, error: session_not_found, exit: 1}]") as (child, client):
        await client.initialize()
        reply = await client.call("session/load", sessionId="x", cwd="/", mcpServers=[])
        assert reply["error"]["code"] == -32002
        assert await client.next() is None
        assert await child.ended() == 1


async def test_a_process_that_does_not_start_tells_why(agent: Any) -> None:
    async with agent(QUIET + 'faults: [{at: start, stderr: "no licence\\n", exit: {code: 3}}]') as (child, client):
        assert await client.next() is None
        assert await child.ended() == 3
        assert await child.stderr.rest() == b"no licence\n"


async def test_a_step_can_do_what_a_fault_does(agent: Any) -> None:
    turns = "turns: [{steps: [{say: one}, {stderr: bye}, {exit: {code: 5}}, {say: never}]}]"
    async with agent(QUIET + turns) as (child, client):
        await client.prompt(await client.new())
        assert said(await client.rest()) == ["one"]
        assert await child.ended() == 5
        assert await child.stderr.rest() == b"bye"


# --- stall, ignore


async def test_a_stalled_writer_says_nothing_and_still_reads(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 2}, stall: {write: forever}}]") as (child, client):
        await client.prompt(await client.new())
        assert said([await client.next(), await client.next()]) == ["one", "zwö"]
        assert await client.raw.quiet(0.5)
        for _ in range(300):
            await client.request("session/list")  # more than a pipe holds: somebody reads it
        child.signal(signal.SIGTERM)
        assert await child.ended() == 0


async def test_a_stalled_writer_goes_on(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: say, when: {nth: 2}, stall: {write: 500ms}}]") as (_, client):
        await client.prompt(await client.new())
        assert said([await client.next(), await client.next()]) == ["one", "zwö"]
        start = trio.current_time()
        assert said([await client.next()]) == ["three"]
        assert trio.current_time() - start >= 0.4


async def test_a_stalled_reader_leaves_the_pipe_full(agent: Any) -> None:
    async with agent(TALK + "faults: [{at: turn, stall: {read: forever}}]") as (_, client):
        session = await client.new()
        assert kinds(await client.turn(session))[-1] == "result", "what is read already is answered"
        with trio.move_on_after(0.3) as scope:
            await client.raw.write(b" " * 2_000_000 + b"\n")
        assert scope.cancelled_caught, "nobody reads"


async def test_eof_can_be_ignored_and_so_can_sigterm(agent: Any) -> None:
    async with agent(QUIET + "faults: [{at: eof, ignore: eof}, {at: start, ignore: [sigterm]}]") as (child, client):
        await client.initialize()
        assert child.child.stdin is not None
        await child.child.stdin.aclose()
        with trio.move_on_after(0.5) as scope:
            await child.ended()
        assert scope.cancelled_caught
        child.signal(signal.SIGTERM)
        with trio.move_on_after(0.5) as scope:
            await child.ended()
        assert scope.cancelled_caught
        child.signal(signal.SIGKILL)
        assert await child.ended() == -9


async def test_a_process_can_leave_in_its_own_way_at_eof_and_at_sigterm(agent: Any) -> None:
    faults = 'faults: [{at: eof, stderr: "bye\\n", exit: 4}, {at: sigterm, stderr: "no\\n", exit: {code: 9}}]'
    async with agent(QUIET + faults) as (child, client):
        await client.initialize()
        assert await child.leave() == 4
        assert await child.stderr.rest() == b"bye\n"
    async with agent(QUIET + faults) as (child, client):
        await client.initialize()
        child.signal(signal.SIGTERM)
        assert await child.ended() == 9
        assert await child.stderr.rest() == b"no\n"


async def test_cancel_can_be_ignored_once_or_for_a_whole_turn(agent: Any) -> None:
    turns = "turns: [{steps: [{say: one}, {wait_for: {method: session/list}}, {say: two}]}]\n"
    faults = "faults: [{at: cancel, when: {times: 1}, ignore: cancel}]"
    async with agent(QUIET + turns + faults) as (_, client):
        session = await client.new()
        id = await client.prompt(session)
        await client.next()
        await client.cancel(session)
        await client.request("session/list")
        assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}
        id = await client.prompt(session)
        await client.cancel(session)
        assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}


async def test_a_pipe_that_the_client_closes_is_no_fault(agent: Any) -> None:
    async with agent(TALK) as (child, client):
        await client.initialize()
        assert await child.leave() == 0
        assert RESET not in await child.stderr.rest()
