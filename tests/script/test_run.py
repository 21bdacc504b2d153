"""A run and its output: parking, exchanging the output, room, mistakes of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mockagent.message import Origin, Peer
from mockagent.script.output import (
    Admission,
    Answer,
    ClientTool,
    Fail,
    Item,
    Need,
    Output,
    Stop,
    Text,
    Ticket,
    ToolCall,
    ToolUpdate,
)
from mockagent.script.prompt import Prompt
from mockagent.world.sessions import Session
from tests.harness import Theatre


class Recorder:
    """An output that keeps what it is told; it can be asked everything."""

    def __init__(self, room: int = 1024) -> None:
        self.peer: Peer | None = None
        self.left = room
        self.items: list[Item] = []
        self.tickets: list[Ticket] = []
        self.parks: list[list[Ticket]] = []
        self.withdrawn: list[Ticket] = []
        self.ends: list[Stop | Fail] = []

    @property
    def room(self) -> int:
        return self.left

    def same_client(self, other: Output) -> bool:
        return other is self

    def emit(self, item: Item, origin: Origin) -> bool:
        self.items.append(item)
        self.left -= len(item.parts) if isinstance(item, Text) else 1
        return True

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        return Admission.ASK if ask else Admission.INLINE

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        self.tickets.append(ticket)
        return True

    def withdraw(self, ticket: Ticket) -> None:
        self.withdrawn.append(ticket)

    def parked(self, open: Sequence[Ticket]) -> None:
        self.parks.append(list(open))

    def end(self, how: Stop | Fail) -> None:
        self.ends.append(how)

    @property
    def said(self) -> str:
        return "".join(str(part) for item in self.items if isinstance(item, Text) for part in item.parts)


def prompted(steps: str, out: Recorder | None = None, **more: str) -> tuple[Theatre, Session, Recorder]:
    """A turn that has begun, with an output of the test."""
    rest = "".join(f", {key}: {value}" for key, value in more.items())
    theatre = Theatre(f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}{rest}}}")
    session = theatre.agent.create("/a")
    out = out or Recorder()
    theatre.agent.prompt(session, Prompt(text="go", parts=["go"], message={}, facts={}), out)
    theatre.stage.pump()
    return theatre, session, out


ASK = "{tool: {name: x, ask: true}}"
CLIENT = "{tool: {name: x, side: client}}"


def test_a_turn_parks_with_all_its_tickets_once_nothing_else_goes_on() -> None:
    _, _, out = prompted(f"together: [{ASK}, [{{say: a}}, {CLIENT}], {ASK}]")
    assert out.parks == [out.tickets]
    assert len(out.tickets) == 3
    assert sum(isinstance(ticket.need, ClientTool) for ticket in out.tickets) == 1


def test_a_turn_does_not_park_while_one_branch_sleeps() -> None:
    theatre, _, out = prompted(f"together: [{ASK}, [{{wait: 1s}}, {ASK}]]")
    assert out.parks == []
    theatre.run()
    assert out.parks == [out.tickets]
    assert len(out.tickets) == 2


@pytest.mark.parametrize("busy", ["{hang: true}", "{wait_for: {method: _x}}"])
def test_a_branch_that_waits_for_no_answer_keeps_the_turn_from_parking(busy: str) -> None:
    _, _, out = prompted(f"together: [{ASK}, {busy}]")
    assert out.parks == []


def test_a_branch_that_ends_lets_the_others_park() -> None:
    theatre, _, out = prompted(f"together: [{ASK}, [{{wait: 1s}}, {{say: x}}]]")
    assert out.parks == []
    theatre.run()
    assert out.parks == [out.tickets]


def test_a_parked_turn_goes_on_with_another_output() -> None:
    theatre, session, first = prompted(f"{CLIENT}, {{say: on}}")
    run = theatre.agent.run_of(session, first)
    assert run is not None
    run.attach(None)
    theatre.run()
    second = Recorder()
    run.attach(second)
    first.tickets[0].settle(Answer(outcome="result", value="42"))
    theatre.run()
    assert (first.said, second.said) == ("", "on")
    assert [item.result for item in second.items if isinstance(item, ToolUpdate)] == ["42"]
    assert (first.ends, second.ends) == ([], [Stop("end_turn")])


def test_answers_settle_their_own_tickets_in_any_order_and_only_once() -> None:
    ways = "then: [{when: {outcome: granted}, steps: [{say: 'yes'}]}, {steps: [{say: 'no'}]}]"
    theatre, _, out = prompted(f"together: [{{ask: {{title: a}}, {ways}}}, {{ask: {{title: b}}, {ways}}}]")
    one, two = out.tickets
    two.settle(Answer(outcome="granted"))
    two.settle(Answer(outcome="denied"))
    theatre.run()
    assert out.said == "yes"
    one.settle(Answer(outcome="denied"))
    theatre.run()
    assert out.said == "yesno"
    assert out.ends == [Stop("end_turn")]


def test_a_turn_waits_for_room_and_takes_no_more_than_there_is() -> None:
    theatre, _, out = prompted("say: abcdefgh", Recorder(room=3), pace="{chunk: 1}")
    assert out.said == "abc"
    theatre.run()
    assert out.said == "abc"
    for room, said in ((2, "abcde"), (0, "abcde"), (9, "abcdefgh")):
        out.left = room
        theatre.run()
        assert out.said == said
    assert out.ends == [Stop("end_turn")]


def test_a_turn_without_room_waits_with_its_other_branches_too() -> None:
    """Nothing overtakes text that waits for room, not even an end."""
    theatre, _, out = prompted(
        "together: [{say: abcdef}, [{plan: [{content: p}]}, {stop: end_turn}]]", Recorder(room=2), pace="{chunk: 1}"
    )
    theatre.run()
    assert len(out.items) == 1
    assert out.ends == []
    out.left = 99
    theatre.run()
    assert out.said == "abcdef"
    assert out.ends == [Stop("end_turn")]


def test_an_endless_repetition_without_a_wait_lets_everything_else_go_on() -> None:
    never = "{wait: 1s, when: {prompt: other}}"
    for steps in (f"{{say: x, join: true}}, {never}", never):
        endless = f"{{repeat: {{steps: [{steps}]}}}}"
        theatre, session, out = prompted(f"together: [{endless}, [{{wait: 50ms}}, {{stop: refusal}}]]")
        theatre.run()
        assert out.ends == [Stop("refusal")]
        assert len(out.said) <= 60
        assert not theatre.agent.running(session)


def test_an_endless_repetition_at_speed_zero_moves_by_advance_and_ends_there() -> None:
    theatre, session, out = prompted("repeat: {every: 1ms, steps: [{say: x, join: true}]}", clock="{speed: 0}")
    theatre.run()
    assert out.said == ""
    theatre.stage.advance(0.01)
    assert 0 < len(out.said) <= 11
    theatre.agent.cancel(session)
    theatre.run()
    assert out.ends == [Stop("cancelled")]


def test_a_mistake_of_ours_fails_that_turn_and_nothing_else() -> None:
    class Broken(Recorder):
        def emit(self, item: Item, origin: Origin) -> bool:
            if isinstance(item, Text):
                raise ZeroDivisionError("ours")
            return super().emit(item, origin)

    theatre, session, out = prompted("{say: x}, {say: y}", Broken())
    assert out.ends == [Fail("internal_error")]
    assert any("ZeroDivisionError" in line for line in theatre.said)
    assert theatre.notes.of("bug")
    other = Recorder()
    theatre.agent.prompt(session, Prompt(text="go", parts=["go"], message={}, facts={}), other)
    theatre.run()
    assert other.said == "xy"


def test_a_turn_that_ends_withdraws_what_it_has_asked() -> None:
    theatre, _, out = prompted(f"together: [{ASK}, [{{wait: 1s}}, {{stop: end_turn}}]]")
    theatre.run()
    assert out.withdrawn == out.tickets
    assert [item.fields["status"] for item in out.items if isinstance(item, ToolUpdate)] == ["failed"]
    assert out.ends == [Stop("end_turn")]


def test_the_history_keeps_a_turn_whoever_listens() -> None:
    theatre = Theatre(
        "{turns: [{steps: [{say: [a, b]}, {think: t}, {tool: {name: x, output: o}}, {plan: [{content: p}]}]}]}"
    )
    session = theatre.agent.create("/a")
    kept: list[Any] = session.history.entries
    run = theatre.agent.prompt(session, Prompt(text="go", parts=["go"], message={}, facts={}), Recorder())
    assert run is not None
    theatre.run()
    assert [type(entry).__name__ for entry in kept] == ["Said", "Said", "Said", "Called", "Planned"]
    assert [entry.parts for entry in kept[:3]] == [["go"], ["a", "b"], ["t"]]
    assert (kept[3].name, kept[3].result) == ("x", "o")
