"""ACP over two streams: lines in, lines out, and the end, all inside this process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, memory_stream_one_way_pair, wait_all_tasks_blocked

from mockagent.acp.stdio import serve_stdio
from mockagent.host import Host, Options
from mockagent.net.stdio import open_stdio
from mockagent.scenario.load import load_text
from mockagent.script.driver import drive
from tests.harness import Json, Notes, is_reply, stop_reason, updates, words

PROMPT_ID = 3


class Pipe:
    """The client's ends of two streams.

    Attributes:
        done: set when the agent has gone.
        gone_at: when that was.
    """

    def __init__(self, host: Host, notes: Notes, to: trio.abc.SendStream, of: trio.abc.ReceiveStream) -> None:
        self.host = host
        self.notes = notes
        self.to = to
        self.of = of
        self.done = trio.Event()
        self.gone_at = 0.0
        self._rest = b""

    async def write(self, *messages: Any) -> None:
        """Writes lines, all at once."""
        texts = [one if isinstance(one, bytes) else msgspec.json.encode(one) for one in messages]
        await self.to.send_all(b"".join(text + b"\n" for text in texts))

    async def line(self) -> Any:
        """The next message, None at the end."""
        while b"\n" not in self._rest:
            data = await self.of.receive_some(65536)
            if not data:
                assert self._rest == b"", "the last line is not whole"
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line)

    async def until(self, id: Any) -> list[Any]:
        """Everything up to the reply to a request."""
        seen = []
        while (message := await self.line()) is not None:
            seen.append(message)
            if is_reply(message, id):
                break
        return seen

    async def rest(self) -> list[Any]:
        """Everything up to the end."""
        seen = []
        while (message := await self.line()) is not None:
            seen.append(message)
        return seen

    async def begin(self) -> str:
        """Makes a session."""
        await self.write(*BEGIN)
        id: str = (await self.until(2))[-1]["result"]["sessionId"]
        return id

    async def prompt(self, session: str, id: Any = PROMPT_ID) -> None:
        await self.write(request(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}]))


def request(id: Any, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


BEGIN = (
    request(1, "initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}}),
    request(2, "session/new", cwd="/a", mcpServers=[]),
)


@asynccontextmanager
async def stdio(scenario: str, streams: Any = None, *, sessions: str = "") -> AsyncIterator[Pipe]:
    """An agent at the other end of two streams; in memory unless told otherwise."""
    notes = Notes()
    text = f"{{sessions: {{auto_title: null, {sessions}}}, {scenario}}}"
    host = Host([load_text(text)], Options(), taps=[notes])
    if streams is None:
        to, receive = memory_stream_one_way_pair()
        send, of = memory_stream_one_way_pair()
    else:
        to, receive, send, of = streams
    pipe = Pipe(host, notes, to, of)

    async def serve() -> None:
        await serve_stdio(host.backstage, host.agents[0], receive, send)
        pipe.gone_at = trio.current_time()
        pipe.done.set()
        await send.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, host.stage)
        nursery.start_soon(serve)
        with trio.fail_after(30):
            yield pipe
        nursery.cancel_scope.cancel()
    for stream in (to, of, receive, send):
        await trio.aclose_forcefully(stream)


def pipes() -> tuple[Any, ...]:
    """The four ends of two pipes of the system."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    return tuple(trio.lowlevel.FdStream(fd) for fd in (in_write, in_read, out_write, out_read))


TURN = "turns: [{steps: [{say: hello}, {wait: 2s}, {say: world}]}]"


async def test_a_turn_plays_over_lines(autojump_clock: MockClock) -> None:
    async with stdio(TURN) as pipe:
        session = await pipe.begin()
        start = trio.current_time()
        await pipe.prompt(session)
        seen = await pipe.until(PROMPT_ID)
        assert words(seen) == "helloworld"
        assert trio.current_time() - start == pytest.approx(2, abs=0.01)


async def test_text_leaves_before_the_wait_behind_it(autojump_clock: MockClock) -> None:
    async with stdio(TURN) as pipe:
        session = await pipe.begin()
        start = trio.current_time()
        await pipe.prompt(session)
        assert words([await pipe.line()]) == "hello"
        assert trio.current_time() == pytest.approx(start, abs=0.01)


async def test_blank_lines_crlf_and_a_last_line_without_its_end_do_no_harm(autojump_clock: MockClock) -> None:
    async with stdio(TURN) as pipe:
        init = msgspec.json.encode(BEGIN[0])
        await pipe.to.send_all(b"\n  \r\n" + init[:9])
        await pipe.to.send_all(init[9:] + b"\r\n\n" + msgspec.json.encode(BEGIN[1]))
        await pipe.to.aclose()
        assert [message["id"] for message in await pipe.rest()] == [1, 2]


async def test_a_burst_is_whole_lines_and_as_many_as_there_are_chunks() -> None:
    size = 20_000
    async with stdio(f"turns: [{{steps: [{{say: '{'x' * size}', pace: {{chunk: 1}}}}]}}]", pipes()) as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        seen = await pipe.until(PROMPT_ID)
        assert len(words(seen)) == size
        assert len(seen) == size + 1


async def test_cancel_in_a_burst_leaves_whole_lines_and_nothing_behind_the_reply() -> None:
    async with stdio(f"turns: [{{steps: [{{say: '{'x' * 20_000}', pace: {{chunk: 1}}}}]}}]", pipes()) as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        for _ in range(300):
            await pipe.line()
        await pipe.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        seen = await pipe.until(PROMPT_ID)
        assert stop_reason(seen) == "cancelled"
        assert len(seen) < 19_000
        await pipe.to.aclose()
        assert await pipe.rest() == []


async def test_a_client_that_does_not_read_holds_up_its_own_turn_and_no_other() -> None:
    """Two connections on one stage: the one that reads gets all of its turn."""
    size = 60_000
    slow_ends, quick_ends = pipes(), pipes()
    async with stdio(f"turns: [{{steps: [{{say: '{'x' * size}', pace: {{chunk: 1}}}}]}}]", slow_ends) as slow:
        session = await slow.begin()
        await slow.prompt(session)
        await wait_all_tasks_blocked()
        to, receive, send, of = quick_ends
        quick = Pipe(slow.host, slow.notes, to, of)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_stdio, slow.host.backstage, slow.host.agents[0], receive, send)
            other = await quick.begin()
            await quick.prompt(other)
            assert len(words(await quick.until(PROMPT_ID))) == size
            [line] = [out.line(None) for out in slow.host.backstage.connections.values() if out.peer.id == "c1"]
            assert line._bytes < 2**20
            assert len(words(await slow.until(PROMPT_ID))) == size
            nursery.cancel_scope.cancel()
        for stream in quick_ends:
            await trio.aclose_forcefully(stream)


# --- the end


async def test_requests_that_were_read_before_eof_are_answered(autojump_clock: MockClock) -> None:
    async with stdio(TURN) as pipe:
        await pipe.write(*BEGIN, request(9, "session/list"))
        await pipe.to.aclose()
        assert [message["id"] for message in await pipe.rest()] == [1, 2, 9]
        await pipe.done.wait()
        assert trio.current_time() == pytest.approx(0, abs=0.1)


async def test_at_eof_turns_play_on_without_their_waits(autojump_clock: MockClock) -> None:
    steps = "{say: a}, {wait: 1h}, {tool: {name: x, takes: 1h, output: o}}, {say: b}, {stop: end_turn}, "
    async with stdio(f"turns: [{{steps: [{steps} {{after: 2s, info: {{title: late}}}}]}}]") as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        start = trio.current_time()
        await pipe.to.aclose()
        seen = await pipe.rest()
        assert words(seen) == "ab"
        assert stop_reason(seen) == "end_turn"
        assert updates(seen)[-1]["title"] == "late"
        assert pipe.gone_at - start < 0.5


async def test_two_prompts_in_one_read_are_two_turns(autojump_clock: MockClock) -> None:
    """What needs no time plays between two lines of one read, as it would between two reads."""
    async with stdio("turns: [{steps: [{say: '${prompt}'}]}]") as pipe:
        session = await pipe.begin()
        await pipe.write(
            *[
                request(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": id}])
                for id in ("one", "two")
            ]
        )
        await pipe.to.aclose()
        assert [message.get("id") or words([message]) for message in await pipe.rest()] == ["one", "one", "two", "two"]


@pytest.mark.parametrize(
    "steps",
    ["{hang: true}", "{repeat: {every: 1s, steps: [{say: x}]}}", "{wait_for: {method: session/set_mode}}"],
)
async def test_a_turn_that_does_not_end_is_cancelled_and_the_process_gone_within_two_seconds(
    steps: str, autojump_clock: MockClock
) -> None:
    async with stdio(f"turns: [{{steps: [{steps}]}}]") as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        await wait_all_tasks_blocked()
        start = trio.current_time()
        await pipe.to.aclose()
        seen = await pipe.rest()
        assert stop_reason(seen) == "cancelled"
        assert len(seen) <= 3
        assert 1.4 < pipe.gone_at - start < 2.0


async def test_a_client_that_does_not_even_read_at_eof_is_left_within_two_seconds(autojump_clock: MockClock) -> None:
    async with stdio(f"turns: [{{steps: [{{say: '{'x' * 9000}', pace: {{chunk: 1}}}}]}}]", pipes()) as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        await wait_all_tasks_blocked()
        start = trio.current_time()
        await pipe.to.aclose()
        await pipe.done.wait()
        assert pipe.gone_at - start < 2.0


async def test_a_permission_that_is_open_at_eof_fails_and_the_turn_goes_on(autojump_clock: MockClock) -> None:
    async with stdio("turns: [{steps: [{tool: {name: rm, ask: true}}, {read: {path: a}}, {say: on}]}]") as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        await pipe.line()
        assert (await pipe.line())["method"] == "session/request_permission"
        start = trio.current_time()
        await pipe.to.aclose()
        seen = await pipe.rest()
        assert [update.get("status") for update in updates(seen)] == ["failed", None]
        assert (words(seen), stop_reason(seen)) == ("on", "end_turn")
        assert pipe.gone_at - start < 0.5


async def test_prompts_that_wait_in_a_queue_at_eof_are_answered_too(autojump_clock: MockClock) -> None:
    for steps, reasons in (("{say: x}, {wait: 1h}", ["end_turn"] * 2), ("{say: x}, {hang: true}", ["cancelled"] * 2)):
        async with stdio(f"turns: [{{steps: [{steps}]}}]", sessions="busy: queue") as pipe:
            session = await pipe.begin()
            await pipe.prompt(session, 3)
            await pipe.prompt(session, 4)
            await pipe.to.aclose()
            seen = await pipe.rest()
            assert sorted(message["result"]["stopReason"] for message in seen if "result" in message) == reasons


async def test_what_is_scheduled_without_end_does_not_keep_the_process(autojump_clock: MockClock) -> None:
    scenario = "schedule: [{event: session_opened, every: 1s, steps: [{info: {meta: {n: 1}}}]}]"
    async with stdio(scenario) as pipe:
        await pipe.begin()
        await trio.sleep(3.5)
        start = trio.current_time()
        await pipe.to.aclose()
        assert len(updates(await pipe.rest())) == 4
        assert pipe.gone_at - start < 0.5


async def test_when_the_client_closes_its_end_the_agent_leaves_at_once(autojump_clock: MockClock) -> None:
    async with stdio("turns: [{steps: [{repeat: {every: 1s, steps: [{say: x}]}}]}]") as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        await pipe.line()
        await pipe.of.aclose()
        with trio.fail_after(2):
            await pipe.done.wait()
        assert pipe.notes.of("lost") == [{"count": 1}]
        assert pipe.notes.of("closed")


async def test_a_line_that_is_too_long_costs_that_line(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    from mockagent.acp import stdio as binding
    from mockagent.net.lines import LineReader

    monkeypatch.setattr(binding, "LineReader", lambda stream: LineReader(stream, limit=300))
    async with stdio(TURN) as pipe:
        await pipe.write(BEGIN[0], b"x" * 1000, BEGIN[1])
        seen = await pipe.until(2)
        assert [message["id"] for message in seen] == [1, None, 2]
        assert seen[1]["error"]["code"] == -32600


async def test_the_threaded_variant_plays_the_same() -> None:
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    errors = os.open(os.devnull, os.O_WRONLY)
    steps = "{say: hello}, {wait: 10ms}, {say: world, pace: {chunk: 1}}"
    with open_stdio(threaded=True, stdin=in_read, stdout=out_write, stderr=errors) as streams:
        ends = (trio.lowlevel.FdStream(in_write), streams.receive, streams.send, trio.lowlevel.FdStream(out_read))
        async with stdio(f"turns: [{{steps: [{steps}]}}]", ends) as pipe:
            session = await pipe.begin()
            await pipe.prompt(session)
            assert words(await pipe.until(PROMPT_ID)) == "helloworld"
            await pipe.to.aclose()
            with trio.fail_after(2):
                await pipe.done.wait()
    for fd in (in_read, out_write, errors):
        os.close(fd)


async def test_a_fault_sees_every_chunk_of_a_stream(autojump_clock: MockClock) -> None:
    async with stdio(
        "turns: [{steps: [{say: abcdef, pace: {chunk: 1}}]}], "
        "faults: [{at: say, when: {nth: [2, 4]}, copies: 2}, {at: say, when: {nth: 5}, drop: true}]"
    ) as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        assert words(await pipe.until(PROMPT_ID)) == "abbcddf"


async def test_steps_of_a_fault_play_before_an_incoming_notification_is_taken(autojump_clock: MockClock) -> None:
    async with stdio(
        "turns: [{steps: [{hang: true}]}], faults: [{at: session/cancel, play_before: [{say: wait!}]}]"
    ) as pipe:
        session = await pipe.begin()
        await pipe.prompt(session)
        await pipe.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        seen = await pipe.until(PROMPT_ID)
        assert (words(seen), stop_reason(seen)) == ("wait!", "cancelled")


@pytest.mark.parametrize(
    ("point", "answered"),
    [
        ("session_opened", [1, 2]),
        ("session_listed", [1, 2, 5]),
        ("turn_started", [1, 2, 5]),
        ("turn_ended", [1, 2, 5, PROMPT_ID]),
    ],
)
async def test_a_fault_at_a_point_in_the_life_of_a_session_happens_there(
    point: str, answered: list[int], autojump_clock: MockClock
) -> None:
    async with stdio(
        f"turns: [{{steps: [{{say: x}}]}}], legality: violation, faults: [{{at: {point}, disconnect: close}}]"
    ) as pipe:
        await pipe.write(*BEGIN)
        seen = await pipe.until(2)
        if point != "session_opened":
            session = seen[-1]["result"]["sessionId"]
            await pipe.write(request(5, "session/list"))
            if point != "session_listed":
                await pipe.prompt(session)
        seen += await pipe.rest()
        assert [message["id"] for message in seen if "id" in message] == answered
