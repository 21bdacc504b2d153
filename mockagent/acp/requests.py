"""Requests to the client: what each step asks, whether this client can be asked, and what its answer means.

Source: ACP v1, pages "File System", "Terminals", "Tool Calls" (requesting permission), "Elicitation".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mockagent.acp.params import ClientCapabilities
from mockagent.acp.render import absolute
from mockagent.jsonrpc.messages import Response
from mockagent.scenario import model
from mockagent.script.output import Answer, Permission
from mockagent.world.sessions import Session


class Ask(NamedTuple):
    """A request to the client."""

    method: str
    params: Any


def _read(step: model.Read, session: Session, client: ClientCapabilities) -> Ask | None:
    if not client.fs.read_text_file:
        return None
    params: dict[str, Any] = {"sessionId": session.id, "path": absolute(step.path, session.cwd)}
    return Ask("fs/read_text_file", params | _given(line=step.line, limit=step.limit))


def _write(step: model.Write, session: Session, client: ClientCapabilities) -> Ask | None:
    if not client.fs.write_text_file:
        return None
    params = {"sessionId": session.id, "path": absolute(step.path, session.cwd), "content": step.content}
    return Ask("fs/write_text_file", params)


def _elicit(step: model.Elicit, session: Session, client: ClientCapabilities) -> Ask | None:
    can = client.elicitation
    if can is None or (can.url if step.url is not None else can.form) is None:
        return None
    params: dict[str, Any] = {"sessionId": session.id, "message": step.message}
    if step.url is not None:
        url = {"mode": "url", "url": step.url, "elicitationId": f"elicitation_{session.next_call_id()}"}
        return Ask("elicitation/create", params | url)
    schema = {"type": "object"} | (step.schema or {"properties": {}})
    return Ask("elicitation/create", params | {"mode": "form", "requestedSchema": schema})


def _request(step: model.Call, session: Session, client: ClientCapabilities) -> Ask | None:
    params = {} if step.params is msgspec.UNSET else step.params
    if isinstance(params, dict):
        params = {"sessionId": session.id} | params
    return Ask(step.method, params)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


REQUESTS: dict[str, Callable[[Any, Session, ClientCapabilities], Ask | None]] = {
    "read": _read,
    "write": _write,
    "elicit": _elicit,
    "request": _request,
}
"""Verb to the request it makes, or None where this client cannot be asked."""


def _permission(need: Permission, response: Response) -> Answer:
    """What the user chose. An option that was not offered counts as an error, never as a grant."""
    outcome = response.result.get("outcome") if isinstance(response.result, dict) else None
    if isinstance(outcome, dict) and outcome.get("outcome") == "cancelled":
        return Answer(outcome="cancelled", value=response.result, message=response.data)
    chosen = outcome.get("optionId") if isinstance(outcome, dict) and outcome.get("outcome") == "selected" else None
    for option in need.options:
        if option["id"] == chosen and isinstance(chosen, str):
            granted: Any = "granted" if str(option["kind"]).startswith("allow") else "denied"
            return Answer(outcome=granted, option=chosen, value=response.result, message=response.data)
    return Answer(outcome="error", value=response.result, message=response.data)


ANSWERS: dict[type, Callable[[Any, Response], Answer]] = {Permission: _permission}
"""Needs whose answers mean more than a result."""
