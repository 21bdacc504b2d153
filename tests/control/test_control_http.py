"""Control over HTTP: each endpoint does what its name says, and says no in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import mockagent
from mockagent.testing import MockAgent
from tests.plain import StdioClient

MAIN = str(Path(mockagent.__file__).with_name("__main__.py"))


def test_health_says_what_is_played(http):
    told = http.get("/health").raise_for_status().json()
    assert (told["status"], told["scenario"], told["now"]) == ("ok", "controlled", "2026-01-15T09:00:00.000Z")


def test_sessions_are_those_that_a_client_sees(http, client):
    made = client.new()
    rows = {row["id"]: row for row in http.get("/sessions").json()["sessions"]}
    assert rows["sess_old"]["state"] == "stored"
    assert rows[made]["state"] == "active"


def test_the_journal_is_asked_by_kind_direction_and_line(http, client):
    client.new()
    journal = http.get("/journal").json()
    assert journal["last"] == len(journal["entries"])
    assert [entry["kind"] for entry in http.get("/journal", params={"direction": "in"}).json()["entries"]] == [
        "initialize",
        "session/new",
    ]
    (entry,) = http.get("/journal", params={"kind": "reply:session/new"}).json()["entries"]
    assert "sessionId" in entry["message"]["result"]
    assert http.get("/journal", params={"since": journal["last"]}).json()["entries"] == []
    assert len(http.get("/journal", params={"limit": 2}).json()["entries"]) == 2


def test_waiting_returns_what_came_or_says_what_did(http, client):
    client.new()
    entry = http.get("/wait", params={"for": "session/new", "timeout": 5}).json()
    assert entry["kind"] == "session/new"
    missing = http.get("/wait", params={"for": "session/cancel", "timeout": 0})
    assert missing.status_code == 408
    assert "it sent initialize, session/new" in missing.json()["error"]["message"]


def test_a_push_reaches_the_client(http, client):
    session = client.new()
    http.post("/push", json={"session": session, "title": "Fresh"}).raise_for_status()
    update = client.until("session/update")["params"]["update"]
    assert update == {"sessionUpdate": "session_info_update", "title": "Fresh"}


def test_a_push_to_nobody_names_the_sessions_that_are_there(http):
    answer = http.post("/push", json={"session": "sess_none", "title": "x"})
    assert answer.status_code == 404
    assert "sess_old" in answer.json()["error"]["message"]


def test_faults_are_armed_listed_and_taken_out(http, client):
    client.new()
    made = http.post("/faults", json={"at": "list", "error": "invalid_cursor"})
    assert made.status_code == 201
    id = made.json()["id"]
    assert [fault["id"] for fault in http.get("/faults").json()["faults"]] == [id]
    assert client.ask("session/list")["error"]["code"] == -32602
    assert http.delete(f"/faults/{id}").json() == {"faults": []}
    assert "result" in client.ask("session/list")
    assert http.delete(f"/faults/{id}").status_code == 404
    http.post("/faults", json={"at": "list", "drop": True})
    assert http.delete("/faults").json() == {"faults": []}


def test_time_is_moved_on(http, client):
    session = client.new()
    id = client.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]})
    client.until("session/update")
    http.post("/advance", json={"seconds": 3600}).raise_for_status()
    assert client.until(id)["result"] == {"stopReason": "end_turn"}


def test_a_reset_forgets_everything_and_keeps_the_client(http, client):
    session = client.new()
    http.post("/push", json={"session": "sess_old", "title": "Changed"})
    http.post("/faults", json={"at": "list", "drop": True})
    http.post("/reset").raise_for_status()
    assert http.get("/journal").json() == {"entries": [], "last": 0}
    assert http.get("/faults").json() == {"faults": []}
    (row,) = http.get("/sessions").json()["sessions"]
    assert (row["id"], row["title"]) == ("sess_old", "Old")
    assert client.prompt(session)["error"]["code"] == -32002
    assert client.session() == session  # the n-th session has the n-th id again
    assert client.prompt(session)["result"] == {"stopReason": "end_turn"}


def test_a_reset_ends_the_turns_that_run(http, client):
    session = client.new()
    id = client.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]})
    client.until("session/update")
    http.post("/reset").raise_for_status()
    assert client.until(id)["result"] == {"stopReason": "cancelled"}


def test_what_a_fault_holds_back_leaves_at_a_reset_and_blocks_nobody(http, client):
    session = client.new()
    http.post("/faults", json={"at": "reply:session/list", "delay": "1h"}).raise_for_status()
    id = client.send("session/list", {})
    http.get("/wait", params={"for": "session/list"}).raise_for_status()
    http.post("/reset").raise_for_status()
    assert client.until(id)["result"]["sessions"]
    assert client.session() == session


@pytest.mark.parametrize(
    "body", [b'{"scenario": "hello"}', b"name: hello\nturns: [{steps: [{say: Hi}]}]\n", b'{"name": "hello"}']
)
def test_the_scenario_is_swapped_by_name_or_text(http, client, body):
    client.new()
    assert http.post("/scenario", content=body).raise_for_status().json()["scenario"] == "hello"
    assert "result" in client.prompt(client.session())
    assert http.get("/sessions").json()["sessions"][0]["agent"] == "hello"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"scenario": "no-such"}', 400),
        (b'{"scenario": "/etc/passwd"}', 400),
        (b"turns: 3\n", 400),
        (b"include: /etc/passwd\n", 400),
        (b'{"scenario": "hello", "agent": "nobody"}', 404),
    ],
)
def test_a_scenario_that_cannot_be_played_changes_nothing(http, body, status):
    answer = http.post("/scenario", content=body)
    assert answer.status_code == status
    assert "root:" not in answer.text
    assert http.get("/health").json()["scenario"] == "controlled"


def test_sessions_that_are_kept_in_a_file_are_not_reset(tmp_path):
    with acp("--control", "127.0.0.1:0", "--state", str(tmp_path / "state.db")) as client:
        url = control_of(client)
        assert httpx.post(f"{url}/reset").status_code == 409


def test_the_report_has_the_verdict_and_its_text(http, client):
    client.new()
    report = http.get("/report").json()
    assert report["failed"] is False
    assert "passed" in report["text"]


def test_the_journal_is_followed_live(http, client):
    client.ask("initialize", protocolVersion=1)
    with http.stream("GET", "/journal", params={"follow": "", "direction": "in"}) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        lines = stream.iter_lines()
        kinds = []
        for line in lines:
            if line.startswith("data: "):
                kinds.append(json.loads(line[6:])["kind"])
                if kinds == ["initialize"]:
                    client.session()
                elif len(kinds) == 2:
                    break
    assert kinds == ["initialize", "session/new"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", None, 404),
        ("PUT", "/health", None, 405),
        ("POST", "/faults", b"{", 400),
        ("POST", "/faults", b"[]", 400),
        ("POST", "/faults", b'{"at": "lst", "drop": true}', 400),
        ("POST", "/push", b'{"title": "x"}', 400),
        ("POST", "/push", b'{"session": "sess_old"}', 400),
        ("POST", "/advance", b"{}", 400),
        ("POST", "/advance", b'{"seconds": -1}', 400),
        ("POST", "/advance", b'{"seconds": "1"}', 400),
        ("POST", "/advance", b'{"seconds": 1e12}', 400),
        ("POST", "/advance", b'{"seconds": 1e308}', 400),
        ("GET", "/journal?since=x", None, 400),
        ("GET", "/wait", None, 400),
    ],
)
def test_a_request_that_cannot_be_carried_out_says_why(http, method, path, body, status):
    answer = http.request(method, path, content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_foreign_pages_and_names_are_kept_out(mock):
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert httpx.get(f"{mock.control_url}/health", headers=headers).status_code == 403


def test_pages_of_this_machine_may_read_the_answers(http):
    origin = "http://localhost:5173"
    told = http.get("/health", headers={"Origin": origin})
    assert told.headers["access-control-allow-origin"] == origin
    asked = {"Origin": origin, "Access-Control-Request-Method": "DELETE"}
    assert "DELETE" in http.options("/faults", headers=asked).headers["access-control-allow-methods"]


# --- the command


def control_of(client: StdioClient) -> str:
    """The address that stderr tells."""
    assert client.process.stderr is not None
    line = client.process.stderr.readline().decode()
    assert line.startswith("mockagent: control on http://127.0.0.1:")
    return line.rpartition(" ")[2].strip()


def acp(*options: str) -> StdioClient:
    return StdioClient([sys.executable, MAIN, "acp", "hello", *options])


def test_an_agent_over_stdio_is_controlled_beside_its_protocol():
    with acp("--control", "127.0.0.1:0") as client:
        url = control_of(client)
        session = client.new()
        httpx.post(f"{url}/push", json={"session": session, "title": "Fresh"}).raise_for_status()
        assert client.until("session/update")["params"]["update"]["title"] == "Fresh"
        assert httpx.get(f"{url}/health").json()["scenario"] == "hello"
        assert httpx.get(url.replace("/_mock", "/acp")).status_code == 404
        assert client.close() == 0


def test_control_asks_for_its_token():
    with acp("--control", "127.0.0.1:0", "--control-token", "s3cret") as client:
        url = control_of(client)
        assert httpx.get(f"{url}/health").status_code == 401
        assert httpx.get(f"{url}/health", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx.get(f"{url}/health", headers={"Authorization": "Bearer s3cret"}).status_code == 200


def test_control_is_closed_to_others_without_a_token():
    with acp("--control", "0.0.0.0:0") as client:
        assert client.process.stderr is not None
        port = int(client.process.stderr.readline().decode().rpartition(":")[2].partition("/")[0])
        assert httpx.get(f"http://127.0.0.1:{port}/_mock/health").status_code == 403


@pytest.mark.parametrize("address", ["here", "127.0.0.1", "127.0.0.1:x", ":70000"])
def test_what_is_no_address_is_a_usage_error(address):
    done = subprocess.run(
        [sys.executable, MAIN, "acp", "--control", address], capture_output=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert b"HOST:PORT" in done.stderr


def test_a_port_that_is_taken_ends_the_agent_before_it_says_anything():
    with MockAgent("hello") as other:
        port = other.url.rpartition(":")[2]
        done = subprocess.run(
            [sys.executable, MAIN, "acp", "--control", f"127.0.0.1:{port}"], capture_output=True, stdin=subprocess.PIPE
        )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"port 0 picks a free one" in done.stderr
