"""What faults make of a message on its way out: dropped, copied, held, delayed, with steps around it."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.faults.interface import Delay, Drop, Hold, Life, Pass, Play
from mockagent.message import Fate, Message
from mockagent.net.channel import Cut
from mockagent.scenario.model import Step
from mockagent.wire.outgoing import Outgoing
from tests.harness import Tray

STEPS = (Step(verb="say", payload=("x",)),)


@pytest.fixture
def out(hand: Any) -> Outgoing:
    return Outgoing(hand.peer, hand, Tray(hand.peer, hand, 100))


def left(out: Outgoing) -> list[bytes]:
    """The texts that have left."""
    tray = out.line(None)
    assert isinstance(tray, Tray)
    return [text[5:-1] for text in tray.texts]


def reply(hand: Any, number: int, id: int, method: str = "session/list") -> Message:
    return Message(f"reply:{method}", {"n": number}, hand.peer, id=id, method=method, session="s", origin="handler")


def test_without_faults_a_burst_stays_a_burst(hand: Any, out: Outgoing) -> None:
    out.send_burst(hand.burst(1, 2))
    out.send(hand.message(3))
    assert left(out) == [b"1", b"2", b"3"]


def test_a_burst_falls_apart_into_single_messages_while_a_fault_watches(hand: Any, out: Outgoing) -> None:
    seen: list[Any] = []

    def leave(message: Message) -> Any:
        seen.append(message.data)
        return [Drop()] if message.data["n"] == 2 else [Pass(message), Pass(message.copy())]

    hand.faults.leave["update:x"] = leave
    out.send_burst(hand.burst(1, 2, 3))
    assert seen == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert left(out) == [b"1", b"1", b"3", b"3"]
    assert hand.notes.fates.count(("update:x", Fate.UNSENT)) == 1


def test_what_a_fault_has_sent_is_not_faulted_again(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["update:x"] = lambda message: [Drop()]
    message = hand.message(1)
    message.origin = "fault"
    out.send(message)
    assert left(out) == [b"1"]


def test_a_held_message_lets_others_pass_until_its_event(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["update:x"] = lambda message: [Hold(message, "turn_ended")]
    out.send(hand.message(1))
    out.send(hand.message(2, "update:y"))
    assert left(out) == [b"2"]
    out.release("turn_ended", "other")
    out.release("next_prompt", "s")
    assert left(out) == [b"2"]
    assert out.owes
    out.release("turn_ended", "s")
    assert left(out) == [b"2", b"1"]
    assert not out.owes


def test_a_held_reply_waits_for_the_reply_to_another_request_of_its_method(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["reply:session/list"] = lambda message: (
        [Hold(message, "reply")] if message.id == 1 else [Pass(message)]
    )
    out.send(reply(hand, 1, id=1))
    assert left(out) == []
    out.send(reply(hand, 9, id=9, method="session/new"))
    assert left(out) == [b"9"]
    out.send(reply(hand, 2, id=2))
    assert left(out) == [b"9", b"2", b"1"]


def test_a_message_held_for_ever_is_owed_to_nobody(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["update:x"] = lambda message: [Hold(message, "never")]
    out.send(hand.message(1))
    assert not out.owes
    assert left(out) == []


def test_a_message_held_for_a_while_comes_when_that_is_over(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["update:x"] = lambda message: [Hold(message, 5_000_000)]
    out.send(hand.message(1))
    out.send(hand.message(2, "update:y"))
    [(span, call)] = hand.waits
    assert span == 5_000_000
    call()
    assert left(out) == [b"2", b"1"]


def test_a_delay_puts_a_barrier_before_the_message(hand: Any) -> None:
    class Marked(Tray):
        def hold_back(self, span: Any) -> None:
            self.texts.append(b'{"n":|}')

    out = Outgoing(hand.peer, hand, Marked(hand.peer, hand, 100))
    hand.faults.leave["update:x"] = lambda message: [Delay(1), Pass(message)]
    out.send(hand.message(1))
    out.send(hand.message(2, "update:y"))
    assert left(out) == [b"|", b"1", b"2"]


def test_what_stands_behind_steps_waits_for_them_and_other_messages_pass(hand: Any, out: Outgoing) -> None:
    hand.through = False
    hand.faults.leave["update:x"] = lambda message: [Play(STEPS), Pass(message)]
    out.send(hand.message(1))
    out.send(hand.message(2, "update:y"))
    assert left(out) == [b"2"]
    assert out.owes
    [(steps, then)] = hand.plays
    assert steps == STEPS
    then()
    assert left(out) == [b"2", b"1"]
    assert not out.owes


def test_steps_that_are_through_at_once_hold_nothing_up(hand: Any, out: Outgoing) -> None:
    hand.faults.leave["update:x"] = lambda message: [Play(STEPS), Pass(message), Play(STEPS)]
    out.send(hand.message(1))
    assert left(out) == [b"1"]
    assert len(hand.plays) == 2


def test_a_request_that_left_under_another_id_is_reported(hand: Any, out: Outgoing) -> None:
    def other_id(message: Message) -> Any:
        changed = message.copy()
        changed.data, changed.raw = {"n": 1, "id": "other"}, None
        return [Pass(changed)]

    renamed: list[Any] = []
    out.on_new_id(lambda old, new: renamed.append((old, new)))
    hand.faults.leave["request:x"] = other_id
    out.send(Message("request:x", {"n": 1, "id": 5}, hand.peer, id=5, origin="turn"))
    assert renamed == [(5, "other")]


def test_what_has_to_follow_a_message_follows_its_first_copy_even_when_that_was_held(hand: Any, out: Outgoing) -> None:
    order: list[str] = []
    hand.faults.leave["reply:session/new"] = lambda message: [Hold(message, "next_prompt")]
    message = reply(hand, 1, id=1, method="session/new")
    message.follow = lambda: order.append("followed")
    out.send(message)
    assert order == []
    out.release("next_prompt", "s")
    assert order == ["followed"]
    assert left(out) == [b"1"]


def test_reading_stalls_at_once_and_the_rest_happens_in_the_line(hand: Any, out: Outgoing) -> None:
    out.live(Life(stall_read=3.0), "s")
    out.live(Life(cut=Cut("reset")), "s")
    tray = out.line(None)
    assert isinstance(tray, Tray)
    assert [life.stall_read for life in hand.lives] == [3.0]
    assert [life.cut for life in tray.lives if life.cut] == [Cut("reset")]


def test_what_comes_with_a_stall_of_reading_happens_once_and_in_its_place(hand: Any, out: Outgoing) -> None:
    out.live(Life(stall_read=1.0, exit=3))
    assert [act.exit for act in hand.lives] == [None]  # so far only the reading stands still


def test_a_channel_that_is_to_end_ends_behind_what_is_still_owed(hand: Any) -> None:
    cuts: list[Cut] = []

    class Watched(Tray):
        def cut(self, how: Cut) -> None:
            cuts.append(how)

    out = Outgoing(hand.peer, hand, Watched(hand.peer, hand, 100))
    hand.faults.leave["update:x"] = lambda message: [Hold(message, "turn_ended")]
    out.send(hand.message(1))
    out.finish(Cut("close"))
    assert cuts == []
    out.release("turn_ended", "s")
    assert cuts == [Cut("close")]
