"""Agents that are served together are told apart by the names of their scenarios: two of one name are refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest
from click.testing import CliRunner

from mockagent.cli import main
from mockagent.testing import MockAgent, ScenarioError


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which nobody can listen: a `serve` that means to comes to an end."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_serve_names_both_files_of_one_name_and_says_how_to_mend_it(tmp_path, taken_port):
    files = [tmp_path / name / "agent.yaml" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text("turns: []\n")
    done = CliRunner().invoke(main, ["serve", "--port", str(taken_port), *map(str, files)])
    assert done.exit_code == 2
    told = f"{files[1]}: has the name `agent`, and {files[0]} has the same: both would be at /acp/agent"
    assert done.stderr == f"{told}; give one of them another name, such as `name: agent-2`\n"


def test_serve_refuses_one_scenario_twice(taken_port):
    done = CliRunner().invoke(main, ["serve", "--port", str(taken_port), "hello", "demo", "hello"])
    assert done.exit_code == 2
    assert "hello.yaml: has the name `hello`, and it is given twice" in done.stderr


def test_a_mock_refuses_two_scenarios_of_one_name():
    with pytest.raises(ScenarioError, match="it is given twice"):
        MockAgent("hello", scenarios=["hello"])


def test_a_swap_to_the_name_of_another_agent_is_refused_and_changes_nothing():
    with MockAgent("hello", scenarios=["demo"]) as mock:
        answer = httpx.post(f"{mock.control_url}/scenario", json={"scenario": "demo"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
        with pytest.raises(ScenarioError):
            mock.reset("demo")
        assert httpx.get(f"{mock.control_url}/health").json()["agents"] == ["hello", "demo"]
        assert httpx.post(f"{mock.control_url}/scenario", json={"scenario": "hello"}).status_code == 200
