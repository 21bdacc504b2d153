"""The checks of a folder once more, over stdio: what a scenario shows must not depend on the transport.

Only for checks that are content with one client; `Played` knows no more of the transport than its clients do.
"""

from __future__ import annotations

from tests.catalogue.judged import Catalogue, Court, Played
from tests.catalogue.memory import over_lines
from tests.faults.wire import Client


class OverStdio(Played):
    """A scenario that is played to one client over stdio."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def client(self) -> Client:
        """That client."""
        return self._client


async def same_over_stdio(catalogue: Catalogue, name: str) -> None:
    """Plays a scenario over stdio to the check of its folder's catalogue, and judges it."""
    check, rule = catalogue.checks[name]
    court = Court(f"{catalogue.folder}/{name}")
    async with over_lines(court) as client:
        await check(OverStdio(client))
    court.verdict(rule)
