"""Loads scenario files: from text to a checked `Scenario`, or to every mistake with its place.

The parser and the tables are imported only when a file is really read; a bundled scenario comes precompiled from
`library` and needs neither.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mockagent.scenario.model import Scenario
from mockagent.scenario.problems import Problem, ScenarioError

if TYPE_CHECKING:
    from mockagent.scenario.nodes import Node

__all__ = ["Problem", "ScenarioError", "check", "load", "load_text"]


def load(path: str | os.PathLike[str]) -> Scenario:
    """Reads a scenario file.

    Args:
        path: of the file; places in messages show it as it is given.

    Raises:
        ScenarioError: with every mistake of the file and of those it includes.
    """
    return _settle(*_read(os.fspath(path)))


def load_text(text: str | bytes, file: str = "scenario.yaml") -> Scenario:
    """Reads a scenario from its text; relative paths are relative to `file`.

    Raises:
        ScenarioError: with every mistake of the text.
    """
    return _settle(*_read(file, text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text))


def load_fragment(text: str | bytes, file: str) -> Scenario:
    """Reads parts that are added to a scenario which plays already: what they use may have been saved elsewhere, and
    they may do what the specs do not know.

    Raises:
        ScenarioError: with every mistake of the text.
    """
    from mockagent.scenario.include import Reader

    reader = Reader()
    root = reader.root(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, file)
    if root is None:
        return _settle(None, reader.problems)
    return _settle(*_build(root, file, part=True))


def check(path: str | os.PathLike[str]) -> list[Problem]:
    """Every mistake of a scenario file, in the order of the file; empty if it can be played."""
    return _read(os.fspath(path))[1]


def sources(path: str | os.PathLike[str]) -> list[str]:
    """The absolute paths of a scenario file and of all that it includes."""
    from mockagent.scenario.include import Reader

    reader = Reader()
    reader.load(os.fspath(path))
    return reader.files


def _settle(scenario: Scenario | None, problems: list[Problem]) -> Scenario:
    if problems or scenario is None:
        raise ScenarioError(problems)
    return scenario


def _read(file: str, data: bytes | None = None) -> tuple[Scenario | None, list[Problem]]:
    from mockagent.scenario.include import Reader

    reader = Reader()
    root = reader.load(file) if data is None else reader.root(data, file)
    problems = reader.problems
    scenario = None
    if root is not None:
        scenario, found = _build(root, file)
        problems = problems + found
    return scenario, _sorted(problems, file)


class _Everything(set[str]):
    """Names of which nothing is known but that they may be there."""

    def __contains__(self, name: object) -> bool:
        return True


def _build(root: Node, file: str, *, part: bool = False) -> tuple[Scenario | None, list[Problem]]:
    from mockagent.scenario.judge import judge
    from mockagent.scenario.top import LEGALITY, Top
    from mockagent.scenario.types import Build

    said = root.get("legality")
    legality = said.text if said is not None and said.text in LEGALITY else "allowed"
    # an unknown word gets its own complaint, and the values are then not held against it
    b = Build("unspecified" if said is not None and said.text not in LEGALITY else legality)
    if part:
        b.saves = _Everything()
    scenario = Top.build(root, b, "")
    judge(root, b)
    if b.problems or not isinstance(scenario, Scenario):
        return None, b.problems
    if root.get("name") is None:
        from msgspec.structs import replace

        scenario = replace(scenario, name=_stem(file))
    return scenario, []


def _stem(file: str) -> str:
    return os.path.splitext(os.path.basename(file))[0] or "unnamed"


def _sorted(problems: list[Problem], file: str) -> list[Problem]:
    """The file's own problems first, each once, in reading order."""
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda p: (p.place.file != file, p.place.file, p.place.line, p.place.column))
