"""The tables of scenarios and of sessions: for eyes on a terminal, for `grep` in a pipe.

Knows the rows and nothing of where they come from.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockagent.scenario.library import Summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from mockagent.preview import Preview

_STYLES = {"allowed": "green", "violation": "red", "unspecified": "yellow"}


def scenario_table(rows: Sequence[Summary], *, console: Console | None = None) -> None:
    """Prints the bundled scenarios.

    On a terminal it is a table in which only summaries and tags wrap. In a pipe it is a line for each scenario, aligned
    and never cut.

    Args:
        rows: what to show, in this order.
        console: where to, in place of standard output.
    """
    if console is None:
        if not sys.stdout.isatty():
            sys.stdout.write("".join(f"{line}\n" for line in plain_lines(rows)))
            return
        from rich.console import Console

        console = Console(highlight=False, emoji=False, markup=False)
    _print(rows, console)


def plain_lines(rows: Sequence[Summary]) -> list[str]:
    """The table as text: name, legality, summary, tags in brackets."""
    name = max((len(row.name) for row in rows), default=0)
    legality = max((len(row.legality) for row in rows), default=0)
    return [
        f"{row.name:<{name}}  {row.legality:<{legality}}  {_one_line(row.summary)}"
        + (f"  [{', '.join(row.tags)}]" if row.tags else "")
        for row in rows
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _print(rows: Sequence[Summary], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    names = max((len(row.name) for row in rows), default=0)
    # On a narrow terminal the summary goes below the name: a column of ten characters helps nobody.
    if console.width < names + 50:
        for row in rows:
            console.print(Text.assemble((row.name, "bold cyan"), "  ", _legality(row)), soft_wrap=True)
            for line in Text(_one_line(row.summary)).wrap(console, max(console.width - 2, 10)):
                line.rstrip()
                console.print(Text("  ").append_text(line), soft_wrap=True)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("scenario", no_wrap=True, min_width=names)
    table.add_column("legality", no_wrap=True, min_width=11)
    table.add_column("summary", ratio=1)
    table.add_column("tags", max_width=24, style="dim")
    for row in rows:
        table.add_row(Text(row.name, "bold cyan"), _legality(row), Text(_one_line(row.summary)), ", ".join(row.tags))
    console.print(table)


def _legality(row: Summary) -> Text:
    from rich.text import Text

    return Text(row.legality, _STYLES.get(row.legality, ""))


# --- sessions

_UNTITLED = "(untitled)"


def session_table(shown: Preview, *, console: Console | None = None) -> None:
    """Prints a page of sessions.

    On a terminal long titles wrap; in a pipe it is a line for each session, never cut, and nothing else.

    Args:
        shown: the page.
        console: where to, in place of standard output.
    """
    if console is None:
        if not sys.stdout.isatty():
            sys.stdout.write("".join(f"{line}\n" for line in session_lines(shown)))
            return
        from rich.console import Console

        console = Console(highlight=False, emoji=False, markup=False)
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("session", no_wrap=True)
    table.add_column("updated", no_wrap=True)
    table.add_column("folder")
    table.add_column("title", ratio=1)
    for row in shown.sessions:
        title = row.get("title")
        table.add_row(
            Text(row["sessionId"], "bold cyan"),
            row.get("updatedAt", ""),
            row["cwd"],
            Text(_UNTITLED, "dim") if title is None else Text(_one_line(title)),
        )
    console.print(table)
    console.print(Text(f"page {shown.page} of {shown.pages}, {shown.total:,} sessions", "dim"))


def session_lines(shown: Preview) -> list[str]:
    """The page as text: id, time, folder, title."""
    rows = [(row["sessionId"], str(row.get("updatedAt", "")), row["cwd"], row.get("title")) for row in shown.sessions]
    widths = [max((len(row[at] or "") for row in rows), default=0) for at in range(3)]
    heads = [f"{id:<{widths[0]}}  {time:<{widths[1]}}  {cwd:<{widths[2]}}  " for id, time, cwd, _ in rows]
    titles = [_UNTITLED if title is None else _one_line(title) for *_, title in rows]
    return [head + title for head, title in zip(heads, titles, strict=True)]
