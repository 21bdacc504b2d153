from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario.model import Count, When
from mockagent.script.match import Counters, counts, glob, matches, same
from mockagent.script.placeholders import Unset


def rng(purpose: str) -> Random:
    return Random(purpose)


def holds(when: When, **facts: Any) -> bool:
    return matches(when, facts, Counters(), rng) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a*", "a/b/c", True),
        ("*", "", True),
        ("a", "a", True),
        ("a", "ab", False),
        ("a*a", "a", False),
        ("*b*c", "abcbc", True),
        ("*[x]?*", "say [x]? now", True),
        ("a*b*c", "acb", False),
        ("POST /sessions/*/turns", "POST /sessions/a/b/turns", True),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_does(pattern: str, text: str, expected: bool) -> None:
    assert glob(pattern, text) is expected


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=4), st.data())
def test_a_text_made_from_a_pattern_matches_it(pieces: list[str], data: st.DataObject) -> None:
    text = pieces[0] + "".join(data.draw(st.text(alphabet="abc/\n", max_size=3)) + piece for piece in pieces[1:])
    assert glob("*".join(pieces), text)


@pytest.mark.parametrize(
    ("wanted", "value", "expected"),
    [
        (1, True, False),
        (True, True, True),
        (1, 1.0, True),
        ("1", 1, False),
        ("*", 1, True),
        ("*", {"a": 1}, True),
        ("a*", "abc", True),
        ({"a": "x*"}, {"a": "xy"}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, "*"], [1, "x"], True),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_a_wanted_value_is_compared_as_json(wanted: Any, value: Any, expected: bool) -> None:
    assert same(wanted, value) is expected


@pytest.mark.parametrize(
    ("when", "facts", "expected"),
    [
        (When(prompt="*WEATHER*"), {"prompt": "the Weather\ntoday"}, True),
        (When(prompt="*"), {}, False),
        (When(prompt="/^wea(.*)/"), {"prompt": "weather"}, True),
        (When(prompt="/^wea/"), {"prompt": "the weather"}, False),
        (When(text="*Passed*"), {"text": "passed"}, False),
        (When(text="/(?i)passed/"), {"text": "3 Passed"}, True),
        (When(command="plan"), {"command": "plan"}, True),
        (When(command="/plan"), {"command": "plan"}, True),
        (When(turn=Count(low=2)), {"turn": 3}, True),
        (When(turn=Count(numbers=frozenset({2}))), {"turn": 3}, False),
        (When(session="sess_*"), {"session": "sess_1"}, True),
        (When(session="*"), {}, False),
        (When(mode="code"), {"mode": "ask"}, False),
        (When(option={"model": "f*", "brave": True}), {"option": {"model": "fast", "brave": True}}, True),
        (When(option={"model": "fast"}), {"option": {}}, False),
        (When(params={"/cwd": "/home/*"}), {"params": {"cwd": "/home/dev"}}, True),
        (When(params={"/cursor": "*"}), {"params": {}}, False),
        (When(params={"/cursor": "*"}), {"params": msgspec.UNSET}, False),
        (When(params={"/cursor": None}), {"params": {}}, True),
        (When(params={"/cursor": None}), {"params": {"cursor": "x"}}, False),
        (When(result={"": None}), {"result": None}, True),
        (When(origin=("replay", "turn")), {"origin": "turn"}, True),
        (When(origin=("replay",)), {"origin": "turn"}, False),
        (When(running=False), {}, True),
        (When(running=True), {"running": False}, False),
        (When(last_stop="cancelled"), {"last_stop": "cancelled"}, True),
        (When(tool_result="ask_user"), {"tool_result": "other"}, False),
        (When(protocol="aap", transport="http"), {"protocol": "aap", "transport": "http"}, True),
        (When(outcome="allow_*"), {"outcome": ("granted", "allow_once")}, True),
        (When(outcome="granted"), {"outcome": "granted"}, True),
        (When(outcome="denied"), {"outcome": ("granted",)}, False),
        (When(mode="a", prompt="*x*"), {"mode": "a", "prompt": "y"}, False),
        (When(), {}, True),
    ],
)
def test_each_key_is_held_against_its_fact(when: When, facts: dict[str, Any], expected: bool) -> None:
    assert holds(when, **facts) is expected


def test_the_groups_of_a_regex_are_kept_by_number_and_name() -> None:
    when = When(prompt=r"/add (?P<what>\w+)( to \w+)?/")
    found = matches(when, {"prompt": "please add milk"}, Counters(), rng)
    assert found is not None
    assert found.groups == {"0": "add milk", "1": "milk", "what": "milk", "2": None}


def fires(when: When, count: int, **facts: Any) -> list[int]:
    counters = Counters()
    return [number for number in range(1, count + 1) if matches(when, facts, counters, rng)]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (When(nth=Count(numbers=frozenset({2}))), [2]),
        (When(nth=Count(numbers=frozenset({2, 4}))), [2, 4]),
        (When(nth=Count(low=3)), [3, 4, 5, 6]),
        (When(nth=Count(low=2, high=3)), [2, 3]),
        (When(every=3), [3, 6]),
        (When(times=2), [1, 2]),
        (When(every=2, times=2), [2, 4]),
        (When(nth=Count(low=3), times=1), [3]),
    ],
)
def test_nth_every_and_times_count(when: When, expected: list[int]) -> None:
    assert fires(when, 6) == expected


def test_only_what_passes_all_other_keys_is_counted() -> None:
    when, counters = When(mode="a", nth=Count(numbers=frozenset({2}))), Counters()
    seen = [matches(when, {"mode": mode}, counters, rng) is not None for mode in "abbaab"]
    assert seen == [False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("per", "expected"),
    [(None, [1, 1, 0, 1]), ("session", [1, 1, 0, 1]), ("connection", [1, 0, 1, 0]), ("process", [1, 0, 0, 0])],
)
def test_counts_are_kept_per_scope(per: Any, expected: list[int]) -> None:
    when, counters = When(times=1, per=per), Counters()
    places = [("s1", "c1"), ("s2", "c1"), ("s1", "c2"), (None, "c1")]
    seen = [
        int(matches(when, {"session": session, "connection": peer}, counters, rng) is not None)
        for session, peer in places
    ]
    assert seen == expected


def test_equal_conditions_are_counted_apart() -> None:
    counters = Counters()
    one, other = When(times=1), When(times=1)
    assert [bool(matches(when, {}, counters, rng)) for when in (one, other, one)] == [True, True, False]


def test_a_forgotten_session_is_counted_afresh() -> None:
    when, counters = When(times=1), Counters()
    assert matches(when, {"session": "s1"}, counters, rng)
    assert not matches(when, {"session": "s1"}, counters, rng)
    counters.forget(session="s1")
    assert matches(when, {"session": "s1"}, counters, rng)
    counters.drop(when)
    assert len(counters) == 0


def test_a_chance_is_drawn_only_where_all_else_holds_and_what_fails_it_is_not_counted() -> None:
    draws: list[str] = []
    dice = Random(3)

    def drawn(purpose: str) -> Random:
        draws.append(purpose)
        return dice

    when, counters = When(mode="a", chance=0.5, times=1000), Counters()
    held = sum(matches(when, {"mode": mode}, counters, drawn) is not None for mode in "ab" * 100)
    assert len(draws) == 100
    assert 30 < held < 70
    assert counters.tally(when, "process").seen == held


def test_placeholders_are_filled_and_an_unset_one_makes_the_condition_false() -> None:
    def fill(text: str) -> str:
        if text != "${saved.name}":
            raise Unset("saved.other")
        return "value"

    missing: list[Unset] = []
    facts = {"params": {"a": "value"}, "fill": fill}
    assert matches(When(params={"/a": "${saved.name}"}), facts, Counters(), rng)
    when = When(params={"/a": "${saved.other}"}, times=1)
    counters = Counters()
    assert matches(when, facts, counters, rng, unset=missing.append) is None
    assert [each.name for each in missing] == ["saved.other"]
    assert len(counters) == 0


@given(
    st.frozensets(st.integers(1, 9)), st.none() | st.integers(1, 9), st.none() | st.integers(1, 9), st.integers(1, 9)
)
def test_a_count_holds_numbers_and_a_range(
    numbers: frozenset[int], low: int | None, high: int | None, number: int
) -> None:
    in_range = (low is not None or high is not None) and (low or 0) <= number <= (high or 9)
    assert counts(Count(numbers=numbers, low=low, high=high), number) is (number in numbers or in_range)
