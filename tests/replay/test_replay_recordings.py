"""What a recording becomes, of our own journals and of others, and what is said about one that cannot be played."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mockagent.cli import main
from mockagent.replay import RecordingError, replayed
from mockagent.replay.values import Values
from mockagent.replay.writing import yaml_text
from mockagent.scenario.load import load_text
from tests.harness import Theatre

Json = dict[str, Any]
CWD = "/home/dev/project"


def request(id: Any, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def reply(id: Any, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def update(session: str, **body: Any) -> Json:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": body}}


def chunk(session: str, text: str) -> Json:
    return update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def prompt(id: Any, session: str) -> Json:
    return request(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])


def recorded(tmp_path: Path, *rows: tuple[float, str, Any]) -> str:
    """A file of `{time, direction, message}`."""
    path = tmp_path / "recording.jsonl"
    lines = [{"time": time, "direction": direction, "message": message} for time, direction, message in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


OPENING = [
    (0.0, "in", request(0, "initialize", protocolVersion=1)),
    (0.1, "out", reply(0, {"protocolVersion": 1, "agentInfo": {"name": "other", "version": "9"}})),
    (0.2, "in", request(1, "session/new", cwd=CWD, mcpServers=[])),
    (0.2, "out", reply(1, {"sessionId": "theirs-0001"})),
]


def played(path: str, text: str = "go", answers: Json | None = None) -> list[Any]:
    """What a client gets of the scenario that a recording has become, behind its prompt."""
    client = Theatre(load_text(replayed(path)[0])).client(judge=False)
    client.answers = answers or {}
    session = client.new()
    before = len(client.sent)
    client.prompt(session, text)
    return [json.loads(json.dumps(message).replace(session, "SESSION")) for message in client.sent[before:]]


def steps_of(path: str) -> list[Any]:
    """The steps of the only turn, as verb and payload."""
    [turn] = load_text(replayed(path)[0]).turns
    return [(step.verb, step.payload, step.after) for step in turn.steps]


# --- what becomes of it


def test_a_recording_from_elsewhere_plays_with_the_live_id(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.0, "out", chunk("theirs-0001", "In theirs-0001: ${prompt}.")),
        (1.0, "out", reply(2, {"stopReason": "end_turn"})),
    )
    [said, _] = played(path)
    assert said["params"]["sessionId"] == "SESSION"
    assert said["params"]["update"]["content"]["text"] == "In SESSION: ${prompt}."


def test_gaps_become_waits(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.25, "out", chunk("theirs-0001", "a")),
        (1.251, "out", chunk("theirs-0001", "b")),
        (3.251, "out", reply(2, {"stopReason": "max_tokens"})),
        (4.251, "out", update("theirs-0001", sessionUpdate="session_info_update", title="Late")),
    )
    assert [(verb, after) for verb, _, after in steps_of(path)] == [
        ("update", 250_000),
        ("update", 0),
        ("stop", 2_000_000),
        ("update", 1_000_000),
    ]


def test_what_the_client_answered_is_saved_and_said_again(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.0, "out", request("r1", "fs/read_text_file", sessionId="theirs-0001", path="/a")),
        (1.0, "in", reply("r1", {"content": "old content"})),
        (1.0, "out", chunk("theirs-0001", "It was: old content!")),
        (1.0, "out", reply(2, {"stopReason": "end_turn"})),
    )
    [*_, said, _] = played(path, answers={"fs/read_text_file": {"content": "new content"}})
    assert said["params"]["update"]["content"]["text"] == "It was: new content!"


def test_what_the_client_said_meanwhile_is_waited_for(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.0, "out", chunk("theirs-0001", "a")),
        (2.0, "in", {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "theirs-0001"}}),
        (2.0, "out", chunk("theirs-0001", "One moment.")),
        (2.0, "out", reply(2, {"stopReason": "cancelled"})),
    )
    assert [verb for verb, _, _ in steps_of(path)] == ["update", "wait_for", "update", "stop"]
    text, _ = replayed(path)
    assert '- {at: "session/cancel", drop: true}' in text.replace("at: session/cancel", 'at: "session/cancel"')


def test_what_is_said_while_a_question_is_open_plays_beside_it(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.0, "out", request(0, "fs/read_text_file", sessionId="theirs-0001", path="/a")),
        (1.1, "out", chunk("theirs-0001", "Still waiting.")),
        (1.5, "in", reply(0, {"content": "x"})),
        (1.5, "out", reply(2, {"stopReason": "end_turn"})),
    )
    [(verb, payload, _), (last, _, _)] = steps_of(path)
    assert (verb, last) == ("together", "stop")
    assert [[step.verb for step in branch] for branch in payload.branches] == [["request"], ["update"]]


def test_a_question_that_nobody_answered_is_not_waited_for(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (1.0, "in", prompt(2, "theirs-0001")),
        (1.0, "out", request("r9", "fs/read_text_file", sessionId="theirs-0001", path="/a")),
        (1.0, "out", chunk("theirs-0001", "Never mind.")),
    )
    assert [verb for verb, _, _ in steps_of(path)] == ["send", "update", "hang"]


def test_the_first_answers_are_those_of_the_recording(tmp_path: Path) -> None:
    text, left_out = replayed(recorded(tmp_path, *OPENING))
    assert left_out == []
    by_place = {fault.at: fault for fault in load_text(text).faults}
    assert by_place["reply:initialize"].effects["result"]["agentInfo"]["name"] == "other"
    assert by_place["reply:initialize"].effects["hold"] == {"until": 100_000}
    assert by_place["reply:session/new"].effects["result"] == {"sessionId": "${session.id}"}


def test_the_id_of_another_session_is_kept_for_where_it_is_met(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        *OPENING,
        (0.3, "in", request(2, "session/new", cwd=CWD, mcpServers=[])),
        (0.3, "out", reply(2, {"sessionId": "theirs-0002"})),
        (1.0, "in", prompt(3, "theirs-0002")),
        (1.0, "out", chunk("theirs-0002", "See theirs-0001.")),
        (1.0, "out", reply(3, {"stopReason": "end_turn"})),
    )
    text, _ = replayed(path)
    first = next(fault for fault in load_text(text).faults if fault.save)
    assert first.save == {"session_1": "/result/sessionId"}
    assert "See ${saved.session_1}." in text


# --- reading


def test_times_directions_and_messages_may_be_written_in_several_ways(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    rows = [
        {"time": "2026-01-15T09:00:00Z", "direction": "client", "message": json.dumps(OPENING[0][2])},
        {"time": "2026-01-15T09:00:00.500+00:00", "direction": "agent", "message": json.dumps(OPENING[1][2])},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    text, _ = replayed(str(path))
    assert "hold: {until: 500ms}" in text


def test_a_last_line_without_its_end_is_left_out(tmp_path: Path) -> None:
    path = recorded(tmp_path, *OPENING)
    whole = replayed(path)
    with open(path, "a") as file:
        file.write('{"time": 3, "dir')
    assert replayed(path) == whole


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "recording.jsonl:1: not JSON"),
        ("[]", "a line is an object"),
        ('{"time": 1}', "`direction` is missing"),
        ('{"time": 1, "direction": "up", "message": {}}', "`direction` is `in` or `out`"),
        ('{"time": "noon", "direction": "in", "message": {}}', "`time` is ISO 8601 or a number"),
        ('{"time": 1, "direction": "out", "message": {}}', "no request of a client"),
        ('{"event": "restart"}\n{"direction": "in", "message": {"method": "initialize"}}', "started anew"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_place(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(RecordingError, match=r"recording\.jsonl|started anew") as caught:
        replayed(str(path))
    assert words in str(caught.value)
    result = CliRunner().invoke(main, ["replay", str(path)])
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_command_writes_a_scenario_that_has_no_mistakes(tmp_path: Path) -> None:
    path, target = recorded(tmp_path, *OPENING), tmp_path / "fixture.yaml"
    assert CliRunner().invoke(main, ["replay", path, "-o", str(target), "--name", "found"]).exit_code == 0
    assert load_text(target.read_text()).name == "found"
    assert CliRunner().invoke(main, ["replay", path]).stdout == replayed(path)[0]


# --- values and YAML


def test_short_words_and_words_of_the_protocol_are_no_values() -> None:
    values = Values()
    saves: dict[str, str] = {}
    values.answered({"content": "completed", "tiny": "ok", "outcome": {"optionId": "allow_once"}}, saves)
    said = values.template({"status": "completed", "title": "ok", "text": "allow_once"}, None)
    assert said == {"status": "completed", "title": "ok", "text": "allow_once"}
    assert saves == {}


LEAF = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=30)
PLAIN = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner))


@given(PLAIN)
def test_whatever_is_written_is_read_again(value: Any) -> None:
    values = Values()
    scenario = {
        "name": "x",
        "legality": "violation",
        "faults": [{"at": "session/list", "result": values.template(value, None)}],
    }
    [fault] = load_text(yaml_text(scenario)).faults
    assert unescaped(fault.effects["result"]) == value


def unescaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unescaped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [unescaped(part) for part in value]
    return value.replace("$${", "${") if isinstance(value, str) else value


def test_it_is_not_loaded_by_a_command_that_does_not_need_it() -> None:
    code = "import sys, mockagent.cli, mockagent.host; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"mockagent.replay", "mockagent.faults.chaos"} & set(loaded)
