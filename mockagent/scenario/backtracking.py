"""Whether a regular expression can backtrack exponentially: then a text that nearly fits holds everything up.

Works on what the standard library's parser makes of it, by a model that leaves out look-arounds and back references and
is otherwise careful: it may call a pattern dangerous that is not, for one that only a `\\b` keeps in hand. Knows
nothing of scenarios. The parser is imported when the first pattern is looked at.

An expression backtracks exponentially where one text can be read in two ways by the rounds of a repetition, so that
each further round doubles the ways (Weideman et al., "Analyzing matching time behavior of backtracking regular
expression matchers", 2016). `_Rounds` looks for such a text: it holds which character class can follow which, and walks
through pairs of them which the same characters lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

COPIES = 8
"""Repetitions up to this often are written out; more of them count as any number."""

POSITIONS = 200
"""Character classes in one repetition up to which pairs of them are looked at; larger ones are dangerous if nested."""

STEPS = 300_000
"""Steps from pair to pair up to which they are looked at; the same is said of a repetition that takes more."""


def exponential(regex: str) -> bool:
    """Whether the time of a search can double with each further character of a text.

    Args:
        regex: an expression that `re.compile` takes.

    Returns:
        Always False where the standard library does not have the parser that is known here.
    """
    try:
        parse = import_module("re._parser").parse
    except ImportError:
        return False
    tree = parse(regex)
    model = _Model(_samples(tree), bool(tree.state.flags & _IGNORECASE), bool(tree.state.flags & _DOTALL))
    return model.exponential(tree)


_IGNORECASE, _DOTALL = 2, 16
_OUTSIDE = ("AT", "ASSERT", "ASSERT_NOT")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}
_COMMON = "aZ5_ \n-.\u00e9\u4e00\U0001f600\x00"


# --- characters: a class is a bit mask over samples, one at least for each class that the expression can tell apart


def _samples(tree: Any) -> list[str]:
    codes = {around for code in _codes(tree) for around in (code - 1, code, code + 1)}
    named = {chr(code) for code in codes if 0 <= code < 0x110000}
    return sorted({*_COMMON, *(form for char in named for form in _forms(char))})[:2000]


def _codes(tree: Any) -> Iterable[int]:
    """Every character that an expression names."""
    for item in tree if not isinstance(tree, int) else ():
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]) in ("LITERAL", "NOT_LITERAL"):
            yield item[1]
        elif isinstance(item, tuple) and len(item) == 2 and str(item[0]) == "RANGE":
            yield from item[1]
        elif isinstance(item, tuple | list) or type(item).__name__ == "SubPattern":
            yield from _codes(item)


def _forms(char: str) -> tuple[str, ...]:
    return tuple(form for form in {char, char.lower(), char.upper()} if len(form) == 1)


def _is_in(items: Any, char: str) -> bool:
    """Whether a character is in a class `[...]`."""
    found = negated = False
    for name, value in items:
        kind = str(name)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            found |= ord(char) == value
        elif kind == "RANGE":
            found |= value[0] <= ord(char) <= value[1]
        elif kind == "CATEGORY":
            words = str(value).split("_")
            found |= _CATEGORIES[words[-1]](char) is not ("NOT" in words)
    return found is not negated


# --- the model


class _Part(NamedTuple):
    """A part of an expression as positions: where it can begin and end, and whether it can be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    nullable: bool


_EMPTY = _Part((), (), True)


class _Rounds:
    """One repetition, written out: the class at each position, and what can follow what, in how many ways."""

    def __init__(self) -> None:
        self.masks: list[int] = []
        self.follow: dict[int, list[int]] = {}
        self.doubled = False

    def position(self, mask: int) -> _Part:
        """One character of a class."""
        at = len(self.masks)
        self.masks.append(mask)
        self.follow[at] = []
        return _Part((at,), (at,), False)

    def join(self, last: Iterable[int], first: Iterable[int]) -> None:
        """What begins with `first` can follow what ends with `last`."""
        for end in last:
            self.follow[end] += first

    def ambiguous(self) -> bool:
        """Whether one text can be read in two ways by a round: two ways in one step, or two paths that meet again."""
        if self.doubled or any(len(nexts) != len(set(nexts)) for nexts in self.follow.values()):
            return True
        before: dict[int, list[int]] = {at: [] for at in self.follow}
        for at, nexts in self.follow.items():
            for behind in nexts:
                before[behind].append(at)
        forth = self._pairs(self.follow)
        return any(one != other for one, other in forth & self._pairs(before))

    def _pairs(self, ways: dict[int, list[int]]) -> set[tuple[int, int]]:
        """The pairs of positions that some text leads to, from any one position."""
        open_ = [(at, at) for at in range(len(self.masks))]
        seen = set(open_)
        steps = 0
        while open_:
            one, other = open_.pop()
            steps += len(ways[one]) * len(ways[other])
            if steps > STEPS:
                raise _TooLarge
            for pair in ((a, b) for a in ways[one] for b in ways[other]):
                if pair not in seen and self.masks[pair[0]] & self.masks[pair[1]]:
                    seen.add(pair)
                    open_.append(pair)
        return seen


class _Model:
    """Reads an expression as it is parsed, and each repetition in it as its rounds."""

    def __init__(self, samples: list[str], fold: bool, dotall: bool) -> None:
        self._samples = samples
        self._fold = fold
        self._dotall = dotall

    def exponential(self, tree: Any) -> bool:
        """Whether any repetition in a part is ambiguous."""
        return any(self._is_exponential(str(name), value) for name, value in tree)

    def _is_exponential(self, kind: str, value: Any) -> bool:
        if kind in ("MAX_REPEAT", "MIN_REPEAT") and value[1] > COPIES:
            least, _, body = value
            empty_rounds = least > COPIES and body.getwidth()[0] == 0  # up to `least` there may be any number of them
            if empty_rounds or self._is_ambiguous(body):
                return True
        return any(map(self.exponential, _inside(kind, value)))

    # --- rounds

    def _is_ambiguous(self, body: Any) -> bool:
        rounds = _Rounds()
        try:
            part = self._part(body, rounds)
            rounds.join(part.last, part.first)
            return rounds.ambiguous()
        except _TooLarge:
            return _nests(body)

    def _part(self, tree: Any, rounds: _Rounds) -> _Part:
        """A sequence."""
        whole = _EMPTY
        for name, value in tree:
            part = self._part_of(str(name), value, rounds)
            rounds.join(whole.last, part.first)
            whole = _Part(
                (*whole.first, *part.first) if whole.nullable else whole.first,
                (*part.last, *whole.last) if part.nullable else part.last,
                whole.nullable and part.nullable,
            )
        return whole

    def _part_of(self, kind: str, value: Any, rounds: _Rounds) -> _Part:
        if len(rounds.masks) > POSITIONS:
            raise _TooLarge
        if kind in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT"):  # what is in there is never tried a second time
            body, least = (value, 1) if kind == "ATOMIC_GROUP" else (value[2], value[0])
            part = rounds.position(self._first_mask(body))
            return part._replace(nullable=least == 0 or body.getwidth()[0] == 0)
        if kind in _REPEATS:
            least, most, body = value
            return self._part_of_repeat(least, most, body, rounds)
        if kind == "SUBPATTERN":
            return self._part(value[-1], rounds)
        if kind in ("BRANCH", "GROUPREF_EXISTS"):
            parts = [self._part(branch, rounds) for branch in _inside(kind, value)]
            rounds.doubled |= sum(part.nullable for part in parts) > 1  # `a|a` is read as `a(?:|)`
            return _either(parts)
        if kind in _OUTSIDE:
            return _EMPTY
        if kind == "GROUPREF":
            return rounds.position(-1)._replace(nullable=True)
        return rounds.position(self._mask(kind, value))

    def _part_of_repeat(self, least: int, most: int, body: Any, rounds: _Rounds) -> _Part:
        if most > COPIES:
            part = self._part(body, rounds)
            rounds.join(part.last, part.first)
            return part._replace(nullable=part.nullable or least == 0)
        whole = _EMPTY
        for number in range(most):
            part = self._part(body, rounds)
            optional = part.nullable or number >= least
            rounds.join(whole.last, part.first)
            whole = _Part(
                (*whole.first, *part.first) if number == 0 or whole.nullable else whole.first,
                (*part.last, *whole.last) if optional else part.last,
                whole.nullable and optional,
            )
        return whole

    def _first_mask(self, body: Any) -> int:
        rounds = _Rounds()
        part = self._part(body, rounds)
        mask = 0
        for at in part.first:
            mask |= rounds.masks[at]
        return mask

    def _mask(self, kind: str, value: Any) -> int:
        mask = 0
        for bit, sample in enumerate(self._samples):
            forms = _forms(sample) if self._fold else (sample,)
            if any(self._takes(kind, value, form) for form in forms):
                mask |= 1 << bit
        return mask

    def _takes(self, kind: str, value: Any, char: str) -> bool:
        if kind == "LITERAL":
            return bool(ord(char) == value)
        if kind == "NOT_LITERAL":
            return bool(ord(char) != value)
        if kind == "ANY":
            return self._dotall or char != "\n"
        return _is_in(value, char) if kind == "IN" else True


class _TooLarge(Exception):
    """There are more positions than are looked at."""


def _inside(kind: str, value: Any) -> list[Any]:
    """The parts that an item of a parsed expression consists of."""
    if kind in _REPEATS:
        return [value[2]]
    if kind == "ATOMIC_GROUP":
        return [value]
    if kind == "SUBPATTERN":
        return [value[-1]]
    if kind in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if kind == "BRANCH":
        return list(value[1])
    return [part for part in value[1:] if part is not None] if kind == "GROUPREF_EXISTS" else []


def _nests(body: Any) -> bool:
    """Whether there is a repetition without an end in a part."""
    return any(
        (str(name) in _REPEATS and value[1] > COPIES) or any(map(_nests, _inside(str(name), value)))
        for name, value in body
    )


def _either(parts: list[_Part]) -> _Part:
    return _Part(
        tuple(at for part in parts for at in part.first),
        tuple(at for part in parts for at in part.last),
        any(part.nullable for part in parts) or not parts,
    )
