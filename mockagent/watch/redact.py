"""Keeps secrets out of journals and reports.

Secrets are known by value (tokens of the scenario, secret options), by place (pointers per kind of message, given by
the protocols), and by the names of HTTP headers and query parameters. Nothing here knows a protocol.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mockagent.message import HttpHead, Message
from mockagent.watch.kinds import KindTable, places

MASK: Final = "***"
#: A shorter secret is masked only where it is a whole string: as a part it would be found everywhere.
_PART: Final = 8
_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
_PARAMETERS: Final = frozenset({"token", "access_token", "api_key", "apikey", "key"})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Redactor:
    """Masks secrets in the text of messages.

    Args:
        values: secrets, wherever they occur.
        pointers: places that hold secrets, by kind (or glob over kinds) of the message. `*` stands for every member.
    """

    def __init__(self, values: Iterable[str] = (), pointers: Mapping[str, Sequence[str]] | None = None) -> None:
        self._values: dict[bytes, bytes] = {}
        self._pointers: KindTable[str] = KindTable()
        self.learn_places(pointers or {})
        for value in values:
            self.learn(value)

    def learn_places(self, pointers: Mapping[str, Sequence[str]]) -> None:
        """From now on these places are masked too; see `pointers` above."""
        for kind, some in pointers.items():
            for pointer in some:
                if pointer not in self._pointers.find(kind):
                    self._pointers.add(kind, pointer)

    def learn(self, value: str) -> None:
        """From now on this value is masked too. The empty string and the mask itself are no secrets."""
        if not value or value == MASK:
            return
        text = _encode(value)
        if len(value) >= _PART:
            self._values[text[1:-1]] = MASK.encode()
        else:
            self._values[text] = _encode(MASK)

    def text(self, message: Message) -> bytes:
        """The JSON text of a message without its secrets; the very text of the message when there are none."""
        text = message.text
        pointers = self._pointers.find(message.kind)
        if pointers and (hidden := self._hide(text, pointers)) is not None:
            text = hidden
        return self.plain(text)

    def plain(self, text: bytes) -> bytes:
        """Any JSON text without the secrets that are known by value."""
        if not self._values:
            return text
        if b"\\" in text:
            # The other side may have escaped a secret in a way of its own.
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
                text = _encode(_decode(text))
        for value, mask in self._values.items():
            if value in text:
                text = _mask_string(text, value, mask) if value.startswith(b'"') else text.replace(value, mask)
        return text

    def texts(self, kind: str, texts: list[bytes]) -> list[bytes]:
        """The same for many messages of one kind; returns the list itself when nothing has to be masked."""
        pointers = self._pointers.find(kind)
        if pointers:
            texts = [hidden if (hidden := self._hide(text, pointers)) is not None else text for text in texts]
        if not self._values:
            return texts
        joined = b"\n".join(texts)
        if b"\\" in joined or any(value in joined for value in self._values):
            return [self.plain(text) for text in texts]
        return texts

    def head(self, http: HttpHead) -> dict[str, Any]:
        """An HTTP head as the journal shows it."""
        shown: dict[str, Any] = {"method": http.method, "path": http.path} if http.method else {"status": http.status}
        if http.query:
            shown["query"] = {
                name: MASK if name.lower() in _PARAMETERS else value for name, value in http.query.items()
            }
        shown["headers"] = {
            name: _mask_header(value) if name.lower() in _HEADERS else value for name, value in http.headers.items()
        }
        return _decode(self.plain(_encode(shown))) if self._values else shown

    def _hide(self, text: bytes, pointers: Sequence[str]) -> bytes | None:
        try:
            data = _decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        changed = False
        for pointer in pointers:
            for container, key in places(data, pointer):
                secret = container[key]
                if isinstance(secret, str) and len(secret) >= _PART:
                    self.learn(secret)
                container[key] = MASK
                changed = True
        return _encode(data) if changed else None


def _mask_string(text: bytes, value: bytes, mask: bytes) -> bytes:
    """Masks a whole JSON string, but not the name of a member."""
    first, *rest = text.split(value)
    return first + b"".join((value if part.lstrip()[:1] == b":" else mask) + part for part in rest)


def _mask_header(value: str) -> str:
    """Keeps the scheme of an `Authorization` (`Bearer ***`): whether there is one, and which, is no secret."""
    scheme, space, _ = value.partition(" ")
    return f"{scheme} {MASK}" if space and scheme.isalpha() else MASK
