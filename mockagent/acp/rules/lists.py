"""Rules about the cursors of session/list: given back as they were given out, for the same list, to the same process.

A cursor that left in a damaged answer counts as given out too.
"""

from __future__ import annotations

from typing import Any, Final

from mockagent.acp.rules.book import RULES, params
from mockagent.message import Message
from mockagent.watch.look import at, word
from mockagent.watch.rule import Check, got, sent

PAGES: Final = "protocol/v1/session-list#pagination"

REMEMBERED: Final = 50_000
"""So many cursors are remembered; a client that was given more is not judged any more."""

_ANY: Final = object()
"""The filter of a cursor that came in a damaged answer: whichever."""


class Cursors(Check):
    """Knows every cursor that was given out, and the filters of the lists that it may go on with."""

    def start(self) -> None:
        self.filters: dict[tuple[str, Any], Any] = {}
        self.given: dict[str, set[Any]] = {}

    @got("session/list")
    def asked(self, message: Message) -> None:
        given = params(message)
        cursor = given.get("cursor")
        if isinstance(cursor, str):
            self.judge(message, cursor, given.get("cwd"))
        if not isinstance(given.get("cwd"), dict | list):
            if len(self.filters) >= REMEMBERED:
                self.filters.clear()
            self.filters[message.peer.id, message.id] = given.get("cwd")

    @sent("reply:session/list")
    def answered(self, message: Message) -> None:
        filter = self.filters.pop((message.peer.id, message.id), None)
        self._give(at(message.data, "result", "nextCursor"), filter)

    @sent("raw")
    def made_up(self, message: Message) -> None:
        """The scenario's own words may be an answer to anything; they count as damaged."""

    def damaged(self, message: Message) -> None:
        if message.kind == "raw":
            self.blind = True
        self._give(at(message.data, "result", "nextCursor"), _ANY)

    def _give(self, cursor: Any, filter: Any) -> None:
        if isinstance(cursor, str):
            self.given.setdefault(cursor, set()).add(filter)
            if len(self.given) > REMEMBERED:
                self.blind = True
                self.given.clear()

    def judge(self, message: Message, cursor: str, filter: Any) -> None:
        """Looks at a cursor that the client has sent."""
        raise NotImplementedError


@RULES.rule(
    "ACP-CURSOR-01",
    "MUST",
    "A cursor is one that this process of the agent has given out, unchanged.",
    source=PAGES,
    scope="process",
)
class TakesCursorsAsTheyAre(Cursors):
    def judge(self, message: Message, cursor: str, filter: Any) -> None:
        if cursor in self.given:
            self.met()
        else:
            self.broken(f"{word(cursor)} was never given out: it was made up, changed, or kept from before", message)


@RULES.rule(
    "ACP-CURSOR-02",
    "MUST",
    "A cursor goes on with the list that it was given for: with the same cwd.",
    source=f"protocol/v1/session-list#listing-sessions; {PAGES}",
    scope="process",
)
class KeepsTheFilter(Cursors):
    def judge(self, message: Message, cursor: str, filter: Any) -> None:
        given = self.given.get(cursor)
        if given is None or isinstance(filter, dict | list):
            return
        if filter in given or _ANY in given:
            self.met()
        else:
            first = word(next(iter(given)))
            self.broken(f"the cursor was given for cwd {first}, and came with {word(filter)}", message)
