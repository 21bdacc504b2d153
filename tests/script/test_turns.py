"""Which turn answers, what happens to a second prompt, and what plays outside of turns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CANCELLED, CWD, Client, Theatre, played, stop_reason, updates, words


def answer_to(scenario: str, *prompts: str) -> list[str]:
    """What the agent says to each of several prompts in one session."""
    client = Theatre(scenario).client()
    session = client.new()
    said = []
    for text in prompts:
        before = len(client.sent)
        client.prompt(session, text)
        said.append(words(client.sent[before:]))
    return said


def turns(*whens: str) -> str:
    """A scenario whose turns say their number."""
    rows = ", ".join(f"{{when: {{{when}}}, steps: [{{say: '{index}'}}]}}" for index, when in enumerate(whens))
    return f"{{turns: [{rows}, {{steps: [{{say: otherwise}}]}}], sessions: {{auto_title: null}}}}"


@pytest.mark.parametrize(
    ("whens", "prompts", "said"),
    [
        (["prompt: '*WEATHER*'"], ["the weather?", "news"], ["0", "otherwise"]),
        (["prompt: go", "prompt: g*"], ["go", "gone", "a go"], ["0", "1", "otherwise"]),
        (["prompt: '/^a.c$/'"], ["abc", "ABC"], ["0", "otherwise"]),
        (["command: plan"], ["/plan the day", "/planet", "plan", "/"], ["0", "otherwise", "otherwise", "otherwise"]),
        (["turn: 2"], ["x", "x", "x"], ["otherwise", "0", "otherwise"]),
        (["nth: [1, 3]"], ["x", "x", "x"], ["0", "otherwise", "0"]),
        (["nth: 2.."], ["x", "x", "x"], ["otherwise", "0", "0"]),
        (["times: 2"], ["x", "x", "x"], ["0", "0", "otherwise"]),
        (["every: 2"], ["x", "x", "x", "x"], ["otherwise", "0", "otherwise", "0"]),
        (["prompt: b, times: 1"], ["a", "b", "b"], ["otherwise", "0", "otherwise"]),
        (["last_stop: end_turn"], ["x", "x"], ["otherwise", "0"]),
        (["protocol: acp, transport: stdio"], ["x"], ["0"]),
        (["protocol: aap"], ["x"], ["otherwise"]),
        (["origin: turn, running: true"], ["x"], ["0"]),
        (["chance: 0"], ["x"] * 3, ["otherwise"] * 3),
        (["chance: 1"], ["x"] * 3, ["0"] * 3),
    ],
)
def test_the_first_turn_whose_condition_holds_answers(whens: list[str], prompts: list[str], said: list[str]) -> None:
    assert answer_to(turns(*whens), *prompts) == said


def test_chances_come_from_the_seed() -> None:
    def run(seed: int) -> list[str]:
        return answer_to(f"{{seed: {seed}, {turns('chance: 0.5')[1:]}", *["x"] * 12)

    assert run(1) == run(1)
    assert len(set(run(1))) == 2
    assert any(run(1) != run(seed) for seed in (2, 3))


def test_conditions_count_for_each_session_by_itself_unless_told_otherwise() -> None:
    for per, said in (("session", ["0", "0"]), ("process", ["0", "otherwise"]), ("connection", ["0", "otherwise"])):
        client = Theatre(turns(f"times: 1, per: {per}")).client()
        seen = []
        for _ in range(2):
            before = len(client.sent)
            client.prompt(client.new())
            seen.append(words(client.sent[before:]))
        assert seen == said


@pytest.mark.parametrize("scenario", ["{}", "turns: [{when: {prompt: other}, steps: [{say: x}]}]"])
def test_with_no_turn_to_answer_it_says_so_and_names_the_prompt(scenario: str) -> None:
    theatre = Theatre(scenario)
    client = theatre.client()
    session = client.new()
    before = len(client.sent)
    client.prompt(session, "open the pod bay doors")
    said = words(client.sent[before:])
    assert "open the pod bay doors" in said
    assert said.endswith(".")
    assert stop_reason(client.sent[before:]) == "end_turn"
    assert any("open the pod bay doors" in line for line in theatre.said)
    assert theatre.notes.of("no_turn_matched")


def test_a_turn_without_steps_ends_at_once() -> None:
    [reply] = played("{turns: [{steps: []}], sessions: {auto_title: null}}")
    assert reply["result"] == {"stopReason": "end_turn"}


# --- a second prompt


def second_prompt(policy: str) -> tuple[Theatre, Client, Any, Any, str]:
    """A turn of 10 s, and a prompt that comes after 1 s."""
    theatre = Theatre(
        f"{{sessions: {{busy: {policy}, auto_title: null}}, turns: [{{when: {{prompt: first}}, steps: "
        "[{say: a}, {wait: 10s}, {say: b}]}, {steps: [{say: '${prompt}'}]}]}"
    )
    client = theatre.client()
    session = client.new()
    first = client.prompt(session, "first", run=False)
    theatre.run(until=1)
    second = client.prompt(session, "second", run=False)
    theatre.run(until=2)
    client.read()
    return theatre, client, first, second, session


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("busy", {"code": -32600, "message": "A turn is already running in this session", "data": {"reason": "busy"}}),
        ("rate_limited", {"code": -32603, "message": "Rate limited", "data": {"reason": "rate_limited"}}),
        ("{code: -32099, message: later}", {"code": -32099, "message": "later"}),
    ],
)
def test_a_second_prompt_gets_an_error(policy: str, error: Any) -> None:
    theatre, client, first, second, _ = second_prompt(policy)
    assert client.reply_to(second)["error"] == error
    assert client.reply_to(first) is None
    theatre.run()
    assert client.reply_to(first)["result"] == {"stopReason": "end_turn"}
    assert words(client.sent) == "ab"


def test_a_second_prompt_waits_in_the_queue() -> None:
    theatre, client, first, second, _ = second_prompt("queue")
    assert client.reply_to(second) is None
    theatre.run()
    client.read()
    assert words(client.sent) == "absecond"
    replies = [message["id"] for message in client.sent if message.get("id") in (first, second)]
    assert replies == [first, second]


def test_a_second_prompt_replaces_the_first() -> None:
    _, client, first, second, _ = second_prompt("replace")
    assert client.reply_to(first)["result"] == {"stopReason": "cancelled"}
    assert client.reply_to(second)["result"] == {"stopReason": "end_turn"}
    assert words(client.sent) == "asecond"


def test_a_third_prompt_replaces_the_second_that_still_waits() -> None:
    theatre = Theatre(
        "{sessions: {busy: replace, auto_title: null}, turns: [{when: {prompt: first}, steps: "
        "[{tool: {name: rm, ask: true}}]}, {steps: [{say: '${prompt}'}]}]}"
    )
    client = theatre.client()
    session = client.new()
    ids = []
    for text in ("first", "second", "third"):
        ids.append(client.prompt(session, text, run=False))
        theatre.run(until=0.1)
        client.read()
    assert client.reply_to(ids[1])["result"] == {"stopReason": "cancelled"}
    asked = next(message for message in client.sent if "options" in message.get("params", {}))
    client.answer(asked, CANCELLED)
    client.run()
    assert [client.reply_to(id)["result"]["stopReason"] for id in ids] == ["cancelled", "cancelled", "end_turn"]
    assert words(client.sent) == "third"


def test_two_turns_run_in_parallel() -> None:
    theatre, client, first, second, _ = second_prompt("parallel")
    assert client.reply_to(second)["result"] == {"stopReason": "end_turn"}
    assert client.reply_to(first) is None
    theatre.run()
    assert client.reply_to(first)["result"] == {"stopReason": "end_turn"}
    assert words(client.sent) == "asecondb"


@pytest.mark.parametrize("way", ["session/cancel", "session/close", "session/delete", "$/cancel_request"])
def test_a_prompt_in_the_queue_is_answered_when_it_is_called_off(way: str) -> None:
    theatre, client, first, second, session = second_prompt("queue")
    if way == "$/cancel_request":
        client.notify(way, {"requestId": second})
    elif way == "session/cancel":
        client.notify(way, {"sessionId": session})
    else:
        client.request(way, {"sessionId": session})
    theatre.run()
    assert client.reply_to(second)["result"] == {"stopReason": "cancelled"}
    kept_on = way == "$/cancel_request"
    assert client.reply_to(first)["result"] == {"stopReason": "end_turn" if kept_on else "cancelled"}
    assert words(client.sent) == ("ab" if kept_on else "a")


def test_turns_in_two_sessions_do_not_meet() -> None:
    theatre = Theatre("{turns: [{steps: [{say: '${session.id}'}, {wait: 1s}]}], sessions: {auto_title: null}}")
    client = theatre.client()
    one, two = client.new(), client.new()
    ids = [client.prompt(session, run=False) for session in (one, two)]
    client.run()
    assert [client.reply_to(id)["result"]["stopReason"] for id in ids] == ["end_turn", "end_turn"]
    assert words(client.sent) == one + two


# --- titles


def titles(client: Client) -> list[Any]:
    return [update["title"] for update in updates(client.sent) if "title" in update and "toolCallId" not in update]


def test_a_title_is_made_from_the_first_prompt_after_the_first_turn() -> None:
    theatre = Theatre("{turns: [{steps: [{say: x}]}], sessions: {auto_title: {after: 2s}}}")
    client = theatre.client()
    session = client.new()
    client.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Fix it\nnow"}]})
    theatre.run(until=1.9)
    client.read()
    assert titles(client) == []
    client.run()
    client.prompt(session, "Another")
    assert titles(client) == ["Fix it"]
    assert client.call("session/list")["result"]["sessions"][0]["title"] == "Fix it"


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        ("sessions: {auto_title: null}", []),
        ("sessions: {auto_title: {after: 5s}}", ["Mine"]),
    ],
)
def test_a_title_that_the_scenario_gives_wins(rest: str, shown: list[str]) -> None:
    own = "{stop: end_turn}, {after: 1s, info: {title: Mine}}" if shown else "{say: x}"
    client = Theatre(f"{{turns: [{{steps: [{own}]}}], {rest}}}").client()
    client.prompt(client.new(), "Fix it")
    assert titles(client) == shown


def test_a_title_over_the_limit_is_refused_unless_it_is_forced() -> None:
    theatre = Theatre(
        "{sessions: {auto_title: null, title_limit: {length: 3, then: refuse}}, "
        "turns: [{steps: [{info: {title: long}}, {info: {title: longer, force: true}}]}]}"
    )
    client = theatre.client()
    client.prompt(client.new())
    assert titles(client) == ["longer"]
    assert [note["why"] for note in theatre.notes.of("skipped")] == ["the title is too long"]


# --- what is scheduled


def scheduled(entry: str, rest: str = "sessions: {auto_title: null}") -> Theatre:
    return Theatre(f"{{schedule: [{{{entry}}}], turns: [{{steps: [{{say: turn}}]}}], {rest}}}")


def test_an_entry_plays_so_often_with_waits_between_rounds_after_its_event() -> None:
    theatre = scheduled("event: session_opened, after: 2s, every: 5s, times: 3, steps: [{info: {meta: {n: 1}}}]")
    client = theatre.client()
    client.request("initialize", {"protocolVersion": 1})
    client.request("session/new", {"cwd": CWD, "mcpServers": []})
    for until, rounds in ((1.9, 0), (2.1, 1), (6.9, 1), (7.1, 2), (12.1, 3), (100.0, 3)):
        theatre.run(until=until)
        client.read()
        assert len(updates(client.sent)) == rounds


def test_an_entry_without_every_plays_once_for_each_event() -> None:
    theatre = scheduled("event: turn_ended, steps: [{info: {title: '${turn}'}}]")
    client = theatre.client()
    session = client.new()
    client.prompt(session)
    client.prompt(session)
    assert titles(client) == ["1", "2"]


def test_what_follows_a_turn_comes_behind_its_reply() -> None:
    client = scheduled("event: turn_ended, steps: [{info: {title: T}}]").client()
    session = client.new()
    id = client.prompt(session)
    order = [message.get("id") or updates([message])[0]["sessionUpdate"] for message in client.sent][2:]
    assert order == ["agent_message_chunk", id, "session_info_update"]


STORED = "sessions: {auto_title: null, stored: [{id: sess_a, cwd: /a}, {id: sess_b, cwd: /b}, {id: other, cwd: /c}]}"


def targets(client: Client) -> list[str]:
    return [message["params"]["sessionId"] for message in client.sent if message.get("method") == "session/update"]


@pytest.mark.parametrize(
    ("entry", "where"),
    [
        ("event: connected, session: sess_b, steps: [{info: {title: T}}]", ["sess_b"]),
        ("event: session_opened, session: sess_b, steps: [{info: {title: T}}]", ["sess_b"]),
        ("event: session_opened, session: 'sess_*', steps: [{info: {title: T}}]", ["sess_a", "sess_b"]),
        ("event: session_opened, session: none, steps: [{info: {title: T}}]", []),
        ("event: connected, steps: [{info: {title: T}}]", []),
    ],
)
def test_an_entry_plays_in_the_sessions_that_it_names_though_nobody_has_them_open(entry: str, where: list[str]) -> None:
    client = scheduled(entry, STORED).client()
    session = client.new()
    assert sorted(id for id in targets(client) if id != session) == where


def test_an_entry_about_lists_concerns_the_rows_of_the_page() -> None:
    both = ["sess_a", "sess_b"]
    for named, where in (("current", ["other", *both]), ("sess_b", ["sess_b"]), ("sess_*", both)):
        theatre = scheduled(f"event: session_listed, session: '{named}', steps: [{{info: {{title: T}}}}]", STORED)
        client = theatre.client()
        client.initialize()
        assert targets(client) == []
        reply = client.call("session/list")
        assert sorted(targets(client)) == where
        assert client.sent.index(reply) < min(
            index for index, message in enumerate(client.sent) if message.get("method") == "session/update"
        )
        rows = client.call("session/list")["result"]["sessions"]
        assert sorted(row["sessionId"] for row in rows if row.get("title") == "T") == where


def test_a_closed_session_is_a_row_of_the_list_again() -> None:
    theatre = scheduled("event: session_opened, session: sess_b, steps: [{info: {title: T}}]", STORED)
    one, two = theatre.client(), theatre.client()
    one.initialize()
    two.initialize()
    one.call("session/load", {"sessionId": "sess_b", "cwd": "/b", "mcpServers": []})
    two.read()
    assert (titles(one), titles(two)) == (["T"], [])
    one.call("session/close", {"sessionId": "sess_b"})
    one.new()
    two.read()
    assert (titles(one), titles(two)) == (["T", "T"], ["T"])


def test_the_end_of_a_turn_whose_session_was_closed_is_heard_by_its_client_alone() -> None:
    theatre = Theatre(f"{{turns: [{{steps: [{{tool: {{name: x, takes: 1h}}}}]}}], {STORED}}}")
    one, two = theatre.client(), theatre.client()
    one.initialize()
    two.initialize()
    one.call("session/load", {"sessionId": "sess_b", "cwd": "/b", "mcpServers": []})
    id = one.prompt("sess_b", run=False)
    theatre.run(until=1)
    one.call("session/close", {"sessionId": "sess_b"})
    two.read()
    assert one.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert updates(one.sent)[-1]["status"] == "failed"
    assert updates(two.sent) == []


def test_a_session_that_somebody_has_open_is_nobody_elses_business() -> None:
    theatre = scheduled("event: turn_ended, steps: [{info: {title: T}}]", STORED)
    one, two = theatre.client(), theatre.client()
    two.initialize()
    one.initialize()
    one.call("session/load", {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []})
    one.prompt("sess_a")
    two.read()
    assert titles(one) == ["T"]
    assert updates(two.sent) == []


def test_everybody_who_has_a_session_open_hears_its_turns() -> None:
    theatre = Theatre(f"{{turns: [{{steps: [{{say: hi}}, {{tool: {{name: rm, ask: true}}}}]}}], {STORED}}}")
    one, two = theatre.client(), theatre.client()
    for client in (one, two):
        client.initialize()
        client.call("session/load", {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []})
    one.prompt("sess_a")
    two.read()
    assert words(two.sent) == "hi"
    assert any("options" in message.get("params", {}) for message in one.sent)
    assert not any("options" in message.get("params", {}) for message in two.sent)


def test_a_turn_whose_client_has_gone_plays_on_and_is_heard_by_whoever_loads_the_session() -> None:
    theatre = Theatre(f"{{turns: [{{steps: [{{say: a}}, {{wait: 5s}}, {{say: b}}]}}], {STORED}}}")
    one = theatre.client()
    one.initialize()
    one.call("session/load", {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []})
    one.request("session/prompt", {"sessionId": "sess_a", "prompt": [{"type": "text", "text": "go"}]})
    theatre.run(until=1)
    one.connection.lost()
    two = theatre.client()
    for method, params in (
        ("initialize", {"protocolVersion": 1}),
        ("session/load", {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []}),
    ):
        two.request(method, params)
    two.read()
    assert words(two.sent) == "a"
    theatre.run()
    two.read()
    assert words(two.sent) == "ab"
    assert not theatre.agent.busy


def test_closing_a_session_ends_what_is_scheduled_there() -> None:
    theatre = scheduled("event: session_opened, every: 1s, steps: [{info: {meta: {n: 1}}}]")
    client = theatre.client()
    client.request("initialize", {"protocolVersion": 1})
    client.request("session/new", {"cwd": CWD, "mcpServers": []})
    theatre.run(until=3.5)
    client.read()
    rounds = len(updates(client.sent))
    assert rounds == 4
    client.request("session/close", {"sessionId": targets(client)[0]})
    theatre.run(until=30)
    client.read()
    assert len(updates(client.sent)) == rounds
    assert not theatre.agent.playing
