"""Two times: what timers are ordered by, and what clients see."""

from __future__ import annotations

import pytest

from mockagent.scenario.model import ClockRules
from mockagent.world.clock import SECOND, Clock, iso, moment

START = 1_768_467_600_000_000  # 2026-01-15T09:00:00Z


class Machine:
    """A machine whose clocks are set by hand."""

    def __init__(self) -> None:
        self.monotonic = 100.0
        self.wall = 5000.0

    def clock(self, rules: ClockRules) -> Clock:
        return Clock(rules, monotonic=lambda: self.monotonic, wall=lambda: self.wall)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_wall_clock_runs_by_itself_and_speed_stretches_stage_time(machine: Machine) -> None:
    clock = machine.clock(ClockRules(speed=4))
    machine.monotonic += 2
    machine.wall += 2
    assert clock.stage() == 8 * SECOND
    assert clock.now() == 5002 * SECOND
    assert clock.seconds(8 * SECOND) == 2.0


def test_a_logical_clock_stands_still_until_something_happens(machine: Machine) -> None:
    clock = machine.clock(ClockRules(now=START))
    machine.monotonic += 50
    machine.wall += 50
    assert (clock.stage(), clock.now()) == (0, START)
    clock.activity()
    assert clock.now() == START + 1000
    clock.reached(5 * SECOND)
    assert clock.now() == START + 5 * SECOND
    clock.reached(SECOND)
    assert clock.now() == START + 5 * SECOND


def test_skipping_moves_both_kinds_of_clock(machine: Machine) -> None:
    for rules, before in ((ClockRules(now=START), START), (ClockRules(), 5000 * SECOND)):
        clock = machine.clock(rules)
        clock.skip(60 * SECOND)
        assert clock.stage() == 60 * SECOND
        assert clock.now() == before + 60 * SECOND


def test_speed_zero_takes_no_time(machine: Machine) -> None:
    clock = machine.clock(ClockRules(speed=0))
    assert clock.counted
    assert clock.seconds(3600 * SECOND) == 0
    clock.reached(3600 * SECOND)
    assert clock.stage() == 3600 * SECOND


def test_times_are_shown_in_utc(machine: Machine) -> None:
    clock = machine.clock(ClockRules(now=START))
    assert clock.iso() == "2026-01-15T09:00:00.000Z"
    assert clock.iso(1_500_000) == "2026-01-15T09:00:01.500Z"
    assert clock.http_date(2 * SECOND) == "Thu, 15 Jan 2026 09:00:02 GMT"
    assert iso(-SECOND) == "1969-12-31T23:59:59.000Z"
    assert moment(START).year == 2026
