"""Every call on a session in every state, and what happens when several want one: `docs/sessions.md` as tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CANCELLED, CWD, Client, Json, Theatre, is_reply, select, updates, words

SCENARIO = """
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options: [{id: model, name: Model, type: select, value: fast, choices: [{value: fast, name: Fast}]}]
sessions:
  auto_title: null
  stored:
    - {id: s1, title: One, updated_at: 1h ago, meta: {a: 1}, history: [{user: hi}, {think: hm}, {say: ho}]}
    - {id: s2, title: Two, updated_at: 2h ago}
turns:
  - when: {prompt: wait}
    steps: [{say: begun}, {wait: 1h}, {say: never}]
  - when: {prompt: ask}
    steps: [{tool: {id: t, title: Delete, ask: true}}]
  - steps: [{say: "answer to ${prompt}"}]
"""
FORKING = SCENARIO.replace("agent:", "agent:\n  capabilities: {fork: true}")  # which the stable schema does not know
STATES = ("stored", "active", "closed", "deleted", "unknown")

CALLS: dict[str, Json] = {
    "session/load": {"cwd": CWD, "mcpServers": []},
    "session/resume": {"cwd": CWD},
    "session/fork": {"cwd": CWD},
    "session/prompt": {"prompt": [{"type": "text", "text": "go"}]},
    "session/set_mode": {"modeId": "code"},
    "session/set_config_option": {"configId": "model", "value": "fast"},
    "session/close": {},
    "session/delete": {},
}

GONE = "session_not_found"
SHUT = "session_inactive"
ANSWERS: dict[str, tuple[str, str, str, str, str]] = {
    # state:                 stored  active closed deleted unknown
    "session/load": ("ok", "ok", "ok", GONE, GONE),
    "session/resume": ("ok", "ok", "ok", GONE, GONE),
    "session/fork": ("ok", "ok", "ok", GONE, GONE),
    "session/prompt": (SHUT, "ok", SHUT, GONE, GONE),
    "session/set_mode": (SHUT, "ok", SHUT, GONE, GONE),
    "session/set_config_option": (SHUT, "ok", SHUT, GONE, GONE),
    "session/close": (SHUT, "ok", SHUT, GONE, GONE),
    "session/delete": ("ok", "ok", "ok", "ok", "ok"),
}
AFTER = {"session/load": "active", "session/resume": "active", "session/close": "closed"}


def client_of(scenario: str = SCENARIO, **options: Any) -> Client:
    client = Theatre(scenario).client(**options)
    client.initialize()
    return client


def put(client: Client, state: str, id: str = "s1") -> str:
    """Brings a session into a state; returns its id."""
    if state == "unknown":
        return "sess_nowhere"
    if state != "stored":
        resume(client, id)
    if state in ("closed", "deleted"):
        client.call("session/close" if state == "closed" else "session/delete", {"sessionId": id})
    return id


def resume(client: Client, id: str = "s1") -> Json:
    return client.call("session/resume", {"sessionId": id, "cwd": CWD})


def load(client: Client, id: str = "s1") -> Any:
    return client.request("session/load", {"sessionId": id, "cwd": CWD, "mcpServers": []})


def reason(reply: Json) -> str:
    return "ok" if "result" in reply else reply["error"]["data"]["reason"]


def row_of(client: Client, id: str) -> Json | None:
    rows = client.call("session/list")["result"]["sessions"]
    return next((row for row in rows if row["sessionId"] == id), None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("method", CALLS)
def test_each_call_has_its_answer_in_each_state(method: str, state: str) -> None:
    client = client_of(FORKING, judge=False) if method == "session/fork" else client_of()
    id = put(client, state)
    reply = client.call(method, {"sessionId": id, **CALLS[method]})
    assert reason(reply) == ANSWERS[method][STATES.index(state)]
    if reason(reply) == SHUT or reason(reply) == GONE:
        assert reply["error"]["code"] == -32002
        assert reply["error"]["data"]["sessionId"] == id
    found = client.theatre.agent.world.sessions.get(id)
    if method == "session/delete" or state in ("deleted", "unknown"):
        assert found is None
    else:
        assert found is not None
        assert found.state == (AFTER.get(method, state) if reason(reply) == "ok" else state)


@pytest.mark.parametrize("state", STATES)
def test_a_cancel_is_never_answered_and_changes_no_state(state: str) -> None:
    client = client_of()
    id = put(client, state)
    before = len(client.sent)
    client.notify("session/cancel", {"sessionId": id})
    client.run()
    assert client.sent[before:] == []


@pytest.mark.parametrize("state", STATES)
def test_the_list_shows_what_is_not_deleted(state: str) -> None:
    client = client_of()
    id = put(client, state)
    assert (row_of(client, id) is not None) == (state in ("stored", "active", "closed"))


# --- loading and resuming


def test_load_replays_all_of_it_in_order_under_ids_of_their_own_then_replies() -> None:
    client = client_of()
    id = load(client)
    sent = client.run()
    assert is_reply(sent[-1], id)
    assert [body["sessionUpdate"] for body in updates(sent)] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
    ]
    ids = [body["messageId"] for body in updates(sent)]
    assert len(set(ids)) == 3


def test_ids_of_messages_that_follow_are_new_ones() -> None:
    client = client_of()
    load(client)
    past = [body["messageId"] for body in updates(client.run())]
    client.prompt("s1")
    load(client)
    again = [body["messageId"] for body in updates(client.run())]
    assert again[:3] == past
    assert len(set(again)) == len(again) == 5


def test_resume_replays_nothing_and_tells_modes_and_options() -> None:
    client = client_of()
    before = len(client.sent)
    result = resume(client)["result"]
    assert updates(client.sent[before:]) == []
    assert result["modes"]["currentModeId"] == "ask"
    assert result["configOptions"][0]["currentValue"] == "fast"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_the_folder_has_to_be_the_sessions_but_for_a_slash(method: str) -> None:
    client = client_of()
    wrong = client.call(method, {"sessionId": "s1", "cwd": "/home/dev", "mcpServers": []})
    assert wrong["error"]["data"]["field"] == "cwd"
    assert client.theatre.agent.session("s1").state == "stored"
    assert reason(client.call(method, {"sessionId": "s1", "cwd": CWD + "/", "mcpServers": []})) == "ok"
    assert client.theatre.agent.session("s1").cwd == CWD


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_further_folders_are_those_of_the_last_call(method: str) -> None:
    client = client_of()
    params = {"sessionId": "s1", "cwd": CWD, "mcpServers": []}
    client.call(method, {**params, "additionalDirectories": ["/x", "/y"]})
    assert (row_of(client, "s1") or {})["additionalDirectories"] == ["/x", "/y"]
    client.call(method, params)
    assert "additionalDirectories" not in (row_of(client, "s1") or {})


def test_opening_and_closing_are_no_activity() -> None:
    client = client_of()
    before = row_of(client, "s1")
    resume(client)
    client.call("session/close", {"sessionId": "s1"})
    assert row_of(client, "s1") == before


# --- several at once


def test_load_of_the_session_that_is_running_replays_and_the_turn_goes_on() -> None:
    client = client_of()
    resume(client)
    turn = client.prompt("s1", "ask", run=False)
    client.theatre.run(0)
    client.read()
    second = load(client)
    client.theatre.run(0)
    assert reason(client.reply_to(second)) == "ok"
    assert client.reply_to(turn) is None
    question = next(message for message in client.sent if message.get("method") == "session/request_permission")
    client.answer(question, select("allow_once"))
    client.run()
    assert client.reply_to(turn)["result"] == {"stopReason": "end_turn"}


def test_what_a_running_turn_says_waits_for_the_replay_of_the_same_client() -> None:
    client = client_of(SCENARIO.replace("auto_title: null", "auto_title: null\n  replay: {pace: 1s}"))
    resume(client)
    client.theatre.run(0)
    before = len(client.sent)
    loading = load(client)
    client.theatre.run(0.5)
    turn = client.prompt("s1", "now", run=False)
    sent = client.run()
    sent = client.sent[before:]
    order = [("load" if is_reply(m, loading) else "turn") for m in sent if is_reply(m, loading) or is_reply(m, turn)]
    assert order == ["load", "turn"]
    kinds = [message.get("params", {}).get("update", {}).get("content", {}).get("text") for message in sent]
    at = next(index for index, message in enumerate(sent) if is_reply(message, loading))
    assert kinds[:at][:4] == ["hi", "hm", "ho", "now"]
    assert "answer to now" in kinds[at:]


def test_with_mixed_the_turn_does_not_wait() -> None:
    client = client_of(SCENARIO.replace("auto_title: null", "auto_title: null\n  replay: {pace: 1s, live: mixed}"))
    resume(client)
    before = len(client.sent)
    loading = load(client)
    client.theatre.run(0.5)
    turn = client.prompt("s1", "now", run=False)
    client.run()
    order = [is_reply(m, loading) for m in client.sent[before:] if is_reply(m, loading) or is_reply(m, turn)]
    assert order == [False, True]
    assert words(client.sent[before:]).count("answer to now") == 1


def test_a_message_that_grows_while_it_is_replayed_to_another_client_is_whole() -> None:
    theatre = Theatre(
        "sessions: {auto_title: null, replay: {pace: 2s}}\npace: {rate: 1/s, chunk: word}\n"
        "turns: [{steps: [{say: one two three four five six}]}]"
    )
    first, second = theatre.client(), theatre.client()
    session = first.new()
    first.prompt(session, run=False)
    theatre.run(2.5)
    second.initialize()
    load(second, session)
    second.run()
    assert words(second.sent) == "one two three four five six"


def test_two_loads_at_once_each_get_a_whole_replay_and_a_reply() -> None:
    client = client_of(SCENARIO.replace("auto_title: null", "auto_title: null\n  replay: {pace: 1s}"))
    one, two = load(client), load(client)
    client.run()
    assert [reason(client.reply_to(id)) for id in (one, two)] == ["ok", "ok"]
    assert [body["content"]["text"] for body in updates(client.sent)].count("ho") == 2


def test_two_clients_can_have_one_session_open() -> None:
    theatre = Theatre(SCENARIO)
    one, two = theatre.client(), theatre.client()
    for client in (one, two):
        client.initialize()
        resume(client)
    one.prompt("s1")
    two.run()
    assert words(two.sent) == words(one.sent) == "answer to go"


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_ending_a_session_during_its_load_refuses_the_load(method: str) -> None:
    client = client_of(SCENARIO.replace("auto_title: null", "auto_title: null\n  replay: {pace: 1s}"))
    loading = load(client)
    client.theatre.run(0.5)
    ending = client.request(method, {"sessionId": "s1"})
    client.run()
    assert reason(client.reply_to(loading)) == SHUT
    assert reason(client.reply_to(ending)) == "ok"


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_ending_a_session_cancels_its_turn_and_answers_behind_it(method: str) -> None:
    client = client_of()
    resume(client)
    turn = client.prompt("s1", "wait", run=False)
    client.theatre.run(1)
    ending = client.request(method, {"sessionId": "s1"})
    sent = client.run()
    assert [message.get("id") for message in sent][-2:] == [turn, ending]
    assert client.reply_to(turn)["result"] == {"stopReason": "cancelled"}
    assert client.reply_to(ending)["result"] == {}
    assert (row_of(client, "s1") is None) == (method == "session/delete")


def test_closing_waits_for_the_permission_as_a_cancel_does() -> None:
    client = client_of()
    resume(client)
    turn = client.prompt("s1", "ask", run=False)
    client.theatre.run(0)
    client.read()
    closing = client.request("session/close", {"sessionId": "s1"})
    client.theatre.run(1)
    assert client.reply_to(closing) is None
    question = next(message for message in client.sent if message.get("method") == "session/request_permission")
    client.answer(question, CANCELLED)
    client.run()
    assert client.reply_to(turn)["result"] == {"stopReason": "cancelled"}
    assert client.reply_to(closing)["result"] == {}


def test_closing_a_session_ends_what_is_scheduled_in_it() -> None:
    client = client_of(SCENARIO + "schedule: [{event: session_opened, every: 1s, steps: [{info: {title: x}}]}]")
    client.request("session/resume", {"sessionId": "s1", "cwd": CWD})
    client.theatre.run(2.5)
    assert len(updates(client.read())) == 3
    client.request("session/close", {"sessionId": "s1"})
    client.theatre.run(10)
    assert updates(client.read()) == []


def test_a_closed_session_can_be_loaded_again() -> None:
    client = client_of()
    resume(client)
    client.prompt("s1")
    client.call("session/close", {"sessionId": "s1"})
    id = load(client)
    sent = client.run()
    assert reason(client.reply_to(id)) == "ok"
    assert "answer to go" in words(sent)


# --- forks


def test_fork_is_unknown_unless_it_is_switched_on() -> None:
    client = client_of()
    assert client.call("session/fork", {"sessionId": "s1", "cwd": CWD})["error"]["code"] == -32601
    can = Theatre("{}").client().initialize()["agentCapabilities"]["sessionCapabilities"]
    assert "fork" not in can


def test_a_fork_has_its_parents_past_and_metadata_and_a_life_of_its_own() -> None:
    client = client_of(FORKING, judge=False)
    resume(client)
    id = client.call("session/fork", {"sessionId": "s1", "cwd": CWD})["result"]["sessionId"]
    fork, parent = row_of(client, id), row_of(client, "s1")
    assert fork is not None
    assert parent is not None
    assert (fork["title"], fork["_meta"], id != "s1") == ("One", {"a": 1}, True)
    assert fork["updatedAt"] > parent["updatedAt"]
    client.prompt(id, "only there")
    load(client, id)
    assert "only there" in str(client.run())
    load(client, "s1")
    assert "only there" not in str(client.run())


def test_a_fork_announced_is_in_the_capabilities() -> None:
    result = Theatre("agent: {capabilities: {fork: true}}").client(judge=False).initialize()
    assert result["agentCapabilities"]["sessionCapabilities"]["fork"] == {}
