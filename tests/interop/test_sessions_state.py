"""A state file under real processes: killed at any moment, shared, and refused."""

from __future__ import annotations

import itertools
import json
import random
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interop.client import Child, said
from tests.interop.conftest import COMMAND

Start = type[Child]

TALK = """\
name: talk
summary: Says what it was told.
sessions: {auto_title: null, page_size: 1000}
turns: [{steps: [{say: "heard ${prompt}"}]}]
"""


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "talk.yaml"
    path.write_text(TALK, encoding="utf-8")
    return str(path)


def history(child: Child, session: str) -> list[str]:
    """What a session replays, as texts."""
    before = len(child.seen)
    child.call("session/load", {"sessionId": session, "cwd": "/home/dev/project", "mcpServers": []})
    return [
        message["params"]["update"]["content"]["text"]
        for message in child.seen[before:]
        if message.get("method") == "session/update"
    ]


def listed(child: Child) -> dict[str, Any]:
    rows = child.call("session/list", {})["result"]["sessions"]
    return {row["sessionId"]: row for row in rows}


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment_it_has_lost_nothing_that_it_answered(
    start: Start, talk: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    state = str(tmp_path / "state.db")
    told: dict[str, list[str]] = {}
    deleted: set[str] = set()
    for life in range(4):
        child = start("acp", talk, "--state", state)
        child.greet()
        found = listed(child)
        assert set(told) <= set(found)
        assert not deleted & set(found)
        for session, texts in told.items():
            replayed = history(child, session)
            assert replayed[: len(texts)] == texts
            told[session] = replayed
        for number in range(chance.randint(1, 6)):
            session = child.new()
            told[session] = []
            text = f"{life}/{number}"
            child.prompt(session, text)
            told[session] += [text, f"heard {text}"]
            if chance.random() < 0.3:
                child.call("session/delete", {"sessionId": session})
                deleted.add(session)
                del told[session]
        # It dies somewhere in the middle of work that nobody has been told the end of.
        open_ones = list(told)[:2]
        for session in open_ones:
            child.ask("session/resume", {"sessionId": session, "cwd": "/home/dev/project", "mcpServers": []})
            child.ask("session/prompt", said(session, "never answered"))
        for _ in range(chance.randint(0, 3 * len(open_ones))):
            child.step()
        child.signal(signal.SIGKILL)
        child.gone()
    database = sqlite3.connect(state)
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def test_what_was_streamed_before_the_end_of_a_turn_is_there_once_it_is_answered(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    text = " ".join(f"word{number}" for number in range(3000))
    path.write_text(f"sessions: {{auto_title: null}}\npace: {{chunk: word}}\nturns: [{{steps: [{{say: {text}}}]}}]\n")
    state = str(tmp_path / "state.db")
    child = start("acp", str(path), "--state", state)
    child.greet()
    session = child.new()
    child.prompt(session, "go")
    child.signal(signal.SIGKILL)
    child.gone()
    again = start("acp", str(path), "--state", state)
    again.greet()
    assert history(again, session) == ["go", text]


def test_two_processes_share_a_file_at_the_same_time(start: Start, talk: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    one, two = start("acp", talk, "--state", state), start("acp", talk, "--state", state)
    one.greet()
    two.greet()
    made = [child.new() for _ in range(5) for child in (one, two)]
    assert len(set(made)) == 10
    assert set(listed(one)) == set(listed(two)) == set(made)
    one.prompt(made[0], "from one")
    assert history(two, made[0]) == ["from one", "heard from one"]
    two.prompt(made[0], "from two")
    assert history(one, made[0])[-1] == "heard from two"
    one.call("session/delete", {"sessionId": made[1]})
    assert made[1] not in listed(two)
    error = two.call("session/prompt", said(made[1], "still there?"))["error"]
    assert error["data"]["reason"] == "session_not_found"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(talk: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes\n")
    done = run("acp", talk, "--state", str(notes))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a state file of mockagent" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert notes.read_text() == "my notes\n"
    assert {file.name for file in tmp_path.iterdir()} == {"notes.txt", "talk.yaml"}


def test_a_file_of_another_scenario_names_the_difference(talk: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    assert run("acp", talk, "--state", state).returncode == 0
    done = run("serve", talk, "--seed", "5", "--port", "0", "--state", state)
    assert done.returncode == 2
    assert "`seed` differs" in done.stderr


def test_without_a_state_file_nothing_touches_the_disk(start: Start, talk: str, tmp_path: Path) -> None:
    child = start("acp", talk)
    child.greet()
    child.prompt(child.new(), "hello")
    assert child.leave() == 0
    assert {file.name for file in tmp_path.iterdir()} == {"talk.yaml"}


# --- the command that shows them


def test_the_sessions_command_prints_what_a_client_would_see(start: Start) -> None:
    child = start("acp", "history")
    child.greet()
    first = child.call("session/list", {})["result"]
    second = child.call("session/list", {"cursor": first["nextCursor"]})["result"]
    for page, shown in ((1, first), (2, second)):
        done = run("sessions", "history", "--page", str(page), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"sessions": shown["sessions"], "page": page, "pages": 6, "total": 103}
    lines = run("sessions", "history", "--cwd", "/home/dev/web").stdout.splitlines()
    assert len(lines) == 20
    assert all("/home/dev/web" in line for line in lines)
    assert run("sessions", "history", "--page", "99").stdout == ""
    assert run("sessions", "no-such-scenario").returncode == 2


def test_it_shows_what_a_state_file_has_kept(start: Start, talk: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    child = start("acp", talk, "--state", state)
    child.greet()
    session = child.new()
    assert child.leave() == 0
    assert [
        row["sessionId"] for row in json.loads(run("sessions", talk, "--json", "--state", state).stdout)["sessions"]
    ] == [session]


# --- turns that wait for the client

WAITING = """\
name: waiting
summary: Two questions to the client, with waits, chances and a condition between them.
sessions: {auto_title: null}
agent:
  options: [{id: key, name: Key, type: secret, value: ""}]
  tools: [{name: deploy, title: Deploy, parameters: {type: object}}]
turns:
  - when: {prompt: "/^deploy (?P<what>.+)/"}
    steps:
      - say: "I look at ${match.what}."
      - together:
          - - wait: 20ms
            - tool: {name: look, side: client, input: {at: "${match.what}"}}
              save: {found: /content}
          - [{wait: 10ms}, {tool: {name: look, side: client, input: {at: logs}}}]
      - {when: {chance: 0.5}, say: Heads.}
      - tool: {name: deploy, title: Deploy, ask: true, output: deployed}
        then:
          - {when: {outcome: denied}, steps: [{say: "Not ${match.what}."}, {stop: end_turn}]}
      - say: "Done with ${match.what} after ${saved.found}."
  - steps: [{say: "no turn waits"}]
"""
LOOK = {"name": "look", "description": "Look", "parameters": {"type": "object"}}
SECRET = "hunter2-very-secret"


class Waiting:
    """An AAP client whose server may be another one at each request."""

    def __init__(self, address: str) -> None:
        self.session = ""
        self.move(address)
        agent = {"name": "mock-agent", "tools": [{"name": "deploy"}], "options": {"key": SECRET}}
        self.session = self.post("sessions", {"agent": agent, "tools": [LOOK]})["sessionId"]

    def move(self, address: str) -> None:
        """The next request goes there."""
        self.base = f"http://{address}/aap"

    def post(self, path: str, body: Any) -> Any:
        return httpx.post(f"{self.base}/{path}", json=body, timeout=30).raise_for_status().json()

    def turn(self, *messages: Any) -> tuple[str, list[Any], str]:
        """Plays a turn, or goes on with one; returns the stop reason, the calls that are open, and what was said."""
        answer = self.post(f"sessions/{self.session}/turns", {"stream": "none", "messages": list(messages)})
        blocks = [
            block
            for message in answer["messages"]
            if message["role"] == "assistant"
            for block in (
                [{"type": "text", "text": message["content"]}]
                if isinstance(message["content"], str)
                else message["content"]
            )
        ]
        calls = [block for block in blocks if block["type"] == "tool_use"]
        return answer["stopReason"], calls, "".join(block.get("text", "") for block in blocks)

    def history(self) -> Any:
        reply = httpx.get(f"{self.base}/sessions/{self.session}/history", params={"type": "full"}, timeout=30)
        return reply.raise_for_status().json()["history"]["full"]


def results(calls: list[Any]) -> list[Any]:
    return [
        {"role": "tool", "toolCallId": call["toolCallId"], "content": f"saw {call['input']['at']}"} for call in calls
    ]


def granted(calls: list[Any], yes: bool = True) -> list[Any]:
    return [{"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": yes} for call in calls]


def conversation(addresses: Iterator[str]) -> tuple[list[Any], Any]:
    """A deployment, each request at the next address."""
    client = Waiting(next(addresses))
    first = client.turn({"role": "user", "content": "deploy the shop"})
    client.move(next(addresses))
    second = client.turn(*results(first[1]))
    client.move(next(addresses))
    third = client.turn(*granted(second[1]))
    return [first, second, third], client.history()


def test_a_turn_goes_on_in_another_process_as_if_nothing_had_happened(start: Start, tmp_path: Path) -> None:
    path, state = tmp_path / "waiting.yaml", tmp_path / "state.db"
    path.write_text(WAITING, encoding="utf-8")
    alone = start("serve", str(path), "--port", "0").address()
    servers: list[Child] = []

    def killed_each_time() -> Iterator[str]:
        while True:
            if servers:
                servers[-1].signal(signal.SIGKILL)
                servers[-1].gone()
            servers.append(start("serve", str(path), "--port", "0", "--state", str(state)))
            yield servers[-1].address()

    expected, history = conversation(itertools.repeat(alone))
    assert [stop for stop, _, _ in expected] == ["tool_use", "tool_use", "end_turn"]
    assert [len(calls) for _, calls, _ in expected] == [2, 1, 0]
    assert expected[2][2].endswith("Done with the shop after saw the shop.")
    assert conversation(killed_each_time()) == (expected, history)
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("state.db*"))


def test_a_turn_can_go_back_and_forth_between_two_processes(start: Start, tmp_path: Path) -> None:
    path, state = tmp_path / "waiting.yaml", tmp_path / "state.db"
    path.write_text(WAITING, encoding="utf-8")
    one, two = (start("serve", str(path), "--port", "0", "--state", str(state)).address() for _ in range(2))
    alone = start("serve", str(path), "--port", "0").address()
    assert conversation(itertools.cycle([one, two])) == conversation(itertools.repeat(alone))
