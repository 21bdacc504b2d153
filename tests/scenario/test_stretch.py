"""Stretching a scenario: every wait, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario import model
from mockagent.scenario.load import load, load_text
from mockagent.scenario.stretch import stretched

GOOD = Path(__file__).parent / "good"
SECOND = 1_000_000

EVERYTHING = """
legality: violation
pace: {first: 1s, rate: 10/s}
sessions:
  auto_title: {after: 1s}
  cursor: {lifetime: 1s}
  replay: {pace: 1s}
  synthetic: {count: 3, span: 1d}
turns:
  - steps:
      - {say: hi, after: 1s, pace: {first: 1s, rate: 10/s}}
      - {wait: {uniform: [1s, 3s]}}
      - {tool: {name: t, takes: {lognormal: {median: 1s, sigma: 0.5}}, input: {after: 1000000, takes: 7}, ask: true},
         then: [{when: {outcome: denied}, steps: [{say: no, after: 1s}]}]}
      - {wait_for: {method: session/cancel, timeout: 1s}}
      - {terminal: {command: ls, kill_after: 1s}, otherwise: [{wait: 1s}]}
      - {repeat: {times: 2, every: 1s, steps: [{wait: 1s}]}}
      - {together: [{wait: 1s}, [{say: a}, {wait: 1s}]]}
      - {update: {sessionUpdate: odd, after: 1000000, every: 5}}
      - {stderr: {text: x, every: 1s}}
      - {stall: {write: 1s, read: forever}}
schedule: [{event: connected, after: 1s, every: 1s, times: 2, steps: [{say: s, after: 1s}]}]
faults:
  - {at: say, delay: 1s}
  - {at: say, hold: {until: 1s}}
  - {at: say, hold: {until: never}}
  - {at: say, split: {parts: 2, pause: 1s}, rate: 100B/s}
  - {at: say, stall: {read: 1s}, stderr: {text: x, every: 1s}}
  - {at: start, child: 1s}
  - {at: say, play_after: [{say: y, after: 1s}], play_before: [{wait: 1s}]}
  - {at: session/list, result: {after: 1000000, delay: 1000000}}
expect: [{request: session/cancel, within: 1s}, {disconnect: {within: 1s}}]
"""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a scenario that holds no other, with its path; names of files and places left out."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in ("place", "file"):
                yield from leaves(getattr(value, name), f"{path}/{name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}/{index}")
    else:
        yield path, value


@pytest.fixture(scope="module", name="everything")
def _everything() -> model.Scenario:
    return load_text(EVERYTHING)


def test_every_wait_is_multiplied_and_every_rate_divided(everything: model.Scenario) -> None:
    before, after = dict(leaves(everything)), dict(leaves(stretched(everything, 2.0)))
    assert before.keys() == after.keys()
    changed = {path for path in before if before[path] != after[path]}
    rates = {path for path in before if path.endswith("/rate") and before[path] is not None}
    assert all(after[path] == before[path] / 2 for path in rates)
    assert all(after[path] == before[path] * 2 for path in changed - rates)
    # What is written as a second, or three, is a wait; the same number inside of somebody's data is not.
    data = {path for path in before if "/input/" in path or "/result/" in path or "/odd" in path}
    data |= {path for path in before if before.get(f"{path.rpartition('/')[0]}/sessionUpdate") == "odd"}
    seconds = {path for path, value in before.items() if type(value) is int and value in (SECOND, 3 * SECOND)}
    assert changed == (seconds - data) | rates
    assert len(changed) > 30


def test_data_of_the_scenario_is_left_alone(everything: model.Scenario) -> None:
    after = stretched(everything, 3.0)
    assert after.turns[0].steps[2].payload.input == {"after": 1_000_000, "takes": 7}
    assert after.turns[0].steps[7].payload == {"sessionUpdate": "odd", "after": 1_000_000, "every": 5}
    assert after.faults[-1].effects["result"] == {"after": 1_000_000, "delay": 1_000_000}
    assert after.sessions.synthetic == everything.sessions.synthetic


def test_the_spread_of_a_long_tail_stays(everything: model.Scenario) -> None:
    takes = stretched(everything, 4.0).turns[0].steps[2].payload.takes
    assert takes == model.Lognormal(4 * SECOND, 0.5)


def test_conditions_stay_the_same_objects(everything: model.Scenario) -> None:
    """What `nth` and `times` have counted belongs to the condition's identity."""
    before, after = everything.turns[0].steps[2].then, stretched(everything, 2.0).turns[0].steps[2].then
    assert before is not None
    assert after is not None
    assert after[0].when is before[0].when


def test_one_is_the_scenario_itself(everything: model.Scenario) -> None:
    assert stretched(everything, 1.0) is everything


def test_nothing_leaves_no_waits(everything: model.Scenario) -> None:
    none = stretched(everything, 0.0)
    assert none.pace == model.Pace(first=0, rate=None)
    assert none.turns[0].steps[0].after == 0
    assert none.faults[0].effects == {"delay": 0}


@pytest.mark.parametrize("factor", [-1.0, math.inf, math.nan])
def test_a_factor_is_a_finite_number_that_is_not_negative(everything: model.Scenario, factor: float) -> None:
    with pytest.raises(ValueError, match="multiplied"):
        stretched(everything, factor)


@given(a=st.floats(0.01, 100), b=st.floats(0.01, 100))
def test_two_factors_are_their_product_up_to_rounding(everything: model.Scenario, a: float, b: float) -> None:
    twice = dict(leaves(stretched(stretched(everything, a), b)))
    once = dict(leaves(stretched(everything, a * b)))
    assert twice.keys() == once.keys()
    for path, value in once.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert twice[path] == pytest.approx(value, rel=1e-9, abs=b / 2 + 1.5), path
        else:
            assert twice[path] == value, path


@pytest.mark.parametrize("name", ["every-verb", "every-fault", "design"])
def test_a_stretched_scenario_can_be_stretched_back(name: str) -> None:
    scenario = load(str(GOOD / f"{name}.yaml"))
    back = dict(leaves(stretched(stretched(scenario, 8.0), 0.125)))
    assert back == dict(leaves(scenario))
