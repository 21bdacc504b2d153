from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from mockagent.faults.interface import Drop, Life, Pass
from mockagent.message import NO_ID
from mockagent.net.channel import Cut
from mockagent.scenario.model import Count, When

MakeFault = Callable[..., Any]


def test_nothing_happens_at_a_point_that_no_fault_names(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("eof", exit={"code": 1}), fault("*", disconnect="close"))
    assert engine.lifecycle("start", None) is None


@pytest.mark.parametrize(
    ("effects", "life"),
    [
        ({"exit": {"code": 0}}, Life(exit=0)),
        ({"stderr": "bye", "exit": {"signal": 9}}, Life(stderr="bye", exit=-9)),
        ({"disconnect": {"code": 1012, "reason": ""}}, Life(cut=Cut("close", 1012))),
        ({"stall": {"write": "forever", "read": 0}}, Life(stall_write=math.inf, stall_read=0.0)),
        ({"ignore": ("connected",)}, Life(ignore=True)),
    ],
)
def test_a_fault_acts_at_its_point(host: Any, fault: MakeFault, effects: dict[str, Any], life: Life) -> None:
    assert host.engine(fault("connected", **effects)).lifecycle("connected", host.peer) == life
    assert host.reports[0][0] == "connected"
    assert host.reports[0][2] == "fired"


def test_several_faults_at_one_point_are_one_life(host: Any, fault: MakeFault) -> None:
    engine = host.engine(
        fault("start", stderr="one\n", exit={"code": 0}), fault("start", stderr="two\n", stall={"read": 1_000_000})
    )
    assert engine.lifecycle("start", None) == Life(stderr="one\ntwo\n", exit=0, stall_read=1.0)


def test_conditions_hold_at_points_too(host: Any, fault: MakeFault) -> None:
    host.sessions["s1"] = {"turn": 3}
    when = When(turn=Count(numbers=frozenset({3})), transport="ws")
    engine = host.engine(fault("turn_ended", when, disconnect="reset"))
    assert engine.lifecycle("turn_ended", host.peer, "s1") is None
    assert engine.lifecycle("turn_ended", host.ws, "s1") == Life(cut=Cut("reset"))


def test_a_point_is_ignored_when_it_comes_as_often_as_the_fault_holds(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("sigterm", When(times=1), ignore=("sigterm",)))
    assert engine.lifecycle("sigterm", None) == Life(ignore=True)
    assert engine.lifecycle("sigterm", None) is None


def test_what_is_ignored_from_the_start_on_is_ignored_always(host: Any, fault: MakeFault) -> None:
    rule = fault("start", ignore=("eof", "sigterm"))
    engine = host.engine(rule)
    assert engine.lifecycle("eof", host.peer) is None
    assert engine.lifecycle("start", None) is None
    for point in ("eof", "sigterm", "eof"):
        assert engine.lifecycle(point, host.peer) == Life(ignore=True)
    engine.disarm(rule)
    assert engine.lifecycle("eof", host.peer) is None


def test_pings_are_ignored_on_the_connection_that_a_fault_fired_on(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("connected", When(transport="ws"), ignore=("ping",)))
    engine.lifecycle("connected", host.ws)
    engine.lifecycle("connected", host.peer)
    assert engine.lifecycle("ping", host.ws) == Life(ignore=True)
    assert engine.lifecycle("ping", host.peer) is None
    engine.lifecycle("closed", host.ws)
    assert engine.lifecycle("ping", host.ws) is None


def test_a_cancel_can_be_ignored_itself_or_from_its_turn_on(host: Any, fault: MakeFault) -> None:
    def cancel(session: str) -> Any:
        return host.request("session/cancel", NO_ID, neutral="cancel", session=session)

    engine = host.engine(fault("cancel", When(times=1), ignore=("cancel",)))
    assert list(engine.arriving(cancel("s1"))) == [Drop()]
    assert list(engine.arriving(second := cancel("s1"))) == [Pass(second)]
    engine = host.engine(fault("turn", ignore=("cancel",)))
    prompt = host.request("session/prompt", session="s1", neutral="turn")
    assert list(engine.arriving(prompt)) == [Pass(prompt)]
    assert list(engine.arriving(cancel("s1"))) == [Drop()]
    assert list(engine.arriving(other := cancel("s2"))) == [Pass(other)]


@pytest.mark.parametrize(
    "effects",
    [
        {"copies": 2},
        {"edit": ({"set": "/a", "to": 1},)},
        {"truncate": 1},
        {"newline": "cr"},
        {"error": "busy"},
        {"delay": 1},
    ],
)
def test_an_effect_that_needs_a_message_is_skipped_at_a_point(
    host: Any, fault: MakeFault, effects: dict[str, Any]
) -> None:
    assert host.engine(fault("start", exit={"code": 1}, **effects)).lifecycle("start", None) is None
    assert host.reports[0][2].startswith("skipped: ")
