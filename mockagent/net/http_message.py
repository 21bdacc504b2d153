"""An HTTP request as a handler sees it, and the limits it has to keep.

Values only: no I/O, no h11, and no knowledge of what any path means. Sources: RFC 9110 (semantics), RFC 9112 (syntax).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qs, unquote

import msgspec

HeaderList = Sequence[tuple[str, str]]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may cost.

    Attributes:
        header_bytes: request line and headers together; beyond it 431.
        body_bytes: a request body after its transfer coding is taken off; beyond it 413.
        header_seconds: from the first byte of a request to the end of its headers; beyond it 408.
        body_seconds: without any progress in a request body; beyond it 408.
        idle_seconds: on a connection without a request; beyond it the connection is closed.
        connections: at the same time; one more is answered 503.
    """

    header_bytes: int = 64 * 2**10
    body_bytes: int = 32 * 2**20
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    connections: int = 1000


class Headers:
    """Header fields in the order they came; names in lower case, values as Latin-1 text."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        self._items = [(name.lower(), value) for name, value in items]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of a field, whatever the case of its name."""
        name = name.lower()
        return next((value for own, value in self._items if own == name), default)

    def get_all(self, name: str) -> list[str]:
        """All values of a field, in order."""
        name = name.lower()
        return [value for own, value in self._items if own == name]

    def tokens(self, name: str) -> list[str]:
        """The members of a comma-separated field, in lower case."""
        members = ",".join(self.get_all(name)).split(",")
        return [token for member in members if (token := member.strip().lower())]

    def items(self) -> list[tuple[str, str]]:
        return list(self._items)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Headers({self._items!r})"


class Request:
    """One request, with its body read.

    Attributes:
        method: as sent; methods are case-sensitive.
        target: the request target as sent.
        path: the path of the target, still percent-encoded; `*` for `OPTIONS *`.
        segments: the path's segments, each percent-decoded on its own, so that `%2F` does not part them.
        query: each name of the query with all its values, decoded.
        headers: the header fields.
        body: the body, its transfer coding taken off.
        peer: host and port of the client.
        http_version: `1.1` or `1.0`.
    """

    __slots__ = ("_raw", "body", "headers", "http_version", "method", "path", "peer", "query", "segments", "target")

    def __init__(
        self,
        method: str,
        target: str,
        raw_headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        *,
        peer: tuple[str, int] | None = None,
        http_version: str = "1.1",
    ) -> None:
        self.method = method
        self.target = target
        self._raw = raw_headers
        self.headers = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw_headers)
        self.body = body
        self.peer = peer
        self.http_version = http_version
        self.path, query = _split_target(target)
        self.segments = tuple(unquote(part) for part in self.path.split("/")[1:])
        self.query: dict[str, list[str]] = parse_qs(query, keep_blank_values=True) if query else {}

    def param(self, name: str, default: str | None = None) -> str | None:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def head(self) -> bytes:
        """Request line and headers as bytes again, for whoever takes the connection over."""
        lines = [f"{self.method} {self.target} HTTP/{self.http_version}".encode("latin-1")]
        lines += [name + b": " + value for name, value in self._raw]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def __repr__(self) -> str:
        return f"Request({self.method!r}, {self.target!r})"


def _split_target(target: str) -> tuple[str, str]:
    """Path and query of a request target, in origin form or in absolute form (RFC 9112, 3.2)."""
    if "://" in target.partition("?")[0] and not target.startswith("/"):
        _, _, rest = target.partition("://")
        cut = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
        target = rest[cut:]
    path, _, query = target.partition("?")
    return path or "/", query
