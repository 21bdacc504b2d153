"""Requests to the client: what each step asks, whether this client can be asked, and what its answer means.

Source: ACP v1, pages "File System", "Tool Calls" (requesting permission), "Elicitation", "Extensibility". The terminal
takes several requests and has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mockagent.acp.params import ClientCapabilities
from mockagent.acp.paths import absolute, inside
from mockagent.jsonrpc.messages import Response
from mockagent.scenario import model
from mockagent.script.output import Answer, ClientRequest, Permission
from mockagent.world.sessions import Session


class Ask(NamedTuple):
    """A request to the client."""

    method: str
    params: Any


class CannotAsk(Exception):
    """This client, in this session, cannot be asked that.

    Args:
        why: for the journal.
    """


class Where(NamedTuple):
    """Where a question is asked: the session, what this client can do, and whether the scenario keeps to the rules."""

    session: Session
    client: ClientCapabilities
    lawful: bool


def path_in(where: Where, path: str) -> str:
    """An absolute path that the agent may ask for.

    Raises:
        CannotAsk: it is outside of the session's roots, and the scenario is no violation.
    """
    made = absolute(path, where.session.cwd)
    if where.lawful and not inside(made, (where.session.cwd, *where.session.directories)):
        raise CannotAsk(f"{made} is outside of the session's folders")
    return made


def need_of(able: bool, what: str) -> None:
    """Stops at what the client did not advertise.

    Raises:
        CannotAsk: it is not able.
    """
    if not able:
        raise CannotAsk(f"the client did not advertise {what}")


def _read(step: model.Read, where: Where) -> Ask:
    need_of(where.client.fs.read_text_file, "fs.readTextFile")
    params: dict[str, Any] = {"sessionId": where.session.id, "path": path_in(where, step.path)}
    return Ask("fs/read_text_file", params | _given(line=step.line, limit=step.limit))


def _write(step: model.Write, where: Where) -> Ask:
    need_of(where.client.fs.write_text_file, "fs.writeTextFile")
    params = {"sessionId": where.session.id, "path": path_in(where, step.path), "content": step.content}
    return Ask("fs/write_text_file", params)


def _elicit(step: model.Elicit, where: Where) -> Ask:
    mode = "form" if step.url is None else "url"
    need_of(where.client.elicits(mode), f"elicitation.{mode}")
    params: dict[str, Any] = {"sessionId": where.session.id, "mode": mode, "message": step.message}
    params |= _given(toolCallId=step.tool)
    if step.url is not None:
        id = step.id or f"elicitation_{where.session.id}_{where.session.next_call_id()}"
        return Ask("elicitation/create", params | {"elicitationId": id, "url": step.url})
    schema = {"type": "object"} | (step.schema or {"properties": {}})
    return Ask("elicitation/create", params | {"requestedSchema": schema})


_NEEDS: dict[str, Callable[[ClientCapabilities, Any], bool]] = {
    "fs/read_text_file": lambda client, params: client.fs.read_text_file,
    "fs/write_text_file": lambda client, params: client.fs.write_text_file,
    "elicitation/create": lambda client, params: client.elicits(params.get("mode", "form")),
}
"""Methods that a client has to advertise, beside `terminal/*`."""


def _request(step: model.Call, where: Where) -> Ask:
    params = addressed(step.method, step.params, where.session)
    if where.lawful:
        able = _NEEDS.get(step.method)
        told = params if isinstance(params, dict) else {}
        if able is not None:
            need_of(able(where.client, told), step.method)
        elif step.method.startswith("terminal/"):
            need_of(where.client.terminal, "terminal")
        for key in ("path", "cwd"):
            if step.method.startswith(("fs/", "terminal/")) and isinstance(told.get(key), str):
                params = {**params, key: path_in(where, told[key])}
    return Ask(step.method, params)


_UNADDRESSED = frozenset({"elicitation/complete", "$/cancel_request"})
"""Notifications that belong to no session."""


def addressed(method: str, params: Any, session: Session) -> Any:
    """The params of a raw call, with the session's id where they can have one and have none."""
    params = {} if params is msgspec.UNSET else params
    if not isinstance(params, dict) or method in _UNADDRESSED:
        return params
    if method == "elicitation/create" and "requestId" in params:  # outside of any session
        return params
    return {"sessionId": session.id} | params


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


REQUESTS: dict[str, Callable[[Any, Where], Ask]] = {
    "read": _read,
    "write": _write,
    "elicit": _elicit,
    "request": _request,
}
"""Verb to the request it makes; they raise `CannotAsk`."""


# --- answers


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


def _client_request(need: ClientRequest, response: Response) -> Answer:
    return _RESULTS.get(need.verb, _plain)(response)


def _plain(response: Response) -> Answer:
    return Answer(outcome="result", value=response.result, message=response.data)


def _file(response: Response) -> Answer:
    """The text of a file is what `text` is matched over."""
    content = response.result.get("content") if isinstance(response.result, dict) else None
    if not isinstance(content, str):
        return Answer(outcome="error", value=response.result, message=response.data)
    return Answer(outcome="result", value=response.result, words=content, message=response.data)


_ACTIONS: dict[Any, Any] = {"accept": "result", "decline": "denied", "cancel": "cancelled"}


def _elicited(response: Response) -> Answer:
    """What the user did; the protocol's own word for it stands beside the outcome.

    Source: Elicitation, responses.
    """
    result = response.result if isinstance(response.result, dict) else {}
    action = result.get("action")
    outcome: Any = _ACTIONS.get(action, "error") if isinstance(action, str) else "error"
    content = result.get("content") if outcome == "result" else None
    words = "" if content is None else msgspec.json.encode(content).decode()
    return Answer(
        outcome=outcome,
        option=action if outcome != "error" else None,
        value=response.result,
        words=words,
        message=response.data,
    )


_RESULTS: dict[str, Callable[[Response], Answer]] = {"read": _file, "elicit": _elicited}

ANSWERS: dict[type, Callable[[Any, Response], Answer]] = {Permission: _permission, ClientRequest: _client_request}
"""Needs whose answers mean more than a result."""


def error_answer(error: dict[str, Any], message: Any) -> Answer:
    """A client that answers with an error; one that has cancelled the request itself is told apart."""
    outcome: Any = "cancelled" if error.get("code") == _CANCELLED else "error"
    return Answer(outcome=outcome, value=error, words=str(error.get("message", "")), message=message)


_CANCELLED = -32800
