"""How `bench` judges a run of a client, shown on real runs and on what they would be if the client had done worse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.judged import CRASHES, HANDLED, HANGS, SHOWN, UNMET, Run, from_acpx, judge, readable
from mockagent.scenario import library

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "bench" / "drivers" / "python_sdk.py"


def played(scenario: str, folder: Path, plan: str = "plain") -> Run:
    """A run of the Python SDK's driver."""
    journal, report = folder / "journal", folder / "report"
    mock = [sys.executable, str(ROOT / "mockagent" / "__main__.py"), "acp", scenario, "--speed", "0"]
    done = subprocess.run(
        [sys.executable, str(DRIVER), plan, "stdio", *mock, "--journal", str(journal), "--report", str(report)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    verdict = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    faulty = bool(library.open_bundled(scenario).faults)
    return Run(scenario, faulty, events, lines, verdict, done.returncode)


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two hundred pieces of text, and the reply."""
    return played("ordering/burst-then-reply", tmp_path_factory.mktemp("burst"))


@pytest.fixture(scope="module")
def exit_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The agent exits in the middle of a turn."""
    return played("turns/exit-mid-turn", tmp_path_factory.mktemp("exit"))


def with_events(run: Run, events: list[dict[str, Any]]) -> Run:
    return run._replace(events=events)


def first(run: Run, **wanted: Any) -> int:
    """The place of the first event with these members."""
    return next(place for place, event in enumerate(run.events) if wanted.items() <= event.items())


def changed(run: Run, place: int, **members: Any) -> Run:
    """The run with one event changed."""
    events = list(run.events)
    events[place] = {**events[place], **members}
    return with_events(run, events)


def test_a_client_that_gets_all_text_before_the_turn_settles_has_handled_it(burst: Run) -> None:
    assert judge(burst) == (HANDLED, True, "")


def test_a_lost_piece_of_text_is_wrong_though_the_client_survived(burst: Run) -> None:
    gone = [event for event in burst.events if event.get("said") != "117 "]
    outcome = judge(with_events(burst, gone))
    assert (outcome.word, outcome.right) == (HANDLED, False)
    assert "'117 '" in outcome.why


def test_text_in_another_order_is_wrong(burst: Run) -> None:
    events = list(burst.events)
    place = first(burst, said="50 ")
    events[place], events[place + 1] = events[place + 1], events[place]
    assert not judge(with_events(burst, events)).right


def test_text_that_comes_when_the_turn_has_settled_is_wrong(burst: Run) -> None:
    events = list(burst.events)
    settled = events.pop(first(burst, call="session/prompt"))
    events.insert(first(burst, said="198 "), settled)
    outcome = judge(with_events(burst, events))
    assert (outcome.word, outcome.right) == (HANDLED, False)
    assert outcome.why == "3 pieces of text came when the turn had settled"


def test_an_error_in_spite_of_a_good_reply_is_shown_but_wrong(burst: Run) -> None:
    outcome = judge(changed(burst, first(burst, call="session/prompt"), end="error", why="cannot read it"))
    assert (outcome.word, outcome.right) == (SHOWN, False)
    assert "cannot read it" in outcome.why


def test_a_call_that_stays_open_though_it_was_answered_hangs(burst: Run) -> None:
    place = first(burst, call="session/prompt")
    answered = burst.events[place]["at"]
    assert judge(changed(burst, place, end="pending", at=answered + 2)).word == HANGS
    assert judge(changed(burst, place, end="pending", at=answered - 1)).word != HANGS  # the answer came too late


def test_a_call_that_stays_open_though_its_answer_could_not_be_read_hangs(burst: Run) -> None:
    harm = {"fate": "damaged", "damaged": ["bytes"], "wire": {"bytes": {"before": "\x1b[0m"}}}
    journal = [{**line, **(harm if line.get("kind") == "reply:session/prompt" else {})} for line in burst.journal]
    place = first(burst, call="session/prompt")
    assert judge(changed(burst, place, end="pending")._replace(journal=journal)).word == HANGS
    outcome = judge(changed(burst, place, end="error", why="cannot read it")._replace(journal=journal))
    assert (outcome.word, outcome.right) == (SHOWN, True)


def test_a_client_that_had_to_be_killed_hangs(burst: Run) -> None:
    assert judge(burst._replace(status=None)).word == HANGS


def test_a_client_that_ends_without_its_last_word_crashes(burst: Run) -> None:
    assert judge(with_events(burst._replace(status=1), burst.events[:-1])).word == CRASHES


def test_a_broken_rule_is_wrong(burst: Run) -> None:
    assert burst.verdict is not None
    breach = {"rule": "ACP-PERM-01", "why": "it answered something else"}
    outcome = judge(burst._replace(verdict={**burst.verdict, "breaches": [breach]}))
    assert (outcome.word, outcome.right) == (HANDLED, False)
    assert outcome.why.startswith("broke ACP-PERM-01")


def test_an_error_is_what_a_right_client_shows_when_the_agent_exits(exit_run: Run) -> None:
    outcome = judge(exit_run)
    assert (outcome.word, outcome.right) == (SHOWN, True)


def test_a_call_that_stays_open_when_the_agent_is_gone_hangs(exit_run: Run) -> None:
    place = first(exit_run, call="session/prompt")
    late = exit_run.events[place]["at"] + 10
    assert judge(changed(exit_run, place, end="pending", at=late)).word == HANGS


def test_a_run_without_the_trouble_tells_nothing(burst: Run) -> None:
    assert judge(burst._replace(faulty=True)).word == UNMET
    assert judge(burst._replace(journal=[])).word == UNMET


SAID = {"direction": "out", "kind": "update:agent_message_chunk", "session": "s"}


@pytest.mark.parametrize(
    ("damage", "readable_lines"),
    [
        ({}, 2),
        ({"fate": "damaged", "damaged": ["delay"]}, 2),
        ({"fate": "damaged", "damaged": ["newline"], "wire": {"newline": "crlf"}}, 2),
        ({"fate": "damaged", "damaged": ["newline"], "wire": {"newline": "none"}}, 0),
        ({"fate": "damaged", "damaged": ["bytes"], "wire": {"bytes": {"before": "INFO started\n"}}}, 2),
        ({"fate": "damaged", "damaged": ["bytes"], "wire": {"bytes": {"before": "\x1b[0m"}}}, 0),
        ({"fate": "damaged", "damaged": ["edit"]}, 1),
        ({"fate": "unsent"}, 1),
    ],
)
def test_only_what_a_right_client_can_read_is_asked_for(damage: dict[str, Any], readable_lines: int) -> None:
    assert len(readable([{**SAID, **damage}, SAID])) == readable_lines


PRINTED: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 0, "method": "session/prompt", "params": {"sessionId": "s"}},
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hi"}},
        },
    },
    {"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {"sessionId": "s"}},
    {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "cancelled"}}},
    {"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}},
]


def test_what_acpx_prints_becomes_events() -> None:
    said = {"said": "Hi", "session": "s"}
    ok = {"call": "session/prompt", "end": "ok", "why": "", "at": 5.0}
    end = {"end": True, "at": 5.0}
    assert from_acpx(PRINTED, 0, "", 5.0) == [said, ok, end]
    open_call = {"call": "session/prompt", "end": "error", "why": "agent left", "at": 5.0}
    assert from_acpx(PRINTED[:-1], 1, "agent left", 5.0) == [said, open_call, end]


def test_acpx_with_a_stack_trace_has_crashed() -> None:
    assert {"end": True, "at": 5.0} not in from_acpx(
        PRINTED[:-1], 1, "TypeError: x\n    at run (file.js:1:1)\n\nNode.js v22.13.0", 5.0
    )
