"""The report: what a person reads, what a program reads, and when the file is written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mockagent.message import Fate, Message, Peer
from mockagent.scenario.model import Expectation, Place
from mockagent.watch.audit import Audit
from mockagent.watch.expect import Expect
from mockagent.watch.report import Report
from mockagent.watch.rule import Check, Rulebook, got
from mockagent.watch.tap import Taps

PEER = Peer("c1", "acp", "stdio")
RULES = Rulebook("acp", version=1)


@RULES.rule("TOY-INIT-01", "MUST", "A client initializes first.", source="initialization")
class InitializesFirst(Check):
    def start(self) -> None:
        self.done = False

    @got("initialize")
    def initialized(self, message: Message) -> None:
        self.done = True

    @got("session/new")
    def created(self, message: Message) -> None:
        self.met() if self.done else self.broken("it made a session before that")


@RULES.rule("TOY-BYE-01", "SHOULD", "A client says goodbye.", source="toys")
class Bye(Check):
    pass


class Game:
    def __init__(self, *expectations: Expectation, path: str | None = None, **more: Any) -> None:
        self.now = 0.0
        self.audit = Audit(RULES, **more)
        self.expect = Expect(expectations, clock=lambda: self.now)
        self.said: list[str] = []
        self.report = Report(self.audit, self.expect, "toy", path, clock=lambda: self.now, complain=self.said.append)
        self.taps = Taps(self.audit, self.expect, self.report)

    def came(self, *kinds: str) -> None:
        for kind in kinds:
            message = Message(kind, {"jsonrpc": "2.0", "id": 1, "method": kind}, PEER, id=1, session="s1")
            self.taps.saw(message, "in", Fate.INTACT)


CANCEL = Expectation(what="request", value="session/cancel", place=Place(file="toy.yaml", line=7, column=5))


def test_a_client_that_does_nothing_wrong_passes() -> None:
    game = Game(CANCEL)
    game.came("initialize", "session/new", "session/cancel")
    assert not game.report.failed
    game.report.verify()
    assert game.report.text() == (
        "The client passed with toy.\n\nrules: 1 met, 1 not exercised\nexpectations: 1 of 1 met"
    )


def test_the_text_says_what_the_client_did_wrong() -> None:
    game = Game(CANCEL)
    game.came("x", "session/new", "session/cancle")
    game.taps.note("fault", PEER, None, at="list", effects=["drop", "delay"], place="toy.yaml:3:5", what="fired")
    game.taps.note("fault", PEER, None, at="list", effects=["drop"], place="toy.yaml:9:5", what="skipped: x")
    with pytest.raises(AssertionError) as caught:
        game.report.verify()
    assert str(caught.value) == (
        "The client failed with toy: it broke 1 rule and missed 1 expectation.\n"
        "\n"
        "TOY-INIT-01 (MUST): A client initializes first.\n"
        "  it made a session before that (session s1 on c1)\n"
        "  spec: initialization\n"
        '    #1 client x  {"jsonrpc":"2.0","id":1,"method":"x"}\n'
        '  > #2 client session/new  {"jsonrpc":"2.0","id":1,"method":"session/new"}\n'
        '    #3 client session/cancle  {"jsonrpc":"2.0","id":1,"method":"session/cancle"}\n'
        "\n"
        "expected request: session/cancel (toy.yaml:7:5)\n"
        "  seen never, expected once or more; the client sent session/cancle\n"
        "\n"
        "rules: 1 broken, 1 not exercised\n"
        "expectations: 0 of 1 met\n"
        "faults that fired: list: drop, delay (toy.yaml:3:5)"
    )


def test_near_misses_stand_side_by_side() -> None:
    game = Game(Expectation(what="request", value="m", params={"/a": 1, "/long/name": "x*"}))
    message = Message("m", {"jsonrpc": "2.0", "method": "m", "params": {"a": 2}}, PEER)
    game.taps.saw(message, "in", Fate.INTACT)
    assert (
        "  what came closest:\n"
        '    #1 client m  {"jsonrpc":"2.0","method":"m","params":{"a":2}}\n'
        "      its params are others\n"
        "        /a          wanted 1, got 2\n"
        '        /long/name  wanted "x*", got (absent)'
    ) in game.report.text()


def test_what_the_client_sent_cannot_play_with_the_terminal() -> None:
    game = Game()
    message = Message("session/new", None, PEER, raw='{"a":"\u202e\u009b"}'.encode())
    game.taps.saw(message, "in", Fate.INTACT)
    assert "\\u202e\\u009b" in game.report.text()


def test_an_allowed_rule_is_counted_and_not_shown() -> None:
    game = Game(allow=["TOY-INIT-01"])
    game.came("session/new")
    game.report.verify()
    assert "rules: 1 allowed, 1 not exercised" in game.report.text()


def test_the_json_holds_everything() -> None:
    game = Game(CANCEL)
    game.came("session/new")
    found = json.loads(json.dumps(game.report.as_json()))
    assert found["scenario"] == "toy"
    assert found["failed"] is True
    assert [(rule["id"], rule["state"], rule["broken"]) for rule in found["rules"]] == [
        ("TOY-INIT-01", "broken", 1),
        ("TOY-BYE-01", "not exercised", 0),
    ]
    assert found["breaches"][0]["shown"][0]["kind"] == "session/new"
    assert found["expectations"][0]["met"] is False


# --- the file


def test_the_file_is_there_at_once_and_follows_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    game = Game(CANCEL, path=str(path))
    game.report.flush()
    assert json.loads(path.read_text())["failed"] is True
    game.came("session/cancel")
    game.report.flush()
    assert json.loads(path.read_text())["failed"] is False
    game.came("session/new")
    game.report.flush()
    assert json.loads(path.read_text())["failed"] is True
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_while_only_counts_change_the_file_is_written_seldom(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    game = Game(path=str(path))
    game.came("initialize")
    game.report.flush()

    def met() -> int:
        rules = json.loads(path.read_text())["rules"]
        assert isinstance(rules[0]["met"], int)
        return int(rules[0]["met"])

    game.came("session/new")
    game.report.flush()
    assert met() == 0
    game.now += 1
    game.report.flush()
    assert met() == 1
    game.came("session/new")
    game.taps.close()
    assert met() == 2


def test_without_news_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    game = Game(path=str(path))
    game.report.flush()
    path.unlink()
    game.now += 10
    game.report.flush()
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_gets_the_last_report_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "report"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    game = Game(CANCEL, path=str(path))
    game.report.flush()
    game.came("session/cancel")
    game.taps.close()
    assert json.loads(os.read(reader, 1 << 20))["failed"] is False
    os.close(reader)
    assert path.is_fifo()
    assert [file.name for file in tmp_path.iterdir()] == ["report"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_that_nobody_reads_does_not_keep_the_end_waiting(tmp_path: Path) -> None:
    path = tmp_path / "report"
    os.mkfifo(path)
    game = Game(path=str(path))
    game.taps.close()
    assert "cannot write" in game.said[0]


def test_a_report_that_cannot_be_written_costs_one_line(tmp_path: Path) -> None:
    game = Game(path=str(tmp_path / "missing" / "report.json"))
    game.report.flush()
    game.came("session/new")
    game.report.flush()
    game.taps.close()
    assert len(game.said) == 1
    assert "cannot write" in game.said[0]


def test_a_report_that_cannot_be_put_in_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    game = Game(path=str(tmp_path / "report.json"))
    game.report.flush()
    (tmp_path / "report.json").unlink()
    (tmp_path / "report.json").mkdir()
    game.came("session/new")
    game.taps.close()
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert "cannot write" in game.said[0]
