"""Renders the catalogue of bundled scenarios as Markdown: one page, a table for each folder.

Knows how the page looks; what stands in it comes from the scenarios themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mockagent.scenario import library
from mockagent.scenario.model import Scenario
from mockagent.scenario.reference import cell

TITLES = {
    "": "Agents in good health",
    "personas": "Kinds of agents",
    "set-up": "Start, login and options",
    "sessions": "Loading, resuming, closing, deleting",
    "lists": "The list of sessions, and titles",
    "ordering": "The order of things",
    "turns": "Turns, and how they end or do not",
    "stops": "Each stop reason",
    "permissions": "Permissions",
    "requests": "Requests to the client",
    "content": "Content",
    "stdio": "Bytes on stdin, stdout and stderr",
    "websocket": "WebSocket",
    "http": "HTTP, and AAP",
}
"""folder -> heading, in the order of the page; other folders follow by name."""

_MARKS = {"allowed": "allowed", "violation": "**violation**", "unspecified": "unspecified"}


def catalogue() -> str:
    """The whole page.

    Raises:
        ScenarioError: one of the bundled scenarios has mistakes.
    """
    folders = by_folder(library.names())
    lines = [*_top(folders)]
    for folder, names in folders.items():
        lines += _section(folder, names)
    return "\n".join(lines).rstrip() + "\n"


def by_folder(names: Iterable[str]) -> dict[str, list[str]]:
    """Sorts names of scenarios by their folder, in the order of the page.

    Args:
        names: such as `demo` and `lists/late-title`.

    Returns:
        Folder (the empty text for those at the top) -> the names in it, sorted.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(name.rpartition("/")[0], []).append(name)
    order = {folder: place for place, folder in enumerate(TITLES)}
    return {folder: found[folder] for folder in sorted(found, key=lambda name: (order.get(name, len(order)), name))}


def title(folder: str) -> str:
    """The heading of a folder."""
    return TITLES.get(folder, folder.capitalize())


def _top(folders: dict[str, list[str]]) -> Iterator[str]:
    yield from (
        "# The catalogue",
        "",
        "<!-- Made by `python -m mockagent.scenario.catalogue`; a test says when it is out of date. -->",
        "",
        "All bundled scenarios. Each plays by its name, over every transport on which its trouble exists:",
        "",
        "```",
        "mockagent acp ordering/update-before-session-reply",
        "mockagent serve http/sse-cut",
        "mockagent scenarios lists/late-title      # its text, to copy from",
        "```",
        "",
        "*Legality* is how the spec sees the agent: **allowed** breaks no rule and is valid by the official schema, a",
        "**violation** breaks one, and where the spec does not say, the behaviour is **unspecified**. Waits are short",
        "enough for tests; `--stretch 20` makes them as long as in the field. [Faults](faults.md) leads from what you",
        "saw to the scenario, and [clients](clients.md) shows how released clients do.",
        "",
        "| folder | scenarios | about |",
        "| --- | --- | --- |",
    )
    for folder, names in folders.items():
        yield f"| [{folder or 'at the top'}](#{_anchor(folder)}) | {len(names)} | {title(folder)} |"
    yield ""


def _anchor(folder: str) -> str:
    return "".join(letter for letter in title(folder).lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _section(folder: str, names: list[str]) -> Iterator[str]:
    yield from (f"## {title(folder)}", "")
    if folder:
        yield from (f"In `{folder}/`.", "")
    yield from (
        "| scenario | what the agent does | legality | a right client | tags |",
        "| --- | --- | --- | --- | --- |",
    )
    for name in names:
        yield _row(name, library.open_bundled(name))
    yield ""


def _row(name: str, scenario: Scenario) -> str:
    cells = (
        f"[{name.rpartition('/')[2]}](../scenarios/{name}.yaml)",
        scenario.summary,
        _MARKS[scenario.legality],
        scenario.right_client or "",
        ", ".join(scenario.tags),
    )
    return "| " + " | ".join(cell(words) for words in cells) + " |"


if __name__ == "__main__":  # python -m mockagent.scenario.catalogue > docs/catalogue.md
    import sys

    sys.stdout.write(catalogue())
