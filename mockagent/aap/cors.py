"""Which headers of AAP a page from elsewhere may read and send; see `wire.cors`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mockagent.net.http_message import Headers
from mockagent.wire import cors

_EXPOSED = ("Retry-After", "WWW-Authenticate")
_REQUEST_HEADERS = ("Authorization", "Content-Type", "Accept", "Last-Event-ID")


def common(headers: Headers, allows: Callable[[str], bool]) -> dict[str, str]:
    """Headers for every answer to a request; a page of another origin reads nothing without them."""
    return cors.common(headers, allows, exposed=_EXPOSED)


def preflight(headers: Headers, methods: Sequence[str]) -> dict[str, str] | None:
    """Headers that answer a preflight; None: this request is none."""
    return cors.preflight(headers, methods, usual=_REQUEST_HEADERS)
