"""Says whether a `when` holds, for turns, steps, schedules and faults alike.

Pure: what there is to know comes in as a mapping of facts, chances from a seeded generator, and what has been counted
is kept in a `Counters` that the caller owns. It knows neither sessions nor messages; whoever calls it names the facts
as the keys of `when` are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.script import pointer
from mockagent.script.placeholders import Unset

if TYPE_CHECKING:
    from random import Random
    from re import Pattern

    from mockagent.scenario.model import Count, When

Facts = Mapping[str, Any]
"""What is known at one place, under the names of the keys of `when`; what is absent or None is not known.

`prompt`, `command` (without the slash), `turn`, `session`, `mode`, `option` (mapping of ids to values), `params`,
`result` (JSON documents; absent or UNSET: there is none), `origin`, `running`, `last_stop`, `tool_result`, `protocol`,
`transport`, `outcome` (one or several: what came of a question, and the option that was chosen), `text`, `connection`
(the peer's id, for `per: connection`), `makes_session` (the message makes its session, of which it can only be the
first: it is counted with those of the process), and `fill`, a function that fills the placeholders of one text or
raises Unset.
"""

Rng = Callable[[str], "Random"]
"""Gives the generator for a purpose; the same one each time it is asked."""


class Match(msgspec.Struct, frozen=True):
    """A condition held. `groups` are those of the regex that matched, by number (as text; `0` is all) and by name."""

    groups: Mapping[str, str | None] = {}


ALWAYS = Match()


class Tally:
    """How often a rule's other conditions have held in one scope, and how often it has fired."""

    __slots__ = ("fired", "seen", "when")

    def __init__(self, when: When) -> None:
        self.when = when  # held on to, so that its identity is not given to another
        self.seen = 0
        self.fired = 0


class Counters:
    """What `nth`, `every` and `times` have counted, by rule and scope. A rule is the `When` object itself."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[int, str], Tally] = {}

    def tally(self, when: When, scope: str) -> Tally:
        """The count of one rule in one scope, new if need be."""
        key = (id(when), scope)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally(when)
        return tally

    def of(self, when: When) -> dict[str, tuple[int, int]]:
        """All counts of one rule, by scope: how often it was seen, and how often it has fired."""
        return {scope: (tally.seen, tally.fired) for (id_, scope), tally in self._tallies.items() if id_ == id(when)}

    def forget(self, *, session: str | None = None, connection: str | None = None) -> None:
        """Drops the counts of a session or a connection that is gone for good."""
        gone = {f"session:{session}" if session is not None else "", f"connection:{connection}"}
        for key in [key for key in self._tallies if key[1] in gone]:
            del self._tallies[key]

    def drop(self, when: When) -> None:
        """Drops all counts of one rule."""
        for key in [key for key in self._tallies if key[0] == id(when)]:
            del self._tallies[key]

    def __len__(self) -> int:
        return len(self._tallies)


def matches(
    when: When, facts: Facts, counters: Counters, rng: Rng, *, unset: Callable[[Unset], None] | None = None
) -> Match | None:
    """Whether all keys of a condition hold.

    `chance` is drawn only where all other keys hold, and `nth`, `every`, `times` count only what has passed that: `nth`
    and `every` look at how many have passed, `times` at how often the condition has held.

    Args:
        when: the condition.
        facts: what is known here.
        counters: kept by the caller from call to call.
        rng: where `chance` is drawn from.
        unset: is told of a placeholder that has no value, which makes the condition false.

    Returns:
        A match (with the groups of its regex), or None.
    """
    groups: dict[str, str | None] = {}
    fill = facts.get("fill")
    try:
        for key, holds in _KEYS.items():
            wanted = getattr(when, key)
            if wanted is None:
                continue
            if fill is not None:
                wanted = _filled(wanted, fill)
            if not holds(wanted, facts.get(key), groups):
                return None
    except Unset as missing:
        if unset is not None:
            unset(missing)
        return None
    if when.chance is not None and rng(f"chance/{when.place.path}").random() >= when.chance:
        return None
    if not _counted(when, facts, counters):
        return None
    return Match(groups) if groups else ALWAYS


def _filled(wanted: Any, fill: Callable[[str], Any]) -> Any:
    """A pattern, or the values of a mapping, with placeholders filled."""
    if isinstance(wanted, str):
        return fill(wanted) if "$" in wanted else wanted
    if isinstance(wanted, dict):
        return {key: _filled(value, fill) for key, value in wanted.items()}
    if isinstance(wanted, list | tuple):
        return [_filled(value, fill) for value in wanted]
    return wanted


def _counted(when: When, facts: Facts, counters: Counters) -> bool:
    if when.nth is None and when.every is None and when.times is None:
        return True
    tally = counters.tally(when, scope_of(when, facts))
    tally.seen += 1
    if when.nth is not None and not counts(when.nth, tally.seen):
        return False
    if when.every is not None and tally.seen % when.every:
        return False
    if when.times is not None and tally.fired >= when.times:
        return False
    tally.fired += 1
    return True


def scope_of(when: When, facts: Facts) -> str:
    """Where a condition is counted: as `per` says, else by session if there is one."""
    per = when.per or ("process" if facts.get("makes_session") else "session")
    name = facts.get(per) if per != "process" else None
    return "process" if name is None else f"{per}:{name}"


def counts(count: Count, number: int) -> bool:
    """Whether a number is among those that `nth` (or `turn`) names."""
    if number in count.numbers:
        return True
    if count.low is None and count.high is None:
        return False
    return (count.low is None or number >= count.low) and (count.high is None or number <= count.high)


# --- patterns


def glob(pattern: str, text: str) -> bool:
    """Whether a text has the form of a pattern, in which `*` stands for any text and all else for itself."""
    head, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    tail = rest.pop()
    if not text.startswith(head) or not text.endswith(tail) or len(text) < len(head) + len(tail):
        return False
    at, end = len(head), len(text) - len(tail)
    for piece in rest:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def command_of(prompt: str | None) -> str | None:
    """The name of the slash command that a prompt is, without the slash, or None."""
    if prompt is None or not prompt.startswith("/"):
        return None
    words = prompt[1:].split(None, 1)
    return words[0] if words else ""


def is_regex(pattern: str) -> bool:
    """Whether a pattern is written `/regex/`."""
    return len(pattern) > 2 and pattern[0] == "/" and pattern[-1] == "/"


@lru_cache(maxsize=256)
def _compiled(regex: str) -> Pattern[str]:
    import re

    return re.compile(regex)


def same(wanted: Any, value: Any) -> bool:
    """Whether a JSON value is the one that is wanted, or has its form.

    A text is a glob; one that holds `*` is held against the JSON text of what is no text. `true` is not 1; 1 is 1.0.
    """
    if isinstance(wanted, str):
        if isinstance(value, str):
            return glob(wanted, value)
        return "*" in wanted and glob(wanted, msgspec.json.encode(value).decode())
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, dict) and isinstance(value, dict):
        return wanted.keys() == value.keys() and all(same(item, value[key]) for key, item in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        return len(wanted) == len(value) and all(map(same, wanted, value))
    return bool(wanted == value)


# --- the keys

Groups = dict[str, "str | None"]


def _speech(fold: bool) -> Callable[[Any, Any, Groups], bool]:
    """A text that a glob or a `/regex/` is held against; the regex is searched for, and leaves its groups."""

    def holds(wanted: Any, fact: Any, groups: Groups) -> bool:
        if fact is None:
            return False
        text = fact if isinstance(fact, str) else msgspec.json.encode(fact).decode()
        wanted = wanted if isinstance(wanted, str) else msgspec.json.encode(wanted).decode()
        if not is_regex(wanted):
            return glob(wanted.casefold(), text.casefold()) if fold else glob(wanted, text)
        found = _compiled(wanted[1:-1]).search(text)
        if found is None:
            return False
        groups["0"] = found[0]
        groups.update((str(number), group) for number, group in enumerate(found.groups(), 1))
        groups.update(found.groupdict())
        return True

    return holds


def _name(wanted: Any, fact: Any, groups: Groups) -> bool:
    """A name, or one of several, held against a glob."""
    names = (fact,) if isinstance(fact, str) else fact or ()
    return any(isinstance(name, str) and glob(str(wanted), name) for name in names)


def _command(wanted: Any, fact: Any, groups: Groups) -> bool:
    return isinstance(fact, str) and glob(str(wanted).removeprefix("/"), fact.removeprefix("/"))


def _number(wanted: Any, fact: Any, groups: Groups) -> bool:
    return isinstance(fact, int) and counts(wanted, fact)


def _flag(wanted: Any, fact: Any, groups: Groups) -> bool:
    return bool(fact) is wanted


def _among(wanted: Any, fact: Any, groups: Groups) -> bool:
    return fact in wanted


def _options(wanted: Any, fact: Any, groups: Groups) -> bool:
    return all(key in (fact or {}) and same(value, fact[key]) for key, value in wanted.items())


def _document(wanted: Any, fact: Any, groups: Groups) -> bool:
    """Every pointer leads to its value. `null` is also what is absent: there is no other way to ask for that."""
    for where, value in wanted.items():
        try:
            found = None if fact is msgspec.UNSET else pointer.get(fact, where)
        except pointer.Absent:
            found = None
        if not (found is None if value is None else found is not None and same(value, found)):
            return False
    return True


_KEYS: dict[str, Callable[[Any, Any, Groups], bool]] = {
    "protocol": _name,
    "transport": _name,
    "origin": _among,
    "session": _name,
    "turn": _number,
    "running": _flag,
    "mode": _name,
    "option": _options,
    "last_stop": _name,
    "tool_result": _name,
    "command": _command,
    "outcome": _name,
    "params": _document,
    "result": _document,
    "prompt": _speech(fold=True),
    "text": _speech(fold=False),
}
