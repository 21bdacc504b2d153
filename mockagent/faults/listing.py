"""The faults of the list: cursors that lie, pages that do not fit together, rows that are wrong.

They change a page before it is rendered, and the cursors that come back. A cursor that a fault made up is a token of
ours: before the handler sees the request, it is put back into the cursor that it stands for. Rows are opaque here, but
for their id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from mockagent.faults.interface import Page, Query
from mockagent.message import HttpHead, Message
from mockagent.script.match import glob

_FIRST = "first"
"""The cursor that leads from the last page of a cycle to the first."""

REMEMBERED = 1000
"""Tokens, and ends of pages, that are remembered; the oldest are forgotten."""


class Altered:
    """A row with other values: what was set, else what the row itself says.

    Attributes:
        row: the original.
        altered: what a fault set, by name; names that a row does not have are for the renderer to add.
    """

    __slots__ = ("altered", "row")

    def __init__(self, row: Any, altered: Mapping[str, Any]) -> None:
        self.row = row
        self.altered = altered

    def __getattr__(self, name: str) -> Any:
        altered: Mapping[str, Any] = object.__getattribute__(self, "altered")
        return altered[name] if name in altered else getattr(object.__getattribute__(self, "row"), name)


def row_id(row: Any) -> str:
    """The session id of a row: an object with `id`, or a mapping with `sessionId` or `id`."""
    if isinstance(row, Mapping):
        return str(row.get("sessionId", row.get("id", "")))
    return str(row.id)


class Skip(Exception):
    """A fault can do nothing here; it is skipped, and the text says why."""


class Request:
    """What is known of one request for a page while it is answered.

    Args:
        asked: the cursor that the client sent.
        query: what the handler made of the request.
    """

    __slots__ = ("asked", "query")

    def __init__(self, asked: str | None, query: Query) -> None:
        self.asked = asked
        self.query = query

    @property
    def list(self) -> tuple[str, str | None]:
        """Which list it looks at: pages of one list belong together."""
        return self.query.peer.id, self.query.cwd


class Listings:
    """The memory of the list faults: made-up cursors, and the ends of pages.

    Args:
        rng: gives the generator for `shuffle`.
    """

    def __init__(self, rng: Callable[[], Random]) -> None:
        self._rng = rng
        self._tokens: OrderedDict[str, str | None] = OrderedDict()
        self._made = 0
        self._blank: set[str] = set()  # peers that were given an empty cursor, which then is one
        self._tails: OrderedDict[tuple[str, str | None, str], Sequence[Any]] = OrderedDict()
        self._rounds: OrderedDict[tuple[str, str | None, str], str] = OrderedDict()  # cursors of a cycle

    # --- on the way in

    def incoming(self, message: Message) -> Message:
        """The request as its handler has to see it: a cursor of ours is replaced by what it stands for."""
        asked = cursor_of(message)
        if asked is None:
            return message
        if asked in self._tokens:
            return with_cursor(message, self._tokens[asked])
        if asked == "" and message.peer.id in self._blank:
            return with_cursor(message, None)
        return message

    # --- on the page

    def change(self, effect: str, value: Any, request: Request, page: Page) -> Page:
        """The page as one effect leaves it; the one given is not touched.

        Raises:
            Skip: it makes no sense on this page.
        """
        changed = msgspec.structs.replace(page, rows=list(page.rows))
        if effect == "rows":
            changed.rows = _rows(page.rows, value)
        elif effect == "cursor":
            _CURSORS[value or "null"](self, request, changed)
        elif isinstance(value, Mapping):
            self._overlap(request, changed, int(value["overlap"]))
        else:
            _PAGES[value](self, changed)
        return changed

    def remember(self, request: Request, rows: Sequence[Any], page: Page) -> None:
        """Keeps the rows of a page for an overlap with the next, which is asked for with this page's cursor."""
        if page.cursor:
            self._tails[(*request.list, page.cursor)] = rows
            _trim(self._tails)

    def forget(self, peer: str) -> None:
        """A connection is gone. Its tokens stay: their client may come back on another one."""
        self._blank.discard(peer)
        memories: tuple[OrderedDict[tuple[str, str | None, str], Any], ...] = (self._tails, self._rounds)
        for memory in memories:
            for key in [key for key in memory if key[0] == peer]:
                del memory[key]

    # --- cursors

    def _token(self, name: str, stands_for: str | None) -> str:
        self._made += 1
        token = f"{name}-{self._made}"
        self._tokens[token] = stands_for
        _trim(self._tokens)
        return token

    def _repeat(self, request: Request, page: Page) -> None:
        if request.asked:
            page.cursor = request.asked
        elif page.cursor is None:
            self._cycle(request, page)

    def _cycle(self, request: Request, page: Page) -> None:
        """Behind the last page comes the first, and each page has the same cursor each time round."""
        if page.cursor is None:
            page.cursor = _FIRST
            self._tokens[page.cursor] = None
            return
        place = request.asked if request.asked is not None and request.asked != _FIRST else ""
        page.cursor = self._rounds.setdefault((*request.list, place), page.cursor)
        _trim(self._rounds)

    def _empty(self, request: Request, page: Page) -> None:
        page.cursor = ""
        self._blank.add(request.query.peer.id)

    def _null(self, request: Request, page: Page) -> None:
        page.cursor = None
        page.null_cursor = True

    def _endless(self, request: Request, page: Page) -> None:
        """Behind the last page comes the last page, under a new cursor each time."""
        if page.cursor is None:
            page.cursor = self._token("more", request.query.cursor)

    def _expired(self, request: Request, page: Page) -> None:
        """A cursor that no handler knows any more."""
        if page.cursor is None:
            raise Skip("the last page has no cursor that could expire")
        self._made += 1
        page.cursor = f"expired-{self._made}"

    # --- pages

    def _overlap(self, request: Request, page: Page, count: int) -> None:
        before = self._tails.get((*request.list, request.asked or ""))
        if before is None:
            if request.asked:
                raise Skip("the page before this one is not known")
            return
        page.rows[:0] = before[max(0, len(before) - count) :]

    def _blank_page(self, page: Page) -> None:
        page.rows.clear()

    def _shrink(self, page: Page) -> None:
        """The later half of the rows is gone, as if they had been deleted meanwhile."""
        del page.rows[(len(page.rows) + 1) // 2 :]

    def _shuffle(self, page: Page) -> None:
        self._rng().shuffle(page.rows)


_CURSORS: dict[str, Callable[[Listings, Request, Page], None]] = {
    "repeat": Listings._repeat,
    "cycle": Listings._cycle,
    "empty": Listings._empty,
    "null": Listings._null,
    "endless": Listings._endless,
    "expired": Listings._expired,
}

_PAGES: dict[str, Callable[[Listings, Page], None]] = {
    "empty": Listings._blank_page,
    "shrink": Listings._shrink,
    "shuffle": Listings._shuffle,
}


def _rows(rows: Sequence[Any], rules: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Each row as the rules that match its id leave it, and as often as they say."""
    out: list[Any] = []
    for row in rows:
        copies, id = 1, row_id(row)
        for rule in rules:
            if glob(str(rule.get("match", "*")), id):
                row = _set(row, rule.get("set") or {})
                copies = rule.get("copies", copies)
        out.extend([row] * copies)
    return out


def _set(row: Any, fields: Mapping[str, Any]) -> Any:
    if not fields:
        return row
    if isinstance(row, Mapping):
        return {**row, **fields}
    if isinstance(row, Altered):
        return Altered(row.row, {**row.altered, **fields})
    return Altered(row, fields)


def _trim(memory: OrderedDict[Any, Any]) -> None:
    while len(memory) > REMEMBERED:
        memory.popitem(last=False)


# --- where a request has its cursor: ACP in `params.cursor`, AAP in the query's `after`


def cursor_of(message: Message) -> str | None:
    """The cursor that a request for a page carries."""
    if message.http is not None and message.peer.protocol == "aap":
        return message.http.query.get("after")
    params = message.data.get("params") if isinstance(message.data, dict) else None
    cursor = params.get("cursor") if isinstance(params, dict) else None
    return cursor if isinstance(cursor, str) else None


def with_cursor(message: Message, cursor: str | None) -> Message:
    """A copy of the request with another cursor, or without one."""
    changed = message.copy()
    if message.http is not None and message.peer.protocol == "aap":
        changed.http = _with_query(message.http, cursor)
        return changed
    params = {key: value for key, value in message.data["params"].items() if key != "cursor"}
    if cursor is not None:
        params["cursor"] = cursor
    changed.data = {**message.data, "params": params}
    changed.raw = None
    return changed


def _with_query(head: HttpHead, cursor: str | None) -> HttpHead:
    query = {key: value for key, value in head.query.items() if key != "after"}
    if cursor is not None:
        query["after"] = cursor
    return msgspec.structs.replace(head, query=query)
