"""Requests to the client: files, raw and extension calls, permissions, questions that are taken back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acp.pipe import playing
from tests.harness import CWD, EVERYTHING, Error, Json, Theatre, played, select, stop_reason, words


def turn(steps: str, rest: str = "") -> str:
    return f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}, {rest}}}"


def asked(messages: list[Any]) -> list[str]:
    """The methods of all requests of the agent."""
    return [message["method"] for message in messages if "method" in message and "id" in message]


def calls(messages: list[Any], method: str) -> list[Json]:
    return [message["params"] for message in messages if message.get("method") == method]


# --- files


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("src/a.py", f"{CWD}/src/a.py"),
        ("./a.py", f"{CWD}/a.py"),
        (f"{CWD}/a.py", f"{CWD}/a.py"),
        ("src/../a.py", f"{CWD}/src/../a.py"),
        ("/more/b.py", "/more/b.py"),
    ],
)
def test_a_path_starts_at_the_working_directory_and_stays_inside_the_roots(path: str, sent: str) -> None:
    client = Theatre(turn(f"read: {path}")).client()
    client.answers = {"fs/read_text_file": {"content": "x"}}
    client.prompt(client.new(additionalDirectories=["/more"]))
    [params] = calls(client.sent, "fs/read_text_file")
    assert params == {"sessionId": client.sent[1]["result"]["sessionId"], "path": sent}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "/home/dev/projects/x", "/home/dev", "C:/x"])
@pytest.mark.parametrize("step", ["read: {{path: '{0}'}}", "write: {{path: '{0}', content: c}}"])
def test_a_path_outside_is_asked_for_by_violations_only(path: str, step: str) -> None:
    steps = f"{{{step.format(path)}, otherwise: [{{say: no}}]}}"
    theatre = Theatre(turn(steps))
    client = theatre.client()
    client.prompt(client.new())
    assert words(client.sent) == "no"
    assert asked(client.sent) == []
    assert "outside" in theatre.notes.of("cannot_ask")[0]["why"]
    wild = played(turn(steps, "legality: violation"), read={"content": ""}, write={})
    assert len(asked(wild)) == 1


def test_a_file_is_asked_for_by_line_and_limit_and_its_text_decides() -> None:
    messages = played(
        turn(
            "{read: {path: a, line: 3, limit: 2}, save: {t: /result/content}, then: ["
            "{when: {text: 'x*'}, steps: [{say: never}]}, "
            "{when: {text: '*TODO*', outcome: result}, steps: [{say: 'todo: ${saved.t}'}]}]}"
        ),
        read={"content": "a\n# TODO\n"},
    )
    assert calls(messages, "fs/read_text_file")[0] | {"line": 3, "limit": 2} == calls(messages, "fs/read_text_file")[0]
    assert words(messages) == "todo: a\n# TODO\n"


def test_an_error_of_the_client_goes_its_own_way() -> None:
    steps = (
        "{read: {path: a}, save: {why: /error/message}, then: "
        "[{when: {outcome: error, text: '*there*'}, steps: [{say: '${saved.why}'}]}]}"
    )
    assert words(played(turn(steps), read=Error(-32002, "not there"))) == "not there"


def test_a_request_that_the_client_cancels_itself_ends_no_turn() -> None:
    messages = played(turn("{read: a}, {say: on}"), read=Error(-32800, "cancelled"))
    assert (words(messages), stop_reason(messages)) == ("on", "end_turn")


# --- permissions


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("allow_once", "granted"),
        ("allow_always", "granted"),
        ("reject_once", "denied"),
        ("reject_always", "denied"),
    ],
)
def test_each_kind_of_option_has_its_outcome(kind: str, outcome: str) -> None:
    steps = (
        f"{{ask: {{title: T, options: [{{id: x, name: X, kind: {kind}}}]}}, "
        f"then: [{{when: {{outcome: {outcome}}}, steps: [{{say: {outcome}}}]}}]}}"
    )
    messages = played(turn(steps), permission=select("x"))
    assert calls(messages, "session/request_permission")[0]["options"] == [{"optionId": "x", "name": "X", "kind": kind}]
    assert words(messages) == outcome


# --- taking a question back


def test_a_question_is_taken_back_after_its_time_and_the_answer_counts_as_timeout() -> None:
    steps = (
        "{request: _acme/ask, timeout: 2s, save: {c: /error/code}, then: "
        "[{when: {outcome: timeout}, steps: [{say: 'late ${saved.c}'}]}, {steps: [{say: never}]}]}"
    )
    theatre = Theatre(turn(steps))
    client = theatre.client()
    id = client.prompt(client.new(), run=False)
    theatre.run(until=1.9)
    client.read()
    assert calls(client.sent, "$/cancel_request") == []
    theatre.run(until=2.1)
    [request] = [message for message in client.read() if message.get("method") == "$/cancel_request"]
    assert request["params"] == {"requestId": 0}
    assert client.reply_to(id) is None
    client.answer({"id": 0}, Error(-32800))
    client.run()
    assert words(client.sent) == "late -32800"


def test_a_client_that_never_answers_is_given_up() -> None:
    steps = "{ask: {title: T}, timeout: 1s, then: [{when: {outcome: timeout}, steps: [{say: late}]}]}"
    theatre = Theatre(turn(steps))
    client = theatre.client()
    client.prompt(client.new())
    assert (words(client.sent), stop_reason(client.sent)) == ("late", "end_turn")
    assert 3 <= theatre.now < 4


def test_an_answer_in_time_is_what_it_is() -> None:
    steps = "{request: _acme/ask, timeout: 1h, then: [{when: {outcome: result}, steps: [{say: good}]}]}"
    theatre = Theatre(turn(steps))
    client = theatre.client()
    client.prompt(client.new(), run=False)
    [request] = [message for message in client.read() if message.get("method") == "_acme/ask"]
    client.answer(request, {})
    client.run()
    assert words(client.sent) == "good"
    assert theatre.now < 1
    assert calls(client.sent, "$/cancel_request") == []


# --- raw and extension calls


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", "{path: a}"),
        ("fs/write_text_file", "{path: a, content: b}"),
        ("terminal/create", "{command: a}"),
        ("elicitation/create", "{mode: form, message: m, requestedSchema: {}}"),
        ("elicitation/create", "{mode: url, message: m, url: 'x:y', elicitationId: e}"),
    ],
)
def test_raw_requests_are_gated_like_steps(method: str, params: str) -> None:
    steps = f"{{request: {{method: {method}, params: {params}}}, otherwise: [{{say: no}}]}}"
    client = Theatre(turn(steps)).client(capabilities={})
    client.prompt(client.new())
    assert (words(client.sent), asked(client.sent)) == ("no", [])
    wild = Theatre(turn(steps, "legality: violation")).client(capabilities={}, judge=False)
    wild.answers = {method: {}}
    wild.prompt(wild.new())
    assert asked(wild.sent) == [method]


def test_a_session_is_named_where_there_can_be_one_and_nowhere_else() -> None:
    steps = (
        "{notify: {method: elicitation/complete, params: {elicitationId: e}}}, {notify: _acme/tick}, "
        "{request: {method: elicitation/create, params: "
        "{requestId: '${request.id}', mode: form, message: m, requestedSchema: {}}}}"
    )
    theatre = Theatre(turn(steps))
    client = theatre.client()
    client.answers = {"elicitation/create": {"action": "decline"}}
    session = client.new()
    id = client.prompt(session)
    assert calls(client.sent, "elicitation/complete") == [{"elicitationId": "e"}]
    assert calls(client.sent, "_acme/tick") == [{"sessionId": session}]
    [params] = calls(client.sent, "elicitation/create")
    assert params == {"requestId": id, "mode": "form", "message": "m", "requestedSchema": {}}


EXTENSIONS = """
faults:
  - {at: _acme/ping, save: {n: /params/n}}
  - {at: _acme/ping, result: {pong: "${saved.n}"}}
  - {at: _acme/refuse, error: {code: 7, message: no, data: {a: 1}}}
  - {at: _acme/told, play_after: [{say: heard}]}
turns:
  - steps:
      - wait_for: {method: _acme/go, timeout: 1m}
        save: {x: /params/x}
        then: [{when: {outcome: result}, steps: [{say: "go ${saved.x}"}]}]
sessions: {auto_title: null}
"""


async def test_extension_methods_of_the_client_are_answered_by_the_scenario() -> None:
    async with playing(EXTENSIONS) as client:
        await client.greet()
        session = await client.new()
        assert (await client.call("_acme/ping", {"n": [1, 2]}))["result"] == {"pong": [1, 2]}
        refused = (await client.call("_acme/refuse"))["error"]
        assert refused == {"code": 7, "message": "no", "data": {"a": 1}}
        assert (await client.call("_acme/other"))["error"]["code"] == -32601
        await client.send({"method": "_acme/told", "params": {"sessionId": session}})
        assert (await client.read())["params"]["update"]["content"]["text"] == "heard"
        turn = await client.ask("session/prompt", {"sessionId": session, "prompt": []})
        await client.send({"method": "_acme/go", "params": {"sessionId": session, "x": 5}})
        await client.until_reply(turn)
        assert client.seen[-2]["params"]["update"]["content"]["text"] == "go 5"


def test_nothing_is_left_of_a_question_when_the_connection_ends() -> None:
    theatre = Theatre(turn("{read: a}, {say: on}"))
    client = theatre.client()
    client.prompt(client.new())
    client.connection.lost()
    theatre.run()
    assert not theatre.agent.playing


@pytest.mark.parametrize("capabilities", [{}, EVERYTHING])
def test_what_cannot_be_asked_is_noted_and_skipped(capabilities: Json) -> None:
    theatre = Theatre(turn("{mcp: {server: s, tool: t}}, {say: on}"))
    client = theatre.client(capabilities=capabilities)
    client.prompt(client.new())
    assert words(client.sent) == "on"
    assert theatre.notes.of("skipped")[0]["verb"] == "mcp"


async def test_the_scenario_extensions_plays_both_directions() -> None:
    async with playing("scenarios/extensions.yaml") as client:
        about = await client.greet(session={"notices": {}})
        assert about["agentCapabilities"]["_meta"] == {"mockagent.dev": {"ping": True, "told": True}}
        session = await client.new()
        assert (await client.call("_mockagent.dev/ping", {"n": 7}))["result"] == {"pong": 7}
        assert (await client.call("_mockagent.dev/secret"))["error"]["data"] == {"why": "secret"}
        assert (await client.call("_mockagent.dev/none"))["error"]["code"] == -32601
        await client.send({"method": "_mockagent.dev/told", "params": {"sessionId": session}})
        assert (await client.read())["params"]["update"]["title"] == "You have told me."
        client.answers = {"_mockagent.dev/buffers": {}}
        methods = [message.get("method") for message in await client.prompt(session)]
        assert methods == ["_mockagent.dev/progress", "_mockagent.dev/buffers", "session/update", None]
