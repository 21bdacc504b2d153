"""Each persona behaves as its name says; those that are `allowed` say nothing that the official schema refuses."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.scenario.library import open_scenario, summaries
from tests.harness import Theatre, select

Json = dict[str, Any]


def heard(name: str, text: str = "Raise the retries", **options: Any) -> tuple[list[Any], list[Any]]:
    """What comes behind one prompt: all messages, and the bodies of the updates."""
    client = Theatre(open_scenario(f"personas/{name}"), **options).client()
    client.answers = {"session/request_permission": lambda message: select(pick(message))}
    session = client.new()
    before = len(client.sent)
    client.prompt(session, text)
    messages = client.sent[before:]
    return messages, [message["params"]["update"] for message in messages if message.get("method") == "session/update"]


def pick(message: Json) -> str:
    option: str = message["params"]["options"][0]["optionId"]
    return option


def text_of(updates: list[Json], kind: str) -> str:
    return "".join(body["content"]["text"] for body in updates if body["sessionUpdate"] == kind)


def test_all_of_them_are_listed_for_demos() -> None:
    listed = {row.name for row in summaries() if {"personas", "demo"} <= set(row.tags)}
    names = ("terse", "thinks-aloud", "asks-before-every-step", "long-tools", "flaky")
    assert {f"personas/{name}" for name in names} <= listed


@pytest.mark.parametrize(("text", "answer"), [("Raise the retries", "Done."), ("Is it green?", "Yes."), ("Thanks", "")])
def test_the_terse_one_says_a_word(text: str, answer: str) -> None:
    _, updates = heard("terse", text if text != "Thanks" else "Thank you")
    assert text_of(updates, "agent_message_chunk") == answer
    assert text_of(updates, "agent_thought_chunk") == ""


def test_the_one_that_thinks_aloud_thinks_far_more_than_it_says_and_changes_its_plan() -> None:
    _, updates = heard("thinks-aloud")
    assert len(text_of(updates, "agent_thought_chunk")) > 10 * len(text_of(updates, "agent_message_chunk"))
    plans = [body["entries"] for body in updates if body["sessionUpdate"] == "plan"]
    assert [len(entries) for entries in plans] == [3, 4, 4]


def test_the_one_that_asks_asks_before_each_of_four_steps() -> None:
    messages, updates = heard("asks-before-every-step")
    asked = [message for message in messages if message.get("method") == "session/request_permission"]
    started = [body["toolCallId"] for body in updates if body["sessionUpdate"] == "tool_call"]
    assert [message["params"]["toolCall"]["toolCallId"] for message in asked] == started
    assert len(started) == 4


def test_the_one_with_long_tools_streams_a_lot_and_tells_which_one_failed() -> None:
    _, updates = heard("long-tools")
    ends = {body["title"]: "" for body in updates if body["sessionUpdate"] == "tool_call"}
    ids = {body["toolCallId"]: body["title"] for body in updates if body["sessionUpdate"] == "tool_call"}
    for body in updates:
        if body["sessionUpdate"] == "tool_call_update" and "status" in body:
            ends[ids[body["toolCallId"]]] = body["status"]
    assert ends == {"make all": "completed", "make test": "failed", "make lint": "completed", "make docs": "completed"}
    assert max(len(str(body)) for body in updates) > 20_000


def test_the_flaky_one_fails_in_some_turns_and_not_in_others() -> None:
    failed = {any("error" in message for message in heard("flaky", seed=seed)[0]) for seed in range(20)}
    assert failed == {True, False}
