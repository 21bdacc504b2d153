"""Logging in and out: the kinds of methods, what is closed before, what is lost after, and the login in a terminal."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mockagent.acp.auth import terminal_login
from mockagent.cli import main
from mockagent.scenario.load import load_text
from tests.acp.pipe import playing
from tests.harness import CWD, Client, Json, Theatre

METHODS = """
agent:
  auth:
    required: true
    methods:
      - {id: login, name: Log in, description: d, meta: {k: 1}}
      - {id: term, name: In a terminal, type: terminal, env: {A: b}}
      - {id: locked, name: Locked, type: terminal, args: [--login, locked], exit: 3}
sessions: {auto_title: null, stored: [{id: sess_a, cwd: /a}]}
"""


def able(scenario: str = METHODS, *, terminal: bool = True) -> Client:
    client = Theatre(scenario).client(capabilities={"auth": {"terminal": terminal}})
    client.initialize()
    return client


def error(reply: Json) -> Json:
    made: Json = reply["error"]
    return made


def test_methods_are_shown_as_the_schema_has_them() -> None:
    result = Theatre(METHODS).client(capabilities={"auth": {"terminal": True}}).initialize()
    assert result["authMethods"] == [
        {"id": "login", "name": "Log in", "description": "d", "_meta": {"k": 1}},
        {"id": "term", "name": "In a terminal", "type": "terminal", "args": ["--login=term"], "env": {"A": "b"}},
        {"id": "locked", "name": "Locked", "type": "terminal", "args": ["--login", "locked"]},
    ]
    assert result["agentCapabilities"]["auth"] == {"logout": {}}


@pytest.mark.parametrize("capabilities", [{}, {"auth": {}}, {"auth": {"terminal": False}}])
def test_terminal_methods_are_for_clients_that_can_run_one(capabilities: Json) -> None:
    result = Theatre(METHODS).client(capabilities=capabilities).initialize()
    assert [method["id"] for method in result["authMethods"]] == ["login"]


@pytest.mark.parametrize("id", ["term", "nope", ""])
def test_only_methods_of_the_agent_can_be_called(id: str) -> None:
    problem = error(able().call("authenticate", {"methodId": id}))
    assert (problem["code"], problem["data"]["field"]) == (-32602, "methodId")
    assert "login" in problem["data"]["rule"]


CLOSED = {
    "session/new": {"cwd": CWD, "mcpServers": []},
    "session/load": {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []},
    "session/resume": {"sessionId": "sess_a", "cwd": "/a"},
    "session/list": {},
    "session/delete": {"sessionId": "x"},
}


@pytest.mark.parametrize("method", CLOSED)
def test_nothing_works_before_the_user_has_logged_in(method: str) -> None:
    client = able()
    assert error(client.call(method, CLOSED[method]))["code"] == -32000
    assert client.call("authenticate", {"methodId": "login"})["result"] == {}
    assert "result" in client.call(method, CLOSED[method])


def test_sessions_are_lost_with_the_login() -> None:
    client = able(METHODS + "turns: [{steps: [{hang: true}]}]\n")
    client.call("authenticate", {"methodId": "login"})
    session = client.new()
    turn = client.prompt(session)
    assert client.call("logout")["result"] == {}
    assert client.reply_to(turn)["result"] == {"stopReason": "cancelled"}
    assert error(client.call("session/prompt", {"sessionId": session, "prompt": []}))["code"] == -32000
    client.call("authenticate", {"methodId": "login"})
    problem = error(client.call("session/prompt", {"sessionId": session, "prompt": []}))
    assert problem["data"]["reason"] == "session_inactive"
    assert "result" in client.call("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []})


@pytest.mark.parametrize("scenario", ["{}", "agent: {auth: {logout: false, methods: [{id: a}]}}"])
def test_logout_is_there_only_if_advertised(scenario: str) -> None:
    client = Theatre(scenario).client()
    assert client.initialize()["agentCapabilities"]["auth"] == {}
    assert error(client.call("logout"))["code"] == -32601


def test_a_login_that_was_kept_opens_the_door() -> None:
    theatre = Theatre(METHODS)
    theatre.agent.world.logged_in = True
    assert theatre.client().new()


async def test_a_scenario_can_make_a_login_fail() -> None:
    async with playing("scenarios/auth.yaml") as client:
        await client.greet()
        failed = await client.call("authenticate", {"methodId": "broken"})
        assert failed["error"] == {"code": -32000, "message": "This account cannot log in"}
        assert (await client.call("session/new", CLOSED["session/new"]))["error"]["code"] == -32000
        await client.call("authenticate", {"methodId": "login"})
        [*_, reply] = await client.prompt(await client.new(), "it may expire")
        assert reply["error"]["code"] == -32000


# --- in a terminal


@pytest.mark.parametrize(("method", "status"), [("", 0), ("term", 0), ("locked", 3), ("login", 2), ("nope", 2)])
def test_a_login_in_a_terminal_ends_as_the_scenario_says(method: str, status: int) -> None:
    assert terminal_login(load_text(METHODS), method)[0] == status


@pytest.mark.parametrize(
    ("args", "status"),
    [(["--login"], 0), (["--login=terminal"], 0), (["--login", "locked"], 1), (["--login=none"], 2)],
)
def test_the_command_plays_nothing_when_it_is_a_login(args: list[str], status: int) -> None:
    result = CliRunner().invoke(main, ["acp", "auth", *args])
    assert result.exit_code == status
    assert "jsonrpc" not in result.output
