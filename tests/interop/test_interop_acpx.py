"""acpx, the released command-line client, without a terminal."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.official import PACKAGES

Done = subprocess.CompletedProcess[str]
Acpx = Callable[..., Done]

PATIENCE = 60


@pytest.fixture
def arguments(node: str) -> list[str]:
    """How to start acpx."""
    package = json.loads((PACKAGES / "acpx/package.json").read_text())
    return [node, str(PACKAGES / "acpx" / package["bin"]["acpx"])]


@pytest.fixture
def acpx(arguments: list[str], environment: dict[str, str], tmp_path: Path) -> Iterator[Acpx]:
    """Runs acpx with a scenario to its end. A session that it holds open in the background is closed after the test."""
    folder = tmp_path / "project"
    folder.mkdir()
    used: set[str] = set()

    def run(scenario: str, *words: str) -> Done:
        used.add(scenario)
        command = [*arguments, "--cwd", str(folder), "--agent", f"mockagent acp {scenario}", *words]
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    yield run
    if (Path(environment["HOME"]) / ".acpx").exists():
        for scenario in used:
            run(scenario, "sessions", "close")


def messages(done: Done) -> list[dict[str, Any]]:
    """What `--format json` prints: every message, in both directions."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_exec_plays_a_turn(acpx: Acpx) -> None:
    done = acpx("hello", "exec", "hi")
    assert done.returncode == 0, done.stderr
    assert "Hello! I am a mock agent." in done.stdout
    assert "[done] end_turn" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("policy", "option", "ending", "status"),
    [("--approve-all", "allow", "Done.", 0), ("--deny-all", "reject", "As you wish: nothing was changed.", 5)],
)
def test_its_policy_answers_the_permission(acpx: Acpx, policy: str, option: str, ending: str, status: int) -> None:
    done = acpx("permissions --speed 0", "--format", "json", policy, "exec", "change it")
    seen = messages(done)
    assert done.returncode == status, done.stderr
    assert {"outcome": {"outcome": "selected", "optionId": option}} in [message.get("result") for message in seen]
    assert {"stopReason": "end_turn"} in [message.get("result") for message in seen]
    assert said(seen) == ["I would like to change a file.", ending]


def test_a_permission_that_nobody_answers_cancels_the_turn(acpx: Acpx) -> None:
    done = acpx(
        "permissions --speed 0", "--format", "json", "--non-interactive-permissions", "fail", "exec", "change it"
    )
    assert {"stopReason": "cancelled"} in [message.get("result") for message in messages(done)]


def said(seen: list[dict[str, Any]]) -> list[str]:
    updates = [message["params"]["update"] for message in seen if message.get("method") == "session/update"]
    return [update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]


@pytest.mark.parametrize(
    ("scenario", "shown", "status"),
    [
        ("stops/refusal", "[done] refusal", 0),
        ("stops/max-tokens", "[done] max_tokens", 0),
        ("stops/max-turn-requests", "[done] max_turn_requests", 0),
        ("stops/error", "The model did not answer", 1),
    ],
)
def test_every_way_to_end_is_shown(acpx: Acpx, scenario: str, shown: str, status: int) -> None:
    done = acpx(f"{scenario} --speed 0", "exec", "go")
    assert shown in done.stdout
    assert done.returncode == status


def test_the_tour_of_tools_is_understood(acpx: Acpx) -> None:
    done = acpx("tools --speed 0", "--approve-all", "exec", "go")
    assert done.returncode == 0, done.stderr
    for line in ("[tool] Run the tests (completed)", "[tool] Deployed (completed)", "[image] image/png"):
        assert line in done.stdout


def test_its_time_limit_ends_the_agent(acpx: Acpx, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    done = acpx(f"stops/cancelled --journal {journal}", "--timeout", "1", "exec", "go")
    assert done.returncode == 3
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert events[-1]["event"] in ("eof", "signal", "closed", "verdict"), events[-1]


def test_sessions_are_made_prompted_set_up_listed_and_closed(acpx: Acpx) -> None:
    scenario = "demo --speed 0"
    made = acpx(scenario, "sessions", "new")
    assert made.returncode == 0, made.stderr
    assert "sess_auth" in acpx(scenario, "sessions", "list").stdout
    done = acpx(scenario, "--ttl", "30", "--approve-all", "prompt", "make the greeting friendlier")
    assert done.returncode == 0, done.stderr
    assert "[done] end_turn" in done.stdout
    assert "mode set: code" in acpx(scenario, "set-mode", "code").stdout
    assert "model set: thorough" in acpx(scenario, "set", "model", "thorough").stdout
    assert acpx(scenario, "sessions", "close").returncode == 0


def test_cancel_ends_the_prompt_of_another_process(
    acpx: Acpx, arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    scenario = "stops/cancelled"
    assert acpx(scenario, "sessions", "new").returncode == 0
    agent = ["--cwd", str(tmp_path / "project"), "--agent", f"mockagent acp {scenario}"]
    with subprocess.Popen(
        [*arguments, *agent, "--ttl", "30", "prompt", "go"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as prompt:
        assert prompt.stdout is not None
        for line in prompt.stdout:
            if "Build everything" in line:
                break
        deadline = time.monotonic() + PATIENCE
        while "cancel requested" not in acpx(scenario, "cancel").stdout:
            assert time.monotonic() < deadline
        assert "[done] cancelled" in prompt.stdout.read()
        assert prompt.wait(PATIENCE) == 0
