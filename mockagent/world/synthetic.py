"""Invented sessions by the million: each one follows from its number, and none is made before it is looked at.

The number gives the id and back, the time (which falls with the number, so that nothing is ever sorted), and the
folder: numbers come in blocks in which every folder occurs, so that the rows of one folder can be counted off as well.
Knows the words that `world.words` has, and no store.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import gcd
from random import Random
from typing import Any, NamedTuple

from mockagent.scenario import model
from mockagent.scenario.model import Micros
from mockagent.world.order import Key
from mockagent.world.seeds import Seeds

_BITS = 48
_MASK = (1 << _BITS) - 1
_FACTOR = 0x9E3779B97F4B  # odd, so that it can be undone
_BACK = pow(_FACTOR, -1, 1 << _BITS)
_WORD = (1 << 64) - 1


class Row(NamedTuple):
    """What the list shows of an invented session, beside id, folder and time.

    Attributes:
        turns: how many prompts its history holds.
    """

    title: str | None
    directories: tuple[str, ...]
    meta: dict[str, Any]
    turns: int


class Synthetic:
    """The invented sessions of one scenario.

    Args:
        rules: `sessions.synthetic`.
        cwd: the folder, where the rules name none.
        seeds: where chances come from.
        newest: time before which they all lie, in microseconds since the epoch.
    """

    def __init__(self, rules: model.Synthetic, cwd: str, seeds: Seeds, newest: Micros) -> None:
        self.count = rules.count
        self.locale = rules.locale
        self._rules = rules
        self._seeds = seeds
        self._newest = newest
        self._cwds = rules.cwds or (cwd,)
        self._span = rules.span
        self._salt = seeds.fresh("synthetic ids").getrandbits(_BITS)
        size = len(self._cwds)
        self._strides = [step for step in range(1, min(size, 64) + 1) if gcd(step, size) == 1]

    # --- ids

    def id_of(self, number: int) -> str:
        """The id of a session."""
        mixed = (number + self._salt) * _FACTOR & _MASK
        return f"sess_{mixed ^ mixed >> 24:012x}"

    def number_of(self, id: str) -> int | None:
        """The number behind an id, None if it is not one of these."""
        digits = id.removeprefix("sess_")
        if len(digits) != 12 or len(id) != 17 or set(digits) - _DIGITS:
            return None
        mixed = int(digits, 16)
        number = ((mixed ^ mixed >> 24) * _BACK - self._salt) & _MASK
        return number if number < self.count else None

    # --- times

    def time_of(self, number: int) -> Micros:
        """When a session was active last, in microseconds since the epoch: never later than the one before it."""
        begins = number * self._span // self.count
        width = (number + 1) * self._span // self.count - begins
        return self._newest - begins - (_scatter(self._salt ^ number) * width >> 64)

    def key_of(self, number: int) -> Key:
        """The place of a session in the list."""
        return (-self.time_of(number), 1, number)

    def behind(self, cwd: str | None, mark: Key | None) -> Iterator[int]:
        """The numbers behind a place in the list (None: all), in order.

        Args:
            cwd: only those of this folder, as `plain` writes it.
            mark: the place.
        """
        start = 0 if mark is None else bisect_right(range(self.count), mark, key=self.key_of)
        return iter(range(start, self.count)) if cwd is None else self._of_folder(cwd, start)

    # --- folders

    def cwd_of(self, number: int) -> str:
        """The folder of a session."""
        block, at = divmod(number, len(self._cwds))
        offset, stride = self._turn(block)
        return self._cwds[(offset + stride * at) % len(self._cwds)]

    def _turn(self, block: int) -> tuple[int, int]:
        """How the folders are dealt out in a block."""
        drawn = _scatter(~self._salt & _WORD ^ block)
        return drawn % len(self._cwds), self._strides[(drawn >> 32) % len(self._strides)]

    def _of_folder(self, cwd: str, start: int) -> Iterator[int]:
        size = len(self._cwds)
        wanted = self._places(cwd)
        if not wanted:
            return
        for block in range(start // size, -(-self.count // size)):
            for at in self._at(block, wanted):
                number = block * size + at
                if start <= number < self.count:
                    yield number

    def _places(self, cwd: str) -> list[int]:
        return [at for at, name in enumerate(self._cwds) if plain(name) == cwd]

    def _at(self, block: int, wanted: list[int]) -> list[int]:
        """Where in a block the wanted folders are."""
        size = len(self._cwds)
        offset, stride = self._turn(block)
        back = pow(stride, -1, size) if size > 1 else 0
        return sorted((place - offset) * back % size for place in wanted)

    def before(self, cwd: str | None, number: int) -> int:
        """How many sessions (of a folder) come before a number."""
        if cwd is None:
            return number
        block, at = divmod(number, len(self._cwds))
        wanted = self._places(cwd)
        return block * len(wanted) + sum(place < at for place in self._at(block, wanted))

    def nth(self, cwd: str | None, index: int) -> int:
        """The number of the session at an index among those of a folder."""
        if cwd is None:
            return index
        wanted = self._places(cwd)
        block, at = divmod(index, len(wanted))
        return block * len(self._cwds) + self._at(block, wanted)[at]

    # --- rows

    def row(self, number: int) -> Row:
        """What the list shows of a session."""
        from mockagent.world.fakes import Coder

        rng = self.rng(number)
        coder = Coder(rng, self.locale)
        title: str | None = coder.title()
        low, high = self._rules.turns
        turns = rng.randint(low, high)
        meta = {"messageCount": 2 * turns, "branch": coder.branch(), "hasErrors": rng.random() < 0.1}
        if rng.random() < self._rules.untitled:
            title = None
        return Row(title, self._directories(number, rng), meta, turns)

    def rng(self, number: int) -> Random:
        """A session's own chances, at their start."""
        return self._seeds.fresh("synthetic", str(number))

    def _directories(self, number: int, rng: Random) -> tuple[str, ...]:
        """Now and then a session works in a second folder."""
        if rng.random() >= 0.12:
            return ()
        parent = plain(self.cwd_of(number)).rpartition("/")[0]
        return (f"{parent}/{rng.choice(('shared', 'docs', 'protos', 'design'))}",)


_DIGITS = frozenset("0123456789abcdef")


def plain(cwd: str) -> str:
    """A folder without the slash at its end."""
    return cwd.rstrip("/") or "/"


def _scatter(number: int) -> int:
    """Sixty-four bits that look like chance (the finalizer of SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _WORD
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _WORD
    return number ^ number >> 31
