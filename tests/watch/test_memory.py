"""The journal in memory: asking, waiting, listening, forgetting."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mockagent.message import Burst, Fate, Message, Peer
from mockagent.watch.entries import Entry
from mockagent.watch.memory import Memory
from mockagent.watch.redact import Redactor

PEER = Peer("c1", "acp", "stdio")


def memory(**more: Any) -> Memory:
    return Memory(lambda: 0.0, **more)


def got(method: str, neutral: str | None = None, **params: Any) -> Message:
    data = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Message(method, data, PEER, neutral=neutral, method=method)


def burst(count: int) -> Burst:
    return Burst("update:agent_message_chunk", "say", PEER, "s1", "turn", [b'{"n":%d}' % n for n in range(count)])


def test_requests_are_found_by_method_glob_and_neutral_kind() -> None:
    journal = memory()
    journal.saw(got("session/list", "list", cwd="/a"), "in", Fate.INTACT)
    journal.saw(got("session/new", "create"), "in", Fate.INTACT)
    journal.saw(Message("reply:session/list", {}, PEER, neutral="list", origin="handler"), "out", Fate.INTACT)
    assert [entry.params for entry in journal.requests("session/list")] == [{"cwd": "/a"}]
    assert len(journal.requests("session/*")) == len(journal.requests()) == 2
    assert len(journal.requests("list")) == 1
    assert len(journal.sent("reply:*")) == 1


def test_what_was_dropped_was_not_sent() -> None:
    journal = memory()
    journal.saw(Message("reply:a", {}, PEER, origin="handler", damaged=("drop",)), "out", Fate.UNSENT)
    journal.saw(Message("reply:a", {}, PEER, origin="handler", damaged=("edit",)), "out", Fate.DAMAGED)
    assert [entry.fate for entry in journal.sent("reply:a")] == ["damaged"]
    assert journal.entries[0].damaged == ("drop",)


def test_a_burst_counts_as_its_messages() -> None:
    journal = memory()
    journal.note("connected", PEER, None, {"a": 1})
    journal.saw_burst(burst(3))
    journal.saw(got("x"), "in", Fate.INTACT)
    assert [entry.seq for entry in journal.entries] == [1, 2, 3, 4, 5]
    assert [entry.message for entry in journal.sent("say")] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [entry.seq for entry in journal.since(2)] == [3, 4, 5]
    assert journal.events("connected")[0].detail == {"a": 1}


def test_what_was_lost_is_taken_back_across_bursts() -> None:
    journal = memory()
    journal.saw_burst(burst(3))
    journal.saw(Message("reply:a", {}, PEER, origin="turn"), "out", Fate.INTACT)
    journal.lost(PEER, 3)
    assert [entry.message for entry in journal.sent()] == [{"n": 0}]
    journal.lost(PEER, 10)
    assert journal.sent() == []
    assert [entry.detail for entry in journal.events("lost")] == [{"count": 3}, {"count": 10}]


def test_the_oldest_lines_are_forgotten() -> None:
    journal = memory(limit=5)
    journal.saw_burst(burst(4))
    for _ in range(3):
        journal.note("x", None, None, {})
    assert [entry.seq for entry in journal.entries] == [5, 6, 7]
    assert journal.forgotten == 4
    journal.saw_burst(burst(9))
    assert len(journal.entries) == 9


def test_long_messages_push_the_oldest_out_and_the_newest_stays_however_long_it_is() -> None:
    journal = memory(room=1000)
    for size in (300, 300, 300, 2000, 10):
        journal.saw(got("x", text="a" * size), "in", Fate.INTACT)
        kept = [len(entry.params["text"]) for entry in journal.entries]
        assert kept[-1] == size
        assert len(kept) == 1 or sum(kept) <= 1000
    assert kept == [10]
    journal.restart()
    journal.saw(got("x", text="a" * 900), "in", Fate.INTACT)
    journal.note("x", None, None, {})
    assert len(journal.entries) == 2


def test_subscribers_hear_every_line_until_they_leave() -> None:
    journal = memory()
    heard: list[Entry] = []
    leave = journal.subscribe(heard.append)
    journal.saw_burst(burst(2))
    journal.note("x", None, None, {})
    leave()
    leave()
    journal.note("y", None, None, {})
    assert [(entry.seq, entry.kind or entry.event) for entry in heard] == [
        (1, "update:agent_message_chunk"),
        (2, "update:agent_message_chunk"),
        (3, "x"),
    ]


def test_waiting_returns_at_once_for_what_was_seen_and_only_news_behind_a_mark() -> None:
    journal = memory()
    journal.saw(got("session/cancel"), "in", Fate.INTACT)
    assert journal.wait_for("session/cancel", 0).seq == 1
    with pytest.raises(TimeoutError, match=r"did not send session/cancel within 0 s; it sent nothing"):
        journal.wait_for("session/cancel", 0, since=journal.last)
    with pytest.raises(TimeoutError, match=r"it sent session/cancel$"):
        journal.wait_for("other", 0)


def test_waiting_wakes_up_when_it_comes() -> None:
    journal = memory()
    found: list[Entry] = []
    waiter = threading.Thread(target=lambda: found.append(journal.wait_for("session/cancel", 30)))
    waiter.start()
    journal.saw(got("session/new"), "in", Fate.INTACT)
    journal.saw(got("session/cancel"), "in", Fate.INTACT)
    waiter.join(30)
    assert [entry.kind for entry in found] == ["session/cancel"]


def test_waiting_for_an_event_works_too() -> None:
    journal = memory()
    journal.note("turn_ended", PEER, "s1", {})
    assert journal.wait_for("turn_ended", 0).session == "s1"


def test_secrets_are_masked_in_memory_too() -> None:
    journal = memory(redact=Redactor(["a-long-secret"]))
    journal.saw(got("x", key="a-long-secret"), "in", Fate.INTACT)
    assert journal.entries[0].params == {"key": "***"}


def test_what_is_no_json_is_kept_as_text() -> None:
    journal = memory()
    journal.saw(Message("raw", "nonsense", PEER, raw=b"nonsense", origin="turn"), "out", Fate.INTACT)
    journal.malformed(PEER, b"\xff", "not UTF-8")
    assert journal.entries[0].text == "nonsense"
    assert journal.malformed_input()[0].bytes == "\\xff"
