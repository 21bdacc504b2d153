"""What each method of ACP v1 answers, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CWD, Client, Json, Theatre, updates, words

INVALID = -32602
UNKNOWN_SESSION = -32002

STORED = """
sessions:
  auto_title: null
  stored:
    - id: sess_a
      cwd: /a
      title: Debug
      meta: {n: 1}
      updated_at: "2026-01-15T08:00:00Z"
      history:
        - user: Why?
        - think: Hm.
        - say: [Because, " so."]
        - tool: {name: grep, id: t1, title: Looking, kind: search, input: {q: 1}, output: found}
        - plan: [{content: p}]
        - say: Done.
    - {id: sess_b, cwd: /b, additional_directories: [/more]}
"""


def client_of(scenario: str = "{}", **more: Any) -> Client:
    client = Theatre(scenario).client(**more)
    client.initialize()
    return client


def error_of(client: Client, method: str, params: Any) -> Json:
    error: Json = client.call(method, params)["error"]
    return error


def load(client: Client, id: str = "sess_a", cwd: str = "/a", **more: Any) -> Json:
    return client.call("session/load", {"sessionId": id, "cwd": cwd, "mcpServers": [], **more})


# --- initialize


@pytest.mark.parametrize(("asked", "agreed"), [(1, 1), (0, 1), (2, 1), (65535, 1)])
def test_initialize_agrees_on_a_version_that_is_played(asked: int, agreed: int) -> None:
    result = Theatre().client().call("initialize", {"protocolVersion": asked})["result"]
    assert result["protocolVersion"] == agreed


def test_initialize_tells_who_the_agent_is_and_what_it_can() -> None:
    scenario = """
agent:
  name: coder
  title: Coder
  version: "3.1"
  capabilities: {load: false, resume: false, prompt: {audio: false}, mcp: {sse: false}}
  auth: {methods: [{id: login, name: Log in, description: d}]}
"""
    result = Theatre(scenario).client().initialize()
    assert result == {
        "protocolVersion": 1,
        "agentInfo": {"name": "coder", "title": "Coder", "version": "3.1"},
        "agentCapabilities": {
            "loadSession": False,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": False},
            "sessionCapabilities": {"list": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
            "auth": {"logout": {}},
        },
        "authMethods": [{"id": "login", "name": "Log in", "description": "d"}],
    }


@pytest.mark.parametrize("version", [-1, 65536, "1", None, True, 1.5])
def test_a_version_that_is_none_is_refused_and_the_client_may_try_again(version: Any) -> None:
    client = Theatre().client()
    error = error_of(client, "initialize", {"protocolVersion": version})
    assert (error["code"], error["data"]["field"]) == (INVALID, "protocolVersion")
    assert client.initialize()["protocolVersion"] == 1


def test_nothing_can_be_called_before_initialize() -> None:
    client = Theatre().client()
    for method in ("session/new", "session/list", "session/prompt", "authenticate", "logout", "_ext", "nonsense"):
        assert error_of(client, method, {})["code"] == -32600
    assert client.initialize()


def test_initialize_can_be_called_once() -> None:
    client = client_of()
    assert error_of(client, "initialize", {"protocolVersion": 1})["code"] == -32600
    assert client.new()


# --- what is switched off


@pytest.mark.parametrize(
    ("capability", "method"),
    [
        ("load", "session/load"),
        ("list", "session/list"),
        ("resume", "session/resume"),
        ("close", "session/close"),
        ("delete", "session/delete"),
    ],
)
def test_a_method_that_is_not_advertised_is_not_there(capability: str, method: str) -> None:
    off = client_of(f"agent: {{capabilities: {{{capability}: false}}}}")
    assert error_of(off, method, {"sessionId": "x", "cwd": "/a", "mcpServers": []})["code"] == -32601
    reply = client_of().call(method, {"sessionId": "x", "cwd": "/a", "mcpServers": []})
    assert reply.get("error", {}).get("code") != -32601


@pytest.mark.parametrize("method", ["session/fork", "logout", "_acme/ping", "fs/read_text_file", "", "session/cancel"])
def test_an_unknown_method_is_answered(method: str) -> None:
    assert error_of(client_of(), method, {"sessionId": "x"})["code"] == -32601


# --- params


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("session/new", {}, "cwd"),
        ("session/new", {"cwd": "/a"}, "mcpServers"),
        ("session/new", {"cwd": 5, "mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "a/b", "mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "", "mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "/a", "mcpServers": {}}, "mcpServers"),
        (
            "session/new",
            {"cwd": "/a", "mcpServers": [], "additionalDirectories": ["/b", "c"]},
            "additionalDirectories[1]",
        ),
        ("session/new", {"cwd": "/a", "mcpServers": [{"name": "x"}]}, "mcpServers[0]"),
        ("session/new", {"cwd": "/a", "mcpServers": [{"name": "x", "type": "pipe"}]}, "mcpServers[0]"),
        (
            "session/new",
            {"cwd": "/a", "mcpServers": [{"name": "x", "command": "mcp", "args": [], "env": []}]},
            "mcpServers[0].command",
        ),
        ("session/new", {"cwd": "/a", "mcpServers": [{"name": "x", "type": "http", "url": "u"}]}, "mcpServers[0]"),
        ("session/load", {"cwd": "/a", "mcpServers": []}, "sessionId"),
        ("session/load", {"sessionId": "sess_a", "cwd": "/other", "mcpServers": []}, "cwd"),
        ("session/resume", {"sessionId": "sess_a", "cwd": "relative"}, "cwd"),
        ("session/list", {"cwd": "relative"}, "cwd"),
        ("session/list", {"cursor": 5}, "cursor"),
        ("session/prompt", {"prompt": []}, "sessionId"),
        ("session/prompt", {"sessionId": "sess_a", "prompt": [{"type": "text"}]}, None),
        ("session/close", {"sessionId": None}, "sessionId"),
    ],
)
def test_wrong_params_are_refused_with_the_field_and_the_rule(method: str, params: Json, field: str | None) -> None:
    error = error_of(client_of(STORED), method, params)
    assert error["code"] == INVALID
    assert error["data"]["rule"]
    assert error["data"]["field"] in error["message"]
    if field is not None:
        assert error["data"]["field"].startswith(field)


@pytest.mark.parametrize("params", [[], ["/a"], "text-params"])
def test_params_that_are_no_object_are_refused(params: Any) -> None:
    client = client_of()
    client.write({"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": params})
    client.run()
    assert client.reply_to(7)["error"]["code"] in (INVALID, -32600)


@pytest.mark.parametrize("cwd", ["/a", "C:\\work", "D:/work", "\\\\host\\share", "/with space/é"])
def test_paths_are_absolute_on_the_clients_machine(cwd: str) -> None:
    client = client_of()
    id = client.new(cwd=cwd)
    [row] = client.call("session/list")["result"]["sessions"]
    assert (row["sessionId"], row["cwd"]) == (id, cwd)


def test_what_the_schema_leaves_open_passes() -> None:
    client = client_of()
    server = {"name": "x", "command": "/bin/mcp", "args": ["-v"], "env": [{"name": "K", "value": "v"}], "more": 1}
    remote = {"name": "y", "type": "sse", "url": "https://x", "headers": []}
    assert client.new(mcpServers=[server, remote], _meta={"a": 1}, future=True, additionalDirectories=["/b"])


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_server_whose_transport_was_not_advertised_is_refused(kind: str) -> None:
    client = client_of(f"agent: {{capabilities: {{mcp: {{{kind}: false}}}}}}")
    params = {"cwd": "/a", "mcpServers": [{"name": "y", "type": kind, "url": "https://x", "headers": []}]}
    assert error_of(client, "session/new", params)["data"]["field"] == "mcpServers[0]"


def test_more_directories_need_the_capability() -> None:
    client = client_of("agent: {capabilities: {additional_directories: false}}")
    assert client.new(additionalDirectories=[])
    error = error_of(client, "session/new", {"cwd": "/a", "mcpServers": [], "additionalDirectories": ["/b"]})
    assert error["data"]["field"] == "additionalDirectories"


@pytest.mark.parametrize(
    ("capability", "block"),
    [
        ("image", {"type": "image", "data": "AA==", "mimeType": "image/png"}),
        ("audio", {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
        ("embedded_context", {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}),
    ],
)
def test_content_is_taken_as_far_as_it_was_advertised(capability: str, block: Json) -> None:
    for on in (True, False):
        client = client_of(f"agent: {{capabilities: {{prompt: {{{capability}: {str(on).lower()}}}}}}}")
        params = {"sessionId": client.new(), "prompt": [{"type": "text", "text": "see"}, block]}
        reply = client.call("session/prompt", params)
        if on:
            assert reply["result"]["stopReason"] == "end_turn"
        else:
            assert reply["error"]["data"]["field"] == "prompt[1]"


def test_a_resource_has_text_or_a_blob_at_least_and_links_always_pass() -> None:
    client = client_of()
    session = client.new()
    both = {"text": "x", "blob": "y"}
    for inner, good in (({"text": "x"}, True), ({"blob": "AA=="}, True), ({}, False), (both, True)):
        block = {"type": "resource", "resource": {"uri": "file:///a", **inner}}
        assert ("result" in client.call("session/prompt", {"sessionId": session, "prompt": [block]})) is good
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    assert "result" in client.call("session/prompt", {"sessionId": session, "prompt": [link]})


# --- sessions


def test_a_new_session_shows_modes_options_and_then_its_commands() -> None:
    client = client_of(
        "agent: {modes: [{id: ask, name: Ask, description: d}, {id: code, name: Code}], "
        "options: [{id: brave, name: Brave, type: boolean, value: false}], "
        "commands: [{name: plan, description: Plan}]}"
    )
    reply = client.call("session/new", {"cwd": CWD, "mcpServers": []})
    assert reply["result"]["modes"] == {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask", "description": "d"}, {"id": "code", "name": "Code"}],
    }
    assert [option["id"] for option in reply["result"]["configOptions"]] == ["brave"]
    assert client.sent[-2] is reply
    assert [update["sessionUpdate"] for update in updates(client.sent)] == ["available_commands_update"]


def test_load_replays_the_whole_conversation_before_its_reply() -> None:
    client = client_of(STORED)
    before = len(client.sent)
    reply = load(client)
    assert client.sent[-1] is reply
    assert reply["result"] == {}
    shown = updates(client.sent[before:])
    assert [update["sessionUpdate"] for update in shown] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "agent_message_chunk",
    ]
    ids = [update["messageId"] for update in shown if "messageId" in update]
    assert len(set(ids)) == len(ids) == 4
    assert words(client.sent[before:]) == "Because so.Done."
    assert (shown[3]["toolCallId"], shown[3]["rawInput"]) == ("t1", {"q": 1})
    assert (shown[4]["status"], shown[4]["rawOutput"]) == ("completed", "found")


def test_what_was_said_is_replayed_as_it_was_said() -> None:
    theatre = Theatre(
        "{turns: [{steps: [{say: one two three, pace: {chunk: word}}, {tool: {name: x, output: o}}, "
        "{say: '${prompt}'}]}]}"
    )
    first = theatre.client()
    session = first.new()
    first.prompt(session, "hello")
    second = theatre.client()
    second.initialize()
    load(second, session, CWD)
    assert words(second.sent) == words(first.sent) == "one two threehello"
    kinds = [update["sessionUpdate"] for update in updates(second.sent)]
    assert kinds == [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]


def test_loading_twice_replays_the_same_again() -> None:
    client = client_of(STORED)
    seen = []
    for _ in range(2):
        before = len(client.sent)
        load(client)
        seen.append(updates(client.sent[before:]))
    assert seen[0] == seen[1]


def test_resume_replays_nothing() -> None:
    client = client_of(STORED)
    before = len(client.sent)
    reply = client.call("session/resume", {"sessionId": "sess_a", "cwd": "/a"})
    assert client.sent[before:] == [reply]
    assert reply["result"] == {}
    assert "result" in client.call("session/prompt", {"sessionId": "sess_a", "prompt": []})


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_more_directories_count_as_given_each_time(method: str) -> None:
    client = client_of(STORED)

    def directories() -> Any:
        rows = {row["sessionId"]: row for row in client.call("session/list")["result"]["sessions"]}
        return rows["sess_b"].get("additionalDirectories")

    assert directories() == ["/more"]
    params = {"sessionId": "sess_b", "cwd": "/b/", "mcpServers": []}
    client.call(method, {**params, "additionalDirectories": ["/x", "/y"]})
    assert directories() == ["/x", "/y"]
    client.call(method, params)
    assert directories() is None


@pytest.mark.parametrize(
    "method", ["session/load", "session/resume", "session/close", "session/prompt", "session/set_mode"]
)
def test_an_unknown_session_is_not_found(method: str) -> None:
    params = {"sessionId": "none", "cwd": "/a", "mcpServers": [], "prompt": [], "modeId": "x"}
    error = error_of(client_of(), method, params)
    assert (error["code"], error["data"]["reason"]) == (UNKNOWN_SESSION, "session_not_found")


@pytest.mark.parametrize("method", ["session/close", "session/prompt", "session/set_mode", "session/set_config_option"])
def test_a_session_that_is_not_open_is_inactive(method: str) -> None:
    params = {"sessionId": "sess_a", "prompt": [], "modeId": "x", "configId": "c", "value": "v"}
    error = error_of(client_of(STORED), method, params)
    assert (error["code"], error["data"]["reason"]) == (UNKNOWN_SESSION, "session_inactive")


def test_a_closed_session_is_listed_and_can_be_opened_again() -> None:
    client = client_of(STORED)
    load(client)
    assert client.call("session/close", {"sessionId": "sess_a"})["result"] == {}
    assert error_of(client, "session/close", {"sessionId": "sess_a"})["data"]["reason"] == "session_inactive"
    assert error_of(client, "session/prompt", {"sessionId": "sess_a", "prompt": []})["code"] == UNKNOWN_SESSION
    assert len(client.call("session/list")["result"]["sessions"]) == 2
    assert "result" in load(client)
    assert "result" in client.call("session/prompt", {"sessionId": "sess_a", "prompt": []})


def test_deleting_succeeds_twice_and_for_what_never_was() -> None:
    client = client_of(STORED)
    for id in ("sess_a", "sess_a", "never"):
        assert client.call("session/delete", {"sessionId": id})["result"] == {}
    assert [row["sessionId"] for row in client.call("session/list")["result"]["sessions"]] == ["sess_b"]
    assert load(client)["error"]["code"] == UNKNOWN_SESSION


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_ending_a_session_cancels_its_turn_which_is_still_answered(method: str) -> None:
    theatre = Theatre("{turns: [{steps: [{say: a}, {hang: true}]}], sessions: {auto_title: null}}")
    client = theatre.client()
    session = client.new()
    id = client.prompt(session)
    assert client.call(method, {"sessionId": session})["result"] == {}
    assert client.reply_to(id)["result"] == {"stopReason": "cancelled"}
    assert not theatre.agent.playing


def test_list_shows_rows_with_what_is_known_and_filters_by_directory() -> None:
    client = client_of(STORED)
    rows = client.call("session/list", {"cwd": "/a/"})["result"]["sessions"]
    assert rows == [
        {
            "sessionId": "sess_a",
            "cwd": "/a",
            "title": "Debug",
            "updatedAt": "2026-01-15T08:00:00.000Z",
            "_meta": {"n": 1},
        }
    ]
    assert client.call("session/list", {"cwd": "/none"})["result"] == {"sessions": []}


def test_what_an_update_said_is_in_later_lists() -> None:
    client = Theatre(
        "{turns: [{steps: [{info: {title: T, meta: {a: {b: 1, c: 2}}}}, {info: {meta: {a: {b: null}}}}]}]}"
    ).client()
    session = client.new()
    client.prompt(session)
    [row] = client.call("session/list")["result"]["sessions"]
    assert (row["title"], row["_meta"]) == ("T", {"a": {"c": 2}})


def test_pages_are_followed_to_the_end() -> None:
    client = client_of("sessions: {page_size: 2}")
    made = {client.new() for _ in range(5)}
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        result = client.call("session/list", {"cursor": cursor} if cursor else {})["result"]
        seen += [row["sessionId"] for row in result["sessions"]]
        cursor = result.get("nextCursor")
    assert cursor is None
    assert "nextCursor" not in result
    assert len(seen) == 5
    assert set(seen) == made


def test_a_cursor_that_was_made_up_is_invalid() -> None:
    error = error_of(client_of(), "session/list", {"cursor": "made up"})
    assert (error["code"], error["data"]["reason"]) == (INVALID, "invalid_cursor")


# --- modes and options

AGENT = """
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options:
    - {id: model, name: Model, type: select, value: fast, choices: [{value: fast, name: F}, {value: smart, name: S}]}
    - {id: brave, name: Brave, type: boolean, value: false}
    - {id: language, name: Language, type: text, value: English}
sessions: {auto_title: null}
turns: [{steps: [{say: on, when: {mode: code, option: {model: smart}}}]}]
"""


def test_modes_and_options_are_answered_without_an_update_and_conditions_see_them() -> None:
    client = client_of(AGENT)
    session = client.new()
    assert client.call("session/set_mode", {"sessionId": session, "modeId": "code"})["result"] == {}
    params = {"sessionId": session, "configId": "model", "value": "smart"}
    options = client.call("session/set_config_option", params)["result"]["configOptions"]
    assert [(option["id"], option["currentValue"]) for option in options] == [("model", "smart"), ("brave", False)]
    assert updates(client.sent) == []
    client.prompt(session)
    assert words(client.sent) == "on"
    reply = load(client, session, CWD)
    assert reply["result"]["modes"]["currentModeId"] == "code"
    assert reply["result"]["configOptions"][0]["currentValue"] == "smart"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"configId": "nope", "value": "x"}, "configId"),
        ({"configId": "language", "value": "x"}, "configId"),
        ({"configId": "model", "value": "slow"}, "value"),
        ({"configId": "model", "value": True}, "value"),
        ({"configId": "brave", "value": "true"}, "value"),
        ({"configId": "brave", "value": True}, "value"),
        ({"configId": "brave", "value": 1, "type": "boolean"}, "value"),
    ],
)
def test_a_value_that_is_not_on_offer_is_refused(params: Json, field: str) -> None:
    client = client_of(AGENT)
    error = error_of(client, "session/set_config_option", {"sessionId": client.new(), **params})
    assert (error["code"], error["data"]["field"]) == (INVALID, field)


def test_an_unknown_mode_is_refused() -> None:
    client = client_of(AGENT)
    error = error_of(client, "session/set_mode", {"sessionId": client.new(), "modeId": "fly"})
    assert (error["code"], error["data"]["field"]) == (INVALID, "modeId")


def test_boolean_options_are_there_only_for_clients_that_know_them() -> None:
    client = client_of(AGENT, capabilities={})
    reply = client.call("session/new", {"cwd": CWD, "mcpServers": []})["result"]
    assert [option["id"] for option in reply["configOptions"]] == ["model"]
    params = {"sessionId": reply["sessionId"], "configId": "brave", "value": True, "type": "boolean"}
    assert error_of(client, "session/set_config_option", params)["data"]["field"] == "configId"
    able = client_of(AGENT)
    params["sessionId"] = able.new()
    options = able.call("session/set_config_option", params)["result"]["configOptions"]
    assert options[1]["currentValue"] is True


# --- authentication

LOGIN = "agent: {auth: {required: true, methods: [{id: login, name: Log in}]}}"


def test_a_client_authenticates_first_where_that_is_required() -> None:
    client = client_of(LOGIN)
    for method in ("session/new", "session/list", "session/prompt"):
        assert error_of(client, method, {"cwd": "/a", "mcpServers": []})["code"] == -32000
    assert error_of(client, "authenticate", {"methodId": "other"})["data"]["field"] == "methodId"
    assert error_of(client, "session/new", {"cwd": "/a", "mcpServers": []})["code"] == -32000
    assert client.call("authenticate", {"methodId": "login"})["result"] == {}
    session = client.new()
    assert client.call("logout")["result"] == {}
    assert error_of(client, "session/prompt", {"sessionId": session, "prompt": []})["code"] == -32000


def test_logging_in_is_each_connections_own() -> None:
    theatre = Theatre(LOGIN)
    one, two = theatre.client(), theatre.client()
    one.initialize()
    two.initialize()
    one.call("authenticate", {"methodId": "login"})
    assert error_of(two, "session/new", {"cwd": "/a", "mcpServers": []})["code"] == -32000


# --- notifications


def test_a_wrong_notification_is_noted_and_never_answered() -> None:
    theatre = Theatre()
    client = theatre.client(judge=False)
    client.notify("session/cancel", {"sessionId": "early"})
    client.initialize()
    client.notify("session/cancel", {})
    client.notify("session/cancel", {"sessionId": "none"})
    client.notify("$/cancel_request", {"requestId": {}})
    client.notify("session/prompt", {"sessionId": "none", "prompt": []})
    client.notify("_anything", {"x": 1})
    client.notify("initialized")
    client.run()
    assert len(client.sent) == 1
    assert len(theatre.notes.of("refused")) == 4
    assert [note["method"] for note in theatre.notes.of("ignored")] == ["session/prompt", "_anything", "initialized"]
