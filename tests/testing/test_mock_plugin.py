"""The pytest plugin, in projects made up for each test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mockagent.watch.journal import read_journal
from tests.testing.project import ALONE, environment, run_pytest

CLIENT = """
import json, subprocess
import pytest

def talk(command, *messages):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        for message in messages:
            agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
            agent.stdin.flush()
            agent.stdout.readline()

INIT = {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientInfo": {"name": "it", "version": "1"}}}
LIST = {"id": 2, "method": "session/list", "params": {}}
"""


def project(folder: Path, tests: str, ini: str = "") -> Path:
    """Writes a project of one file."""
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n{ini}\n")
    (folder / "test_it.py").write_text(CLIENT + tests)
    return folder


def test_the_marker_says_what_is_played(tmp_path):
    project(
        tmp_path,
        """
@pytest.mark.mockagent("hello", seed=3)
def test_by_name(mockagent):
    talk(mockagent.stdio_command, INIT)
    assert mockagent.report()["scenario"] == "hello"

@pytest.mark.mockagent({"name": "inline"})
class TestClass:
    def test_of_the_class(self, mockagent):
        assert mockagent.report()["scenario"] == "inline"

    @pytest.mark.mockagent(scenario="name: nearest\\n")
    def test_nearest(self, mockagent):
        assert mockagent.report()["scenario"] == "nearest"

def test_default(mockagent):
    assert mockagent.report()["scenario"] == "demo"
""",
    )
    done = run_pytest(tmp_path, *ALONE)
    assert "4 passed" in done.stdout, done.stdout


def test_the_verdict_is_an_error_beside_the_failure_of_the_test(tmp_path):
    project(
        tmp_path,
        """
def test_bad_client(mockagent):
    talk(mockagent.stdio_command, LIST)
    assert False, "of its own"

@pytest.mark.mockagent("hello", verify=False)
def test_left_to_itself(mockagent):
    talk(mockagent.stdio_command, LIST)
    with pytest.raises(AssertionError):
        mockagent.verify()
""",
    )
    done = run_pytest(tmp_path, *ALONE)
    assert "1 failed, 1 passed, 1 error" in done.stdout
    assert "of its own" in done.stdout
    assert "ERROR at teardown of test_bad_client" in done.stdout
    assert "ACP-INIT-01" in done.stdout


def test_only_journals_of_failed_tests_are_kept(tmp_path):
    project(
        tmp_path,
        """
@pytest.mark.parametrize("good", [True, False], ids=["good", "b/ad " + "x" * 200])
def test_it(mockagent, good):
    talk(mockagent.stdio_command, INIT, LIST)
    assert good

def test_breaks_a_rule(mockagent):
    talk(mockagent.stdio_command, LIST)
""",
    )
    run_pytest(tmp_path, *ALONE, "--mockagent-journal", "kept/here")
    kept = sorted((tmp_path / "kept" / "here").iterdir())
    assert len(kept) == 2
    for path in kept:
        kinds = [entry.kind for entry in read_journal(str(path)) if entry.direction == "in"]
        assert kinds[-1] == "session/list"


def test_mistakes_in_the_marker_are_told(tmp_path):
    project(
        tmp_path,
        """
@pytest.mark.mockagent("no-such")
def test_unknown(mockagent): pass

@pytest.mark.mockagent("hello", sped=0)
def test_option(mockagent): pass

@pytest.mark.mockagent("hello", "demo")
def test_two(mockagent): pass
""",
    )
    done = run_pytest(tmp_path, *ALONE)
    assert "3 errors" in done.stdout
    assert "there is no bundled scenario `no-such`" in done.stdout
    assert "unexpected keyword argument 'sped'" in done.stdout
    assert "scenarios=[...]" in done.stdout


@pytest.mark.parametrize("other", ["trio", "anyio", "none"])
def test_other_plugins_may_be_there_or_not(tmp_path, other):
    kinds = {
        "trio": ("trio_mode = true", "", ("-p", "no:anyio")),
        "anyio": ("", "@pytest.mark.anyio", ("-p", "no:trio")),
        "none": ("", "", ALONE),
    }
    if other != "none":
        pytest.importorskip({"trio": "pytest_trio", "anyio": "anyio"}[other])
    ini, mark, options = kinds[other]
    word = "" if other == "none" else "async "
    project(
        tmp_path,
        f"""
{mark}
{word}def test_it(mockagent):
    talk(mockagent.stdio_command, INIT)
    assert mockagent.journal.requests("initialize")
""",
        ini,
    )
    done = run_pytest(tmp_path, *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_plugin_loads_nothing_before_the_fixture_is_used():
    program = """
import sys, pytest
before = set(sys.modules)
import mockagent.testing.plugin
loaded = sorted(name for name in set(sys.modules) - before)
assert loaded == ["mockagent", "mockagent.testing", "mockagent.testing.plugin"], loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=environment(), timeout=60)
