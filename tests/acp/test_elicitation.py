"""Questions to the user: forms, pages, and what the user makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Error, Json, Theatre, played, stop_reason, words


def turn(steps: str) -> str:
    return f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}}}"


def asked(messages: list[Any]) -> Json:
    [params] = [message["params"] for message in messages if message.get("method") == "elicitation/create"]
    return dict(params)


WAYS = ", ".join(
    f"{{when: {{outcome: {outcome}}}, steps: [{{say: {outcome}}}]}}"
    for outcome in ("accept", "decline", "cancel", "error", "result", "denied", "cancelled")
)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"action": "accept"}, "accept"),
        ({"action": "accept", "content": {"b": 1}}, "accept"),
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
        ({"action": "_acme"}, "error"),
        ({"action": 5}, "error"),
        ({}, "error"),
        (Error(), "error"),
    ],
)
def test_each_action_has_its_way_on_and_the_turn_goes_on(answer: Any, word: str) -> None:
    messages = played(turn(f"{{elicit: {{message: m, schema: {{}}}}, then: [{WAYS}]}}"), elicit=answer)
    assert (words(messages), stop_reason(messages)) == (word, "end_turn")


@pytest.mark.parametrize(("action", "outcome"), [("accept", "result"), ("decline", "denied"), ("cancel", "cancelled")])
def test_outcomes_have_the_general_names_too(action: str, outcome: str) -> None:
    steps = f"{{elicit: {{message: m, schema: {{}}}}, then: [{{when: {{outcome: {outcome}}}, steps: [{{say: yes}}]}}]}}"
    assert words(played(turn(steps), elicit={"action": action})) == "yes"


def test_a_dismissed_form_without_then_does_not_cancel_the_turn() -> None:
    messages = played(turn("{elicit: {message: m, schema: {}}}, {say: on}"), elicit={"action": "cancel"})
    assert (words(messages), stop_reason(messages)) == ("on", "end_turn")


def test_what_the_user_entered_can_be_used() -> None:
    steps = (
        "{elicit: {message: m, schema: {properties: {n: {type: integer}}}}, save: {n: /result/content/n}, "
        "then: [{when: {text: '*:7}'}, steps: [{say: '${saved.n}'}]}]}"
    )
    assert words(played(turn(steps), elicit={"action": "accept", "content": {"n": 7}})) == "7"


def test_a_form_can_belong_to_a_tool_call() -> None:
    messages = played(
        turn("{tool: {id: c, name: t}}, {elicit: {message: m, tool: c, schema: {title: T, required: [a]}}}"),
        elicit={"action": "accept"},
    )
    params = asked(messages)
    assert (params["toolCallId"], params["mode"]) == ("c", "form")
    assert params["requestedSchema"] == {"type": "object", "title": "T", "required": ["a"]}


def test_a_page_has_an_id_of_its_own_and_is_completed_by_it() -> None:
    theatre = Theatre(
        turn(
            "{elicit: {message: m, url: 'https://x.org'}}, "
            "{elicit: {message: m, url: 'https://x.org', id: 'e${turn}'}}, "
            "{notify: {method: elicitation/complete, params: {elicitationId: 'e${turn}'}}}"
        )
    )
    client = theatre.client()
    client.answers = {"elicitation/create": {"action": "accept"}}
    for _ in range(2):
        client.prompt(client.new())
    ids = [
        message["params"]["elicitationId"] for message in client.sent if message.get("method") == "elicitation/create"
    ]
    assert ids[1::2] == ["e1", "e1"]
    assert len(set(ids[::2])) == 2  # unique on the connection, whichever session it is
    completed = [message["params"] for message in client.sent if message.get("method") == "elicitation/complete"]
    assert completed == [{"elicitationId": "e1"}] * 2


@pytest.mark.parametrize("able", [{}, {"elicitation": None}, {"elicitation": {}}, {"elicitation": {"url": {}}}])
def test_a_form_is_shown_only_where_forms_were_advertised(able: Json) -> None:
    client = Theatre(turn("{elicit: {message: m, schema: {}}, otherwise: [{say: no}]}")).client(capabilities=able)
    client.prompt(client.new())
    assert words(client.sent) == "no"


@pytest.mark.parametrize("able", [{}, {"elicitation": {"form": {}, "url": None}}])
def test_a_page_is_shown_only_where_pages_were_advertised(able: Json) -> None:
    client = Theatre(turn("{elicit: {message: m, url: 'x:y'}, otherwise: [{say: no}]}")).client(capabilities=able)
    client.prompt(client.new())
    assert words(client.sent) == "no"
