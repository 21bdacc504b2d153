"""`MockAgent`: what a test does with the object holds for every process that its clients have started."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
import trio
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import mockagent
from mockagent.control import desk
from mockagent.testing import MockAgent, MockError, ScenarioError
from tests.plain import StdioClient, request

SCENARIO = """\
name: tested
clock: {now: "2026-01-15T09:00:00Z"}
sessions:
  auto_title: null
  stored: [{id: sess_old, title: Old, cwd: /home/dev/project}]
turns:
  - when: {prompt: wait}
    steps: [{say: A moment}, {after: 1h, say: There}]
  - when: {prompt: ask}
    steps: [{tool: {name: edit, title: Edit, ask: true}}]
  - steps: [{say: Hello}]
"""


def is_alive(pid: int) -> bool:
    """Whether a process runs that is not ours to wait for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    """Waits, not for ever, until a process is gone."""
    for _ in range(1000):
        if not is_alive(pid):
            return True
        time.sleep(0.01)
    return False


# --- one client


def test_a_client_that_is_given_no_environment_talks_to_the_object():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command, env={}, cwd="/") as client:
        session = client.new()
        assert client.prompt(session)["result"] == {"stopReason": "end_turn"}
        assert [entry.kind for entry in mock.journal.requests()] == ["initialize", "session/new", "session/prompt"]
        assert [entry.kind for entry in mock.journal.sent("update:*")] == ["update:agent_message_chunk"]
        mock.verify()


def test_what_a_client_has_seen_is_in_the_journal_even_if_it_kills_the_agent_at_once():
    with MockAgent(SCENARIO) as mock:
        with StdioClient(mock.stdio_command) as client:
            client.new()
            client.process.kill()
        mock.wait_for("closed", timeout=10)
        assert mock.journal.sent("reply:session/new")
        assert mock.journal.events("closed")[0].detail == {"killed": True}


def test_times_in_the_journal_are_those_of_the_process_that_plays():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        mock.advance(60)
        client.ask("session/list")
        (entry,) = mock.journal.requests("session/list")
        assert entry.time.startswith("2026-01-15T09:01:0")


def test_faults_that_were_armed_before_a_client_starts_meet_its_first_message():
    with MockAgent(SCENARIO) as mock:
        mock.fault("initialize", error="internal_error")
        with StdioClient(mock.stdio_command) as client:
            assert client.ask("initialize", protocolVersion=1)["error"]["code"] == -32603


def test_a_fault_acts_from_when_it_is_armed_until_it_is_cleared():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        armed = mock.fault("list", error="invalid_cursor")
        assert client.ask("session/list")["error"]["code"] == -32602
        armed.clear()
        assert "result" in client.ask("session/list")
        mock.fault("list", error="invalid_cursor")
        mock.clear_faults()
        assert "result" in client.ask("session/list")


def test_the_journal_names_the_line_of_the_test_that_armed_a_fault():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        mock.fault("list", error="invalid_cursor")
        client.ask("session/list")
        (fired,) = mock.journal.events("fault")
        assert "test_mock_agent.py:" in fired.detail["place"]


def test_mistakes_in_a_fault_are_told_at_the_call():
    with MockAgent(SCENARIO) as mock, pytest.raises(ValueError, match="fault: at: `lst` names nothing"):
        mock.fault("lst", drop=True)


def test_a_push_changes_what_the_list_shows_also_before_a_client_starts():
    with MockAgent(SCENARIO) as mock:
        mock.push("sess_old", title="New", meta={"x": 1})
        with StdioClient(mock.stdio_command) as client:
            client.ask("initialize", protocolVersion=1)
            (row,) = client.ask("session/list")["result"]["sessions"]
            assert (row["title"], row["_meta"]) == ("New", {"x": 1})


def test_a_push_of_steps_reaches_the_client_in_order():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        mock.push(session, title="T", steps=[{"say": "by the way"}])
        first, second = (client.until("session/update")["params"]["update"] for _ in range(2))
        assert (first["title"], second["content"]["text"]) == ("T", "by the way")


def test_a_push_to_a_session_that_is_nowhere_says_which_there_are():
    with MockAgent(SCENARIO) as mock, pytest.raises(LookupError, match="sess_old"):
        mock.push("sess_none", title="x")


def test_time_that_is_moved_on_is_moved_for_the_client():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        id = client.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]})
        client.until("session/update")
        mock.advance(3600)
        assert client.until(id)["result"] == {"stopReason": "end_turn"}


def test_waiting_says_what_came_instead():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        assert mock.wait_for("session/new", timeout=5).params["cwd"] == "/home/dev/project"
        with pytest.raises(TimeoutError, match=r"did not send session/cancel .* it sent initialize, session/new"):
            mock.wait_for("session/cancel", timeout=0)


def test_waiting_ends_when_the_client_sends_it():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        late = threading.Thread(target=client.notify, args=("session/cancel", {"sessionId": session}))
        late.start()
        assert mock.wait_for("session/cancel", timeout=10).session == session
        late.join()


def test_a_client_that_breaks_a_rule_is_told_which_with_the_messages():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        client.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "ask"}]})
        asked = client.until("session/request_permission")
        client.notify("session/cancel", {"sessionId": session})
        client.answer(asked["id"], {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        mock.wait_for("answer:session/request_permission")
        with pytest.raises(AssertionError) as caught:
            mock.verify()
        assert "ACP-CANCEL-01 (MUST)" in str(caught.value)
        assert "allow_once" in str(caught.value)
        assert mock.report()["failed"] is True


def test_rules_may_be_allowed_to_be_broken():
    with MockAgent(SCENARIO, allow=["ACP-*"]) as mock, StdioClient(mock.stdio_command) as client:
        client.ask("session/list")
        mock.verify()


def test_a_missed_expectation_fails_the_client():
    with (
        MockAgent(SCENARIO + "expect: [{request: session/close}]\n") as mock,
        StdioClient(mock.stdio_command) as client,
    ):
        client.new()
        with pytest.raises(AssertionError, match="session/close"):
            mock.verify()


def test_everything_is_as_at_the_start_after_a_reset():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        mock.fault("list", drop=True)
        mock.push("sess_old", title="New")
        mock.reset()
        assert mock.journal.entries == []
        assert [(row["id"], row["title"]) for row in mock.sessions] == [("sess_old", "Old")]
        assert "result" in client.ask("session/list")
        assert client.session() == session


def test_what_a_client_over_stdio_has_not_read_at_a_reset_is_not_in_the_journal_behind_it(monkeypatch):
    monkeypatch.setattr(desk, "SETTLE", 0.1)  # the client's process has its own, a second
    long = "word " * 20_000
    flood = f"turns: [{{steps: [{{repeat: {{times: 100, steps: [{{say: {long}}}]}}}}]}}]\n"
    with MockAgent(flood) as mock, StdioClient(mock.stdio_command) as client:
        session = client.new()
        client.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Hello"}]})
        mock.wait_for("turn")
        mock.reset()
        assert "result" in client.ask("session/list")
        assert any("cancelled" in str(message.get("result")) for message in client.heard)
        kinds = [entry.kind for entry in mock.journal.entries if entry.direction]
        assert kinds == ["session/list", "reply:session/list"]


def test_another_scenario_is_played_after_a_reset_with_one():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        mock.reset("hello")
        client.prompt(client.session())
        assert client.heard[-2]["params"]["update"]["content"]["text"] == "Hello! I am a mock agent."
        with StdioClient(mock.stdio_command) as later:
            later.prompt(later.new())
            assert "mock agent" in later.heard[-2]["params"]["update"]["content"]["text"]


def test_paths_in_a_scenario_are_those_of_the_test_wherever_a_client_starts_the_agent(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "note.png").write_bytes(b"\x89PNG")
    (tmp_path / "files" / "pictures.yaml").write_text("turns: [{steps: [{say: [{image: note.png}]}]}]\n")
    monkeypatch.chdir(tmp_path)
    with MockAgent("files/pictures.yaml") as mock, StdioClient(mock.stdio_command, cwd="/") as client:
        client.prompt(client.new())
        assert client.update("agent_message_chunk")["content"]["type"] == "image"


# --- several processes


def test_a_client_may_start_the_agent_again_and_all_is_one_journal():
    with MockAgent(SCENARIO) as mock:
        for _ in range(2):
            with StdioClient(mock.stdio_command) as client:
                client.new()
                assert client.close() == 0
        assert len(mock.journal.requests("initialize")) == 2
        assert len({entry.peer for entry in mock.journal.requests("initialize")}) == 2


def test_a_fault_that_has_fired_often_enough_stays_silent_when_the_agent_is_started_again():
    with MockAgent(SCENARIO) as mock:
        mock.fault("turn", exit=7, when={"times": 1})
        with StdioClient(mock.stdio_command) as client:
            client.send("session/prompt", {"sessionId": client.new(), "prompt": [{"type": "text", "text": "Hello"}]})
            assert client.process.wait(10) == 7
        with StdioClient(mock.stdio_command) as client:
            assert client.prompt(client.new())["result"] == {"stopReason": "end_turn"}
        assert mock.wait_for("closed").detail == {"by": "agent"}


def test_what_is_told_is_told_to_all_processes_at_once():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as one, StdioClient(mock.stdio_command) as two:
        one.new(), two.new()
        mock.fault("list", error="invalid_cursor")
        assert "error" in one.ask("session/list")
        assert "error" in two.ask("session/list")


# --- over the network


def test_clients_that_connect_share_the_journal():
    with MockAgent(SCENARIO) as mock, connect(mock.acp_ws_url) as socket_:
        socket_.send(request(1, "initialize", {"protocolVersion": 1}).decode())
        assert '"protocolVersion":1' in socket_.recv(10)
        assert httpx.get(f"{mock.aap_url}/meta").status_code == 200
        assert [entry.kind for entry in mock.journal.requests()] == ["initialize", "GET /meta"]


def test_several_agents_are_served():
    with MockAgent(SCENARIO, scenarios=["hello"]) as mock, connect(f"{mock.acp_ws_url}/hello") as socket_:
        socket_.send(request(1, "initialize", {"protocolVersion": 1}).decode())
        assert "result" in socket_.recv(10)


def test_an_exit_resets_the_connections_and_the_test_goes_on():
    with MockAgent(SCENARIO) as mock:
        mock.fault("initialize", exit=3)
        with connect(mock.acp_ws_url) as client:
            client.send(request(1, "initialize", {"protocolVersion": 1}).decode())
            with pytest.raises(ConnectionClosed):
                client.recv(10)
        with pytest.raises(httpx.ConnectError):
            httpx.get(mock.control_url)
        assert mock.journal.events("exit")[0].detail == {"code": 3}
        url = mock.url
        mock.reset()
        assert mock.url == url
        assert httpx.get(f"{mock.control_url}/health").status_code == 200


def test_a_reset_ends_connections_over_streamable_http():
    def post(method: str, **headers: str) -> httpx.Response:
        params = {"protocolVersion": 1} if method == "initialize" else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(mock.acp_url, json=body, headers={"Accept": "application/json, text/event-stream", **headers})

    with MockAgent(SCENARIO) as mock:
        made = post("initialize")
        name = {"Acp-Connection-Id": made.headers["Acp-Connection-Id"]}
        mock.reset()
        assert mock.journal.entries == []
        assert post("session/list", **name).status_code == 404
        assert post("initialize").status_code == 200


def test_a_reset_disconnects_those_who_are_connected():
    with MockAgent(SCENARIO) as mock, connect(mock.acp_ws_url) as client:
        client.send(request(1, "initialize", {"protocolVersion": 1}).decode())
        client.recv(10)
        mock.reset()
        with pytest.raises(ConnectionClosed):
            client.recv(10)
        assert [entry.kind for entry in mock.journal.requests()] == []


# --- async


def test_in_asyncio_the_loop_goes_on_while_a_test_waits():
    async def test() -> None:
        async with MockAgent(SCENARIO) as mock:
            process = await asyncio.create_subprocess_exec(
                *mock.stdio_command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            assert process.stdin is not None
            waiting = asyncio.create_task(mock.until("initialize", timeout=20))
            process.stdin.write(request(1, "initialize", {"protocolVersion": 1}))
            assert (await waiting).kind == "initialize"
            with pytest.raises(MockError, match=r"await mock\.until"):
                mock.wait_for("session/new", timeout=20)
            with pytest.raises(TimeoutError, match="it sent initialize"):
                await mock.until("session/new", timeout=0)
            process.stdin.close()
            assert await process.wait() == 0

    asyncio.run(test())


async def test_in_trio_the_loop_goes_on_while_a_test_waits():
    async with MockAgent(SCENARIO) as mock:
        process = await trio.lowlevel.open_process(mock.stdio_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        async with process.stdin, process.stdout:
            await process.stdin.send_all(request(1, "initialize", {"protocolVersion": 1}))
            assert (await mock.until("initialize", timeout=20)).kind == "initialize"
        assert await process.wait() == 0


async def test_a_wait_can_be_cancelled():
    async with MockAgent(SCENARIO) as mock:
        with trio.move_on_after(0):
            await mock.until("session/new", timeout=3600)


# --- ends


def test_the_children_end_with_the_object_though_their_client_lives():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        mock.__exit__(None, None, None)
        assert client.process.wait(10) == 0


def test_a_child_that_is_stuck_is_killed_at_the_end(monkeypatch):
    monkeypatch.setattr("mockagent.control.troupe.FAREWELL", 0.1)
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        os.kill(client.process.pid, signal.SIGSTOP)
        mock.__exit__(None, None, None)
        assert client.process.wait(10) == -signal.SIGKILL


def test_a_child_ends_when_the_test_is_killed():
    program = f"""
import subprocess, sys, time
sys.path.insert(0, {str(Path(mockagent.__file__).parents[1])!r})
from mockagent.testing import MockAgent
with MockAgent("hello") as mock:
    child = subprocess.Popen(mock.stdio_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write({request(1, "initialize", {"protocolVersion": 1})!r})
    child.stdin.flush()
    child.stdout.readline()
    print(child.pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as test:
        assert test.stdout is not None
        pid = int(test.stdout.readline())
        test.kill()
    assert gone(pid)


def test_a_command_without_its_object_says_so():
    with MockAgent(SCENARIO) as mock:
        command = mock.stdio_command
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"MockAgent that this command belongs to is not there" in done.stderr


def test_strangers_are_not_talked_to():
    with MockAgent(SCENARIO) as mock:
        *_, link = mock.stdio_command
        port = int(link.partition("/")[0].rpartition(":")[2])
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x09\x93\xa5hello\xa1x\x01"):
            with socket.create_connection(("127.0.0.1", port), 10) as stranger:
                stranger.sendall(words)
                stranger.settimeout(10)
                assert stranger.recv(100) == b""
        mock.verify()


def test_after_the_end_the_journal_can_be_read_and_nothing_be_told():
    with MockAgent(SCENARIO) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        client.close()
    assert mock.journal.requests("initialize")
    mock.verify()
    with pytest.raises(MockError, match="has ended"):
        mock.push("sess_old", title="x")


def test_a_mock_is_used_once_and_as_a_context_manager():
    mock = MockAgent(SCENARIO)
    with pytest.raises(MockError, match="with MockAgent"):
        _ = mock.stdio_command
    with mock:
        pass
    with pytest.raises(MockError, match="make a new one"), mock:
        pass


def test_a_scenario_with_mistakes_is_refused_before_anything_starts():
    with pytest.raises(ScenarioError, match="no bundled scenario"):
        MockAgent("no-such-thing")
    with pytest.raises(ScenarioError, match="steps"):
        MockAgent({"turns": [{"steps": 3}]})


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"seed": "seven"}, TypeError, "seed: this has to be an integer, not 'seven'"),
        ({"speed": "fast"}, TypeError, "speed: this has to be a number, not 'fast'"),
        ({"speed": -1}, ValueError, "speed: this has to be a number from 0 on, not -1"),
        ({"speed": float("nan")}, ValueError, "speed: this has to be a number from 0 on, not nan"),
        ({"scenario": 5}, TypeError, "a scenario is a name, a path, YAML text or a mapping, not 5"),
    ],
)
def test_what_cannot_be_played_with_is_refused_before_anything_starts(options, error, text):
    with pytest.raises(error, match=f"^{text}$"):
        MockAgent(**options)


def test_one_rule_may_be_allowed_without_a_list_and_allows_no_more_than_that():
    with MockAgent(SCENARIO, allow="ACP-CANCEL-*") as mock, StdioClient(mock.stdio_command) as client:
        client.ask("session/list")
        assert mock.report()["failed"] is True


def test_a_mistake_of_the_mock_is_not_blamed_on_the_client():
    with MockAgent(SCENARIO) as mock:
        mock._troupe.host.taps.note("bug", error="RuntimeError: oh")
        with pytest.raises(MockError, match="a mistake of mockagent"):
            mock.verify()


def crash() -> None:
    raise ZeroDivisionError


def test_a_crash_of_the_mock_surfaces_in_the_test():
    with pytest.raises(MockError, match="crashed"), MockAgent(SCENARIO) as mock:
        mock._token.run_sync_soon(mock._troupe.host.stage.soon, crash)
        mock._down.result(10)


def test_the_journal_is_written_to_a_file_too(tmp_path):
    path = tmp_path / "journal.jsonl"
    with MockAgent(SCENARIO, journal=path) as mock, StdioClient(mock.stdio_command) as client:
        client.new()
        mock.verify()
    assert '"kind":"session/new"' in path.read_text()
