"""Ids for new sessions: the n-th one is always the same for a seed, whoever asks for it.

One for the whole process, so that two agents never give out the same id; with a state file the counting is done there,
so that it goes on after a restart and is shared with other processes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random


class Ids:
    """Gives out ids.

    Args:
        rng: where they come from.

    Attributes:
        count: gives the number of the next id, from 1; None: they are counted here.
    """

    def __init__(self, rng: Random) -> None:
        self.count: Callable[[], int] | None = None
        self._rng = rng
        self._drawn = 0

    def next(self) -> str:
        """An id that was not given out before by those who share the counting."""
        number = self._drawn + 1 if self.count is None else max(self.count(), self._drawn + 1)
        while self._drawn < number - 1:
            self._rng.getrandbits(48)
            self._drawn += 1
        self._drawn += 1
        return f"sess_{self._rng.getrandbits(48):012x}"
