"""What a process does with a verdict: its exit status, its last words, and its file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

MOCK = [sys.executable, str(Path(__file__).parents[2] / "mockagent" / "__main__.py")]
PATIENCE = 60
GOOD = {"protocolVersion": 1, "clientInfo": {"name": "n", "version": "1"}}
BAD = {"protocolVersion": "one", "clientInfo": {"name": "n", "version": "1"}}


def over_stdio(params: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    text = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}) + "\n"
    argv = [*MOCK, "acp", "echo", *options]
    return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_good_client_is_passed_over_in_silence() -> None:
    done = over_stdio(GOOD, "--strict")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("options", "status"), [(["--strict"], 3), ([], 0)])
def test_a_broken_rule_is_told_and_with_strict_it_is_the_exit_status(options: list[str], status: int) -> None:
    done = over_stdio(BAD, *options)
    assert done.returncode == status
    assert "ACP-INIT-03 (MUST)" in done.stderr
    assert "protocolVersion was 'one'" in done.stderr


def test_an_allowed_breach_is_counted_and_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    done = over_stdio(BAD, "--strict", "--allow", "ACP-INIT-*", "--report", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(path.read_text())
    [rule] = [rule for rule in report["rules"] if rule["id"] == "ACP-INIT-03"]
    assert (rule["state"], rule["allowed"], report["failed"]) == ("allowed", 1, False)


def test_an_unknown_rule_is_no_rule_to_allow() -> None:
    assert "--allow ACP-NONE-01: there is no such rule" in over_stdio(GOOD, "--allow", "ACP-NONE-01").stderr


def test_a_server_that_is_stopped_gives_its_verdict(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    argv = [*MOCK, "serve", "echo", "--port", "0", "--strict", "--report", str(path)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as mock:
        assert mock.stderr is not None
        found = re.search(r"http://\S+", mock.stderr.readline())
        assert found is not None
        httpx.post(f"{found[0]}/aap/sessions", json={"agent": {}}).read()
        mock.send_signal(signal.SIGTERM)
        _, told = mock.communicate(timeout=PATIENCE)
    assert mock.returncode == 3
    assert "AAP-AGENT-01" in told
    assert json.loads(path.read_text())["failed"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be asked there whether they take more")
def test_a_client_that_never_reads_stderr_is_answered_and_sees_the_process_end() -> None:
    text = b"junk\n" * 3000 + json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": GOOD}).encode()
    unread, stderr = os.pipe()
    try:
        done = subprocess.run(
            [*MOCK, "acp", "echo"], input=text, stdout=subprocess.PIPE, stderr=stderr, timeout=PATIENCE, check=False
        )
    finally:
        os.close(stderr)
        os.close(unread)
    assert done.returncode == 0
    assert "result" in json.loads(done.stdout.splitlines()[-1])


def test_a_client_that_has_closed_stderr_is_answered_and_judged() -> None:
    text = b"junk\n" + json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": GOOD}).encode()
    gone, stderr = os.pipe()
    os.close(gone)
    try:
        done = subprocess.run(
            [*MOCK, "acp", "echo", "--strict"], input=text, stdout=subprocess.PIPE, stderr=stderr, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    finally:
        os.close(stderr)
    assert done.returncode == 3
    assert "result" in json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("option", ["--speed", "--stretch"])
@pytest.mark.parametrize("factor", ["nan", "inf", "-1"])
def test_what_no_wait_can_be_multiplied_by_is_a_wrong_command_line(option: str, factor: str) -> None:
    done = over_stdio(GOOD, option, factor)
    assert (done.returncode, done.stdout) == (2, "")
    assert option in done.stderr
    assert "Traceback" not in done.stderr
