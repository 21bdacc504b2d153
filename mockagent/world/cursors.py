"""Cursors of the session list: opaque, signed, and good for one list only.

A cursor carries the place behind which its page begins, the epoch of the list (`world.order`), and what it is bound to.
The signature keeps nobody out, for anybody can read this file; it tells a cursor that was changed from one that was
given out elsewhere, which is what people who look for a mistake want to know.

Source: ACP v1, Session List, "Pagination"; AAP endpoints page, `GET /sessions`.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64, crc32
from collections import OrderedDict, deque
from typing import NamedTuple

import msgspec

from mockagent.errors import Refusal
from mockagent.scenario.model import CursorRules, Micros
from mockagent.world.order import Key

_SECRET = b"mockagent session list 1"
_SIGNED = 9  # bytes of the signature, in which a cursor ends
_END = 10  # characters that two cursors do not share by chance
_REMEMBERED = 1000  # cursors by whose ends a changed one is known
_COUNTED = 100_000  # cursors whose uses are counted
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


class Holder(NamedTuple):
    """Who asks for a page.

    Attributes:
        connection: name of the connection.
        login: what lasts as long as the client stays logged in.
    """

    connection: str = ""
    login: str = ""


NOBODY = Holder()


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """What a cursor says.

    Attributes:
        process: which process gave it out.
        holder: checksum of the connection or login it is bound to, 0 for none.
        issued: scenario time in microseconds.
        number: the how-manieth of its process.
        epoch: of the list.
        mark: key of the last row before its page.
        cwd: checksum of the filter.
    """

    process: int
    holder: int
    issued: Micros
    number: int
    epoch: int
    mark: Key
    cwd: int


class Cursors:
    """Gives out cursors, and takes them back.

    Args:
        rules: `sessions.cursor` of the scenario.
        process: names this process.
    """

    def __init__(self, rules: CursorRules, process: int) -> None:
        self.process = process
        self._rules = rules
        self._given = 0
        self._uses: OrderedDict[int, int] = OrderedDict()
        self._ends: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)

    def give(self, mark: Key, epoch: int, cwd: str | None, holder: Holder, now: Micros) -> str:
        """A cursor for the page behind a row.

        Args:
            mark: key of that row.
            epoch: of the list.
            cwd: the filter.
            holder: who asked for the page.
            now: scenario time.
        """
        self._given += 1
        cursor = Cursor(self.process, self._bound_to(holder), now, self._given, epoch, mark, _sum(cwd))
        payload = msgspec.msgpack.encode(cursor)
        text = _text(payload + _signature(payload))
        self._ends.append((text[:_END], text[-_END:]))
        return text

    def take(self, text: str, cwd: str | None, holder: Holder, now: Micros) -> Cursor:
        """What a cursor says, if it may be used here and now.

        Raises:
            Refusal: `invalid_cursor`; the member `why` of its data is one of the keys of `REASONS`.
        """
        cursor = self._read(text)
        own = cursor.process == self.process and cursor.number <= self._given
        lifetime = self._rules.lifetime
        if self._rules.scope != "any" and not own:
            raise refused("other_process")
        if cursor.holder != self._bound_to(holder):
            raise refused("other_connection" if self._rules.scope == "connection" else "other_session")
        if cursor.cwd != _sum(cwd):
            raise refused("other_filter")
        if lifetime is not None and now - cursor.issued > lifetime:
            raise refused("expired")
        self._use(cursor)
        return cursor

    def _read(self, text: str) -> Cursor:
        try:
            data = a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"=" * (-len(text) % 4))
        except (Base64Error, UnicodeEncodeError):
            raise self._unreadable(text) from None
        payload = data[:-_SIGNED]
        if len(data) <= _SIGNED or _text(data) != text or _signature(payload) != data[-_SIGNED:]:
            raise self._unreadable(text)
        try:
            return msgspec.msgpack.decode(payload, type=Cursor)
        except msgspec.MsgspecError:  # signed by another version of this file
            raise refused("garbage") from None

    def _unreadable(self, text: str) -> Refusal:
        """A cursor that begins or ends like one of ours was changed; anything else was never one."""
        changed = any(text.startswith(head) or text.endswith(tail) for head, tail in self._ends)
        return refused("tampered" if changed else "garbage")

    def _bound_to(self, holder: Holder) -> int:
        if self._rules.scope == "connection":
            return _sum(holder.connection)
        return _sum(f"{holder.connection}/{holder.login}") if self._rules.scope == "session" else 0

    def _use(self, cursor: Cursor) -> None:
        if self._rules.uses is None:
            return
        used = self._uses.get(cursor.number, 0) + 1
        if used > self._rules.uses or (used == 1 and cursor.number <= self._given - _COUNTED):
            raise refused("used_up")
        self._uses[cursor.number] = used
        if len(self._uses) > _COUNTED:
            self._uses.popitem(last=False)


class Share(NamedTuple):
    """What a list needs to know to be a part of a longer one.

    Attributes:
        size: how many rows are wanted; with 0 it only tells, by a cursor, whether there are any.
        cursors: give out and take back the cursors of this part.
    """

    size: int
    cursors: Cursors


START: Key = (-(1 << 62), 0, 0)
"""Before all keys."""


def _text(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=").decode()


def _sum(text: str | None) -> int:
    return 0 if text is None else crc32(text.encode("utf-8", "surrogatepass")) | 1


def _signature(payload: bytes) -> bytes:
    import hmac

    return hmac.digest(_SECRET, payload, "sha256")[:_SIGNED]


REASONS = {
    "garbage": "it was never given out",
    "tampered": "it has been changed",
    "other_filter": "it belongs to a list with another cwd",
    "other_process": "another process gave it out",
    "other_connection": "it was given out on another connection",
    "other_session": "it was given out to another login",
    "expired": "it has expired",
    "used_up": "it has been used up",
}
"""Why a cursor is not taken, and the words for it."""


def refused(why: str) -> Refusal:
    """The refusal of a cursor."""
    return Refusal("invalid_cursor", f"Invalid cursor: {REASONS[why]}", why=why)
