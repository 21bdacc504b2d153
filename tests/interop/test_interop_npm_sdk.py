"""The official npm SDK as client: over stdio, and over WebSocket."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interop.client import Child
from tests.official import INTEROP

SCENARIO = """\
name: npm
summary: Asks for permission, and hangs when told to.
turns:
  - when: {prompt: hang}
    steps: [{hang: true}]
  - steps:
      - say: I would like to change a file.
      - tool:
          name: edit_file
          kind: edit
          title: Edit config.toml
          content: [{diff: {path: config.toml, old: "a", new: "b"}}]
          ask:
            options: [{id: allow, name: Allow, kind: allow_once}, {id: reject, name: Reject, kind: reject_once}]
        then:
          - when: {outcome: denied}
            steps: [{stop: refusal}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "npm.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def run(node: str, *arguments: str) -> dict[str, Any]:
    """Runs one of the programs beside this file; returns what it printed. It has nothing to complain of."""
    program, *rest = arguments
    done = subprocess.run(
        [node, str(INTEROP / program), *rest], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0
    happened: dict[str, Any] = json.loads(done.stdout)
    return happened


def judge(happened: dict[str, Any]) -> None:
    assert happened["version"] == 1
    assert happened["asked"] == ["Edit config.toml", "Edit config.toml"]
    assert happened["stops"] == ["end_turn", "refusal", "cancelled"]
    assert happened["listed"] == [happened["sessionId"]]
    assert happened["missing"] == -32002
    replayed = [kind for kind in happened["replayed"] if kind != "tool_call_update"]
    assert replayed == ["user_message_chunk", "agent_message_chunk", "tool_call"] * 2


def test_the_npm_sdk_talks_over_stdio(node: str, command: str, scenario: str) -> None:
    happened = run(node, "stdio.mjs", command, "acp", scenario)
    judge(happened)
    assert happened["status"] == 0


def test_the_npm_sdk_talks_over_websocket(node: str, start: type[Child], scenario: str) -> None:
    server = start("serve", scenario, "--port", "0")
    judge(run(node, "websocket.mjs", f"ws://{server.address()}/acp"))


def test_many_npm_clients_share_a_server(node: str, start: type[Child], scenario: str) -> None:
    url = f"ws://{start('serve', scenario, '--port', '0').address()}/acp"
    clients = [
        subprocess.Popen([node, str(INTEROP / "websocket.mjs"), url], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    happened = [json.loads(client.communicate(timeout=60)[0]) for client in clients]
    assert [client.returncode for client in clients] == [0] * 4
    assert len({each["sessionId"] for each in happened}) == 4
    for each in happened:
        assert each["stops"] == ["end_turn", "refusal", "cancelled"]
        assert each["sessionId"] in each["listed"]
