"""What a browser has to be told before a page from elsewhere may read an answer.

Who may connect at all is the gate's decision, made before; here it only becomes headers. Knows no protocol: which
headers a page may read and send is the caller's to say.

Source: WHATWG Fetch, CORS protocol; Private Network Access (preflight).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mockagent.net.http_message import Headers

_REMEMBERED = "600"
"""Seconds for which a browser may remember a preflight."""


def common(headers: Headers, allows: Callable[[str], bool], *, exposed: Sequence[str]) -> dict[str, str]:
    """Headers for every answer to a request; a page of another origin reads nothing without them.

    Args:
        headers: those of the request.
        allows: whether pages of an origin may connect.
        exposed: headers of answers that a page may read.
    """
    origin = headers.get("origin")
    if origin is None:
        return {}
    told = {"Vary": "Origin"}
    if allows(origin):
        told |= {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": ", ".join(exposed),
        }
    return told


def preflight(headers: Headers, methods: Sequence[str], *, usual: Sequence[str]) -> dict[str, str] | None:
    """Headers that answer a preflight; None: this request is none.

    Args:
        headers: those of the request.
        methods: what is possible at that address.
        usual: headers of requests that are named if the browser asks for none in particular.
    """
    if headers.get("origin") is None or headers.get("access-control-request-method") is None:
        return None
    told = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers") or ", ".join(usual),
        "Access-Control-Max-Age": _REMEMBERED,
    }
    if headers.get("access-control-request-private-network") == "true":
        told["Access-Control-Allow-Private-Network"] = "true"
    return told
