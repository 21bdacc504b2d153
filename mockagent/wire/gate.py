"""Who may talk to a server on this machine: the check against DNS rebinding and foreign web pages, and of tokens.

A browser sends every page's requests to loopback; what tells them apart is `Host` and `Origin`. Knows no protocol and
no path.

Source: ACP proposal "Streamable HTTP & WebSocket Transport", security; RFC 6454 (origins); RFC 6750 (bearer tokens).
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ANYWHERE = frozenset({"0.0.0.0", "::", ""})


class Fields(Protocol):
    """Header fields, whatever object holds them."""

    def get(self, name: str) -> str | None:
        """The first value of a field."""


class Closed(NamedTuple):
    """The request is refused."""

    status: int
    code: str
    message: str


def bearer(headers: Fields) -> str | None:
    """The bearer token of a request (RFC 6750, 2.1), or None."""
    scheme, _, token = (headers.get("authorization") or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def opens(token: str | None, tokens: Sequence[str]) -> bool:
    """Whether a token is one of those that are let in; without any, everybody is."""
    if not tokens:
        return True
    return token is not None and any(compare_digest(token.encode(), known.encode()) for known in tokens)


class Gate:
    """Decides by `Host` and `Origin`.

    Args:
        host: what the server is bound to; if that is every address, any `Host` passes.
        allow: further origins whose pages may connect; `*` allows all.
    """

    def __init__(self, host: str, allow: Sequence[str] = ()) -> None:
        self._host = host.lower()
        self._allow = frozenset(origin.rstrip("/").lower() for origin in allow)

    def closed(self, headers: Fields) -> Closed | None:
        """Why a request may not come in; None: it may."""
        host = headers.get("host")
        if host is not None and self._host not in _ANYWHERE and _name(f"//{host}") not in _LOOPBACK | {self._host}:
            return Closed(403, "foreign_host", f"Host {host!r} is not an address of this server")
        origin = headers.get("origin")
        if origin is not None and not self.allows(origin):
            return Closed(
                403, "foreign_origin", f"Origin {origin!r} is not allowed; --allow-origin {origin} lets it in"
            )
        return None

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may connect: those served from loopback, and those that were named."""
        wanted = origin.rstrip("/").lower()
        return "*" in self._allow or wanted in self._allow or _name(wanted) in _LOOPBACK


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
