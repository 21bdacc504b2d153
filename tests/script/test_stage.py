"""The order of things on the stage: by due time, then by birth, whatever the machine and the reader do."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario.model import ClockRules
from mockagent.script.stage import Stage
from mockagent.world.clock import SECOND, Clock

MS = 1000


def test_timers_fire_by_due_time_then_by_birth(hands: Any) -> None:
    for word, wait in (("c", 30), ("a", 10), ("b", 20), ("b2", 20), ("a2", 10)):
        hands.stage.after(wait * MS, partial(hands.say, word))
    hands.run()
    assert hands.heard == ["a", "a2", "b", "b2", "c"]


def test_a_timer_is_not_early(hands: Any) -> None:
    hands.stage.after(30 * MS, partial(hands.say, "late"))
    assert hands.stage.deadline() == pytest.approx(0.03)
    hands.now = 0.029
    assert not hands.stage.fire()
    hands.now = 0.031
    assert hands.stage.fire()
    assert hands.heard == ["late"]


def test_speed_divides_waits_and_not_time_outs() -> None:
    clock = Clock(ClockRules(speed=10), monotonic=lambda: 0.0)
    stage = Stage(clock)
    stage.after(SECOND, lambda: None)
    assert stage.deadline() == pytest.approx(0.1)
    other = Stage(Clock(ClockRules(speed=10), monotonic=lambda: 0.0))
    other.timeout(1.0, lambda: None)
    assert other.deadline() == pytest.approx(1.0)


def test_what_follows_a_late_timer_is_measured_from_when_it_was_due(hands: Any) -> None:
    """Two waits of 10 ms come before one of 20 ms born later, however late the first one fires."""

    def first() -> None:
        hands.say("first")
        hands.stage.after(10 * MS, partial(hands.say, "second"))

    hands.stage.after(10 * MS, first)
    hands.stage.after(20 * MS + 1, partial(hands.say, "other"))
    hands.now = 5.0  # the machine was busy
    hands.run()
    assert hands.heard == ["first", "second", "other"]


def test_all_calls_of_one_chain_see_the_same_moment(hands: Any) -> None:
    def both() -> None:
        hands.stage.soon(lambda: hands.stage.after(20 * MS, partial(hands.say, "b")))
        hands.now += 0.001  # time that only the machine takes
        hands.stage.after(20 * MS, partial(hands.say, "a"))

    hands.stage.soon(both)
    hands.run()
    assert hands.heard == ["a", "b"]


def test_a_cancelled_timer_is_silent_and_no_deadline(hands: Any) -> None:
    timer = hands.stage.after(10 * MS, partial(hands.say, "never"))
    timer.cancel()
    timer.cancel()
    assert hands.stage.deadline() == math.inf
    hands.run()
    assert hands.heard == []


def test_at_speed_zero_timers_wait_for_nothing_but_keep_their_order(instant: Any) -> None:
    for word, wait in (("hour", 3600 * SECOND), ("second", SECOND)):
        instant.stage.after(wait, partial(instant.say, word))
    assert instant.stage.deadline() == -math.inf
    instant.run()
    assert instant.heard == ["second", "hour"]
    assert instant.now == 0.0


def test_at_speed_zero_an_endless_repetition_moves_only_by_advance(instant: Any) -> None:
    def again() -> None:
        instant.say("round")
        instant.stage.after(SECOND, again, endless=True)

    instant.stage.after(SECOND, again, endless=True)
    instant.run()
    assert instant.heard == []
    assert instant.stage.deadline() == math.inf
    instant.stage.advance(3.5)
    assert instant.heard == ["round"] * 3
    instant.stage.advance(0.5)
    assert instant.heard == ["round"] * 4


def test_advance_fires_in_order_what_becomes_due_on_the_way(frozen: Any) -> None:
    """A repetition, and a wait that one of its rounds starts, meet in due order."""
    rounds = []

    def again() -> None:
        rounds.append(frozen.clock.now())
        frozen.say("round")
        frozen.stage.after(int(0.4 * SECOND), partial(frozen.say, "inner"))
        frozen.stage.after(SECOND, again, endless=True)

    frozen.stage.after(SECOND, again, endless=True)
    frozen.stage.advance(2.2)
    assert frozen.heard == ["round", "inner", "round"]
    assert rounds == [SECOND, 2 * SECOND]
    assert frozen.clock.now() == int(2.2 * SECOND)


def test_advance_brings_real_deadlines_nearer(hands: Any) -> None:
    hands.stage.after(10 * SECOND, partial(hands.say, "ten"))
    hands.stage.advance(4)
    assert hands.stage.deadline() == pytest.approx(6.0)
    hands.stage.advance(6)
    assert hands.heard == ["ten"]


def test_hurried_plays_waits_in_order_and_lets_repetitions_be(hands: Any) -> None:
    def chain(word: str, left: int) -> None:
        hands.say(word)
        if left:
            hands.stage.after(10 * MS, partial(chain, word, left - 1))

    def again() -> None:
        hands.say("round")
        hands.stage.after(MS, again, endless=True)

    hands.stage.after(MS, again, endless=True)
    hands.stage.after(10 * MS, partial(chain, "a", 2))
    hands.stage.after(25 * MS, partial(hands.say, "b"))
    hands.stage.hurried = True
    hands.run()
    assert hands.heard == ["a", "a", "b", "a"]
    assert hands.now == 0.0


def test_a_time_out_needs_real_time_even_when_hurried(instant: Any) -> None:
    instant.stage.hurried = True
    instant.stage.timeout(2.0, partial(instant.say, "out"))
    assert not instant.stage.fire()
    instant.now = 2.0
    assert instant.stage.fire()
    assert instant.heard == ["out"]


def test_logical_time_moves_to_what_fires_and_by_activity_alone(frozen: Any) -> None:
    frozen.now = 77.0
    assert frozen.clock.now() == 0
    frozen.stage.after(5 * SECOND, lambda: None)
    frozen.run()
    assert frozen.clock.now() == 5 * SECOND
    frozen.clock.activity()
    assert frozen.clock.now() == 5 * SECOND + 1000


# --- room


class Output:
    """An output with so much room."""

    def __init__(self) -> None:
        self.room = 0

    def look(self) -> int:
        return self.room


def test_who_ran_out_of_room_first_goes_on_first(hands: Any) -> None:
    out = Output()
    for word in ("a", "b"):
        hands.stage.with_room(out.look, partial(hands.say, word))
    hands.stage.pump()
    assert hands.heard == []
    out.room = 1
    hands.stage.pump()
    assert hands.heard == ["a", "b"]


def test_time_stands_still_for_an_output_without_room_and_for_no_other(hands: Any) -> None:
    full, free = Output(), Output()
    free.room = 1
    hands.stage.after(10 * MS, partial(hands.say, "full"), room=full.look)
    hands.stage.after(20 * MS, partial(hands.say, "free"), room=free.look)
    hands.run()
    assert hands.heard == ["free"]
    assert hands.stage.deadline() == math.inf
    full.room = 1
    hands.run()
    assert hands.heard == ["free", "full"]


def test_a_slow_reader_does_not_change_the_order(instant: Any) -> None:
    """Who goes on after waiting for room goes on at the time at which it ran out of it."""
    out = Output()

    def resumed() -> None:
        instant.say("a")
        instant.stage.after(10 * MS, partial(instant.say, "a+10"), room=out.look)

    instant.stage.with_room(out.look, resumed)
    instant.stage.after(20 * MS, partial(instant.say, "b+20"), room=out.look)
    instant.run()
    out.room = 1
    instant.run()
    assert instant.heard == ["a", "a+10", "b+20"]


def test_without_room_anywhere_there_is_nothing_to_be_busy_with(instant: Any) -> None:
    out = Output()
    instant.stage.after(MS, lambda: None, room=out.look)
    instant.stage.with_room(out.look, lambda: None)
    instant.stage.pump()
    assert not instant.stage.moving
    assert not instant.stage.fire()


def test_settling_comes_when_nothing_is_ready_and_once_for_a_key(hands: Any) -> None:
    hands.stage.settled("key", partial(hands.say, "settled"))
    hands.stage.settled("key", partial(hands.say, "settled again"))
    hands.stage.soon(lambda: hands.stage.soon(partial(hands.say, "ready")))
    hands.stage.pump()
    assert hands.heard == ["ready", "settled again"]


@given(
    waits=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5), min_size=1, max_size=5),
    delays=st.lists(st.floats(0, 0.02), min_size=1, max_size=8),
    logical=st.booleans(),
)
def test_the_order_is_the_same_on_every_clock_and_machine(
    waits: list[list[int]], delays: list[float], logical: bool
) -> None:
    """Chains of waits fire in one order: on an ideal machine, on a slow one, and with waits that take no time."""

    def play(rules: ClockRules, late: list[float]) -> list[tuple[int, int]]:
        now = [0.0]
        stage = Stage(Clock(rules, monotonic=lambda: now[0], wall=lambda: now[0]))
        fired: list[tuple[int, int]] = []

        def chain(name: int, left: list[int]) -> None:
            fired.append((name, len(left)))
            if left:
                stage.after(left[0] * MS, partial(chain, name, left[1:]))

        for name, chosen in enumerate(waits):
            stage.soon(partial(chain, name, chosen))
        turn = 0
        while True:
            stage.pump()
            if stage.fire():
                continue
            at = stage.deadline()
            if at == math.inf:
                return fired
            now[0] = max(now[0], at) + late[turn % len(late)]
            turn += 1

    ideal = play(ClockRules(now=0, speed=0), [0.0])
    assert play(ClockRules(now=0 if logical else None), delays) == ideal
    assert play(ClockRules(speed=0), delays) == ideal


def test_whoever_plays_on_and_on_takes_a_breath_and_no_time_passes_meanwhile(instant: Any) -> None:
    stage = instant.stage

    def play(steps: int) -> None:
        while steps:
            steps -= 1
            if stage.tired():
                stage.breathe(partial(play, steps))
                instant.say("breath")
                return
        instant.say("end")

    stage.after(MS, partial(instant.say, "later"))
    stage.soon(partial(play, 5000))
    stage.pump()
    assert instant.heard == ["breath"]
    assert stage.moving
    assert not stage.fire()
    instant.run()
    assert instant.heard == ["breath", "breath", "end", "later"]
