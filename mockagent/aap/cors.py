"""What a browser has to be told before a page from elsewhere may read an answer.

Who may connect at all is the gate's decision, made before; here it only becomes headers.

Source: WHATWG Fetch, CORS protocol; Private Network Access (preflight).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mockagent.net.http_message import Headers

_EXPOSED = "Retry-After, WWW-Authenticate"
_REQUEST_HEADERS = "Authorization, Content-Type, Accept, Last-Event-ID"
_REMEMBERED = "600"


def common(headers: Headers, allows: Callable[[str], bool]) -> dict[str, str]:
    """Headers for every answer to a request; a page of another origin reads nothing without them."""
    origin = headers.get("origin")
    if origin is None:
        return {}
    told = {"Vary": "Origin"}
    if allows(origin):
        told |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED}
    return told


def preflight(headers: Headers, methods: Sequence[str]) -> dict[str, str] | None:
    """Headers that answer a preflight; None: this request is none."""
    if headers.get("origin") is None or headers.get("access-control-request-method") is None:
        return None
    told = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers") or _REQUEST_HEADERS,
        "Access-Control-Max-Age": _REMEMBERED,
    }
    if headers.get("access-control-request-private-network") == "true":
        told["Access-Control-Allow-Private-Network"] = "true"
    return told
