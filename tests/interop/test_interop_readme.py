"""What the README tells client authors to do, done as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.interop.client import Child
from tests.official import PACKAGES

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, mark: str) -> str:
    """The only fenced block of a language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if mark in text]
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the README's scenario in it."""
    (tmp_path / "forecast.yaml").write_text(block("yaml", "name: forecast"), encoding="utf-8")
    return tmp_path


def run(folder: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_scenario_has_no_mistakes(folder: Path, environment: dict[str, str]) -> None:
    check, play = block("sh", "mockagent check").splitlines()
    assert run(folder, environment, *shlex.split(check)).returncode == 0
    assert run(folder, environment, *shlex.split(play)).returncode == 0
    assert (folder / "journal.jsonl").exists()


def test_greeting_it_by_hand(folder: Path, environment: dict[str, str]) -> None:
    done = run(folder, environment, "sh", "-c", block("sh", '"method":"initialize"'))
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1


def test_the_python_program(folder: Path, environment: dict[str, str]) -> None:
    (folder / "first_steps.py").write_text(block("python", "spawn_agent_process"))
    done = run(folder, environment, sys.executable, "first_steps.py")
    assert done.stderr == ""
    assert "It is 18°C in Osaka." in done.stdout
    assert "end_turn" in done.stdout.splitlines()
    assert done.returncode == 0


def test_the_typescript_program(folder: Path, environment: dict[str, str], node: str) -> None:
    (folder / "node_modules").symlink_to(PACKAGES)
    (folder / "first-steps.mjs").write_text(block("js", "acp.ndJsonStream"))
    done = run(folder, environment, node, "first-steps.mjs")
    assert done.stderr == ""
    assert "It is 18°C in Osaka." in done.stdout
    assert "{ stopReason: 'end_turn' }" in done.stdout.splitlines()
    assert done.returncode == 0


def test_the_acpx_command(folder: Path, environment: dict[str, str], node: str) -> None:
    program, *arguments = shlex.split(block("sh", "acpx --").strip())
    assert program == "acpx"
    package = json.loads((PACKAGES / "acpx/package.json").read_text())
    done = run(folder, environment, node, str(PACKAGES / "acpx" / package["bin"]["acpx"]), *arguments)
    assert "It is 18°C in Osaka." in done.stdout
    assert "[tool] Looking up the weather (completed)" in done.stdout
    assert "[done] end_turn" in done.stdout
    assert done.returncode == 0


def test_the_addresses(folder: Path, start: type[Child], node: str, environment: dict[str, str]) -> None:
    address = start("serve", str(folder / "forecast.yaml"), "--port", "0").address()
    assert httpx.get(f"http://{address}/aap/meta").json()["version"] == 3
    (folder / "node_modules").symlink_to(PACKAGES)
    program = block("js", "acp.ndJsonStream")
    spawning = re.compile(r"^const child = .*?^const stream = .*?\n", re.MULTILINE | re.DOTALL)
    connecting = block("js", "createWebSocketStream").replace("127.0.0.1:8765", address)
    program = connecting + spawning.sub("", program).replace("child.kill();", "process.exit();")
    (folder / "connect.mjs").write_text(program)
    done = run(folder, environment, node, "connect.mjs")
    assert done.stderr == ""
    assert "It is 18°C in Osaka." in done.stdout
