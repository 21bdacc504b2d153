"""The rule engine, with toy rules: what a rule is shown, what is counted, what is kept, and when it stops judging."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from mockagent.message import Burst, Fate, Message, Peer
from mockagent.watch.audit import CONNECTIONS, KEPT, WATCHED, Audit
from mockagent.watch.redact import Redactor
from mockagent.watch.rule import Check, Rulebook, Witness, got, noted, sent, unreadable
from mockagent.watch.shown import SHOWN, Shown

STDIO = Peer("c1", "acp", "stdio")
WEB = Peer("c2", "acp", "ws")
AAP = Peer("c3", "aap", "http")


def came(kind: str, peer: Peer = STDIO, *, session: str | None = "s1", id: Any = 1, **data: Any) -> Message:
    return Message(kind, data, peer, session=session, id=id)


def left(kind: str, peer: Peer = STDIO, *, session: str | None = "s1", id: Any = 1, **data: Any) -> Message:
    return Message(kind, data, peer, session=session, id=id, origin="turn")


def burst(kind: str, count: int, peer: Peer = STDIO) -> Burst:
    return Burst(kind, "say", peer, "s1", "turn", [b'{"n":%d}' % number for number in range(count)])


def play(audit: Audit, *messages: Message | Burst) -> None:
    for message in messages:
        if isinstance(message, Burst):
            audit.saw_burst(message)
        else:
            audit.saw(message, "in" if message.origin == "client" else "out", Fate.INTACT)


def polite(**more: Any) -> Rulebook:
    """A client says `thanks` after each `gift` and never `thanks` without one."""
    rules = Rulebook("acp", version=1)

    @rules.rule("TOY-THANKS-01", "MUST", "A client thanks for gifts, and for nothing else.", source="toys#1", **more)
    class Thanks(Check):
        def start(self) -> None:
            self.gifts: list[Shown] = []

        @sent("gift")
        def given(self, message: Message) -> None:
            self.gifts.append(self.keep(message))

        @got("thanks")
        def thanked(self, message: Message) -> None:
            if self.gifts:
                self.gifts.pop()
                self.met()
            else:
                self.broken("it thanked for nothing", message)

        @got("refuse")
        def refused(self, message: Message) -> None:
            self.broken("it refused", *self.gifts, message)

    return rules


def test_a_rule_is_met_broken_or_not_exercised() -> None:
    audit = Audit(polite())
    tally = audit.tallies["TOY-THANKS-01"]
    assert tally.state == "not exercised"
    play(audit, left("gift"), came("thanks"))
    assert (tally.state, tally.met, audit.failed) == ("met", 1, False)
    play(audit, came("thanks"))
    assert (tally.state, tally.broken, audit.failed) == ("broken", 1, True)


def test_a_breach_shows_its_messages_and_one_line_before_and_after() -> None:
    audit = Audit(polite())
    play(audit, came("a"), left("gift", n=1), left("x"), came("refuse"), left("b"), left("c"))
    [breach] = audit.breaches
    assert [(shown.line, shown.direction, shown.kind) for shown in breach.shown] == [
        (2, "out", "gift"),
        (4, "in", "refuse"),
    ]
    assert breach.shown[0].text == '{"n":1}'
    assert breach.before is not None
    assert (breach.before.line, breach.before.kind) == (3, "x")
    assert breach.after is not None
    assert (breach.after.line, breach.after.kind) == (5, "b")
    assert (breach.rule, breach.level, breach.source, breach.why) == (
        "TOY-THANKS-01",
        "MUST",
        "toys#1",
        "it refused",
    )
    assert (breach.peer, breach.session) == ("c1", "s1")


def test_the_line_before_or_after_may_be_a_burst_or_belong_to_nobody() -> None:
    audit = Audit(polite())
    play(audit, burst("chunk", 3), came("thanks"), left("x", WEB), burst("chunk", 3))
    [breach] = audit.breaches
    assert breach.before is not None
    assert breach.before.line == 1
    assert breach.shown[0].line == 4
    assert breach.after is not None
    assert (breach.after.line, breach.after.text) == (6, '{"n":0}')


def test_lines_are_numbered_as_the_journal_numbers_them() -> None:
    audit = Audit(polite())
    audit.note("connected", STDIO, None, {})
    audit.note("listening", None, None, {})
    audit.malformed(STDIO, b"?", "why")
    play(audit, burst("chunk", 3), burst("chunk", 0))
    audit.lost(WEB, 1)
    play(audit, came("thanks"))
    assert audit.breaches[0].shown[0].line == 8


def test_connections_and_sessions_do_not_mix() -> None:
    per_peer, per_session = Audit(polite()), Audit(polite(scope="session"))
    for audit in (per_peer, per_session):
        play(audit, left("gift", session="s1"), came("thanks", session="s2"), came("thanks", WEB, session="s1"))
    assert (per_peer.tallies["TOY-THANKS-01"].met, per_peer.tallies["TOY-THANKS-01"].broken) == (1, 1)
    assert (per_session.tallies["TOY-THANKS-01"].met, per_session.tallies["TOY-THANKS-01"].broken) == (0, 2)


def test_a_rule_may_reach_over_connections() -> None:
    shared, whole = Audit(polite(scope="shared_session")), Audit(polite(scope="process"))
    for audit in (shared, whole):
        play(audit, left("gift", session="s1"), came("thanks", WEB, session="s1"), left("gift", session="s1"))
        play(audit, came("thanks", WEB, session="s2"))
    assert (shared.tallies["TOY-THANKS-01"].met, shared.tallies["TOY-THANKS-01"].broken) == (1, 1)
    assert (whole.tallies["TOY-THANKS-01"].met, whole.tallies["TOY-THANKS-01"].broken) == (2, 0)


def test_a_message_of_no_session_is_not_shown_to_a_rule_about_sessions() -> None:
    audit = Audit(polite(scope="session"))
    play(audit, came("thanks", session=None))
    assert audit.breaches == []


def test_rules_apply_to_their_protocol_and_transports_only() -> None:
    audit = Audit(polite(transports=("stdio",)))
    play(audit, came("thanks", WEB), came("thanks", AAP))
    assert not audit.failed
    play(audit, came("thanks", STDIO))
    assert audit.failed


def test_what_did_not_leave_did_not_happen() -> None:
    audit = Audit(polite())
    audit.saw(left("gift"), "out", Fate.UNSENT)
    play(audit, came("thanks"))
    assert audit.failed


def test_a_damaged_message_ends_the_judging_unless_the_rule_can_do_without() -> None:
    strict = Audit(polite())
    strict.saw(left("gift"), "out", Fate.DAMAGED)
    play(strict, came("thanks"), left("gift"), came("refuse"))
    assert strict.tallies["TOY-THANKS-01"].state == "not exercised"

    rules = polite()
    rules["TOY-THANKS-01"].check.tolerant = True
    audit = Audit(rules)
    audit.saw(left("gift"), "out", Fate.DAMAGED)
    play(audit, came("thanks"))
    assert audit.failed


def test_a_message_that_only_came_in_another_way_is_judged_by() -> None:
    audit = Audit(polite())
    gift = left("gift")
    gift.damaged = ("delay", "rate")
    audit.saw(gift, "out", Fate.DAMAGED)
    play(audit, came("thanks"))
    assert audit.tallies["TOY-THANKS-01"].met == 1


def test_damage_to_what_no_rule_watches_changes_nothing() -> None:
    audit = Audit(polite())
    audit.saw(left("x"), "out", Fate.DAMAGED)
    play(audit, came("thanks"))
    assert audit.failed


def test_after_a_loss_nothing_on_that_connection_is_judged() -> None:
    audit = Audit(polite())
    play(audit, left("gift"), left("gift", WEB))
    audit.lost(STDIO, 1)
    play(audit, came("thanks"), came("thanks"), came("thanks", WEB))
    assert (audit.tallies["TOY-THANKS-01"].met, audit.failed) == (1, False)


def test_a_closed_connection_is_ended_and_forgotten() -> None:
    rules = Rulebook("acp", version=1)

    @rules.rule("TOY-BYE-01", "SHOULD", "A client says goodbye.", source="toys#2")
    class Bye(Check):
        def start(self) -> None:
            self.said = False

        @got("hello")
        def hello(self, message: Message) -> None: ...

        @got("bye")
        def bye(self, message: Message) -> None:
            self.said = True

        def ended(self) -> None:
            self.met() if self.said else self.broken("it left without a word")

    audit = Audit(rules)
    play(audit, came("hello"), came("hello", WEB), came("bye", WEB))
    audit.note("closed", STDIO, None, {})
    assert audit.tallies["TOY-BYE-01"].broken == 1
    assert audit.breaches[0].shown == []
    audit.close()
    audit.close()
    assert (audit.tallies["TOY-BYE-01"].broken, audit.tallies["TOY-BYE-01"].met) == (1, 1)


def test_events_and_unreadable_input_reach_the_rules_that_ask_for_them() -> None:
    rules = Rulebook("acp", version=1)
    seen: list[Any] = []

    @rules.rule("TOY-NOISE-01", "MUST", "A client sends messages only.", source="toys#3")
    class Noise(Check):
        @noted("turn_*")
        def turn(self, detail: dict[str, Any]) -> None:
            seen.append(detail)

        @unreadable
        def noise(self, message: Message) -> None:
            self.broken(f"it sent noise: {message.data['why']}")

    audit = Audit(rules)
    audit.note("turn_started", STDIO, "s1", {"n": 1})
    audit.note("other", STDIO, "s1", {"n": 2})
    audit.malformed(STDIO, b"hello\xff", "not JSON")
    assert seen == [{"n": 1}]
    [breach] = audit.breaches
    assert breach.why == "it sent noise: not JSON"
    assert breach.shown[0].kind == "malformed"
    assert "hello" in breach.shown[0].text


def test_globs_over_kinds_and_several_marks_on_one_method() -> None:
    rules = Rulebook("acp", version=1)
    seen: list[str] = []

    @rules.rule("TOY-ALL-01", "MUST", "Anything goes.", source="toys#4")
    class All(Check):
        @got("session/*", "x")
        @sent("update:*")
        def look(self, message: Message) -> None:
            seen.append(message.kind)

    play(Audit(rules), came("session/new"), came("y"), came("x"), left("update:plan"), left("x"), burst("update:a", 2))
    assert seen == ["session/new", "x", "update:plan", "update:a", "update:a"]


def test_an_unwatched_burst_is_not_even_looked_at() -> None:
    class Untouchable(list[bytes]):
        def __iter__(self) -> Any:
            raise AssertionError("somebody looked")

    audit = Audit(polite())
    audit.saw_burst(Burst("chunk", "say", STDIO, "s1", "turn", Untouchable([b"{}", b"{}"])))
    play(audit, came("thanks"))
    assert audit.breaches[0].shown[0].line == 3


def test_an_allowed_rule_is_counted_and_does_not_fail() -> None:
    audit = Audit(polite(), allow=["TOY-THANKS-*", "TOY-TANKS-01"])
    play(audit, came("thanks"))
    tally = audit.tallies["TOY-THANKS-01"]
    assert (tally.state, tally.allowed, audit.failed) == ("allowed", 1, False)
    assert audit.breaches[0].allowed
    assert audit.unknown() == ["TOY-TANKS-01"]


def test_only_the_first_breaches_keep_their_messages_and_long_ones_are_cut() -> None:
    audit = Audit(polite())
    for _ in range(KEPT + 5):
        play(audit, came("thanks", text="x" * 10_000))
    assert audit.tallies["TOY-THANKS-01"].broken == KEPT + 5
    assert len(audit.breaches) == KEPT
    assert len(audit.breaches[0].shown[0].text) < SHOWN + 50


def test_secrets_do_not_get_into_breaches() -> None:
    audit = Audit(polite(), redact=Redactor(["very-secret"]))
    play(audit, came("thanks", text="very-secret"))
    assert audit.breaches[0].shown[0].text == '{"text":"***"}'


def test_the_number_of_sessions_watched_is_bounded() -> None:
    audit = Audit(polite(scope="session"))
    play(audit, *(left("gift", session=f"s{number}") for number in range(WATCHED + 1)))
    play(audit, came("thanks", session=f"s{WATCHED}"), came("thanks", session="s0"))
    assert audit.tallies["TOY-THANKS-01"].met == 1


def test_a_session_that_was_let_go_is_not_taken_for_a_new_one() -> None:
    audit = Audit(polite(scope="session"))
    play(audit, *(left("gift", session=f"s{number}") for number in range(WATCHED + 1)))
    play(audit, came("thanks", session="s0"), came("refuse", session="s0"))
    assert not audit.failed


def test_a_connection_that_was_let_go_is_not_taken_for_a_new_one() -> None:
    audit = Audit(polite())
    peers = [Peer(f"p{number}", "acp", "ws") for number in range(CONNECTIONS + 1)]
    play(audit, *(left("gift", peer) for peer in peers), came("thanks", peers[0]), came("thanks", peers[-1]))
    assert (audit.failed, audit.tallies["TOY-THANKS-01"].met) == (False, 1)


def test_many_sessions_do_not_end_what_is_watched_for_the_whole_connection() -> None:
    rules = polite()

    @rules.rule("TOY-NAME-01", "MUST", "A session has a name.", source="toys#6", scope="session")
    class Named(Check):
        @got("name")
        def named(self, message: Message) -> None:
            self.met()

    audit = Audit(rules)
    play(audit, left("gift"), *(came("name", session=f"s{number}") for number in range(WATCHED + 1)), came("thanks"))
    assert (audit.failed, audit.tallies["TOY-THANKS-01"].met) == (False, 1)


def test_a_rule_that_stumbles_is_named_and_judges_no_more() -> None:
    rules = Rulebook("acp", version=1)

    @rules.rule("TOY-BUG-01", "MUST", "A client sends names.", source="toys#5")
    class Bug(Check):
        def start(self) -> None:
            self.names: list[str] = []

        @got("name")
        def named(self, message: Message) -> None:
            self.names.append(message.data["name"])
            if not self.names[-1]:
                self.broken("an empty name")

    audit = Audit(rules)
    play(audit, came("name"), came("name", name=""))
    assert audit.problems == ["rule TOY-BUG-01 stumbled at line 1: KeyError: 'name'"]
    assert not audit.failed


def test_a_rule_that_remembers_nothing_stumbles_over_one_message_only_and_knows_whose_the_next_is() -> None:
    rules = Rulebook("acp", version=1)

    @rules.rule("TOY-BUG-01", "MUST", "A client sends names.", source="toys#5")
    class Bug(Check):
        @got("name")
        def named(self, message: Message) -> None:
            if not message.data["name"]:
                self.broken("an empty name")

    audit = Audit(rules)
    play(audit, came("name"), came("name", WEB, name=""), came("name", name=""))
    assert audit.problems == ["rule TOY-BUG-01 stumbled at line 1: KeyError: 'name'"]
    assert [breach.peer for breach in audit.breaches] == ["c2", "c1"]


class Giver(Witness):
    """Counts gifts."""

    made: ClassVar[int] = 0

    def start(self) -> None:
        type(self).made += 1
        self.gifts = 0

    @sent("gift")
    def given(self, message: Message) -> None:
        self.gifts += 1


def grateful() -> Rulebook:
    """Two rules that consult one witness, and one of them before the gift has been seen by any other rule."""
    rules = Rulebook("acp", version=1)

    class Thanks(Check):
        knows = (Giver,)

        @got("thanks")
        def thanked(self, message: Message) -> None:
            if self.consult(Giver).gifts >= self.about:
                self.met()
            else:
                self.broken(f"it had {self.consult(Giver).gifts}")

    rules.add("TOY-THANKS-01", "MUST", "Thanks are for a gift.", Thanks, source="toys#1", about=1)
    rules.add("TOY-THANKS-02", "MUST", "Thanks are for two gifts.", Thanks, source="toys#2", about=2)
    return rules


def test_rules_consult_one_witness_for_each_connection() -> None:
    Giver.made = 0
    audit = Audit(grateful())
    play(audit, left("gift"), left("gift", WEB), left("gift", WEB), came("thanks"), came("thanks", WEB))
    assert {id: (tally.met, tally.broken) for id, tally in audit.tallies.items()} == {
        "TOY-THANKS-01": (2, 0),
        "TOY-THANKS-02": (1, 1),
    }
    assert Giver.made == 2


def test_nothing_is_judged_by_a_witness_that_saw_something_damaged_or_lost() -> None:
    audit = Audit(grateful())
    gift = left("gift")
    gift.damaged = ("truncate",)
    audit.saw(gift, "out", Fate.DAMAGED)
    play(audit, left("gift", WEB))
    audit.lost(WEB, 1)
    play(audit, came("thanks"), came("thanks", WEB))
    assert (audit.problems, audit.failed, audit.tallies["TOY-THANKS-01"].met) == ([], False, 0)


def test_an_id_is_given_once() -> None:
    rules = polite()
    assert len(rules) == 1
    with pytest.raises(ValueError, match="TOY-THANKS-01"):
        rules.rule("TOY-THANKS-01", "MUST", "Again.", source="x")
