"""The table of scenarios, on a terminal and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mockagent.demo.tables import plain_lines, scenario_table
from mockagent.scenario.library import Summary

ROWS = [
    Summary("demo", "A tour.", "allowed", ("demo",)),
    Summary("lists/a-name-that-is-rather-long", "The title [bold] comes late, " * 6, "violation", ("lists", "titles")),
    Summary("odd", "", "unspecified", ()),
]


def printed(width: int) -> list[str]:
    file = io.StringIO()
    scenario_table(
        ROWS, console=Console(file=file, width=width, highlight=False, emoji=False, markup=False, _environ={})
    )
    return file.getvalue().splitlines()


def test_in_a_pipe_every_scenario_is_one_aligned_line(capsys: pytest.CaptureFixture[str]) -> None:
    scenario_table(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines == plain_lines(ROWS)
    assert len(lines) == 3
    assert lines[0] == "demo                              allowed      A tour.  [demo]"
    assert {line.index(row.legality) for line, row in zip(lines, ROWS, strict=True)} == {34}


@pytest.mark.parametrize("width", [30, 60, 100, 200])
def test_on_a_terminal_names_are_never_cut_and_summaries_wrap(width: int) -> None:
    lines = printed(width)
    assert any("lists/a-name-that-is-rather-long" in line for line in lines)
    assert " ".join(lines).count("late") == 6
    assert " ".join(lines).count("[bold]") == 6
    assert max(map(len, lines)) <= max(width, len("lists/a-name-that-is-rather-long  violation"))


def test_no_rows_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scenario_table([])
    assert capsys.readouterr().out == ""
