"""Which regular expressions can take for ever, said without trying them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockagent.cli import main
from mockagent.scenario.backtracking import exponential
from mockagent.scenario.load import load_text


@pytest.mark.parametrize(
    "regex",
    [
        r"(a+)+$",
        r"(a|a)*$",
        r"(a|aa)+$",
        r"(a|ab|b)*c",
        r"(a*)*b",
        r"(\w+\s?)*$",
        r"(\s*\w+)+$",
        r"(.*a){12}",
        r"(a{1,3})+$",
        r"(?:a?){30}a{30}",
        r"((ab)+|a+b)*c",
        r"(\d+|\w+)*x",
        r"(?=(a+)+$)b",
        r"(?i:([a-z]+)+!)",
        r"x(?:(?:(?:y+)+))z",
    ],
)
def test_a_repetition_that_can_be_read_in_several_ways_is_exponential(regex: str) -> None:
    assert exponential(regex)


@pytest.mark.parametrize(
    "regex",
    [
        "",
        "weather",
        r"(a)|b",
        r"(a?)*b",
        r"(a|b)*c",
        r"(foo|bar|baz)+",
        r"(\w+\s)*$",
        r"([a-z]+,)+",
        r"[^/]+(/[^/]+)*",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"^(\w+) in (?P<city>\w+)$",
        r"(ab?)+c",
        r'(?:"(?:[^"\\]|\\.)*"\s*,)*',
        r"(?>a+)+$",
        r"(a++)+$",
        r"(\b)*x",
        r"(x)?(?(1)y|z)",
        r"(a+)\1",
    ],
)
def test_a_repetition_that_can_be_read_in_one_way_is_not(regex: str) -> None:
    assert not exponential(regex)


def test_a_large_repetition_is_judged_without_looking_at_everything() -> None:
    assert exponential("(" + "(a*b)?" * 90 + ")*")
    assert exponential("(x(" + "|".join(f"word{number}" for number in range(300)) + ")+)*")
    assert not exponential("(" + "|".join(f"word{number}" for number in range(300)) + ")+")


def test_nothing_is_said_where_the_parser_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re._parser", None)
    assert not exponential("(a+)+$")


FILE = """\
turns:
  - when: {prompt: '/(a+)+$/'}
    steps: [{say: Yes.}]
"""


def test_check_refuses_such_a_pattern_at_its_place_and_says_what_would_be_right(tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text(FILE)
    shown = CliRunner().invoke(main, ["check", str(file)])
    assert shown.exit_code == 1
    assert shown.stdout.startswith(f"{file}:2:20: ")
    assert "`/(a+)+$/` can take time that doubles" in shown.stdout
    assert "such as `a+` for `(a+)+`" in shown.stdout


def test_a_pattern_without_danger_is_taken() -> None:
    assert load_text(FILE.replace("(a+)+$", "a+$")).turns
