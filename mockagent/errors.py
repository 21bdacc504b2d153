"""The table of named errors: one row a name, for all protocols.

`error: NAME` in a scenario, a handler's refusal and a fault all end here, so that a name means the same everywhere.
Source of the codes: JSON-RPC 2.0 section 5.1, the ACP schema's `ErrorCode`, AAP's endpoints page.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class NamedError(NamedTuple):
    """ACP code and message, the reason in `data` (None: the code says it all), AAP status."""

    code: int
    message: str
    reason: str | None
    status: int


NAMED: dict[str, NamedError] = {
    "invalid_cursor": NamedError(-32602, "Invalid cursor", "invalid_cursor", 400),
    "session_not_found": NamedError(-32002, "Session not found", "session_not_found", 404),
    "session_inactive": NamedError(-32002, "Session is not active", "session_inactive", 404),
    "auth_required": NamedError(-32000, "Authentication required", None, 401),
    "invalid_params": NamedError(-32602, "Invalid params", None, 400),
    "invalid_request": NamedError(-32600, "Invalid request", None, 400),
    "parse_error": NamedError(-32700, "Parse error", None, 400),
    "method_not_found": NamedError(-32601, "Method not found", None, 404),
    "internal_error": NamedError(-32603, "Internal error", None, 500),
    "cancelled": NamedError(-32800, "Request cancelled", None, 500),
    "busy": NamedError(-32600, "A turn is already running in this session", "busy", 409),
    "rate_limited": NamedError(-32603, "Rate limited", "rate_limited", 429),
    "overloaded": NamedError(-32603, "Overloaded", "overloaded", 503),
}


class Refusal(Exception):
    """A request is answered with an error.

    Args:
        name: a row of the table.
        message: says what is wrong and what would be right, in place of the table's words.
        data: members of the error's `data`, beside the reason.
    """

    def __init__(self, name: str, message: str | None = None, **data: Any) -> None:
        self.name = name
        row = NAMED[name]
        self.message = message or row.message
        self.data: dict[str, Any] = ({"reason": row.reason} if row.reason else {}) | data
        super().__init__(self.message)

    @property
    def row(self) -> NamedError:
        """The row of the table."""
        return NAMED[self.name]


def jsonrpc_error(error: Any) -> dict[str, Any]:
    """The JSON-RPC error object for an error as scenarios write it.

    Args:
        error: a name of the table, or `{code, message, data}`, whose code may be such a name too; what is left out
            comes from the table.
    """
    given = dict(error) if isinstance(error, dict) else {"code": error}
    name = given.pop("name", given.get("code"))
    row = NAMED.get(name if isinstance(name, str) else "internal_error", NAMED["internal_error"])
    if not isinstance(given.get("code"), int):
        given["code"] = row.code
    made: dict[str, Any] = {"code": given["code"], "message": given.get("message", row.message)}
    if "data" in given:
        made["data"] = given["data"]
    elif row.reason is not None and isinstance(name, str):
        made["data"] = {"reason": row.reason}
    return made


class StateError(Exception):
    """A state file cannot be used; the text says why. It was left as it was."""
