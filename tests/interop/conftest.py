"""What every test with a real process needs: the installed command, and Node with the released clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import conversation
from tests.interop.client import Child
from tests.official import PACKAGES, missing
from tests.transcript import Transcript

COMMAND = Path(sys.executable).with_name("mockagent")

SPINE = """\
name: spine
summary: A thought, a tool that asks, text, and a title an hour after the reply.
sessions: {auto_title: null}
turns:
  - steps:
      - think: The user wants a forecast.
      - tool: {id: look, name: web_search, kind: fetch, title: Looking up the weather, ask: true, output: "18°C"}
      - say: It is 18°C in Osaka.
      - stop: end_turn
      - {after: 1h, info: {title: Weather in Osaka}}
agent:
  tools: [{name: web_search, title: Web Search, description: Search the web, parameters: {type: object}}]
"""


@pytest.fixture(scope="session")
def command() -> str:
    """The installed command, as a client would start it."""
    if not COMMAND.exists():
        pytest.fail(f"{COMMAND} is not there: install the project, `pip install -e '.[test]'`")
    return str(COMMAND)


@pytest.fixture
def spine(tmp_path: Path) -> str:
    """The path of the scenario that every protocol plays."""
    path = tmp_path / "spine.yaml"
    path.write_text(SPINE, encoding="utf-8")
    return str(path)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """The path of the scenario for `conversation`."""
    path = tmp_path / "conversation.yaml"
    path.write_text(conversation.SCENARIO, encoding="utf-8")
    return str(path)


@pytest.fixture
def address(scenario: str, start: type[Child]) -> str:
    """A server that plays it."""
    return start("serve", scenario, "--port", "0", "--speed", "0").address()


@pytest.fixture(scope="session")
def node() -> str:
    """A Node that is new enough for every client, with the packages in place."""
    found = shutil.which("node")
    if found is None:
        missing("there is no node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in version.removeprefix("v").split(".")[:2]) < (22, 13):
        missing(f"node is {version}")
    if not (PACKAGES / ".package-lock.json").exists():
        missing("the npm packages are not installed")
    return found


@pytest.fixture
def start(command: str) -> Iterator[type[Child]]:
    """Starts `mockagent` with the given arguments as a child with pipes; all are gone after the test."""
    children: list[Child] = []

    class Started(Child):
        def __init__(self, *args: str, judge: Transcript | None = None) -> None:
            super().__init__(command, *args, judge=judge)
            children.append(self)

    yield Started
    for child in children:
        child.kill()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with a home folder of its own, and with `mockagent` on the path."""
    home = tmp_path / "home"
    home.mkdir()
    path = os.pathsep.join([str(COMMAND.parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "HOME": str(home), "NO_COLOR": "1", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}
