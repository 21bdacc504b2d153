"""The scenarios about what messages hold, each played to a client that looks at every member."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.catalogue.judged import Catalogue, Played, asked, updates
from tests.faults.wire import kinds, said

CONTENT = Catalogue("content")
GRANTED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


def bodies(messages: list[Any]) -> list[Any]:
    """The updates among messages."""
    return [message["params"]["update"] for message in messages if message.get("method") == "session/update"]


def nulls(value: Any) -> int:
    """How many nulls there are at any depth."""
    if isinstance(value, dict | list):
        return sum(nulls(item) for item in (value.values() if isinstance(value, dict) else value))
    return value is None


@CONTENT.shows("unknown-content-type")
async def _(played: Played) -> None:
    messages = await played.turn()
    chunks = updates(messages, "agent_message_chunk")
    assert [chunk["content"]["type"] for chunk in chunks] == ["text", "hologram", "text"]
    [update] = updates(messages, "tool_call_update")
    assert [part["type"] for part in update["content"]] == ["chart", "content"]


@CONTENT.shows("unknown-tool-kind")
async def _(played: Played) -> None:
    messages = await played.turn()
    assert updates(messages, "tool_call")[0]["kind"] == "telepathy"
    assert [update["status"] for update in updates(messages, "tool_call_update")] == ["meditating", "completed"]


@CONTENT.shows("unknown-stop-reason")
async def _(played: Played) -> None:
    messages = await played.turn()
    assert said(messages) == ["I need a break."]
    assert messages[-1]["result"] == {"stopReason": "paused"}


@CONTENT.shows("nulls-everywhere")
async def _(played: Played) -> None:
    client = await played.client()
    client.answers = {"session/request_permission": GRANTED}
    session = await client.new()
    [init, new] = [message["result"] for message in client.seen if "result" in message]
    assert init["agentInfo"]["title"] is init["agentCapabilities"]["sessionCapabilities"]["delete"] is None
    assert new["configOptions"][0]["category"] is new["modes"]["availableModes"][0]["description"] is None
    turn = await client.turn(session)
    shown = bodies(turn)
    assert [nulls(body) for body in shown] == [4, 4, 2, 13, 9, 0, 7, 3, 2, 3, 1]
    [cleared] = [body for body in shown if "rawOutput" in body]
    assert set(cleared) - {key for key, value in cleared.items() if value is None} == {"sessionUpdate", "toolCallId"}
    assert [nulls(params) for params in asked(turn)] == [3]
    rows = (await client.call("session/list"))["result"]
    assert rows["nextCursor"] is None
    [row] = [row for row in rows["sessions"] if row["sessionId"] == "sess_null"]
    assert (row["title"], row["updatedAt"], row["_meta"]) == (None, None, None)
    loaded = await client.call("session/load", sessionId="sess_null", cwd=row["cwd"], mcpServers=[])
    assert loaded["result"] == {"modes": None, "configOptions": None, "_meta": None}


PERMISSION = "session/request_permission"


@CONTENT.shows("nulls-where-forbidden")
async def _(played: Played) -> None:
    messages = await played.turn()
    shown = [message["params"]["update"] for message in messages[:-1]]
    assert shown[1]["content"] is shown[2]["content"]["text"] is shown[4]["toolCallId"] is shown[6]["entries"] is None
    assert shown[8] == {"sessionUpdate": "usage_update", "used": None, "size": None}
    assert shown[9] is None
    assert shown[10]["content"]["text"] == "Two."


@CONTENT.shows("extra-fields")
async def _(played: Played) -> None:
    client = await played.client()
    client.answers = {PERMISSION: GRANTED}
    session = await client.new()
    init, new = client.seen[0]["result"], client.seen[1]["result"]
    assert (init["releaseDate"], init["agentInfo"]["colour"]) == ("2031-01-01", "blue")
    assert new["modes"]["availableModes"][0]["icon"] == "ask.png"
    messages = await client.turn(session)
    chunk = messages[0]
    assert (chunk["trace"], chunk["params"]["priority"], chunk["params"]["update"]["mood"]) == ("t1", 9, "calm")
    assert chunk["params"]["update"]["content"]["language"] == "en"
    assert updates(messages, "tool_call")[0]["locations"][0]["column"] == 7
    assert messages[-1]["result"] == {"stopReason": "end_turn", "cost": 3, "detail": {"why": "done"}}


@CONTENT.shows("meta-everywhere")
async def _(played: Played) -> None:
    messages = await played.turn(permission=GRANTED)
    assert all("traceparent" in message["params"]["_meta"] for message in messages if kinds([message])[0] in UPDATES)
    said_ = updates(messages, "agent_message_chunk")[0]
    assert said_["_meta"] == {"acme.example/chunk": True}
    assert said_["content"]["_meta"] == {"acme.example/block": {"deep": [1, {"deeper": None}]}}
    done = updates(messages, "tool_call_update")[-1]
    assert done["content"][0]["_meta"] == done["content"][0]["content"]["_meta"] == {"a": 1}
    assert messages[-1]["result"]["_meta"] == {"acme.example/stop": 1}


UPDATES = {"agent_message_chunk", "plan", "tool_call", "tool_call_update", "usage_update"}


@CONTENT.shows("missing-required")
async def _(played: Played) -> None:
    messages = await played.turn()
    assert [kind for kind in kinds(messages) if kind != "None"][-1] == "result"
    texts = json.dumps(messages)
    for word in ("No type. ", "No id", "No kind. ", "No session. "):
        assert word in texts
    shown = [message["params"] for message in messages[:-1]]
    assert [set(params["update"]) for params in shown[1:2]] == [{"sessionUpdate"}]
    assert "type" not in shown[2]["update"]["content"]
    assert "toolCallId" not in shown[3]["update"]
    assert "entries" not in shown[4]["update"]
    assert "sessionUpdate" not in shown[5]["update"]
    assert "sessionId" not in shown[6]
    assert shown[7]["update"]["content"]["text"] == "Two."


@CONTENT.shows("usage-size-zero")
async def _(played: Played) -> None:
    meters = updates(await played.turn(), "usage_update")
    assert [(meter["used"], meter["size"]) for meter in meters] == [(0, 0), (1200, 0), (250_000, 200_000)]


@CONTENT.shows("usage-during-load")
async def _(played: Played) -> None:
    client = await played.client()
    await client.initialize()
    await client.call("session/load", sessionId="sess_used", cwd="/home/dev/project", mcpServers=[])
    assert kinds(client.seen[1:]) == [
        "user_message_chunk", "usage_update", "agent_message_chunk", "usage_update", "result",
    ]  # fmt: skip
    assert updates(client.seen, "usage_update")[-1]["used"] == 5000
    assert {one["params"]["sessionId"] for one in client.seen if "params" in one} == {"sess_used"}


@CONTENT.shows("usage-shrinks")
async def _(played: Played) -> None:
    meters = updates(await played.turn(), "usage_update")
    assert [meter["used"] for meter in meters] == [150_000, 12_000, 12_400]
    assert [meter["size"] for meter in meters] == [200_000, 128_000, 128_000]
    assert [(meter["cost"] or {}).get("currency") for meter in meters] == ["USD", "EUR", None]


@CONTENT.shows("duplicate-tool-call")
async def _(played: Played) -> None:
    messages = await played.turn()
    calls = updates(messages, "tool_call")
    assert {call["toolCallId"] for call in calls} == {"call_1"}
    assert [call["title"] for call in calls] == ["Read a file", "Read a.txt", "Read a.txt (1 line)"]


@CONTENT.shows("tool-content-null-empty-absent")
async def _(played: Played) -> None:
    progress = updates(await played.turn(), "tool_call_update")
    contents = [update.get("content", "absent") for update in progress]
    assert [contents[0], *contents[1:3], contents[4]] == ["absent", None, [], "absent"]
    assert [part["content"]["text"] for part in contents[3]] == ["Second.", "Third."]


@CONTENT.shows("message-ids")
async def _(played: Played) -> None:
    chunks = updates(await played.turn(), "agent_message_chunk")
    ids = [chunk.get("messageId", "absent") for chunk in chunks]
    assert ids == ["m1", "m1", "m2", "m2", "absent", None, "m1"]


@CONTENT.shows("echoed-prompt")
async def _(played: Played) -> None:
    messages = await played.turn("What did I say?")
    echo = updates(messages, "user_message_chunk")
    assert "".join(chunk["content"]["text"] for chunk in echo) == "What did I say?"
    assert kinds(messages)[: len(echo)] == ["user_message_chunk"] * len(echo)
    assert len(echo) == 4


@CONTENT.shows("huge-numbers")
async def _(played: Played) -> None:
    client = await played.client()
    messages = await client.turn(await client.new())
    [meter] = updates(messages, "usage_update")
    assert (meter["used"], meter["size"]) == (2**53 + 1, 2**63 - 1)
    assert b"9007199254740993" in client.raw.everything


@CONTENT.shows("error-with-data")
async def _(played: Played) -> None:
    error = (await played.turn())[-1]["error"]
    assert (error["message"], error["data"]["requestId"]) == ("Internal error", "req_42")


@CONTENT.shows("tool-update-before-call")
async def _(played: Played) -> None:
    shown = [kind for kind in kinds(await played.turn()) if kind.startswith("tool")]
    assert shown[:2] == ["tool_call_update", "tool_call"]


@CONTENT.shows("unknown-update")
async def _(played: Played) -> None:
    assert "mood_update" in kinds(await played.turn())


@CONTENT.shows("wrong-type")
async def _(played: Played) -> None:
    assert [type(text) for text in said(await played.turn())] == [str, int, str]


@pytest.mark.parametrize("name", CONTENT.checks)
async def test_a_scenario_about_content_does_what_it_promises(autojump_clock: Any, name: str) -> None:
    await CONTENT.play(name)
