"""What the endpoints of AAP version 3 do: one function an endpoint, and one table that says which there are.

A handler gets an exchange and answers it, at once or through a turn; or it refuses. It reads the request as faults have
left it, never the bytes that came.

Source: AAP endpoints page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.aap import checks, render, transcript
from mockagent.aap import params as p
from mockagent.aap.params import wrong
from mockagent.aap.roster import Served, unauthorized
from mockagent.errors import Refusal
from mockagent.faults.interface import Page, Query
from mockagent.world.cursors import Holder
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.aap.exchange import Exchange
    from mockagent.aap.service import Call, Service

Handler = Callable[["Service", "Call"], None]


def _meta(service: Service, call: Call) -> None:
    shown = service.roster.shown_to(call.token)
    call.exchange.reply(200, render.meta(service.roster.version, shown))


def _openapi(service: Service, call: Call) -> None:
    from mockagent.aap.openapi import document

    call.exchange.reply(200, document(service.base))


# --- sessions


def _list(service: Service, call: Call) -> None:
    visible = service.roster.open_to(call.token)
    query = call.query
    after = query.get("after")
    holder = Holder(call.exchange.peer.id, call.token or "")
    found, following = service.roster.page(visible, after, holder)
    page = Page(rows=[render.session(served, row) for served, row in found], cursor=following)
    exchange = call.exchange
    page = exchange.backstage.faults.listing(Query(peer=exchange.peer, request=exchange.message, cursor=after), page)
    body: dict[str, Any] = {"sessions": page.rows}
    if page.cursor is not None or page.null_cursor:
        body["next"] = page.cursor
    exchange.reply(200, body, then=partial(_listed, exchange, found))


def _listed(exchange: Exchange, found: list[tuple[Served, Session]]) -> None:
    exchange.point("session_listed", None)
    for served, session in found:
        served.agent.listed([session])


def _create(service: Service, call: Call) -> None:
    service.roster.open_to(call.token)
    body = p.read(p.CreateSession, call.body)
    served = service.roster.named(body.agent.name)
    if served is None:
        known = ", ".join(member.name for member in service.roster.members)
        raise wrong("agent.name", f"there is no agent {body.agent.name!r}: one of {known}")
    if not served.admits(call.token):
        raise unauthorized(call.token)
    checks.tools(served, body.agent.tools, body.tools)
    checks.options(served, body.agent.options)
    checks.messages(served, body.messages)
    checks.seeds(body.messages)
    session = service.roster.create(served)
    _furnish(session, body)
    opened = partial(_opened, call.exchange, served, session)
    call.exchange.reply(201, {"sessionId": session.id}, session=session.id, then=opened)


def _opened(exchange: Exchange, served: Served, session: Session) -> None:
    exchange.point("session_opened", session.id)
    served.agent.opened(session)


def _furnish(session: Session, body: p.CreateSession) -> None:
    session.tools = {tool.name: tool.trust for tool in body.agent.tools}
    session.client_tools = {tool.name: msgspec.to_builtins(tool) for tool in body.tools}
    session.config.update(body.agent.options)
    transcript.seed(session, body.messages, session.client_tools)


def _get(service: Service, call: Call) -> None:
    served, session = service.find(call)
    call.exchange.reply(200, render.session(served, session))


def _delete(service: Service, call: Call) -> None:
    served, session = service.find(call)
    served.agent.close(session)
    served.agent.world.sessions.delete(session)
    call.exchange.reply(204)


def _history(service: Service, call: Call) -> None:
    served, session = service.find(call)
    wanted = call.query.get("type")
    if wanted is None:
        raise wrong("type", "is required: full or compacted")
    if wanted not in _HISTORIES:
        raise wrong("type", f"{wanted!r} is neither full nor compacted")
    attribute, make = _HISTORIES[wanted]
    if not getattr(served.capabilities, attribute):
        raise NotThere(f"the agent does not declare capabilities.history.{wanted}")
    call.exchange.reply(200, {"history": {wanted: make(served, session)}})


class NotThere(Exception):
    """There is nothing under this address."""


def _full(served: Served, session: Session) -> list[dict[str, Any]]:
    return transcript.full(session)


def _compacted(served: Served, session: Session) -> list[dict[str, Any]]:
    return transcript.compacted(session, served.agent.scenario.sessions.compaction_keep)


_HISTORIES: dict[str, tuple[str, Callable[[Served, Session], list[dict[str, Any]]]]] = {
    "full": ("history_full", _full),
    "compacted": ("history_compacted", _compacted),
}
"""Type of history to the capability it needs, and what makes it."""


# --- turns


def _turn(service: Service, call: Call) -> None:
    served, session = service.find(call)
    service.turns.take(call.exchange, served, session, p.read(p.Turn, call.body))


ENDPOINTS: dict[tuple[str | None, ...], dict[str, tuple[Handler, str | None]]] = {
    ("meta",): {"GET": (_meta, None)},
    ("sessions",): {"GET": (_list, "list"), "POST": (_create, "create")},
    ("sessions", None): {"GET": (_get, "load"), "DELETE": (_delete, None)},
    ("sessions", None, "history"): {"GET": (_history, None)},
    ("sessions", None, "turns"): {"POST": (_turn, "turn")},
    ("openapi.json",): {"GET": (_openapi, None)},
}
"""Path below the base (None: a session's id) to method, handler and neutral kind."""


def endpoint(segments: tuple[str, ...]) -> tuple[str | None, ...] | None:
    """The row of the table for a path, or None."""
    for pattern in ENDPOINTS:
        if len(pattern) == len(segments) and all(
            (want is None and got != "") or want == got for want, got in zip(pattern, segments, strict=True)
        ):
            return pattern
    return None


def refusal(exchange: Exchange, refused: Refusal) -> None:
    """Answers with an error."""
    headers = {"WWW-Authenticate": "Bearer"} if refused.row.status == 401 else {}
    exchange.reply(refused.row.status, error(refused.name, refused.message), headers)


def error(code: str, message: str) -> dict[str, Any]:
    """The body of every error."""
    return {"error": {"code": code, "message": message}}
