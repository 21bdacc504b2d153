"""Which answer belongs to which request, in both directions of one connection.

`Pending` keeps the requests that we have sent, `InFlight` those that we have received and not yet answered. No I/O, no
clock, and no knowledge of methods.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from mockagent.jsonrpc.messages import INVALID_REQUEST, Id, Request, Response

T = TypeVar("T")


class Lost(msgspec.Struct, frozen=True):
    """No answer can come any more: the connection ended, or the request was given up."""

    reason: str


Callback = Callable[[Response | Lost], None]


class Asked(msgspec.Struct, frozen=True, eq=False):
    """One request that we have sent. `context` is the caller's own (a session, a ticket)."""

    id: Id
    method: str
    on_answer: Callback
    context: Any = None


class Pending:
    """Requests that we have sent and that are not answered.

    Args:
        first: the first id; the others follow by one, so that the same run gives the same ids.
        remembered: how many answered ids are kept, to tell a second answer from one to nothing.
    """

    def __init__(self, first: int = 0, remembered: int = 1000) -> None:
        self._next = first
        self._open: dict[Id, Asked] = {}
        self._renamed: dict[Id, Id] = {}
        self._settled: OrderedDict[Id, str] = OrderedDict()
        self._remembered = remembered

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Asked]:
        return iter(list(self._open.values()))

    def get(self, id: Id) -> Asked | None:
        """The open request with this id."""
        return self._open.get(id)

    def open(self, method: str, on_answer: Callback, context: Any = None) -> int:
        """Registers a request.

        Args:
            method: kept for whoever looks at the answer.
            on_answer: called once, with the response or with `Lost`.
            context: kept in the entry.

        Returns:
            The id to send it under.
        """
        while self._next in self._open:  # an earlier request may have been renamed to this id
            self._next += 1
        id = self._next
        self._next += 1
        self._open[id] = Asked(id, method, on_answer, context)
        return id

    def rename(self, old: Id, new: Id) -> bool:
        """The request left under another id than it was opened with: its answer will carry that one.

        Returns:
            Whether it was open. A request that had the new id before can no longer be answered and is lost.
        """
        entry = self._open.pop(old, None)
        if entry is None:
            return False
        overlaid = self._open.pop(new, None)
        self._renamed[old] = new
        self._open[new] = Asked(new, entry.method, entry.on_answer, entry.context)
        if overlaid is not None:
            overlaid.on_answer(Lost("another request left under the same id"))
        return True

    def sent_as(self, id: Id) -> Id:
        """The id under which a request really left."""
        return self._renamed.get(id, id)

    def settle(self, response: Response) -> Asked | None:
        """Hands a response to the request that it answers.

        Returns:
            The request, after its callback was called; None when nothing waits for this id (see `settled`).
        """
        entry = self._open.pop(response.id, None)
        if entry is None:
            return None
        self._remember(entry)
        entry.on_answer(response)
        return entry

    def settled(self, id: Id) -> str | None:
        """The method of an earlier request with this id that has had its answer: this is a second one."""
        return self._settled.get(id)

    def discard(self, id: Id) -> Asked | None:
        """Forgets a request: its callback is not called, and its answer counts as one to nothing."""
        return self._open.pop(id, None)

    def fail_all(self, reason: str) -> None:
        """Ends every request with `Lost`, the oldest first. Callbacks may open new ones; those stay."""
        entries, self._open = list(self._open.values()), {}
        for entry in entries:
            entry.on_answer(Lost(reason))

    def _remember(self, entry: Asked) -> None:
        self._settled[entry.id] = entry.method
        self._settled.move_to_end(entry.id)
        if len(self._settled) > self._remembered:
            self._settled.popitem(last=False)


class InFlight(Generic[T]):
    """Requests of the other side that are not answered, each with a value of the caller's own.

    Ids are compared as JSON-RPC compares them: 1 and 1.0 are one number, 1 and "1" are not, null is an id.
    """

    def __init__(self) -> None:
        self._open: dict[Id, T] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._open.values()))

    def open(self, request: Request, value: T) -> dict[str, Any] | None:
        """Registers a request.

        Returns:
            None, or the error response that refuses it because its id is in use.
        """
        if request.id in self._open:
            return request.error(
                INVALID_REQUEST,
                "Invalid request: a request with this id is still being answered",
                {"reason": "duplicate_id"},
            )
        self._open[request.id] = value
        return None

    def find(self, id: Any) -> T | None:
        """The value of the request with this id, as `$/cancel_request` names it; None for any other JSON value."""
        if type(id) is bool or not (id is None or isinstance(id, int | float | str)):
            return None
        return self._open.get(id)

    def close(self, id: Id) -> T | None:
        """The request is answered; its id may be used again."""
        return self._open.pop(id, None)

    def clear(self) -> list[T]:
        """Forgets all requests, and returns their values, the oldest first."""
        values, self._open = list(self._open.values()), {}
        return values
