"""One conversation that released clients hold with the mock, whatever carries it.

The scenario they are played, how the programs beside this file are run, and what has to come of it. Which client talks,
and over what, is the tests' business.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.official import INTEROP

SCENARIO = """\
name: conversation
summary: Asks for permission, and hangs when told to.
sessions:
  auto_title: null
  stored:
    - {id: sess_old, cwd: /home/dev/project, title: Old, history: [{user: Why?}, {say: Because.}]}
    - {id: sess_bare, cwd: /home/dev/project, title: Bare}
turns:
  - when: {prompt: hang}
    steps: [{hang: true}]
  - when: {prompt: think and hang}
    steps: [{think: I shall hang.}, {hang: true}]
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


def run(node: str, program: str, *target: str) -> dict[str, Any]:
    """Runs one of the programs beside this file; returns what it printed. It has nothing to complain of."""
    argv = [node, str(INTEROP / program), *target]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    happened: dict[str, Any] = json.loads(done.stdout)
    return happened


def judge(happened: dict[str, Any]) -> None:
    """What `conversation.mjs` has to have seen, alone with a mock."""
    assert happened["version"] == 1
    assert happened["asked"] == ["Edit config.toml", "Edit config.toml"]
    assert happened["stops"] == ["end_turn", "refusal", "cancelled"]
    assert set(happened["listed"]) == {happened["sessionId"], "sess_old", "sess_bare"}
    assert happened["missing"] == -32002
    replayed = [kind for kind in happened["replayed"] if kind != "tool_call_update"]
    assert replayed == ["user_message_chunk", "agent_message_chunk", "tool_call"] * 2
