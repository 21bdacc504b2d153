"""Cancelling by the book: nothing is started any more, what was asked is awaited, tools are closed, then the reply.

Source: ACP v1, prompt turn, cancellation.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CANCELLED, Client, Theatre, is_reply, select, updates, words

BURST = 20_000


def begun(steps: str, *, room: int = 1024, text: str = "go", **more: Any) -> tuple[Theatre, Client, str, Any]:
    """A turn that has begun to play, as far as it got without time passing."""
    theatre = Theatre(f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}}}")
    client = theatre.client(room=room, **more)
    session = client.new()
    id = client.prompt(session, text, run=False)
    theatre.stage.pump()
    return theatre, client, session, id


def behind(client: Client, id: Any) -> list[Any]:
    """Everything that came behind the reply."""
    client.read()
    [at] = [index for index, message in enumerate(client.sent) if is_reply(message, id)]
    return client.sent[at + 1 :]


@pytest.mark.parametrize(
    "steps",
    [
        "{say: a}, {wait: 1h}, {say: never}",
        "{say: a}, {hang: true}",
        "together: [[{say: a}, {wait: 1h}, {say: never}], [{hang: true}], [{wait_for: {method: _x}}]]",
        "{say: a}, {repeat: {every: 1h, steps: [{wait: 1s}]}}",
        "{say: a}, {tool: {name: x, takes: 1h}}",
        "{say: a b c, pace: {first: 0s, rate: 1/m}}",
    ],
)
def test_a_turn_that_waits_ends_at_once_with_cancelled(steps: str) -> None:
    theatre, client, session, id = begun(steps.replace("1/m", "0.01/s"))
    client.notify("session/cancel", {"sessionId": session})
    theatre.stage.pump()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    theatre.run()
    assert behind(client, id) == []
    assert words(client.sent).startswith("a")
    assert "never" not in words(client.sent)
    assert theatre.now < 1
    assert not theatre.agent.playing
    assert theatre.stage.deadline() == float("inf")


def test_a_burst_is_cut_between_two_messages_and_nothing_follows_the_reply() -> None:
    _theatre, client, session, id = begun(f"{{say: '{'x' * BURST}', pace: {{chunk: 1}}}}", room=500)
    client.read()
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert behind(client, id) == []
    assert 500 <= len(words(client.sent)) <= 1000
    assert set(words(client.sent)) == {"x"}


def test_the_clients_cancelled_answer_is_still_taken_and_the_tool_is_closed_before_the_reply() -> None:
    theatre, client, session, id = begun("{tool: {name: rm, ask: true}}, {say: never}")
    [asked] = [message for message in client.read() if message.get("method") == "session/request_permission"]
    client.notify("session/cancel", {"sessionId": session})
    theatre.stage.pump()
    assert client.reply_to(id) is None
    client.answer(asked, CANCELLED)
    theatre.stage.pump()
    tail = client.read()
    assert [update["status"] for update in updates(tail[:1])] == ["failed"]
    assert is_reply(tail[1], id)
    assert tail[1]["result"] == {"stopReason": "cancelled"}
    assert len(tail) == 2
    assert theatre.now == 0


def test_a_late_grant_starts_nothing() -> None:
    _theatre, client, session, id = begun("{tool: {name: rm, ask: true, output: gone}}, {say: never}")
    [asked] = [message for message in client.read() if message.get("method") == "session/request_permission"]
    client.notify("session/cancel", {"sessionId": session})
    client.answer(asked, select("allow_once"))
    client.run()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert [update["status"] for update in updates(client.sent)] == ["pending", "failed"]


def test_a_client_that_never_answers_is_waited_for_a_while_in_real_time() -> None:
    theatre, client, session, id = begun("{tool: {name: rm, ask: true}}")
    client.notify("session/cancel", {"sessionId": session})
    theatre.run(until=1.9)
    assert client.reply_to(id) is None
    theatre.run(until=2.1)
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert behind(client, id) == []


def test_other_open_requests_are_withdrawn_once() -> None:
    theatre, client, session, id = begun("{read: {path: a}}, {say: never}")
    client.notify("session/cancel", {"sessionId": session})
    theatre.run()
    client.read()
    withdrawn = [message["params"] for message in client.sent if message.get("method") == "$/cancel_request"]
    assert withdrawn == [{"requestId": 0}]
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}


def test_three_open_permissions_are_all_awaited() -> None:
    tool = "{tool: {name: rm, ask: true}}"
    theatre, client, session, id = begun(f"together: [{tool}, {tool}, {tool}]")
    asked = [message for message in client.read() if message.get("method") == "session/request_permission"]
    client.notify("session/cancel", {"sessionId": session})
    for message in asked:
        assert client.reply_to(id) is None
        client.answer(message, CANCELLED)
        theatre.stage.pump()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert [update["status"] for update in updates(client.sent)] == ["pending"] * 3 + ["failed"] * 3


def test_an_answer_that_overtakes_the_cancel_ends_the_turn_and_the_cancel_finds_nothing() -> None:
    _theatre, client, session, id = begun("{tool: {name: rm, ask: true}}, {say: never}")
    [asked] = [message for message in client.read() if message.get("method") == "session/request_permission"]
    client.answer(asked, CANCELLED)
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert behind(client, id) == []


def test_cancelling_twice_is_cancelling_once() -> None:
    _theatre, client, session, id = begun("{hang: true}")
    for _ in range(2):
        client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert sum(is_reply(message, id) for message in client.sent) == 1
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert behind(client, id) == []


def test_cancelling_while_nothing_runs_does_nothing_and_the_next_turn_plays() -> None:
    theatre = Theatre("{turns: [{steps: [{say: x}]}], sessions: {auto_title: null}}")
    client = theatre.client()
    session = client.new()
    client.notify("session/cancel", {"sessionId": session})
    id = client.prompt(session)
    assert client.reply_to(id)["result"] == {"stopReason": "end_turn"}


def test_a_cancel_right_behind_the_prompt_comes_behind_what_needs_no_time() -> None:
    theatre = Theatre("{turns: [{steps: [{say: x}, {wait: 1s}, {say: never}]}], sessions: {auto_title: null}}")
    client = theatre.client()
    session = client.new()
    id = client.prompt(session, run=False)
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert words(client.sent) == "x"


def test_a_request_cancels_like_the_notification_and_hits_only_its_own_prompt() -> None:
    theatre, client, _session, id = begun("{say: a}, {wait: 1h}")
    client.notify("$/cancel_request", {"requestId": 9999})
    client.notify("$/cancel_request", {"requestId": str(id)})
    theatre.stage.pump()
    assert client.reply_to(id) is None
    client.notify("$/cancel_request", {"requestId": id})
    theatre.stage.pump()
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}


def test_cancel_stops_one_session_and_no_other() -> None:
    theatre = Theatre("{turns: [{steps: [{say: a}, {wait: 5s}, {say: b}]}], sessions: {auto_title: null}}")
    client = theatre.client()
    one, two = client.new(), client.new()
    ids = [client.prompt(session, run=False) for session in (one, two)]
    theatre.stage.pump()
    client.notify("session/cancel", {"sessionId": one})
    client.run()
    assert [client.reply_to(id)["result"]["stopReason"] for id in ids] == ["cancelled", "end_turn"]


def test_cancel_does_not_reach_steps_behind_the_reply() -> None:
    theatre, client, session, _id = begun("{stop: end_turn}, {wait: 5s}, {info: {title: late}}")
    theatre.run(until=1)
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert [update["title"] for update in updates(client.sent)] == ["late"]


def test_a_cancelled_turn_keeps_what_it_has_said_in_the_history() -> None:
    theatre, client, session, _ = begun("{say: kept}, {wait: 1h}, {say: never}")
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    entries = theatre.agent.session(session).history.entries
    assert [entry.parts for entry in entries] == [["go"], ["kept"]]  # type: ignore[union-attr]
