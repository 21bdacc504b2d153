"""A clock that tests turn by hand, and a stage over it."""

from __future__ import annotations

import math

import pytest

from mockagent.scenario.model import ClockRules
from mockagent.script.stage import Stage
from mockagent.world.clock import Clock


class Hands:
    """Real time, as far as the stage knows; `clock` is the clock over it.

    Attributes:
        now: seconds.
    """

    def __init__(self, rules: ClockRules) -> None:
        self.now = 0.0
        self.clock = Clock(rules, monotonic=lambda: self.now, wall=lambda: self.now)
        self.stage = Stage(self.clock)
        self.heard: list[str] = []

    def say(self, word: str) -> None:
        self.heard.append(word)

    def run(self) -> None:
        """Does what the driver does, with time that passes at once, until there is nothing left to do."""
        while True:
            self.stage.pump()
            if self.stage.fire():
                continue
            at = self.stage.deadline()
            if at == math.inf:
                return
            self.now = max(self.now, at)


@pytest.fixture
def hands() -> Hands:
    """With the wall clock."""
    return Hands(ClockRules())


@pytest.fixture
def frozen() -> Hands:
    """With a logical clock, in which waits take no time."""
    return Hands(ClockRules(now=0, speed=0))


@pytest.fixture
def instant() -> Hands:
    """With the wall clock, in which waits take no time."""
    return Hands(ClockRules(speed=0))
