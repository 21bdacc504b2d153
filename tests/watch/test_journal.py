"""The journal on disk: what a line says, and that it can neither fail the play nor lose what was flushed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mockagent.message import Burst, Fate, HttpHead, Message, Peer
from mockagent.watch.journal import Journal, read_journal
from mockagent.watch.redact import Redactor

PEER = Peer("c1", "acp", "stdio")
WEB = Peer("c2", "aap", "http")


def clock() -> float:
    return 1_768_467_600.0  # 2026-01-15T09:00:00Z


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def incoming(kind: str = "session/list", raw: bytes | None = None, **more: Any) -> Message:
    data: Any = {"jsonrpc": "2.0", "id": 1, "method": kind}
    return Message(kind, json.loads(raw) if raw else data, PEER, raw=raw, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


@pytest.fixture
def journal(path: Path) -> Journal:
    return Journal(str(path), clock)


def test_a_message_is_one_line_with_everything_about_it(journal: Journal, path: Path) -> None:
    journal.saw(incoming(session="s1"), "in", Fate.INTACT)
    journal.saw(
        Message("reply:session/list", {"id": 1, "result": {}}, PEER, origin="handler", damaged=("edit", "split")),
        "out",
        Fate.DAMAGED,
    )
    journal.flush()
    assert lines(path) == [
        {
            "time": "2026-01-15T09:00:00.000Z",
            "seq": 1,
            "direction": "in",
            "peer": "c1",
            "protocol": "acp",
            "transport": "stdio",
            "session": "s1",
            "kind": "session/list",
            "origin": "client",
            "message": {"jsonrpc": "2.0", "id": 1, "method": "session/list"},
        },
        {
            "time": "2026-01-15T09:00:00.000Z",
            "seq": 2,
            "direction": "out",
            "peer": "c1",
            "protocol": "acp",
            "transport": "stdio",
            "kind": "reply:session/list",
            "origin": "handler",
            "fate": "damaged",
            "damaged": ["edit", "split"],
            "message": {"id": 1, "result": {}},
        },
    ]


def test_the_text_of_a_message_is_kept_as_it_was_read(journal: Journal, path: Path) -> None:
    raw = b'{"b" : 1.50,  "a":"\\u00e9", "b2":123456789012345678901234567890}'
    journal.saw(incoming(raw=raw), "in", Fate.INTACT)
    journal.flush()
    assert raw in path.read_bytes()


def test_a_message_over_several_lines_becomes_one(journal: Journal, path: Path) -> None:
    journal.saw(incoming(raw=b'{\r\n  "a": 1\n}'), "in", Fate.INTACT)
    journal.flush()
    assert lines(path)[0]["message"] == {"a": 1}


def test_milliseconds_are_kept_across_seconds(path: Path) -> None:
    times = iter([0.0, 1.9994, 1.9996, 3600.25])
    journal = Journal(str(path), lambda: next(times))
    for _ in range(4):
        journal.note("x", None, None, {})
    journal.flush()
    assert [line["time"][11:] for line in lines(path)] == [
        "00:00:00.000Z",
        "00:00:01.999Z",
        "00:00:02.000Z",
        "01:00:00.250Z",
    ]


def test_a_burst_is_written_as_its_single_messages_would_be(tmp_path: Path) -> None:
    texts = [b'{"n":%d}' % number for number in range(50)]
    burst = Burst("update:agent_message_chunk", "say", PEER, 'odd "id"', "turn", texts)
    first, second = tmp_path / "a", tmp_path / "b"
    one = Journal(str(first), clock)
    one.note("connected", PEER, None, {})
    one.saw_burst(burst)
    one.close()
    other = Journal(str(second), clock)
    other.note("connected", PEER, None, {})
    for message in burst.messages():
        other.saw(message, "out", Fate.INTACT)
    other.close()
    assert first.read_bytes() == second.read_bytes()
    assert [line["seq"] for line in lines(first)] == list(range(1, 52))


def test_malformed_input_is_shown_as_text_and_cut(journal: Journal, path: Path) -> None:
    journal.malformed(PEER, b'caf\xc3\xa9 "\n\xff\x00', "not JSON")
    journal.malformed(PEER, b"x" * 1_000_000, "line too long")
    journal.flush()
    first, second = lines(path)
    assert (first["direction"], first["malformed"], first["bytes"]) == ("in", "not JSON", 'café "\n\\xff\0')
    assert second["bytes"].endswith("... (1000000 bytes)")
    assert len(second["bytes"]) < 70_000


def test_events_carry_their_details_whatever_these_are(journal: Journal, path: Path) -> None:
    journal.note("fault", PEER, "s1", {"effect": "drop", "place": object(), "odd": "\ud800"})
    journal.note("started", None, None, {})
    journal.lost(PEER, 3)
    journal.flush()
    fault, started, lost = lines(path)
    assert (fault["event"], fault["peer"], fault["session"]) == ("fault", "c1", "s1")
    assert fault["detail"]["effect"] == "drop"
    assert "object" in fault["detail"]["place"]
    assert "detail" not in started
    assert (lost["event"], lost["detail"]) == ("lost", {"count": 3})


@pytest.mark.parametrize("raw", [b"no JSON at all", b'{"torn', b"two\nlines", b"\xff\xfe", b'"\\ud8'])
def test_what_a_scenario_sends_that_is_no_json_does_not_break_the_line(
    journal: Journal, path: Path, raw: bytes
) -> None:
    journal.saw(Message("raw", None, PEER, raw=raw, origin="turn"), "out", Fate.INTACT)
    journal.flush()
    assert lines(path)[0]["text"] == raw.decode(errors="backslashreplace")


def test_lone_surrogates_that_leave_can_be_read_back(journal: Journal, path: Path) -> None:
    journal.saw(Message("raw", None, PEER, raw=rb'{"a":"\ud800"}', origin="turn"), "out", Fate.INTACT)
    journal.saw(Message("raw", {"a": "\ud800"}, PEER, origin="turn"), "out", Fate.INTACT)
    journal.flush()
    assert [entry.message for entry in read_journal(str(path))] == [{"a": "\ud800"}] * 2


def test_http_shows_method_path_status_and_headers_without_secrets(journal: Journal, path: Path) -> None:
    head = HttpHead(
        method="GET",
        path="/sessions",
        query={"after": "c2", "token": "abc"},
        headers={"Authorization": "Bearer abc.def", "cookie": "a=b", "Accept": "*/*"},
    )
    journal.saw(Message("GET /sessions", None, WEB, http=head), "in", Fate.INTACT)
    journal.saw(
        Message("reply:GET /sessions", {"sessions": []}, WEB, http=HttpHead(status=200), origin="handler"),
        "out",
        Fate.INTACT,
    )
    journal.flush()
    request, reply = lines(path)
    assert "message" not in request
    assert request["http"] == {
        "method": "GET",
        "path": "/sessions",
        "query": {"after": "c2", "token": "***"},
        "headers": {"Authorization": "Bearer ***", "cookie": "***", "Accept": "*/*"},
    }
    assert reply["http"]["status"] == 200
    assert reply["message"] == {"sessions": []}


def test_secrets_are_masked_by_value_and_by_place(path: Path) -> None:
    redact = Redactor(["sk-12345678", "pin"], {"session/new": ["/params/mcpServers/*/env/*/value"]})
    journal = Journal(str(path), clock, redact)
    servers = b'[{"env":[{"name":"K","value":"learned-secret"},{"name":"N","value":1}]}]'
    raw = b'{"params":{"mcpServers":%b,"pin":"pin"}}' % servers
    journal.saw(incoming("session/new", raw), "in", Fate.INTACT)
    journal.saw(incoming("x", b'{"a":"see learned-secret, sk-1234\\u0035678, spinning"}'), "in", Fate.INTACT)
    journal.malformed(PEER, b"sk-12345678", "why")
    journal.note("saved", PEER, None, {"value": "sk-12345678"})
    journal.saw_burst(Burst("u", "say", PEER, "s", "turn", [b'{"t":"sk-12345678"}', b'{"t":"ok"}']))
    journal.flush()
    assert b"12345678" not in path.read_bytes()
    new, echo, bad, saved, one, two = lines(path)
    assert new["message"]["params"] == {
        "mcpServers": [{"env": [{"name": "K", "value": "***"}, {"name": "N", "value": "***"}]}],
        "pin": "***",
    }
    assert echo["message"] == {"a": "see ***, ***, spinning"}
    assert bad["bytes"] == saved["detail"]["value"] == one["message"]["t"] == "***"
    assert two["message"] == {"t": "ok"}


def test_nothing_is_written_before_a_flush_and_everything_by_it(journal: Journal, path: Path) -> None:
    journal.note("one", None, None, {})
    assert path.read_bytes() == b""
    journal.flush()
    assert len(lines(path)) == 1
    journal.note("two", None, None, {})
    journal.close()
    assert len(lines(path)) == 2


def test_the_buffer_is_bounded(journal: Journal, path: Path) -> None:
    for _ in range(20):
        journal.saw(incoming(raw=b'{"a":"' + b"x" * 100_000 + b'"}'), "in", Fate.INTACT)
    assert path.stat().st_size > 1_000_000


def test_an_older_journal_is_emptied(path: Path) -> None:
    path.write_text("old\n")
    Journal(str(path), clock).close()
    assert path.read_bytes() == b""


def test_a_file_that_cannot_be_opened_costs_one_line_and_no_play(tmp_path: Path) -> None:
    said: list[str] = []
    journal = Journal(str(tmp_path), clock, complain=said.append)
    journal.saw(incoming(), "in", Fate.INTACT)
    journal.note("x", None, None, {})
    journal.flush()
    journal.close()
    assert len(said) == 1
    assert "cannot write" in said[0]


def test_a_full_disk_costs_one_line_and_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    journal = Journal(str(path), clock, complain=said.append)
    real = os.write
    room = 130

    def write(fd: int, data: Any) -> int:
        nonlocal room
        if room == 0:
            raise OSError(28, "No space left on device")
        done = real(fd, data[:room])
        room -= done
        return done

    monkeypatch.setattr(os, "write", write)
    for _ in range(5):
        journal.note("event", None, None, {})
    journal.flush()
    journal.note("later", None, None, {})
    journal.close()
    assert said == [f"mockagent: the journal ends here, cannot write {path}: No space left on device"]
    assert len(lines(path)) == 2


def test_what_was_written_is_read_back(journal: Journal, path: Path) -> None:
    journal.note("connected", PEER, None, {"n": 1})
    journal.saw(incoming(session="s1"), "in", Fate.INTACT)
    journal.saw_burst(Burst("u", "say", PEER, "s1", "turn", [b'{"n":1}', b'{"n":2}', b'{"n":3}']))
    journal.saw(Message("reply:x", {}, PEER, origin="handler"), "out", Fate.UNSENT)
    journal.lost(PEER, 2)
    journal.malformed(PEER, b"?", "why")
    journal.close()
    entries = read_journal(str(path))
    assert [entry.seq for entry in entries] == list(range(1, 9))
    assert entries[0].event == "connected"
    assert entries[0].message is msgspec.UNSET
    assert [entry.fate for entry in entries[2:6]] == ["intact", "lost", "lost", "unsent"]
    assert entries[7].malformed == "why"
    assert entries[1].session == "s1"


def test_a_torn_last_line_is_left_out_and_a_broken_one_in_the_middle_is_named(tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    torn.write_bytes(b'{"time":"t","seq":1,"event":"a"}\n{"time":"t","se')
    assert [entry.event for entry in read_journal(str(torn))] == ["a"]
    broken = tmp_path / "broken"
    broken.write_bytes(b'{"event":"a"}\nnonsense\n{"event":"b"}\n')
    with pytest.raises(ValueError, match="broken:2: not a line of a journal"):
        read_journal(str(broken))


def test_plain_lines_from_elsewhere_are_numbered(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text('{"time":"t","direction":"in","message":{"method":"a"}}\n\n{"direction":"out","message":{}}')
    entries = read_journal(str(plain))
    assert [(entry.seq, entry.direction, entry.message) for entry in entries] == [
        (1, "in", {"method": "a"}),
        (3, "out", {}),
    ]
