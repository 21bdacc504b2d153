"""The rule engine: judges the client by what it sends, and counts how often it kept and broke each rule.

A rule only looks (see `rule` for how one is written), and it is given nothing to be unfair with: messages that a fault
has damaged or kept back are not shown to it, and where the client cannot know what the rule knows, it stops judging.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from mockagent.message import Burst, Direction, Fate, Message, Peer, Protocol, Transport
from mockagent.script.match import glob
from mockagent.watch.entries import printable
from mockagent.watch.kinds import KindTable
from mockagent.watch.redact import Redactor
from mockagent.watch.rule import Breach, Check, Rule, Scope, Tally, Unknown, W, Witness, watches
from mockagent.watch.shown import SHOWN, Shown, show

#: Effects after which the message is still the same to the client.
HARMLESS: Final = frozenset({"delay", "hold", "coalesce", "rate", "escape", "comment"})
#: So many breaches of one rule are kept with their messages; the rest is counted.
KEPT: Final = 20
#: So many checks of sessions are at work for one connection at a time; the oldest are let go unjudged.
WATCHED: Final = 2000
#: The same for connections: those of plain HTTP may come in any number, and nobody has to say when they end.
CONNECTIONS: Final = 2000
#: So many of those that were let go are remembered. One that is heard of again is not judged as if it were new.
LET_GO: Final = 50_000


class _Part:
    """A rule, or a witness that rules consult: whose instances look at messages.

    Attributes:
        shared: one instance serves everybody, as it has nothing to remember.
    """

    __slots__ = ("kind_of", "rules", "scope", "shared", "tally", "watches")

    def __init__(self, kind_of: type[Witness], scope: Scope, rules: list[Rule], tally: Tally | None = None) -> None:
        self.kind_of = kind_of
        self.scope = scope
        self.rules = rules
        self.tally = tally
        self.watches = list(watches(kind_of, rules[0].on if tally is not None else ()))
        self.shared = (
            tally is not None
            and kind_of.start is Witness.start
            and kind_of.ended is Witness.ended
            and all(what != "sent" for what, _, _ in self.watches)
        )

    def applies(self, peer: Peer) -> bool:
        """Whether there is anything to look at on a connection."""
        return any(
            rule.protocol == peer.protocol and (not rule.transports or peer.transport in rule.transports)
            for rule in self.rules
        )

    def make(self, audit: Audit, peer: Peer, session: str | None) -> Witness:
        """One more instance."""
        if self.tally is None:
            return self.kind_of(audit, peer, session)
        return cast("type[Check]", self.kind_of)(audit, self.tally, peer, session)


class _Table:
    """Who watches what, for the parts that apply to one protocol over one transport."""

    __slots__ = ("got", "noted", "sent", "unreadable")

    def __init__(self, parts: Iterable[tuple[int, _Part]]) -> None:
        self.got: KindTable[tuple[int, str]] = KindTable()
        self.sent: KindTable[tuple[int, str]] = KindTable()
        self.noted: KindTable[tuple[int, str]] = KindTable()
        self.unreadable: KindTable[tuple[int, str]] = KindTable()
        for number, part in parts:
            for what, kind, name in part.watches:
                getattr(self, what).add(kind, (number, name))


_Checks = dict[tuple[int, str | None], Witness]


def _parts(rules: Iterable[Rule], tallies: dict[str, Tally]) -> list[_Part]:
    """The witnesses first: they see a message before the rules that consult them."""
    asking: dict[type[Witness], list[Rule]] = {}
    for rule in rules:
        for kind_of in rule.check.knows:
            asking.setdefault(kind_of, []).append(rule)
    witnesses = [_Part(kind_of, kind_of.scope, some) for kind_of, some in asking.items()]
    return witnesses + [_Part(rule.check, rule.scope, [rule], tallies[rule.id]) for rule in rules]


class Audit:
    """A tap that judges.

    Args:
        rules: of all protocols that are played.
        allow: ids of rules (or globs over them) whose breaches are counted, and do not count against the client.
        redact: masks secrets in the messages that are kept.
    """

    def __init__(self, rules: Iterable[Rule], allow: Iterable[str] = (), redact: Redactor | None = None) -> None:
        rules = list(rules)
        self._allow = tuple(allow)
        self._redact = redact or Redactor()
        self.tallies = {rule.id: Tally(rule) for rule in rules}
        #: what rules stumbled over: an error of ours, never of the client
        self.problems: list[str] = []
        #: grows with every breach
        self.changes = 0
        self._parts = _parts(rules, self.tallies)
        self._witnesses = {part.kind_of: number for number, part in enumerate(self._parts) if part.tally is None}
        self._shared: dict[int, Witness] = {}
        self._tables: dict[tuple[Protocol, Transport], _Table] = {}
        self._checks: dict[str, _Checks] = {}
        self._across: _Checks = {}
        self._gone: dict[object, None] = {}
        self._line = 0
        self._last: dict[str, tuple[int, Message | Burst]] = {}
        self._now: tuple[Message, Direction] | None = None
        self._waiting: dict[str, list[Breach]] = {}
        self._small: tuple[Message | Burst, Shown] | None = None

    @property
    def failed(self) -> bool:
        """Whether a rule was broken that is not allowed to be."""
        return any(tally.broken for tally in self.tallies.values())

    @property
    def breaches(self) -> list[Breach]:
        """All that were kept, in the order of the rules."""
        return [breach for tally in self.tallies.values() for breach in tally.breaches]

    def unknown(self) -> list[str]:
        """The entries of `allow` that name no rule: most likely a slip of the pen."""
        return [pattern for pattern in self._allow if not any(glob(pattern, id) for id in self.tallies)]

    def restart(self) -> None:
        """Forgets every verdict. What is known of connections that are there stays known."""
        for tally in self.tallies.values():
            tally.met = tally.broken = tally.allowed = 0
            tally.breaches.clear()
        self.problems.clear()
        self._last.clear()
        self._waiting.clear()
        self._line = 0
        self.changes += 1

    # --- Tap

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        self._line += 1
        peer = message.peer
        table = self._table(peer)
        watchers = (table.got if direction == "in" else table.sent).find(message.kind)
        if watchers and fate is not Fate.UNSENT:
            if fate is Fate.DAMAGED and not (message.damaged and HARMLESS.issuperset(message.damaged)):
                self._spoil(message, watchers)
            else:
                self._look(message, direction, watchers)
        self._passed(peer, message)

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`. Costs nothing when no rule watches the kind."""
        if not burst.texts:
            return
        watchers = self._table(burst.peer).sent.find(burst.kind)
        if not watchers:
            self._line += 1
            self._passed(burst.peer, burst)
            self._line += len(burst.texts) - 1
            return
        for message in burst.messages():
            self._line += 1
            self._look(message, "out", watchers)
            self._passed(burst.peer, message)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        self._line += 1
        message = Message("malformed", {"why": why, "bytes": printable(data[:SHOWN])}, peer)
        if watchers := self._table(peer).unreadable.find(message.kind):
            self._look(message, "in", watchers)
        self._passed(peer, message)

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`. `closed` is the end of the connection: its checks are ended and forgotten."""
        self._line += 1
        if peer is None:
            return
        if watchers := self._table(peer).noted.find(event):
            self._now = (Message(event, detail, peer, session=session), "in")  # what a breach shows
            for number, name in watchers:
                self._call(number, self._check(number, peer, session), name, detail)
            self._now = None
        if event == "closed":
            self._drop(peer.id)

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`. What the client has really seen is unknown from here on: nothing is judged by it."""
        self._line += 1
        for check in self._checks.get(peer.id, {}).values():
            check.blind = True
        for check in self._across.values():
            if check.peer is peer:
                check.blind = True

    def close(self) -> None:
        """See `Tap`."""
        for peer_id in list(self._checks):
            self._drop(peer_id)
        for (number, _), check in self._across.items():
            self._call(number, check, "ended")
        self._across.clear()

    # --- what checks ask

    def witness(self, kind_of: type[W], peer: Peer, session: str | None) -> W:
        """The instance of a witness that is concerned.

        Raises:
            Unknown: there is none any more, or it sees nothing.
        """
        witness = self._check(self._witnesses[kind_of], peer, session)
        if witness is None or witness.blind:
            raise Unknown
        return cast("W", witness)

    def shown(self, message: Message | Burst) -> Shown:
        """A message in its small form; its line is the one that is looked at."""
        if self._small is None or self._small[0] is not message or self._small[1].line != self._line:
            self._small = (message, self._shown(message, self._line))  # several rules may ask for the same one
        return self._small[1]

    def breach(self, check: Check, tally: Tally, why: str, shown: tuple[Message | Shown, ...]) -> None:
        """Counts a breach and keeps the first of each rule."""
        self.changes += 1
        rule = tally.rule
        allowed = any(glob(pattern, rule.id) for pattern in self._allow)
        if allowed:
            tally.allowed += 1
        else:
            tally.broken += 1
        if len(tally.breaches) >= KEPT:
            return
        messages: tuple[Message | Shown, ...] = shown or ((self._now[0],) if self._now else ())
        before = self._last.get(check.peer.id) if self._now else None
        breach = Breach(
            rule=rule.id, level=rule.level, sentence=rule.sentence, source=rule.source, why=why, peer=check.peer.id,
            session=check.session if check.session is not None else self._now[0].session if self._now else None,
            shown=[part if isinstance(part, Shown) else self.shown(part) for part in messages],
            before=self._shown(before[1], before[0]) if before else None, allowed=allowed,
        )  # fmt: skip
        tally.breaches.append(breach)
        if self._now:
            self._waiting.setdefault(check.peer.id, []).append(breach)

    # --- inside

    def _table(self, peer: Peer) -> _Table:
        key = (peer.protocol, peer.transport)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = _Table(
                (number, part) for number, part in enumerate(self._parts) if part.applies(peer)
            )
        return table

    def _look(self, message: Message, direction: Direction, watchers: tuple[tuple[int, str], ...]) -> None:
        self._now = (message, direction)
        for number, name in watchers:
            self._call(number, self._check(number, message.peer, message.session), name, message)
        self._now = None

    def _spoil(self, message: Message, watchers: tuple[tuple[int, str], ...]) -> None:
        for number in dict.fromkeys(number for number, _ in watchers):
            self._call(number, self._check(number, message.peer, message.session), "damaged", message)

    def _check(self, number: int, peer: Peer, session: str | None) -> Witness | None:
        """The instance that is concerned; None when it is about sessions and the message belongs to none."""
        part = self._parts[number]
        of_session = part.scope in ("session", "shared_session")
        key = (number, session if of_session else None)
        if key[1] is None and of_session:
            return None
        check: Witness | None
        if part.shared:
            check = self._shared.get(number) or self._shared.setdefault(number, part.make(self, peer, None))
            check.session = key[1]
        elif part.scope in ("peer", "session"):
            checks = self._of(peer)
            if checks is None:
                return None
            check = checks.get(key) or self._begin(part, checks, key, peer)
        else:
            check = self._across.get(key) or self._begin(part, self._across, key, peer)
        if check is not None:
            check.peer = peer
        return check

    def _of(self, peer: Peer) -> _Checks | None:
        """What watches a connection; None when that was let go."""
        checks = self._checks.get(peer.id)
        if checks is None:
            if peer.id in self._gone:
                return None
            while len(self._checks) >= CONNECTIONS:
                oldest = next(iter(self._checks))
                self._forget(oldest)
                self._let_go(oldest)
            checks = self._checks[peer.id] = {}
        return checks

    def _begin(self, part: _Part, checks: _Checks, key: tuple[int, str | None], peer: Peer) -> Witness | None:
        """A new instance; None when there was one for the session that was let go."""
        owner = peer.id if part.scope == "session" else None
        if key[1] is not None and (owner, key) in self._gone:
            return None
        if key[1] is not None and len(checks) >= WATCHED:
            first = next(key for key in checks if key[1] is not None)
            del checks[first]
            self._let_go((owner, first))
        check = checks[key] = part.make(self, peer, key[1])
        return check

    def _call(self, number: int, check: Witness | None, name: str, *arguments: Any) -> None:
        if check is None or check.blind:
            return
        try:
            getattr(check, name)(*arguments)
        except Unknown:
            pass
        except Exception as error:  # a rule must not be able to end the play
            part = self._parts[number]
            check.blind = not part.shared
            if len(self.problems) < KEPT:
                who = f"rule {part.rules[0].id}" if part.tally is not None else part.kind_of.__name__
                self.problems.append(f"{who} stumbled at line {self._line}: {type(error).__name__}: {error}")

    def _passed(self, peer: Peer, message: Message | Burst) -> None:
        """The message becomes the last one of its connection, and the one after for what waits for that."""
        if peer.id in self._waiting:
            waiting = self._waiting.pop(peer.id)
            for breach in waiting:
                if breach.shown and breach.shown[-1].line == self._line:  # its own message
                    self._waiting.setdefault(peer.id, []).append(breach)
                else:
                    breach.after = self._shown(message, self._line)
                    self.changes += 1
        if peer.id not in self._last and len(self._last) >= CONNECTIONS:
            del self._last[next(iter(self._last))]
        self._last[peer.id] = (self._line, message)

    def _shown(self, message: Message | Burst, line: int) -> Shown:
        return show(message, line, self._redact)

    def _drop(self, peer_id: str) -> None:
        for (number, _), check in self._checks.get(peer_id, {}).items():
            self._call(number, check, "ended")
        self._forget(peer_id)
        self._gone.pop(peer_id, None)

    def _let_go(self, what: object) -> None:
        if len(self._gone) >= LET_GO:
            del self._gone[next(iter(self._gone))]
        self._gone[what] = None

    def _forget(self, peer_id: str) -> None:
        self._checks.pop(peer_id, None)
        self._last.pop(peer_id, None)
        self._waiting.pop(peer_id, None)
