"""Every message of every bundled scenario, judged by the official schema and by our stated rules."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from mockagent.scenario import library
from tests.interop.client import ABLE, Child, choose, said
from tests.official import official
from tests.transcript import Transcript

ROWS = {row.name: row for row in library.summaries()}
ELSEWHERE = ("http/", "websocket/")
"""Folders about transports that stdio is not."""
ALLOWED = [name for name, row in ROWS.items() if row.legality == "allowed" and not name.startswith(ELSEWHERE)]
OTHERS = [name for name, row in ROWS.items() if row.legality != "allowed"]
NAMES_A_CALL = re.compile(r"\bid: call_|toolCallId")
"""A scenario that gives a tool call its id: a session hears of each id once."""
ASKS = re.compile(r"\b(read|write|terminal|elicit|notice|compaction|request|type: boolean)\b")
"""Words of a scenario that does something else with a client that can do nothing."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Whole folders are slow; they are played in memory too, by tests that are not."""
    return [pytest.mark.slow] if "/" in name else []


CASES = [
    pytest.param(name, capabilities, id=f"{name}, {client} client", marks=marks(name))
    for name in ALLOWED
    for client, capabilities in (("able", ABLE), ("bare", {}))
    if client == "able" or ASKS.search(library.text(name))
]
QUICK = settings(database=None, max_examples=20, phases=[Phase.generate])
LINGERS = 3
"""Seconds after its client has gone that an agent may take to leave before it is killed."""
QUIET = 0.3
"""Seconds without a word after which a turn counts as one that waits for its cancel."""


def prompts_of(name: str) -> list[str]:
    """Prompts that make every turn of a scenario answer at least once."""
    made = []
    for turn in library.open_scenario(name).turns:
        when: Any = turn.when
        if when is None:
            continue
        if when.command is not None:
            made.append(f"/{when.command} it")
        elif when.prompt is not None:
            made.append(_fits(when.prompt))
    return ["hello", "hello again", *made, "goodbye"]


def _fits(pattern: str) -> str:
    """A prompt that a glob or a regex matches."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        printable = st.characters(min_codepoint=32, max_codepoint=126)
        regex = st.from_regex(pattern[1:-1], alphabet=printable)
        return find(regex, lambda text: bool(text.strip()), settings=QUICK)
    return pattern.replace("*", " ").strip()


def play(child: Child, prompt: str, session: str) -> None:
    """Plays one turn to its end; one that has fallen silent is cancelled."""
    id = child.ask("session/prompt", said(session, prompt))
    while True:
        try:
            message = child.step(QUIET)
        except TimeoutError:
            child.notify("session/cancel", {"sessionId": session})
            child.wait(id)
            return
        if message is None or ("method" not in message and message.get("id") == id):
            return


def converse(child: Child, name: str, capabilities: dict[str, Any]) -> None:
    """A whole conversation: lists, loads, prompts with every answer to a permission, modes and options, an end."""
    hello = greet(child, capabilities)
    methods = [method["id"] for method in hello.get("authMethods", [])]
    agent = {"sessionCapabilities": {}} | hello.get("agentCapabilities", {})
    make(child, methods)  # behind the login, if there is one
    listed = list(rows(child))
    for row in listed[:3]:
        open_stored(child, agent, row)
    prompts = prompts_of(name)
    for number in (0, 1, 2, 3, -1):
        child.permit = choose(number)
        session = make(child, methods)["sessionId"]
        for prompt in prompts:
            play(child, prompt, session)
            if NAMES_A_CALL.search(library.text(name)):
                session = make(child, methods)["sessionId"]
        if not any("request_permission" in str(message) for message in child.seen):
            break
    state = make(child, methods)
    session = state["sessionId"]
    for mode in state.get("modes", {}).get("availableModes", []):
        child.call("session/set_mode", {"sessionId": session, "modeId": mode["id"]})
    for option in state.get("configOptions", []):
        params = {"sessionId": session, "configId": option["id"], "value": option["currentValue"]}
        child.call("session/set_config_option", params | ({"type": "boolean"} if option["type"] == "boolean" else {}))
    child.call("session/no_such_method", {})
    child.call("session/prompt", said("no such session", "hello"))
    for method in ("close", "delete"):
        if method in agent["sessionCapabilities"]:
            child.call(f"session/{method}", {"sessionId": session})


def greet(child: Child, capabilities: dict[str, Any]) -> dict[str, Any]:
    """Introduces itself, and once more after an error."""
    params = {"protocolVersion": 1, "clientCapabilities": capabilities}
    replies = (child.call("initialize", params) for _ in range(2))
    return next(dict(reply["result"]) for reply in replies if "result" in reply)


AUTH_REQUIRED = -32000


def make(child: Child, methods: list[str]) -> dict[str, Any]:
    """Makes a session; logs in where that is asked for, and tries again after an error, or when nothing comes."""
    untried = list(methods)
    asked: set[int] = set()
    for _ in range(len(methods) + 3):
        asked.add(child.ask("session/new", {"cwd": "/home/dev/project", "mcpServers": []}))
        reply = first_reply(child, asked)
        if reply is not None and "result" in reply:
            made: dict[str, Any] = reply["result"]
            return made
        if reply is not None and reply["error"]["code"] == AUTH_REQUIRED and untried:
            child.call("authenticate", {"methodId": untried.pop()})
    pytest.fail("no session is to be had")


def first_reply(child: Child, asked: set[int]) -> dict[str, Any] | None:
    """The reply to one of these requests that comes first, or None if it stays quiet."""
    while True:
        try:
            message: Any = child.step(QUIET)
        except TimeoutError:
            return None
        assert message is not None, f"mockagent left; stderr: {child.stderr}"
        if "method" not in message and message["id"] in asked:
            return dict(message)


def rows(child: Child) -> Iterator[dict[str, Any]]:
    """The rows of the list, page by page, and of a huge one the first pages."""
    params: dict[str, Any] = {}
    for _ in range(20):
        page = child.call("session/list", params).get("result", {})
        yield from page.get("sessions", [])
        if page.get("nextCursor") is None:
            return
        params = {"cursor": page["nextCursor"]}


def open_stored(child: Child, agent: dict[str, Any], row: dict[str, Any]) -> None:
    """Loads and resumes one, as far as the agent can."""
    params = {"sessionId": row["sessionId"], "cwd": row["cwd"], "mcpServers": []}
    if agent.get("loadSession"):
        child.call("session/load", params)
        play(child, "hello", row["sessionId"])
    if "resume" in agent["sessionCapabilities"]:
        child.call("session/resume", params)


@pytest.mark.parametrize(("name", "capabilities"), CASES)
def test_an_allowed_agent_keeps_to_the_schema_and_to_our_rules(
    start: type[Child], name: str, capabilities: dict[str, Any]
) -> None:
    judge = Transcript(official())
    child = start("acp", name, "--speed", "0", judge=judge)
    converse(child, name, capabilities)
    status = child.leave()
    assert judge.problems == []
    assert judge.messages > 5
    assert status == 0


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in OTHERS])
def test_a_deviating_agent_never_shows_a_traceback(start: type[Child], name: str) -> None:
    child = start("acp", name, "--speed", "0")
    child.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n')
    child.process.stdin.close()  # type: ignore[union-attr]
    try:
        child.gone(LINGERS)
    except subprocess.TimeoutExpired:  # as some of them are there to do
        child.kill()
    assert not [line for line in child.stderr if line.startswith("Traceback")]
