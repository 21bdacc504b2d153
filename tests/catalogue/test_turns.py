"""Scenarios about how turns and processes end, each shown to happen on the wire."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import trio

from tests.catalogue.judged import Catalogue, Court, Played, over_aap, spawned, updates
from tests.faults.wire import CWD, Process, kinds, said, serving

TURNS = Catalogue("turns")
MUST_BE_CANCELLED = "a cancelled turn is answered with the stop reason `cancelled` (Prompt Turn, cancellation)"
MUST_ANSWER = "a prompt is answered; here it is not until the user cancels"
LEAVES = "an agent leaves when its stdin is closed, or at SIGTERM at the latest (of processes, no message shows it)"
PROCESSES = {
    "exit-mid-turn", "forgets-sessions", "ignores-sigterm", "ignores-stdin-eof", "silent-turn-stderr-noise",
    "stdout-closed",
}  # fmt: skip
"""Those that need a process of their own."""


# --- turns that do not end


@TURNS.shows("never-ending-turn")
async def _(played: Played) -> None:
    client, _, _ = await played.start()
    messages = await client.during(3000)
    assert said(messages) == ["That is all there is to say."]
    assert "result" not in kinds(messages)


@TURNS.shows("stall-mid-word")
async def _(played: Played) -> None:
    client, _, _ = await played.start()
    messages = await client.during(3000)
    assert kinds(messages) == ["agent_message_chunk"] * 10
    assert "".join(said(messages)).endswith(" tha")


@pytest.mark.parametrize("name", ["never-ending-turn", "stall-mid-word"])
async def test_a_cancel_ends_a_turn_that_hangs(autojump_clock: Any, name: str) -> None:
    court = Court(f"turns/{name}")
    async with serving(court.path) as served:
        client, session, id = await Played(court, served).start()
        await client.during(3000)
        await client.cancel(session)
        assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}


# --- cancelling


@TURNS.shows("ignored-cancel", breaks=MUST_BE_CANCELLED)
async def _(played: Played) -> None:
    client, session, id = await played.start()
    await client.next()
    await client.cancel(session)
    began = trio.current_time()
    assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}
    assert trio.current_time() - began > 5
    assert len(said(client.seen)) == 20


@TURNS.shows("error-for-cancel")
async def _(played: Played) -> None:
    client, session, id = await played.start()
    await client.next()
    await client.cancel(session)
    error, reply = await client.next(), await client.next()
    assert (error["id"], error["error"]["code"]) == (None, -32601)
    assert (reply["id"], reply["result"]) == (id, {"stopReason": "cancelled"})


@TURNS.shows("cancel-as-end-turn", breaks=MUST_BE_CANCELLED)
async def _(played: Played) -> None:
    client, session, id = await played.start()
    assert said([await client.next()]) == ["Cancel me."]
    await client.cancel(session)
    assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}


@TURNS.shows("cancel-as-error", breaks=MUST_BE_CANCELLED)
async def _(played: Played) -> None:
    client, session, id = await played.start()
    assert said([await client.next()]) == ["Cancel me."]
    await client.cancel(session)
    error = (await client.reply(id))["error"]
    assert (error["code"], error["data"]["details"]) == (-32603, "AbortError: This operation was aborted")


@TURNS.shows("spurious-cancelled")
async def _(played: Played) -> None:
    messages = await played.turn()
    assert said(messages) == ["This is half of the ans"]
    assert messages[-1]["result"] == {"stopReason": "cancelled"}


# --- what is left, and how they end


@TURNS.shows("tool-left-open")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    messages = await client.turn(session)
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    assert [call["status"] for call in updates(messages, "tool_call")] == ["pending", "in_progress"]
    later = messages + await client.during(1000)
    assert not [update for update in updates(later, "tool_call_update") if "status" in update]


@TURNS.shows("stale-plan")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    first, second = await client.turn(session), await client.turn(session)
    [old], [new] = updates(first, "plan"), updates(second, "plan")
    assert [entry["status"] for entry in old["entries"]] == ["completed", "in_progress", "pending"]
    assert [entry["content"] for entry in new["entries"]] == ["Do something else"]
    assert first[-1]["result"] == second[-1]["result"] == {"stopReason": "end_turn"}


@TURNS.shows("empty-plan")
async def _(played: Played) -> None:
    plans = updates(await played.turn(), "plan")
    assert [len(plan["entries"]) for plan in plans] == [2, 0]


async def _stops(played: Played, reason: str, before: list[str]) -> list[Any]:
    """The next turn, behind one that ends with a reason."""
    client = await played.client()
    session = await client.new()
    messages = await client.turn(session)
    assert [kind for kind in kinds(messages) if kind != "session_info_update"] == [*before, "result"]
    assert messages[-1]["result"] == {"stopReason": reason}
    messages = await client.turn(session)
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    return messages


@TURNS.shows("refusal")
async def _(played: Played) -> None:
    assert said(await _stops(played, "refusal", ["agent_message_chunk"])) == ["With this I can help."]


@TURNS.shows("max-tokens")
async def _(played: Played) -> None:
    assert said(await _stops(played, "max_tokens", ["agent_thought_chunk"])) == ["And this is the answer."]


@TURNS.shows("max-turn-requests")
async def _(played: Played) -> None:
    messages = await _stops(played, "max_turn_requests", ["tool_call", "tool_call_update"])
    assert said(messages) == ["I have gone on and found it."]


@TURNS.shows("empty-turn")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    assert kinds(await client.turn(session)) == ["result"]
    assert client.seen[-1]["result"] == {"stopReason": "end_turn"}
    assert await client.during(1000) == []


@pytest.mark.parametrize("name", TURNS.checks)
async def test_a_turn_happens_as_described(autojump_clock: Any, name: str) -> None:
    await TURNS.play(name)


IN_AAP = {
    "refusal": (["text_delta"], "refusal"),
    "max-tokens": (["thinking_delta"], "max_tokens"),
    "max-turn-requests": (["tool_call", "tool_result"], "max_tokens"),
    "empty-turn": ([], "end_turn"),
    "tool-left-open": (["tool_call", "tool_call", "text_delta"], "end_turn"),
    "spurious-cancelled": (["text_delta"], "error"),
}


@pytest.mark.parametrize(("name", "said", "reason"), [(name, *seen) for name, seen in IN_AAP.items()], ids=IN_AAP)
async def test_a_turn_happens_over_aap_as_well(autojump_clock: Any, name: str, said: list[str], reason: str) -> None:
    events = (await over_aap(f"turns/{name}")).events
    assert [kind for kind, _ in events] == ["turn_start", *said, "turn_stop"]
    assert events[-1][1]["stopReason"] == reason


# --- processes


@pytest.mark.parametrize(("prompt", "status"), [("0", 0), ("kill", -9), ("go", 1)])
async def test_exit_mid_turn(prompt: str, status: int) -> None:
    async with spawned("turns/exit-mid-turn") as (child, client):
        await client.prompt(await client.new(), prompt)
        messages = await client.rest()
        assert said(messages)
        assert "result" not in kinds(messages)
        assert await child.ended() == status
        assert (b"panic: integer divide by zero" in await child.stderr.rest()) is (status == 1)


async def test_stdout_closed() -> None:
    async with spawned("turns/stdout-closed") as (child, client):
        await client.prompt(await client.new())
        messages = await client.rest()
        assert said(messages) == ["I am about to"]
        assert "result" not in kinds(messages)
        assert child.raw.ended == b""
        await child.stderr.until(b"lost my standard output\n")
        await _stays(child.child)
        assert child.child.stdin is not None
        await child.child.stdin.aclose()
        await _stays(child.child)
        child.signal()
        assert await child.ended() == 0


async def _stays(child: trio.Process, seconds: float = 0.3) -> None:
    """A process is still there after a while; a right one leaves within it."""
    with trio.move_on_after(seconds):
        raise AssertionError(f"it left with {await child.wait()}")


async def test_forgets_sessions() -> None:
    async with spawned("turns/forgets-sessions") as (child, client):
        session = await client.new()
        assert said(await client.turn(session, "x = 3")) == ["I will remember that you said: x = 3"]
        assert kinds(await client.turn(session, "restart"))[-1] == "result"
        assert await child.ended() == 0
    async with spawned("turns/forgets-sessions") as (_, client):
        able = (await client.initialize())["result"]["agentCapabilities"]
        assert able["loadSession"] is True
        assert (await client.call("session/list"))["result"]["sessions"] == []
        for method in ("session/load", "session/resume"):
            reply = await client.call(method, sessionId=session, cwd=CWD, mcpServers=[])
            assert reply["error"]["code"] == -32002
        assert kinds(await client.turn(session)) == ["error: -32002"]
        assert kinds(await client.turn(await client.new()))[-1] == "result"


async def test_silent_turn_stderr_noise() -> None:
    async with spawned("turns/silent-turn-stderr-noise", MUST_ANSWER) as (child, client):
        session = await client.new()
        id = await client.prompt(session)
        for _ in range(3):
            assert await child.stderr.until(b"[debug] waiting for the model\n") is not None
        before = len(client.seen)
        await client.cancel(session)
        assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}
        assert kinds(client.seen[before:]) == ["result"]


async def _leaves_behind(agent: Process, number: int) -> None:
    """A signal ends the agent and not its child, which is in the same group and holds stderr open."""
    child = await _child_of(agent.child.pid)
    assert os.getpgid(child) == os.getpgid(agent.child.pid)
    try:
        agent.signal(number)
        assert await agent.ended() == (0 if number == signal.SIGTERM else -number)
        os.kill(child, signal.SIGTERM)
        assert await agent.stderr.quiet(0.2)
        os.kill(child, 0)
        await agent.raw.rest()
        assert agent.raw.ended == b""
    finally:
        os.kill(child, signal.SIGKILL)
    await agent.stderr.rest()


async def _child_of(pid: int) -> int:
    done = await trio.run_process(["ps", "-A", "-o", "pid=,ppid="], capture_stdout=True)
    [child] = [int(row[0]) for row in map(bytes.split, done.stdout.splitlines()) if int(row[1]) == pid]
    return child


async def test_ignores_stdin_eof() -> None:
    async with spawned("turns/ignores-stdin-eof", LEAVES) as (child, client):
        assert kinds(await client.turn(await client.new()))[-1] == "result"
        assert child.child.stdin is not None
        await child.child.stdin.aclose()
        await child.stderr.until(b"and I stay\n")
        await _stays(child.child)
        await _leaves_behind(child, signal.SIGTERM)


async def test_ignores_sigterm() -> None:
    async with spawned("turns/ignores-sigterm", LEAVES) as (child, client):
        assert kinds(await client.turn(await client.new()))[-1] == "result"
        assert child.child.stdin is not None
        await child.child.stdin.aclose()
        child.signal()
        await child.stderr.until(b"and I stay\n")
        await _stays(child.child)
        await _leaves_behind(child, signal.SIGKILL)


def test_every_scenario_about_turns_is_shown() -> None:
    assert set(TURNS.checks) | PROCESSES == TURNS.bundled
