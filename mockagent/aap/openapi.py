"""The OpenAPI 3.1 document of the AAP surface, made from the types of what comes in and what goes out.

It describes the protocol as this server speaks it without faults, at every base path alike.

Source: OpenAPI 3.1.1; AAP endpoints page.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mockagent import __version__
from mockagent.aap import params, replies

_REF = "#/components/schemas/{name}"
_TYPES: tuple[type[Any], ...] = (
    params.CreateSession,
    params.Turn,
    replies.Meta,
    replies.Session,
    replies.SessionList,
    replies.SessionCreated,
    replies.History,
    replies.TurnAnswer,
    replies.Error,
    *dict.fromkeys(replies.EVENTS.values()),
)

_SESSION = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The session's id, percent-encoded.",
    "schema": {"type": "string"},
}
_AFTER = {
    "name": "after",
    "in": "query",
    "description": "`next` of the page before.",
    "schema": {"type": "string"},
}
_TYPE = {
    "name": "type",
    "in": "query",
    "required": True,
    "schema": {"type": "string", "enum": ["full", "compacted"]},
}


def document(base: str) -> dict[str, Any]:
    """The document.

    Args:
        base: path below which the endpoints are.
    """
    _, components = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Agent Application Protocol",
            "version": "3",
            "description": f"AAP version 3 as mockagent {__version__} speaks it.",
        },
        "servers": [{"url": base or "/"}],
        "paths": _paths(),
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    }


def _paths() -> dict[str, Any]:
    return {
        "/meta": {"get": _operation("getMeta", "The agents of this server.", {200: "Meta"}, (401,))},
        "/sessions": {
            "get": _operation("listSessions", "One page of sessions.", {200: "SessionList"}, (400, 401), [_AFTER]),
            "post": _operation(
                "createSession",
                "Makes a session; the agent does not run yet.",
                {201: "SessionCreated"},
                (400, 401, 408, 413, 415),
                body="CreateSession",
            ),
        },
        "/sessions/{id}": {
            "parameters": [_SESSION],
            "get": _operation("getSession", "One session.", {200: "Session"}, (401, 404)),
            "delete": _operation("deleteSession", "Deletes a session with its history.", {204: None}, (401, 404)),
        },
        "/sessions/{id}/history": {
            "parameters": [_SESSION],
            "get": _operation("getHistory", "What was said and done.", {200: "History"}, (400, 401, 404), [_TYPE]),
        },
        "/sessions/{id}/turns": {"parameters": [_SESSION], "post": _turns()},
    }


def _turns() -> dict[str, Any]:
    errors = (400, 401, 404, 408, 409, 413, 415, 429, 500, 503)
    operation = _operation("runTurn", "Runs the agent.", {200: "TurnAnswer"}, errors, body="Turn")
    operation["responses"]["200"]["content"]["text/event-stream"] = {
        "schema": {
            "type": "string",
            "description": "Server-sent events, each with a name and a JSON object as data: "
            + ", ".join(f"`{name}` ({kind.__name__})" for name, kind in replies.EVENTS.items()),
        }
    }
    return operation


def _operation(
    id: str,
    summary: str,
    good: dict[int, str | None],
    errors: tuple[int, ...],
    parameters: list[dict[str, Any]] | None = None,
    body: str | None = None,
) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": id, "summary": summary}
    if parameters:
        made["parameters"] = parameters
    if body is not None:
        made["requestBody"] = {"required": True, "content": _json(body)}
    made["responses"] = {str(status): _response(status, name) for status, name in good.items()}
    made["responses"] |= {str(status): _response(status, "Error") for status in errors}
    return made


def _response(status: int, name: str | None) -> dict[str, Any]:
    response: dict[str, Any] = {"description": _WORDS[status]}
    if name is not None:
        response["content"] = _json(name)
    if status == 401:
        response["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return response


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=name)}}}


_WORDS = {
    200: "It worked.",
    201: "The session was made.",
    204: "The session is gone.",
    400: "Something in the request is wrong; the message names the field.",
    401: "A bearer token is missing, or not known.",
    404: "There is no such session, or the agent does not declare such a history.",
    408: "The request took too long to come.",
    409: "A turn is running in this session.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    429: "The scenario says: too many requests.",
    500: "The scenario says: the agent failed.",
    503: "The scenario says: overloaded.",
}
