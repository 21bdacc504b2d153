"""What is wrong with a scenario file: single problems with their places, and the exception that carries all of them.

Light on purpose, so that the command line can catch a `ScenarioError` without importing the loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mockagent.scenario.model import NOWHERE, Place, Scenario


class Problem(NamedTuple):
    """One mistake: where it stands, what is wrong, and what would be right."""

    place: Place
    message: str

    def __str__(self) -> str:
        if self.place.line:
            return f"{self.place}: {self.message}"
        return f"{self.place.file}: {self.message}" if self.place.file else self.message


class ScenarioError(Exception):
    """A scenario cannot be played.

    Args:
        problems: every mistake that was found, in the order of the file; never empty.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def single(cls, message: str, place: Place = NOWHERE) -> ScenarioError:
        """An error with one problem."""
        return cls([Problem(place, message)])


def check_names(scenarios: Sequence[Scenario]) -> None:
    """Sees to it that scenarios can be told apart where they are served together: by their names, as ACP paths do.

    Raises:
        ScenarioError: some have one name.
    """
    taken: dict[str, Scenario] = {}
    problems = []
    for scenario in scenarios:
        name, other = scenario.name, taken.get(scenario.name)
        if other is not None:
            too = "it is given twice" if other.file == scenario.file else f"{other.file} has the same"
            words = f"has the name `{name}`, and {too}: both would be at /acp/{name}"
            mend = f"give one of them another name, such as `name: {name}-2`"
            problems.append(Problem(Place(scenario.file), f"{words}; {mend}"))
        taken[name] = scenario
    if problems:
        raise ScenarioError(problems)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Words to put behind a message about an unknown name: the nearest known one, or nothing."""
    import difflib

    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean `{names[near[0]]}`?" if near else ""


def listed(names: Iterable[str]) -> str:
    """Names as one enumeration: `a`, `b` or `c`."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
