"""What the demo's client will do with a scenario, worked out beforehand: its prompts, and how long it is patient.

Reads the scenario as a user would read its file; nothing is played here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from mockagent.scenario import model
from mockagent.script.match import Counters, is_regex, matches
from mockagent.world.clock import SECOND

HELLO = "Hello"

MOST = 3
"""Prompts at most."""

_OWN: dict[str, tuple[str, ...]] = {"demo": ("Make the greeting friendlier, please.",)}
"""Prompts of scenarios that tell a story."""


# --- prompts


def prompts(scenario: model.Scenario) -> list[str]:
    """What to say, so that as many different turns answer as three prompts can reach; never nothing."""
    if scenario.name in _OWN:
        return list(_OWN[scenario.name])
    candidates = [HELLO, *(text for turn in scenario.turns for text in _candidates(turn.when))]
    said: list[str] = []
    played: set[int] = set()
    last_stop: str | None = None
    while len(said) < min(MOST, len(scenario.turns)):
        for text in candidates:
            index = _answering(scenario, text, len(said) + 1, last_stop)
            if index is not None and index not in played:
                break
        else:
            break
        said.append(text)
        played.add(index)
        last_stop = _stop_of(scenario.turns[index])
    return said or [HELLO]


def _answering(scenario: model.Scenario, text: str, number: int, last_stop: str | None) -> int | None:
    """Which turn would answer, as far as that can be told beforehand."""
    facts: dict[str, Any] = {
        "prompt": text, "turn": number, "last_stop": last_stop, "protocol": "acp", "transport": "stdio",
        "origin": "turn", "running": True,
    }  # fmt: skip
    if text.startswith("/"):
        facts["command"] = text[1:].partition(" ")[0]
    for index, turn in enumerate(scenario.turns):
        if turn.when is None or matches(turn.when, facts, Counters(), Random) is not None:
            return index
    return None


def _candidates(when: model.When | None) -> Iterator[str]:
    """Texts that may fit a condition; the caller tries them."""
    if when is None:
        return
    if when.command is not None:
        yield "/" + when.command.removeprefix("/").replace("*", "")
    if when.prompt is not None:
        bare = _literal(when.prompt) if is_regex(when.prompt) else when.prompt
        for filler in ("", "this", "1"):
            text = bare.replace("*", filler).strip()
            if text:
                yield text


def _literal(regex: str) -> str:
    """A glob that a simple regex may have been meant as."""
    text = regex[1:-1].strip("^$").removeprefix("(?i)")
    for mark in (r"\d+", r"\w+", r"\S+", ".*", ".+", ".*?", ".+?"):
        text = text.replace(mark, "*")
    return text.replace("(*)", "*").replace("\\b", "").replace("\\", "").split("|")[0].strip("()")


def _stop_of(turn: model.Turn) -> str:
    for step in turn.steps:
        if step.verb == "stop" and isinstance(step.payload, str):
            return step.payload
        if step.verb == "fail":
            return "error"
    return "end_turn"


# --- waits


def longest_wait(scenario: model.Scenario) -> float:
    """The longest single wait that the scenario may make before something happens, in logical seconds."""
    waits = [0.0]
    for turn in scenario.turns:
        waits += _waits(turn.steps)
    for entry in scenario.schedule:
        waits += _waits(entry.steps)
    for fault in scenario.faults:
        for effect in ("delay", "hold"):
            value = fault.effects.get(effect)
            waits.append(_seconds(value.get("until") if isinstance(value, dict) else value))
    return max(waits)


def aftermath(scenario: model.Scenario) -> float:
    """How long after the reply something may still happen, in logical seconds; 0 if nothing will."""
    ends = [0.0]
    for turn in scenario.turns:
        ends += [sum(_waits(tail)) for tail in _tails(turn.steps)]
    for entry in scenario.schedule:
        rounds = min(entry.times or 3, 3) if entry.every is not None else 1
        ends.append(_seconds(entry.after) + _seconds(entry.every) * (rounds - 1) + sum(_waits(entry.steps)))
    if scenario.sessions.auto_title is not None:
        ends.append(_seconds(scenario.sessions.auto_title.after))
    return max(ends)


def _waits(steps: Sequence[model.Step]) -> Iterator[float]:
    """Every wait in steps, those inside of other steps too."""
    for step in steps:
        yield _seconds(step.after)
        if step.verb == "wait":
            yield _seconds(step.payload)
        if isinstance(step.payload, model.Tool):
            yield _seconds(step.payload.takes)
        if isinstance(step.payload, model.WaitFor):
            yield _seconds(step.payload.timeout)
        if isinstance(step.payload, model.Repeat):
            yield _seconds(step.payload.every)
        for inner in _inside(step):
            yield from _waits(inner)


def _tails(steps: Sequence[model.Step]) -> Iterator[Sequence[model.Step]]:
    """The steps behind each `stop`."""
    for index, step in enumerate(steps):
        if step.verb == "stop":
            yield steps[index + 1 :]
            return
        for inner in _inside(step):
            yield from _tails(inner)


def _inside(step: model.Step) -> Iterator[Sequence[model.Step]]:
    """The lists of steps that a step holds."""
    if isinstance(step.payload, model.Repeat):
        yield step.payload.steps
    if isinstance(step.payload, model.Together):
        yield from step.payload.branches
    yield from (branch.steps for branch in step.then or ())
    if step.otherwise is not None:
        yield step.otherwise


def _seconds(span: Any) -> float:
    """A span in seconds, the long end of one that is drawn; 0 for what is none."""
    if isinstance(span, model.Uniform):
        span = span.high
    elif isinstance(span, model.Lognormal):
        span = span.median * math.exp(2 * span.sigma)
    return span / SECOND if isinstance(span, int | float) and not isinstance(span, bool) else 0.0
