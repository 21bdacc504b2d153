"""The engine of faults: looks at every message at the five hooks, and decides.

It is synchronous and does no I/O: what it decides comes back as acts, which the message path carries out. Sessions,
clock and chances are the host's, and reach it through the callables it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.faults.effects import EFFECTS, Context, Work
from mockagent.faults.framing import operations
from mockagent.faults.interface import Act, Drop, Instead, Life, Page, Pass, Query, Reply
from mockagent.faults.life import joined, point_life
from mockagent.faults.listing import Listings, Request, Skip, cursor_of
from mockagent.faults.memory import BY_CHANCE, Deferred, Memory, Pending, Rule, expects_reply
from mockagent.faults.outside import Belongs, Fill, Report, Rng, Save, Spot
from mockagent.faults.select import MAKES_SESSION, SessionFacts, facts_of, facts_of_point
from mockagent.message import Message, Peer
from mockagent.net.channel import Bytes, Op
from mockagent.scenario.model import Fault, Lognormal, Uniform
from mockagent.script.match import ALWAYS, Counters, Match, matches
from mockagent.script.placeholders import Unset
from mockagent.script.pointer import Absent, get

if TYPE_CHECKING:
    from mockagent.faults.chaos import Chaos

SEEN_KINDS = 4096
"""Kinds for which `watches` remembers its answer; clients can make up new ones without end."""

_IMPOSSIBLE = (Skip, Unset, Absent)


class Engine:
    """Implements `faults.interface.Faults` for a list of faults.

    Args:
        faults: in the order in which they fire.
        facts: what the host knows of a session (`select.SessionFacts`).
        rng: gives the running generator for a purpose and a session.
        fill: fills placeholders.
        report: hears of every firing, for the journal.
        save: keeps values.
        belongs: keeps the faults of several scenarios apart; None: all faults look at everything.
        chaos: draws further faults by chance; they fire behind all others.
    """

    def __init__(
        self,
        faults: Iterable[Fault] = (),
        *,
        facts: SessionFacts,
        rng: Rng,
        fill: Fill,
        report: Report,
        save: Save,
        belongs: Belongs | None = None,
        chaos: Chaos | None = None,
    ) -> None:
        self._facts = facts
        self._rng = rng
        self._fill = fill
        self._report = report
        self._save = save
        self._belongs = belongs
        self._chaos = chaos
        self._rules = [Rule(fault) for fault in faults]
        self._counters = Counters()
        self._watched: dict[tuple[str, str | None], bool] = {}
        self._gathering: list[Rule] = []
        self._memory = Memory()
        self._listings = Listings(lambda: rng("shuffle", None))
        self._ignored: set[tuple[str, Rule, str | None, str | None]] = set()
        self._look_at_rules()

    # --- arming

    @property
    def armed(self) -> tuple[Fault, ...]:
        """All faults, in the order in which they fire."""
        return tuple(rule.fault for rule in self._rules)

    def arm(self, fault: Fault) -> None:
        """Adds a fault behind the others."""
        self._rules.append(Rule(fault))
        self._look_at_rules()

    def disarm(self, fault: Fault) -> bool:
        """Takes a fault out, with what it still had in mind. False: it was not armed."""
        gone = [rule for rule in self._rules if rule.fault is fault]
        self._drop(gone)
        return bool(gone)

    def clear(self) -> None:
        """Takes all faults out."""
        self._drop(list(self._rules))

    def _drop(self, gone: Sequence[Rule]) -> None:
        self._rules = [rule for rule in self._rules if rule not in gone]
        self._ignored = {entry for entry in self._ignored if entry[1] not in gone}
        self._look_at_rules()
        for rule in gone:
            if rule.fault.when is not None:
                self._counters.drop(rule.fault.when)

    def _look_at_rules(self) -> None:
        """What is known of all rules together."""
        self._watched.clear()
        self._gathering = [rule for rule in self._rules if "coalesce" in rule.fault.effects]

    @property
    def lag(self) -> int:
        """How many messages of a turn are kept back while it plays, to leave in one write with a later one."""
        lag = 0 if self._chaos is None else self._chaos.lag
        return max([lag, *map(self._lag_of, self._gathering)]) if self._gathering else lag

    def _lag_of(self, rule: Rule) -> int:
        """The same for one fault. Nothing waits for one of which it is known that it is not about to fire."""
        count: int = rule.fault.effects["coalesce"]
        when = rule.fault.when
        if when is None or when.nth is None or not when.nth.numbers or when.per != "process":
            return count - 1
        seen, _ = self._counters.of(when).get("process", (0, 0))
        return count - 1 if any(seen < number < seen + count for number in when.nth.numbers) else 0

    def counted(self, fault: Fault) -> dict[str, tuple[int, int]]:
        """How often the conditions of a fault have held, and how often it has fired, by scope."""
        return {} if fault.when is None else self._counters.of(fault.when)

    def recall(self, fault: Fault, counted: Mapping[str, Sequence[int]]) -> None:
        """Goes on where the counts of the same fault have ended in another process."""
        for scope, (seen, fired) in counted.items():
            if fault.when is not None:
                tally = self._counters.tally(fault.when, scope)
                tally.seen, tally.fired = seen, fired

    def forget(self, request: Message) -> None:
        """The reply to this request will never leave (its stream was aborted)."""
        self._memory.pop(request)

    # --- which messages

    def watches(self, kind: str, neutral: str | None) -> bool:
        """Whether any armed fault could concern messages of this kind (False: the fast path may be taken)."""
        if self._chaos is not None:
            return True
        key = (kind, neutral)
        known = self._watched.get(key)
        if known is None:
            if len(self._watched) >= SEEN_KINDS:
                self._watched.clear()
            known = self._watched[key] = any(rule.concerns(kind, neutral) for rule in self._rules)
        return known

    def _holds(
        self, rule: Rule, subject: Message | str, facts: Callable[[Callable[[str], Any]], dict[str, Any]], spot: Spot
    ) -> Match | None:
        """Whether the fault's `when` holds; an unset placeholder in it is reported."""
        if self._belongs is not None and not self._belongs(rule.fault, spot):
            return None
        when = rule.fault.when
        if when is None:
            return ALWAYS

        def unset(why: Unset) -> None:
            self._report(rule.fault, subject, rule.names, f"skipped: {why}", spot)

        fill = partial(self._fill, spot=spot)
        rng = partial(self._rng_for, spot.session)
        return matches(when, facts(fill), self._counters, rng, unset=unset)

    def _rng_for(self, session: str | None, purpose: str) -> Random:
        return self._rng(f"fault/{purpose}", session)

    # --- arriving

    def arriving(self, message: Message) -> Sequence[Act]:
        """Acts for a message that has come in and has not reached its handler."""
        asked = cursor_of(message) if message.neutral == "list" else None
        if asked is not None:
            message = self._listings.incoming(message)
        if message.neutral == "cancel" and self._is_ignored("cancel", message.peer, message.session):
            return (Drop(),)
        if not self.watches(message.kind, message.neutral):
            return (Pass(message),)
        work, pending = Work(message), Pending(message, asked)
        told: list[Mapping[str, Any]] = []
        for rule in self._rules:
            if not rule.selector.incoming(message.kind, message.neutral):
                continue
            match = self._match(rule, work.message, told, None)
            if match is not None:
                work = self._arrive(rule, match, work, pending)
            if work.dropped:
                break
        drawn = self._chaos.arriving(message) if self._chaos is not None and not work.dropped else None
        if drawn is not None:
            work = self._arrive(Rule(drawn), ALWAYS, work, pending)
        if not work.dropped:
            self._remember(work.message, pending)
        return work.acts()

    def _match(
        self, rule: Rule, message: Message, told: list[Mapping[str, Any]], request: Message | None
    ) -> Match | None:
        """Whether a rule's `when` holds for a message. The host is asked once a message, and only if need be."""

        def facts(fill: Callable[[str], Any]) -> dict[str, Any]:
            if not told:
                told.append(self._facts(message.session, message))
            return facts_of(message, told[0], request, fill)

        spot = Spot(peer=message.peer, session=message.session, message=message)
        return self._holds(rule, message, facts, spot)

    def _remember(self, message: Message, pending: Pending) -> None:
        """Keeps what has to happen to a request's reply, or what a rule there will want to know of the request."""
        if not expects_reply(message):
            return
        if (
            pending.deferred
            or pending.listing
            or any(rule.asks_request(message.kind, message.neutral) for rule in self._rules)
        ):
            pending.request = message
            self._memory.add(pending)

    def _arrive(self, rule: Rule, match: Match, work: Work, pending: Pending) -> Work:
        """Applies one fault to what has come in; returns the work as it leaves the fault."""
        trial = work.copy()
        names = rule.names
        try:
            deferred, listed = self._divide(rule, match, trial)
            saved = self._read(rule, trial.message)
        except _IMPOSSIBLE as why:
            self._report(rule.fault, work.message, names, f"skipped: {why}", _at(work.message))
            return work
        if deferred and not trial.dropped:
            pending.deferred.append(Deferred(rule, deferred, match.groups))
        if listed:
            pending.listing.append(Deferred(rule, listed, match.groups))
        self._fired(rule, trial, work.message, saved)
        return trial

    def _divide(
        self, rule: Rule, match: Match, trial: Work
    ) -> tuple[tuple[tuple[str, Any], ...], tuple[tuple[str, Any], ...]]:
        """Does what a fault does to an incoming message at once; returns what it does to its reply, and to its page.

        Where no reply will come, all is done to the message itself.
        """
        message = trial.message
        spot = self._spot(message, match)
        requested = expects_reply(message)
        now: list[tuple[str, Any]] = []
        later: list[tuple[str, Any]] = []
        listed: list[tuple[str, Any]] = []
        for name, value in rule.effects:
            if name in ("error", "result"):
                if message.kind.startswith("answer:"):
                    raise Skip("nobody answers an answer")
                filled = self._fill(value, spot)
                trial.reply = Reply(error=filled) if name == "error" else Reply(result=filled)
            elif requested and EFFECTS[name].layer == "list":
                listed.append((name, value))
            elif requested and name == "edit":
                now += [("edit", entries)] if (entries := _edits(value, of_request=True)) else []
                later += [("edit", entries)] if (entries := _edits(value, of_request=False)) else []
            else:
                (now if name in rule.at_once or not requested else later).append((name, value))
        self._apply(now, trial, spot)
        if requested:  # the channel ends, or stops, before the handler has said anything
            trial.notices += trial.life
            trial.life = []
        return tuple(later), tuple(listed)

    def refusing(self, message: Message, name: str) -> Instead | None:
        """What comes in place of a handler's refusal; the first rule that holds counts."""
        told: list[Mapping[str, Any]] = []
        for rule in self._rules:
            if rule.refusal != name:
                continue
            match = self._match(rule, message, told, None)
            if match is None:
                continue
            try:
                error = self._fill(rule.fault.effects.get("error"), self._spot(message, match))
            except Unset as why:
                self._report(rule.fault, message, rule.names, f"skipped: {why}", _at(message))
                continue
            self._report(rule.fault, message, rule.names, "fired", _at(message))
            return Instead(error=error, do=rule.fault.effects.get("instead"))
        return None

    # --- applying

    def _spot(self, message: Message, match_or_groups: Match | Mapping[str, str | None]) -> Spot:
        groups = match_or_groups.groups if isinstance(match_or_groups, Match) else match_or_groups
        return Spot(peer=message.peer, session=message.session, message=message, groups=groups)

    def _apply(self, effects: Iterable[tuple[str, Any]], work: Work, spot: Spot) -> None:
        """Applies effects, in their order, to a message."""

        def fill(value: Any, old: Any) -> Any:
            return self._fill(value, msgspec.structs.replace(spot, old=old))

        context = Context(fill, partial(self._seconds, spot.session))
        for name, value in effects:
            effect = EFFECTS[name]
            effect.apply(work, self._fill(value, spot) if effect.fills else value, context)
            if effect.damages:
                work.damage(name)

    def _seconds(self, session: str | None, span: Any) -> float:
        """A span in seconds of wall time, drawn if it is not fixed."""
        if isinstance(span, Uniform):
            return self._rng("fault/pause", session).uniform(span.low, span.high) / 1e6
        if isinstance(span, Lognormal):
            return span.median / 1e6 * float(self._rng("fault/pause", session).lognormvariate(0, span.sigma))
        return float(span) / 1e6

    def _read(self, rule: Rule, message: Message) -> list[tuple[str, Any]]:
        """What `save` reads, from the message as it leaves the fault."""
        return [(name, get(message.data, where)) for name, where in (rule.fault.save or {}).items()]

    def _fired(self, rule: Rule, work: Work, subject: Message, saved: Sequence[tuple[str, Any]]) -> None:
        """The fault has fired: now, and not before, others hear of it."""
        session = None if subject.kind in MAKES_SESSION else subject.session
        for name, value in saved:
            self._save(subject.peer, session, name, value)
        self._take_ignores(rule, work, subject.peer, subject.session, subject.neutral)
        self._report(rule.fault, subject, rule.names, "fired", _at(subject))

    def _take_ignores(self, rule: Rule, work: Work, peer: Peer | None, session: str | None, here: str | None) -> None:
        """What names the present message or point is dropped; all else is ignored from now on."""
        for name in work.ignores:
            if name == here:
                work.dropped = True
            else:
                of_peer = peer.id if peer is not None and name in ("cancel", "ping") else None
                self._ignored.add((name, rule, of_peer, session if name == "cancel" else None))
        work.ignores = []

    def _is_ignored(self, name: str, peer: Peer | None, session: str | None) -> bool:
        return any(
            ignored == name
            and (of_peer is None or (peer is not None and of_peer == peer.id))
            and (in_session is None or in_session == session)
            for ignored, _, of_peer, in_session in self._ignored
        )

    # --- leaving

    def leaving(self, message: Message) -> Sequence[Act]:
        """Acts for a rendered message before it is encoded."""
        if message.origin == "fault" and not message.kind.startswith("reply:"):
            return (Pass(message),)
        due, request = self._memory.due(message)
        if not due and not self.watches(message.kind, message.neutral):
            return (Pass(message),)
        work = Work(message)
        told: list[Mapping[str, Any]] = []
        for rule in self._rules:
            if rule in due:
                work = self._leave(rule, due[rule].effects, due[rule].groups, work, quiet=True)
            elif rule.selector.outgoing(message.kind, message.neutral):
                match = self._match(rule, work.message, told, request)
                if match is not None:
                    work = self._leave(rule, rule.effects, match.groups, work, quiet=False)
            if work.dropped:
                break
        drawn = self._chaos.leaving(work.message) if self._chaos is not None and not work.dropped else None
        if drawn is not None:
            rule = Rule(drawn)
            work = self._leave(rule, rule.effects, {}, work, quiet=False)
        return work.acts()

    def _leave(
        self,
        rule: Rule,
        effects: Sequence[tuple[str, Any]],
        groups: Mapping[str, str | None],
        work: Work,
        *,
        quiet: bool,
    ) -> Work:
        """Applies one fault to what leaves. `quiet`: it was reported, and has saved, when the request arrived."""
        trial = work.copy()
        subject = work.message
        try:
            self._apply(effects, trial, self._spot(subject, groups))
            saved = [] if quiet else self._read(rule, trial.message)
        except _IMPOSSIBLE as why:
            names = tuple(name for name, _ in effects)
            self._report(rule.fault, subject, names, f"skipped: {why}", _at(subject))
            return work
        if quiet:
            self._take_ignores(rule, trial, subject.peer, subject.session, None)
        else:
            self._fired(rule, trial, subject, saved)
        return trial

    # --- listing

    def listing(self, query: Query, page: Page) -> Page:
        """The page that is to be rendered."""
        pending = self._memory.find(query.request)
        request = Request(cursor_of(query.request) if pending is None else pending.asked, query)
        rows = list(page.rows)
        for deferred in pending.listing if pending is not None else ():
            if deferred.rule not in self._rules and deferred.rule.fault.place is not BY_CHANCE:
                continue
            spot = self._spot(query.request, deferred.groups)
            for name, value in deferred.effects:
                try:
                    page = self._listings.change(name, self._fill(value, spot), request, page)
                except _IMPOSSIBLE as why:
                    self._report(deferred.rule.fault, query.request, (name,), f"skipped: {why}", spot)
        if self._chaos is not None or any(rule.overlaps for rule in self._rules):
            self._listings.remember(request, rows, page)
        return page

    # --- framing

    def framing(self, message: Message, data: bytes | Sequence[bytes]) -> Sequence[Op]:
        """Operations that take the place of writing the encoded message."""
        if message.plan or not isinstance(data, bytes):
            return operations(message.plan, data)
        return (Bytes(data),)

    # --- life

    def lifecycle(self, point: str, peer: Peer | None, session: str | None = None) -> Life | None:
        """What happens at a point in life; None: nothing out of the ordinary."""
        life = Life(ignore=True) if self._is_ignored(point, peer, session) else None
        told: list[Mapping[str, Any]] = []
        for rule in self._rules:
            if not rule.selector.point(point):
                continue

            def facts(fill: Callable[[str], Any]) -> dict[str, Any]:
                if not told:
                    told.append(self._facts(session, None))
                return facts_of_point(peer, session, told[0], fill)

            match = self._holds(rule, point, facts, Spot(peer=peer, session=session))
            if match is not None:
                life = self._live(rule, match, point, peer, session, life)
        drawn = self._chaos.living(point, peer, session) if self._chaos is not None else None
        if drawn is not None:
            life = self._live(Rule(drawn), ALWAYS, point, peer, session, life)
        if point == "closed" and peer is not None:
            self._gone(peer)
        return life

    def _live(
        self, rule: Rule, match: Match, point: str, peer: Peer | None, session: str | None, life: Life | None
    ) -> Life | None:
        """Applies one fault at a point in life; returns all that happens there so far."""
        spot = Spot(peer=peer, session=session, groups=match.groups)
        work = Work(Message(point, None, peer or _NOBODY, session=session))
        try:
            self._apply(rule.effects, work, spot)
            made = point_life(work)
        except _IMPOSSIBLE as why:
            self._report(rule.fault, point, rule.names, f"skipped: {why}", spot)
            return life
        self._take_ignores(rule, work, peer, session, point)
        self._report(rule.fault, point, rule.names, "fired", spot)
        return joined(life, [*made, Life(ignore=True)] if work.dropped else made)

    def _gone(self, peer: Peer) -> None:
        """A connection has ended: what was to happen on it is forgotten."""
        self._memory.forget(peer.id)
        self._listings.forget(peer.id)
        self._counters.forget(connection=peer.id)
        self._ignored = {entry for entry in self._ignored if entry[2] != peer.id}


_NOBODY = Peer("", "acp", "memory")


def _edits(entries: Iterable[Mapping[str, Any]], *, of_request: bool) -> tuple[Mapping[str, Any], ...]:
    """Those entries of an `edit` at a request that change the request itself, or those that change its reply."""
    return tuple(
        entry
        for entry in entries
        if str(entry.get("set", entry.get("remove", ""))).startswith(_OF_REQUEST) is of_request
    )


_OF_REQUEST = ("/params/", "/http/query/")
"""Pointers that no reply has: written at a request, they mean the request, before its handler sees it."""


def _at(message: Message) -> Spot:
    return Spot(peer=message.peer, session=message.session, message=message)
