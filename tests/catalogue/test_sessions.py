"""Scenarios about loading, resuming, closing and deleting sessions, each shown to happen on the wire."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.catalogue.judged import Catalogue, Played, spawned
from tests.catalogue.same import same_over_stdio
from tests.faults.wire import CWD, Client, kinds, said
from tests.official import SCHEMA, official
from tests.transcript import Json

SEVERAL = {"huge-replay", "lost-session-looks-fine", "prompt-fails-once", "two-loads-at-once"}
"""Scenarios that are shown to several clients, or in bulk."""

SESSIONS = Catalogue("sessions")

HISTORY = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
TALK = ["user_message_chunk", "agent_message_chunk"]


async def enter(client: Client, id: str, method: str = "load") -> list[Any]:
    """Loads or resumes a session: all that came up to the reply, which is the last."""
    before = len(client.seen)
    await client.call(f"session/{method}", sessionId=id, cwd=CWD, mcpServers=[])
    return client.seen[before:]


async def introduced(played: Played) -> Client:
    client = await played.client()
    await client.initialize()
    return client


async def lives(client: Client, session: str) -> bool:
    """Whether a session answers a prompt."""
    messages = await client.turn(session, "still there?")
    return said(messages) == ["You said: still there?"] and messages[-1].get("result") == {"stopReason": "end_turn"}


# --- histories


@SESSIONS.shows("replay-before-reply")
async def _(played: Played) -> None:
    client = await introduced(played)
    start = trio.current_time()
    messages = await enter(client, "sess_auth")
    assert trio.current_time() - start == pytest.approx(0.08)
    assert kinds(messages) == [
        "user_message_chunk",
        "agent_thought_chunk",
        "plan",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "result",
    ]
    assert said(messages) == ["The token has expired."]
    assert not HISTORY & set(kinds(await client.during(10)))
    assert await lives(client, "sess_auth")


@SESSIONS.shows("replay-after-reply")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert kinds(await enter(client, "sess_late")) == ["result"]
    assert kinds(await client.during(10)) == TALK * 2
    assert await lives(client, "sess_late")


@SESSIONS.shows("no-replay", breaks="session/load replays the entire conversation before its reply")
async def _(played: Played) -> None:
    client = await introduced(played)
    talked = await client.new()
    assert await lives(client, talked)
    await client.during(10)
    for session in ("sess_silent", talked):
        assert kinds([*await enter(client, session), *await client.during(10)]) == ["result"]


@SESSIONS.shows("replay-on-resume")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert kinds(await enter(client, "sess_twice", "resume")) == [*TALK, "result"]
    assert kinds(await enter(client, "sess_twice", "load")) == [*TALK, "result"]


@SESSIONS.shows("huge-replay")
async def _(played: Played) -> None:
    client = await played.served.client()
    await client.initialize()
    [row] = (await client.call("session/list"))["result"]["sessions"]
    before = len(client.seen)
    await client.call("session/load", sessionId=row["sessionId"], cwd=row["cwd"], mcpServers=[])
    *history, reply = client.seen[before:]
    assert "result" in reply
    assert len(history) >= 10_000
    assert set(kinds(history)) <= HISTORY
    assert kinds(history).count("user_message_chunk") == 1800
    if SCHEMA.exists():  # all of them would take a while
        assert [problem for message in history[::200] for problem in official().call_problems(message)] == []


@SESSIONS.shows("two-loads-at-once")
async def _(played: Played) -> None:
    client = await introduced(played)
    began = len(client.seen)
    start = trio.current_time()
    for id in ("sess_one", "sess_two"):
        last = await client.request("session/load", sessionId=id, cwd=CWD, mcpServers=[])
    await client.reply(last)
    messages = client.seen[began:]
    talk = [message["params"]["sessionId"] for message in messages if "method" in message]
    assert talk == ["sess_one", "sess_two"] * 4
    assert [message["id"] for message in messages if "method" not in message] == [last - 1, last]
    assert trio.current_time() - start == pytest.approx(0.3)
    assert await lives(client, "sess_one")

    hasty = await played.served.client()  # which asks twice for the same: the judge would not know whose history comes
    await hasty.initialize()
    before = len(hasty.seen)
    for _ in range(2):
        last = await hasty.request("session/load", sessionId="sess_two", cwd=CWD, mcpServers=[])
    await hasty.reply(last)
    assert sorted(kinds(hasty.seen[before:])) == sorted([*TALK * 4, "result", "result"])


# --- ways in that fail, or say less


@SESSIONS.shows("load-error-shapes")
async def _(played: Played) -> None:
    client = await introduced(played)
    errors = [(await enter(client, "gone"))[-1]["error"] for _ in range(5)]
    assert [error["code"] for error in errors] == [-32002, -32602, -32603, -32603, -32603]
    assert isinstance(errors[2]["data"], dict)
    assert isinstance(errors[3]["data"]["details"], str)


@SESSIONS.shows("load-fails-once")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert kinds(await enter(client, "sess_flaky")) == [*TALK * 2, "error: -32603"]
    assert kinds(await enter(client, "sess_flaky")) == [*TALK * 2, "result"]
    assert await lives(client, "sess_flaky")


@SESSIONS.shows("resume-always-fails")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert [kinds(await enter(client, "sess_stuck", "resume")) for _ in range(4)] == [["error: -32603"]] * 4
    assert kinds(await enter(client, "sess_stuck")) == [*TALK, "result"]
    assert await lives(client, "sess_stuck")


@SESSIONS.shows("load-null-result")
async def _(played: Played) -> None:
    client = await introduced(played)
    *history, reply = await enter(client, "sess_null")
    assert kinds(history) == TALK
    assert reply == {"jsonrpc": "2.0", "id": reply["id"], "result": None}
    assert kinds(await enter(client, "nobody")) == ["error: -32002"]
    assert await lives(client, "sess_null")


@SESSIONS.shows("load-without-options")
async def _(played: Played) -> None:
    client = await introduced(played)
    made = (await client.call("session/new", cwd=CWD, mcpServers=[]))["result"]
    assert made["modes"]["currentModeId"] == "ask"
    assert [option["id"] for option in made["configOptions"]] == ["model"]
    assert (await enter(client, made["sessionId"], "resume"))[-1]["result"] == {}
    assert (await enter(client, made["sessionId"]))[-1]["result"] == {}
    assert (await enter(client, made["sessionId"]))[-1]["result"] == {"configOptions": []}
    assert (await enter(client, made["sessionId"], "resume"))[-1]["result"] == {}


@SESSIONS.shows("lost-session-looks-fine", breaks="a request for a session that is not known gets an error")
async def _(played: Played) -> None:
    client = await played.served.client()
    await client.initialize()
    [reply] = await enter(client, "nobody")
    assert reply["result"] == {}
    [reply] = await enter(client, "sess_lost")
    assert reply["result"] == {"sessionId": "sess_other"}
    assert (await client.turn("sess_lost"))[-1]["result"] == {"stopReason": "refusal"}


@SESSIONS.shows("unfinished-history")
async def _(played: Played) -> None:
    client = await introduced(played)
    messages = await enter(client, "sess_cut")
    assert kinds(messages) == ["user_message_chunk", "tool_call", "tool_call_update", "result"]
    assert messages[-2]["params"]["update"]["status"] == "in_progress"
    assert not HISTORY & set(kinds(await client.during(10)))
    assert await lives(client, "sess_cut")


# --- new sessions


@SESSIONS.shows("same-session-id")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert len({await client.new() for _ in range(3)}) == 1


@SESSIONS.shows("slow-new-session")
async def _(played: Played) -> None:
    client = await introduced(played)
    start = trio.current_time()
    asked = await client.request("session/new", cwd=CWD, mcpServers=[])
    assert "result" in await client.call("session/list")
    assert trio.current_time() == start
    made = await client.reply(asked)
    assert trio.current_time() - start == pytest.approx(0.5)
    assert await lives(client, made["result"]["sessionId"])


# --- sessions that are not open, and ways out


@SESSIONS.shows("inactive-session")
async def _(played: Played) -> None:
    client = await introduced(played)

    async def refused(session: str) -> None:
        assert (await client.turn(session))[-1]["error"]["code"] == -32002
        await client.cancel(session)
        assert await client.during(10) == []
        assert (await client.call("session/close", sessionId=session))["error"]["code"] == -32002

    await refused("sess_asleep")
    assert kinds(await enter(client, "sess_asleep")) == [*TALK, "result"]
    assert await lives(client, "sess_asleep")
    assert (await client.call("session/close", sessionId="sess_asleep"))["result"] == {}
    await client.during(10)
    await refused("sess_asleep")


def unsupported(verb: str) -> None:
    """The two ways in which an agent cannot close, or delete."""

    async def ask(client: Client) -> tuple[Json, Any]:
        able = (await client.initialize())["result"]["agentCapabilities"]["sessionCapabilities"]
        await enter(client, "sess_kept")
        return able, await client.call(f"session/{verb}", sessionId="sess_kept")

    @SESSIONS.shows(f"{verb}-unsupported")
    async def _(played: Played) -> None:
        client = await played.client()
        able, reply = await ask(client)
        assert verb not in able
        assert reply["error"]["code"] == -32601
        assert await lives(client, "sess_kept")

    @SESSIONS.shows(f"{verb}-not-found", breaks="what the agent advertises, it can do")
    async def _(played: Played) -> None:
        client = await played.client()
        able, reply = await ask(client)
        assert able[verb] == {}
        assert reply["error"]["code"] == -32601
        assert await lives(client, "sess_kept")


for one in ("close", "delete"):
    unsupported(one)


@SESSIONS.shows("delete-twice")
async def _(played: Played) -> None:
    client = await introduced(played)
    for id in ("sess_done", "sess_done", "never_there"):
        assert (await client.call("session/delete", sessionId=id))["result"] == {}
    rows = (await client.call("session/list"))["result"]["sessions"]
    assert [row["sessionId"] for row in rows] == ["sess_kept"]


@SESSIONS.shows("prompt-fails-once")
async def _(played: Played) -> None:
    client = await played.client()
    for _ in range(2):
        session = await client.new()
        assert kinds(await client.turn(session)) == ["error: -32603"]
        assert await lives(client, session)
    aap = await played.served.aap()
    session = await aap.new()
    assert (await aap.turn(session)).status == 503
    assert (await aap.turn(session)).told == ["You said: go"]


@pytest.mark.parametrize("name", SESSIONS.checks)
async def test_a_scenario_does_what_it_says(autojump_clock: Any, name: str) -> None:
    await SESSIONS.play(name)


@pytest.mark.parametrize("name", sorted(set(SESSIONS.checks) - SEVERAL))
async def test_a_scenario_is_the_same_over_stdio(autojump_clock: Any, name: str) -> None:
    await same_over_stdio(SESSIONS, name)


async def test_error_then_exit_says_why_and_leaves() -> None:
    async with spawned("sessions/error-then-exit", rule="an agent stays until its client leaves") as (child, client):
        await client.initialize()
        [reply] = await enter(client, "sess_broken")
        assert "line 7" in reply["error"]["data"]["details"]
        assert await client.next() is None
        assert await child.ended() == 1
        assert b"fatal: cannot go on" in await child.stderr.rest()


def test_every_scenario_of_the_folder_is_shown() -> None:
    assert set(SESSIONS.checks) | {"error-then-exit"} == SESSIONS.bundled
