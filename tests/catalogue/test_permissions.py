"""Scenarios about permissions, each shown to happen on the wire, with every answer that it knows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalogue.judged import CANCELLED, Catalogue, Played, asked, chose, updates
from tests.faults.wire import CWD, kinds, said

PERMISSIONS = Catalogue("permissions")


async def _answered(played: Played, answer: Any) -> tuple[list[Any], str, str]:
    """A turn with that answer to the only question: its messages, what it said, and the stop reason."""
    messages = await played.turn(permission=answer)
    return messages, "".join(said(messages)), messages[-1]["result"]["stopReason"]


def _options(messages: list[Any]) -> list[tuple[str, str]]:
    [question] = asked(messages)
    return [(option["optionId"], option["kind"]) for option in question["options"]]


@PERMISSIONS.shows("permission-denied")
async def _(played: Played) -> None:
    messages, words, reason = await _answered(played, chose("reject_once"))
    assert _options(messages) == [("allow_once", "allow_once"), ("reject_once", "reject_once")]
    assert (words, reason) == ("As you wish. I push to a branch instead. Done.", "end_turn")
    [refused, done] = [update["status"] for update in updates(messages, "tool_call_update")]
    assert (refused, done) == ("failed", "completed")
    assert played.kept


@PERMISSIONS.shows("permission-open-at-cancel")
async def _(played: Played) -> None:
    client, session, id = await played.start()
    questions: list[Any] = []
    while len(questions) < 2:
        questions.append(await client.until(lambda message: message.get("method") == "session/request_permission"))
    await client.cancel(session)
    for question in questions:
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": CANCELLED})
    assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}
    assert said(client.seen) == []
    assert played.kept


@PERMISSIONS.shows("many-allow-options")
async def _(played: Played) -> None:
    offered = ["once", "once-in-sandbox", "always-command", "always-folder", "always-everything", "no", "never"]
    for option in offered:
        messages, words, reason = await _answered(played, chose(option))
        assert (words, reason) == (f"You chose {option}.", "end_turn")
        assert [id for id, _ in _options(messages)] == offered
    kinds_offered = [kind for _, kind in _options(messages)]
    assert (kinds_offered.count("allow_once"), kinds_offered.count("allow_always")) == (2, 3)
    names = [option["name"] for option in asked(messages)[0]["options"]]
    assert len(set(names)) == 4
    assert (await _answered(played, CANCELLED))[1:] == ("", "cancelled")


@PERMISSIONS.shows("allow-only-options")
async def _(played: Played) -> None:
    messages, words, reason = await _answered(played, CANCELLED)
    assert _options(messages) == [("allow_once", "allow_once"), ("allow_always", "allow_always")]
    assert (words, reason) == ("Nothing was done.", "cancelled")
    assert [update["status"] for update in updates(messages, "tool_call_update")] == ["failed"]
    assert (await _answered(played, chose("allow_always")))[1:] == ("You allowed it.", "end_turn")


@PERMISSIONS.shows("unknown-option-kind")
async def _(played: Played) -> None:
    ways = {
        "once": "You allowed it.",
        "week": "You allowed it for a week.",
        "explain": "It deploys.",
        "no": "You rejected it.",
    }
    for option, expected in ways.items():
        messages, words, _ = await _answered(played, chose(option))
        assert words == expected
    assert _options(messages) == [
        ("once", "allow_once"), ("week", "allow_for_a_week"), ("explain", "explain"), ("no", "reject_once"),
    ]  # fmt: skip
    assert (await _answered(played, CANCELLED))[2] == "cancelled"


@PERMISSIONS.shows("no-options")
async def _(played: Played) -> None:
    messages, words, _ = await _answered(played, CANCELLED)
    assert _options(messages) == []
    assert words == "Nothing was done."
    assert played.kept


@PERMISSIONS.shows("parallel-permissions")
async def _(played: Played) -> None:
    client, _, id = await played.start()
    questions: list[Any] = []
    while len(questions) < 3:
        questions.append(await client.until(lambda message: message.get("method") == "session/request_permission"))
    about = [question["params"]["toolCall"]["toolCallId"] for question in questions]
    assert about == ["call_a_1", "call_a_1", "call_b_1"]
    assert len({question["id"] for question in questions}) == 3
    for question in reversed(questions):
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": chose("allow_once")})
    await client.reply(id)
    assert said(client.seen) == ["All three questions are answered."]


@PERMISSIONS.shows("permission-for-unannounced-tool")
async def _(played: Played) -> None:
    messages, words, _ = await _answered(played, chose("allow_once"))
    assert kinds(messages)[:3] == ["session/request_permission", "tool_call", "tool_call_update"]
    [question], [call] = asked(messages), updates(messages, "tool_call")
    assert question["toolCall"]["toolCallId"] == call["toolCallId"]
    assert question["toolCall"]["title"] == "Delete the branch"
    assert words == "It is gone."
    messages, words, _ = await _answered(played, chose("reject_once"))
    assert (updates(messages, "tool_call"), words) == ([], "It stays.")


@PERMISSIONS.shows("permission-with-content")
async def _(played: Played) -> None:
    messages, words, _ = await _answered(played, chose("allow_once"))
    [question], [announced] = asked(messages), updates(messages, "tool_call")
    assert "content" not in announced
    diff, text = question["toolCall"]["content"]
    assert (diff["type"], diff["path"], diff["newText"]) == ("diff", f"{CWD}/src/limits.py", "LIMIT = 100\n")
    assert (text["type"], text["content"]["type"]) == ("content", "text")
    assert text["content"]["text"].startswith("**Why:**")
    assert words == "It is changed."
    assert (await _answered(played, chose("reject_once")))[1] == "It stays as it was."


@pytest.mark.parametrize("name", PERMISSIONS.checks)
async def test_a_permission_scenario_happens_as_described(autojump_clock: Any, name: str) -> None:
    await PERMISSIONS.play(name)


def test_every_permission_scenario_is_shown() -> None:
    assert set(PERMISSIONS.checks) == PERMISSIONS.bundled
