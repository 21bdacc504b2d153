"""JSON-RPC over one connection: every request gets exactly one answer, everything else none, nothing ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import Client, Json, Theatre

HANGS = "{turns: [{steps: [{hang: true}]}], sessions: {auto_title: null}}"


def client_of(scenario: str = "{}") -> Client:
    client = Theatre(scenario).client(judge=False)
    client.initialize()
    return client


def new(id: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "session/new", "params": {"cwd": "/a", "mcpServers": []}}


def answers(client: Client, written: Any) -> list[Any]:
    """What comes back for one JSON text."""
    before = len(client.sent)
    client.write(written)
    client.run()
    return client.sent[before:]


# --- ids


@pytest.mark.parametrize("id", [0, 1, -5, 2**53, 10**15, "", "a", 'ü\n"', "0", None, 3.0])
def test_an_id_of_any_kind_comes_back_as_it_was(id: Any) -> None:
    [reply] = answers(client_of(), new(id))
    assert reply["id"] == id
    assert type(reply["id"]) in (type(id), int)
    assert reply["result"]["sessionId"]


def test_an_id_that_is_in_use_is_refused_and_the_first_request_goes_on() -> None:
    client = client_of(HANGS)
    session = client.new()
    client.request("session/prompt", {"sessionId": session, "prompt": []}, id=7)
    [refused] = answers(client, new(7))
    assert (refused["id"], refused["error"]["code"]) == (7, -32600)
    assert refused["error"]["data"] == {"reason": "duplicate_id"}
    [other] = answers(client, new("7"))
    assert "result" in other
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    assert client.sent[-1] == {"jsonrpc": "2.0", "id": 7, "result": {"stopReason": "cancelled"}}
    assert "result" in answers(client, new(7))[0]


# --- batches


def test_a_batch_is_answered_once_with_all_answers_and_no_notification_among_them() -> None:
    client = client_of()
    note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "x"}}
    [array] = answers(client, [new(1), note, new("b"), 5, {"jsonrpc": "2.0", "id": 3, "method": "nope"}])
    assert isinstance(array, list)
    by_id = {reply["id"]: reply for reply in array}
    assert len(array) == 4
    assert "result" in by_id[1]
    assert "result" in by_id["b"]
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[None]["error"]["code"] == -32600


def test_a_batch_with_a_turn_is_answered_when_that_has_ended() -> None:
    client = client_of("{turns: [{steps: [{say: hi}, {wait: 1s}]}], sessions: {auto_title: null}}")
    session = client.new()
    prompt = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": {"sessionId": session, "prompt": []}}
    [update, array] = answers(client, [prompt, new(10)])
    assert update["method"] == "session/update"
    assert [reply["id"] for reply in array] == [10, 9]


@pytest.mark.parametrize(
    "batch",
    [
        [{"jsonrpc": "2.0", "method": "_x"}],
        [{"jsonrpc": "2.0", "method": "_x"}, {"jsonrpc": "2.0", "id": 4, "result": 1}],
    ],
)
def test_a_batch_without_requests_has_no_answer(batch: list[Any]) -> None:
    assert answers(client_of(), batch) == []


def test_an_empty_batch_is_one_invalid_request() -> None:
    [reply] = answers(client_of(), [])
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


def test_a_duplicate_id_inside_a_batch_is_refused() -> None:
    client = client_of(HANGS)
    session = client.new()
    prompt = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": {"sessionId": session, "prompt": []}}
    assert answers(client, [prompt, new(9)]) == []
    client.notify("session/cancel", {"sessionId": session})
    client.run()
    [refused, ended] = client.sent[-1]
    assert (refused["error"]["code"], ended["result"]) == (-32600, {"stopReason": "cancelled"})


# --- what is no message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"{", -32700),
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x"} trailing', -32700),
        (b"[" * 1000 + b"]" * 1000, -32700),
        (b"5", -32600),
        (b"null", -32600),
        (b'"text"', -32600),
        (b'{"id":1,"method":"initialize"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"initialize"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
    ],
)
def test_what_is_no_message_is_answered_and_the_connection_goes_on(text: bytes, code: int) -> None:
    client = client_of()
    [reply] = answers(client, text)
    assert reply["error"]["code"] == code
    assert client.theatre.notes.of("malformed")
    assert "result" in answers(client, new(50))[0]


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "_ext/unknown", "params": {}},
        {"jsonrpc": "2.0", "method": "unknown"},
        {"jsonrpc": "2.0", "method": "session/cancel"},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": [1]},
        {"jsonrpc": "1.0", "method": "note"},
        {"jsonrpc": "2.0", "id": 77, "result": {}},
        {"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 77, "error": "bad"},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
    ],
)
def test_what_is_no_request_is_never_answered(message: Any) -> None:
    assert answers(client_of(), message) == []


def test_a_line_that_was_too_long_is_answered_with_an_error() -> None:
    client = client_of()
    client.connection.refuse_text(b"", -32600, "Invalid request: the line is too long")
    [reply] = client.read()
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


# --- answers of the client

ASKS = (
    "{turns: [{steps: [{request: {method: _ask}, then: "
    "[{when: {outcome: result}, steps: [{say: 'yes'}]}, {steps: [{say: 'no'}]}]}]}]}"
)


def test_a_second_answer_changes_nothing_and_is_noted() -> None:
    client = client_of(ASKS)
    client.prompt(client.new())
    asked = client.sent[-1]
    for result in (1, 2):
        client.answer(asked, result)
    client.run()
    assert [note["second"] for note in client.theatre.notes.of("unexpected_answer")] == [True]
    client.answer({"id": 4444}, {})
    assert [note["second"] for note in client.theatre.notes.of("unexpected_answer")] == [True, False]


def test_the_agents_own_ids_count_up_from_zero_on_each_connection() -> None:
    theatre = Theatre(ASKS)
    for _ in range(2):
        client = theatre.client()
        session = client.new()
        client.answers["_ask"] = {}
        client.prompt(session)
        client.prompt(session)
        assert [message["id"] for message in client.sent if message.get("method") == "_ask"] == [0, 1]


def test_the_clients_ids_and_the_agents_are_two_kinds() -> None:
    client = client_of(ASKS)
    session = client.new()
    client.request("session/prompt", {"sessionId": session, "prompt": []}, id=0)
    client.run()
    asked = client.sent[-1]
    assert asked["id"] == 0
    client.answer(asked, {})
    client.run()
    assert client.reply_to(0)["result"] == {"stopReason": "end_turn"}


def test_when_the_client_has_gone_open_questions_fail_and_turns_go_on() -> None:
    client = client_of(ASKS)
    session = client.new()
    client.prompt(session)
    client.connection.lost()
    client.theatre.run()
    assert not client.theatre.agent.busy
    history: list[Any] = client.theatre.agent.session(session).history.entries
    assert history[-1].parts == ["no"]


# --- anything at all

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=4), st.just("sess")
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    [
        "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/list",
        "session/close", "session/delete", "session/set_mode", "session/set_config_option", "session/prompt",
        "session/cancel", "$/cancel_request", "_x", "", "session/fork",
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    ["sessionId", "cwd", "mcpServers", "prompt", "cursor", "modeId", "configId", "value", "methodId", "protocolVersion",
     "clientCapabilities", "additionalDirectories", "requestId", "_meta"]
)  # fmt: skip
GOOD = st.sampled_from(
    [
        {"sessionId": "sess", "prompt": [{"type": "text", "text": "go"}]},
        {"sessionId": "sess", "cwd": "/a", "mcpServers": []},
        {"cwd": "/a", "mcpServers": []},
        {"protocolVersion": 1, "clientCapabilities": {}},
    ]
)
PARAMS = st.one_of(GOOD, st.dictionaries(NAMES, JSON, max_size=5), JSON)
IDS = st.one_of(st.integers(0, 5), st.text(max_size=2), st.none())
REQUESTS = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": IDS, "method": METHODS, "params": PARAMS})
ANY = st.one_of(
    REQUESTS,
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": METHODS, "params": PARAMS}),
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": IDS, "result": JSON}),
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": IDS, "error": JSON}),
    JSON,
)


@given(st.lists(st.one_of(ANY, st.lists(ANY, max_size=3)), max_size=12), st.booleans())
def test_whatever_a_client_writes_each_request_has_one_answer_and_nothing_breaks(
    written: list[Any], introduced: bool
) -> None:
    theatre = Theatre(
        "{sessions: {stored: [{id: sess, cwd: /a}], auto_title: null}, "
        "turns: [{steps: [{say: x}, {tool: {name: t, ask: true}}]}]}"
    )
    client = theatre.client(judge=False)
    if introduced:
        client.initialize()
        client.call("session/load", {"sessionId": "sess", "cwd": "/a", "mcpServers": []})
    before = len(client.sent)
    requests = 0
    for text in written:
        client.write(text)
        requests += sum(_is_request(member) for member in (text if isinstance(text, list) else [text]))
        client.read()
    for session in list(theatre.agent.world.sessions):
        client.notify("session/cancel", {"sessionId": session.id})
    client.run()
    sent = [one for message in client.sent[before:] for one in (message if isinstance(message, list) else [message])]
    replies = [message for message in sent if "method" not in message]
    owed = requests + sum(_is_malformed(one) for text in written for one in _members(text))
    assert len(replies) == owed
    assert not theatre.agent.busy
    assert not [line for line in theatre.said if "internal error" in line]
    assert not theatre.notes.of("bug")
    assert client.call("session/list" if client.connection.version else "initialize", {"protocolVersion": 1})
    assert json.dumps(sent)


def _members(text: Any) -> list[Any]:
    return text if isinstance(text, list) and text else [text]


def _is_request(message: Any) -> bool:
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return False
    return message.get("jsonrpc") == "2.0" and (message["params"] is None or isinstance(message["params"], dict | list))


def _is_malformed(message: Any) -> bool:
    """Whether an error is owed for something that is no message; notifications and responses get none."""
    if not isinstance(message, dict):
        return True
    if _is_request(message):
        return False
    if "method" in message and "id" not in message:
        return not isinstance(message["method"], str)
    return "method" in message or not ("result" in message or "error" in message)
