"""Turns what a test writes (values, JSON, YAML) into parts of the model, with the checks and words of the loader.

So a fault armed from a test is the same thing, with the same mistakes found, as one in a file. Nothing here plays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mockagent.scenario import model
from mockagent.scenario.problems import Problem, ScenarioError

GIVEN = "scenario"
"""Stands for the file in messages about a scenario that came as text or as a mapping."""


def fault_of(values: Mapping[str, Any], place: model.Place | None = None) -> model.Fault:
    """A fault from what stands in an entry of `faults`.

    Args:
        values: `at`, `when`, `save` and effects.
        place: names it in the journal.

    Raises:
        ValueError: it has mistakes; the text names all of them.
    """
    made = _fragment({"faults": [_plain(values, "fault")]}, "faults/0", "fault").faults[0]
    return made if place is None else _placed(made, place)


def _placed(fault: model.Fault, place: model.Place) -> model.Fault:
    from msgspec.structs import replace

    return replace(fault, place=place)


def steps_of(steps: Sequence[Any]) -> tuple[model.Step, ...]:
    """Steps from what stands in a list of steps.

    Raises:
        ValueError: they have mistakes; the text names all of them.
    """
    if not isinstance(steps, list | tuple):
        raise ValueError(f"push: steps: this has to be a list of steps, not {type(steps).__name__}")
    return _fragment({"turns": [{"steps": _plain(list(steps), "push")}]}, "turns/0/steps", "push: steps").turns[0].steps


def update_of(values: Mapping[str, Any]) -> tuple[model.Step, ...]:
    """The steps of a push: `title` and `meta` make an update of the session, `steps` follow.

    Raises:
        ValueError: there is nothing to push, or it has mistakes.
    """
    unknown = sorted(set(values) - {"title", "meta", "steps"})
    if unknown:
        raise ValueError(f"push: unknown {', '.join(unknown)}; there are title, meta and steps")
    info = {key: values[key] for key in ("title", "meta") if key in values}
    steps = list(values.get("steps", ())) if isinstance(values.get("steps", ()), list | tuple) else values["steps"]
    if not info and not steps:
        raise ValueError("push: there is nothing to push; give a title, meta, or steps")
    return (*(steps_of([{"info": info}]) if info else ()), *steps_of(steps))


def scenario_of(given: str | os.PathLike[str] | Mapping[str, Any] | model.Scenario) -> model.Scenario:
    """A scenario from whatever names it or is it.

    Args:
        given: the name of a bundled scenario, the path of a file, YAML text (it has a line break, or begins with a
            brace), the same as a mapping, or a scenario.

    Raises:
        TypeError: it is nothing of these.
        ScenarioError: there is no such scenario, or it has mistakes.
    """
    if isinstance(given, model.Scenario):
        return given
    if isinstance(given, Mapping):
        return scenario_of_text(json.dumps(_plain(given, "scenario")))
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"a scenario is a name, a path, YAML text or a mapping, not {given!r}")
    text = os.fspath(given)
    if isinstance(given, str) and ("\n" in text or text.lstrip().startswith("{")):
        return scenario_of_text(text)
    from mockagent.scenario.library import open_scenario

    return open_scenario(text)


def scenario_of_text(text: str | bytes, *, includes: bool = True) -> model.Scenario:
    """A scenario from its YAML (or JSON) text.

    Args:
        text: of the file.
        includes: whether it may include files, which lie relative to the working folder.

    Raises:
        ScenarioError: it has mistakes.
    """
    from mockagent.scenario.load import load_text

    if not includes:
        _no_includes(text.encode() if isinstance(text, str) else text)
    return load_text(text, GIVEN)


def _no_includes(data: bytes) -> None:
    """Whoever can only send text is not shown files through the loader's messages."""
    from mockagent.scenario.nodes import read

    root, _ = read(data, GIVEN)
    asked = root.get("include") if root is not None and root.kind == "map" else None
    if asked is not None:
        raise ScenarioError([Problem(asked.place("include"), "a scenario that is sent cannot include files")])


def _fragment(values: Any, inside: str, name: str) -> model.Scenario:
    from mockagent.scenario.load import load_fragment

    text = json.dumps({"legality": "unspecified", **values}, ensure_ascii=False)
    try:
        return load_fragment(text, name)
    except ScenarioError as error:
        raise ValueError("\n".join(_told(problem, inside, name) for problem in error.problems)) from None


def _told(problem: Problem, inside: str, name: str) -> str:
    """A mistake by its path: line and column of a made-up file help nobody."""
    path = problem.place.path
    path = path.removeprefix(inside).lstrip("/")
    return f"{name}: {path}: {problem.message}" if path else f"{name}: {problem.message}"


def _plain(value: Any, name: str) -> Any:
    """Checks that a value can be written as JSON, and as such in a file."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: only what JSON can hold can be given here: {error}") from None
