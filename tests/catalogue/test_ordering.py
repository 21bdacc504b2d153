"""Scenarios about the order of messages, each shown to happen on the wire."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.catalogue.judged import CANCELLED, Catalogue, Played, asked, over_aap, updates
from tests.faults.wire import CWD, kinds, said

ORDERING = Catalogue("ordering")


@ORDERING.shows("burst-then-reply")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    began = trio.current_time()
    messages = await client.turn(session)
    assert trio.current_time() == began
    assert kinds(messages) == ["agent_message_chunk"] * 200 + ["result"]
    assert [text.strip() for text in said(messages)] == [str(number) for number in range(1, 201)]


@ORDERING.shows("reply-and-updates-in-one-write")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    await client.turn(session)
    await client.next()
    assert kinds(client.seen[-5:]) == [*["agent_message_chunk"] * 3, "result", "session_info_update"]
    together = client.raw.pieces[-1][1]
    assert together.count(b"agent_message_chunk") >= 3
    assert b"stopReason" in together
    assert b"session_info_update" in together


@ORDERING.shows("update-after-reply")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    assert kinds(await client.turn(session)) == ["agent_message_chunk", "tool_call", "result"]
    late = await client.during(10)
    assert kinds(late) == [
        "agent_message_chunk", "tool_call_update", "tool_call", "tool_call_update", "agent_message_chunk",
    ]  # fmt: skip
    assert said(late) == ["No, wait. ", "Now I am done."]
    assert kinds(await client.turn(session))[-1] == "result"


@ORDERING.shows("agent-started-turn")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    for _ in range(2):
        alone = await client.during(10)
        assert kinds(alone) == [
            "agent_thought_chunk", "tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk",
        ]  # fmt: skip
        assert {message["params"]["sessionId"] for message in alone} == {session}
        assert kinds(await client.turn(session)) == ["agent_message_chunk", "result"]


@ORDERING.shows("update-between-turns")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    assert kinds(await client.turn(session)) == ["agent_message_chunk", "result"]
    assert kinds(await client.during(10)) == [
        "available_commands_update", "current_mode_update", "config_option_update", "usage_update",
        "session_info_update",
    ]  # fmt: skip


@ORDERING.shows("duplicate-update")
async def _(played: Played) -> None:
    client = await played.client()
    messages = await client.turn(await client.new())
    assert kinds(messages) == [
        *["agent_message_chunk"] * 2, *["tool_call"] * 3, *["tool_call_update"] * 6, *["agent_message_chunk"] * 2,
        *["session_info_update"] * 3, "result",
    ]  # fmt: skip
    assert messages[0] == messages[1]
    assert messages[2] == messages[3] == messages[4]


@ORDERING.shows("unknown-session-update")
async def _(played: Played) -> None:
    client, session, id = await played.start()
    answers: list[tuple[dict[str, Any], str]] = [
        ({"result": CANCELLED}, "You answered."),
        ({"error": {"code": -32602, "message": "who?"}}, "You answered with an error."),
    ]
    for body, words in answers:
        before = len(client.seen)
        question = await client.until(lambda message: "id" in message)
        assert question["params"]["sessionId"] == "sess_nobody"
        await client.send({"jsonrpc": "2.0", "id": question["id"], **body})
        await client.reply(id)
        messages = client.seen[before:]
        assert said(messages) == ["This is yours. ", "This is nobody's.", words]
        assert [message["params"]["sessionId"] for message in messages[:2]] == [session, "sess_nobody"]
        id = await client.prompt(session)
    assert said(await client.during(10))[-1] == "You did not answer."
    assert played.kept


@ORDERING.shows("update-before-session-reply")
async def _(played: Played) -> None:
    client = await played.client()
    await client.initialize()
    await client.request("session/new", cwd=CWD, mcpServers=[])
    messages = [await client.next() for _ in range(3)]
    assert kinds(messages) == ["session_info_update", "available_commands_update", "result"]
    assert messages[0]["params"]["sessionId"] == messages[2]["result"]["sessionId"]


@ORDERING.shows("wrong-session-update")
async def _(played: Played) -> None:
    client = await played.client()
    first, second = await client.new(), await client.new()
    messages = await client.turn(second)
    assert [message["params"]["sessionId"] for message in messages[:3]] == [second, first, second]


@ORDERING.shows("slow-overlapping-replies")
async def _(played: Played) -> None:
    client = await played.client()
    await client.initialize()
    ids = [await client.request("session/new", cwd=cwd, mcpServers=[]) for cwd in ("/one", "/two")]
    replies = [await client.next(), await client.next()]
    assert [reply["id"] for reply in replies] == ids[::-1]
    for reply, cwd in zip(replies, ("/two", "/one"), strict=True):
        assert cwd in "".join(said(await client.turn(reply["result"]["sessionId"])))


@ORDERING.shows("work-done-reply-lost")
async def _(played: Played) -> None:
    client, session, _ = await played.start()
    done = await client.during(10)
    assert updates(done, "tool_call_update")[-1]["status"] == "completed"
    assert "result" not in kinds(done)
    assert kinds(await client.turn(session, "2"))[-1] == "error: -32603"
    assert kinds(await client.turn(session, "3"))[-1] == "result"
    assert asked(client.seen) == []


@pytest.mark.parametrize("name", ORDERING.checks)
async def test_an_ordering_scenario_happens_as_described(autojump_clock: Any, name: str) -> None:
    await ORDERING.play(name)


async def test_a_burst_over_aap(autojump_clock: Any) -> None:
    reply = await over_aap("ordering/burst-then-reply")
    assert [text.strip() for text in reply.told] == [str(number) for number in range(1, 201)]
    assert [kind for kind, _ in reply.events[-2:]] == ["text_delta", "turn_stop"]


async def test_duplicates_over_aap(autojump_clock: Any) -> None:
    kinds = [kind for kind, _ in (await over_aap("ordering/duplicate-update")).events]
    assert kinds == ["turn_start", *["text_delta"] * 2, *["tool_call"] * 3, *["tool_result"] * 3, *kinds[-3:]]
    assert kinds[-3:] == ["text_delta", "text_delta", "turn_stop"]


def test_every_ordering_scenario_is_shown() -> None:
    assert set(ORDERING.checks) == ORDERING.bundled
