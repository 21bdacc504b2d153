"""Makes a reply out of an `error` or a `result` that a fault asks for.

The codes come from the table of named errors; all that is known here of a protocol is whether its replies are JSON-RPC
objects or HTTP messages.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mockagent.errors import NAMED, jsonrpc_error
from mockagent.message import NO_ID, HttpHead, Message


class Unsayable(Exception):
    """The protocol cannot say this."""


def error_object(error: Any) -> dict[str, Any]:
    """The `error` member of a JSON-RPC reply (JSON-RPC 2.0 section 5.1).

    Args:
        error: a name from the table, or `{code, message, data}`, in which `code` may be a name too.

    Raises:
        Unsayable: it has the form of an HTTP reply.
    """
    if isinstance(error, dict) and "status" in error:
        raise Unsayable("an error with an HTTP status, where replies are JSON-RPC")
    return jsonrpc_error(error)


def http_error(error: Any) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of an HTTP reply that says an error.

    Args:
        error: a name from the table, `{code, message, data}`, or `{status, headers, body}`.
    """
    if isinstance(error, dict) and "status" in error:
        return error["status"], _headers(error.get("headers")), error.get("body")
    given = {"code": error} if isinstance(error, str) else error
    code = given.get("code")
    name = code if isinstance(code, str) else next((name for name, row in NAMED.items() if row.code == code), None)
    row = NAMED.get(name or "internal_error", NAMED["internal_error"])
    body = {"code": str(name or code), "message": given.get("message", row.message)}
    if "data" in given:
        body["data"] = given["data"]
    return row.status, dict(_EXTRA.get(row.status, {})), {"error": body}


_EXTRA = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}
"""Headers that a status calls for (RFC 9110 section 11.6.1, RFC 6585 section 4)."""


def _headers(given: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in (given or {}).items()}


def refuse(reply: Message, error: Any) -> Message:
    """A copy of a reply that says an error instead.

    Raises:
        Unsayable: its protocol cannot.
    """
    if not speaks_http(reply):
        return _with(reply, {"jsonrpc": "2.0", "id": _id(reply), "error": error_object(error)})
    status, headers, body = http_error(error)
    changed = _with(reply, body)
    changed.http = HttpHead(status=status, headers=headers)
    return changed


def succeed(reply: Message, result: Any) -> Message:
    """A copy of a reply that says a result instead."""
    if not speaks_http(reply):
        return _with(reply, {"jsonrpc": "2.0", "id": _id(reply), "result": result})
    changed = _with(reply, result)
    head = reply.http or HttpHead()
    changed.http = head if head.status < 300 else HttpHead(status=200)
    return changed


def speaks_http(message: Message) -> bool:
    """Whether a message is one of HTTP itself, and not a JSON-RPC object (which may travel in one)."""
    return message.http is not None and not (isinstance(message.data, dict) and "jsonrpc" in message.data)


def _with(reply: Message, data: Any) -> Message:
    changed = reply.copy()
    changed.data = data
    changed.raw = None
    return changed


def _id(reply: Message) -> Any:
    if isinstance(reply.data, dict) and "id" in reply.data:
        return reply.data["id"]
    return None if reply.id is NO_ID or reply.id is msgspec.UNSET else reply.id
