"""The example project, run as a user would: its clients pass, and a broken one's developer reads what is wrong."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.testing.project import run_pytest

EXAMPLE = Path(__file__).with_name("example")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy elsewhere, so that nothing of this project is found by accident."""
    place = tmp_path_factory.mktemp("user") / "client"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_the_clients_of_the_example_pass(example: Path) -> None:
    done = run_pytest(example)
    assert done.returncode == 0, done.stdout + done.stderr
    if os.environ.get("MOCKAGENT_REQUIRE_NODE"):
        assert "skipped" not in done.stdout


def test_the_developer_of_a_broken_client_reads_what_it_did_wrong(example: Path) -> None:
    done = run_pytest(example, "broken_client.py", "--mockagent-journal", "journals")
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 error" in done.stdout
    verdict = done.stdout.partition("ERROR at teardown of test_a_permission_after_cancel")[2].partition("FAILURES")[0]
    told = [line.strip() for line in verdict.splitlines()]
    for expected in (
        "The client failed with inbox: it broke 1 rule.",
        "ACP-CANCEL-01 (MUST): A client that cancels a turn answers its open permission requests with cancelled.",
    ):
        assert told.count(expected) == 1
    assert any(line.startswith("spec: protocol/v1/prompt-turn#cancellation") for line in told)
    asked = next(at for at, line in enumerate(told) if "mock   request:session/request_permission" in line)
    assert "client session/cancel" in told[asked + 1]
    assert "allow_once" in told[asked + 2]
    assert "Traceback" not in verdict
    assert "mockagent/" not in verdict  # no line of ours
    failure = done.stdout.partition("FAILURES")[2]
    assert "mockagent: the end of the journal" in failure
    assert '"method":"session/list"' in failure
    assert len(list((example / "journals").iterdir())) == 2


@pytest.mark.slow
def test_the_example_runs_in_parallel(example: Path) -> None:
    pytest.importorskip("xdist")
    done = run_pytest(example, "-n", "2", "test_sync.py")
    assert done.returncode == 0, done.stdout + done.stderr
