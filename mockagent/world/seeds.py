"""Random generators that do not depend on each other.

Every purpose of every session has a generator of its own, so that a draw more in one place moves nothing elsewhere, and
session 734 is the same whether or not anybody looked at 733.
"""

from __future__ import annotations

from random import Random


class Seeds:
    """Generators made from one seed.

    Args:
        seed: the scenario's, or the one given on the command line.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._kept: dict[tuple[str, str | None], Random] = {}

    def fresh(self, purpose: str, session: str | None = None) -> Random:
        """A generator at its start: the same draws each time it is asked for."""
        return Random(f"{self.seed}/{session or ''}/{purpose}")

    def rng(self, purpose: str, session: str | None = None) -> Random:
        """The running generator of a purpose: its draws go on where the last ones ended."""
        key = (purpose, session)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self.fresh(purpose, session)
        return found

    def forget(self, session: str) -> None:
        """Drops the generators of a session that is gone."""
        for key in [key for key in self._kept if key[1] == session]:
            del self._kept[key]
