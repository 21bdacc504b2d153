"""What the methods of ACP v1 do: one function a method, and one table that says which there are.

A handler gets checked params and answers with a result, with a refusal, or later. Whether a method may be called at all
(before `initialize`, without the capability, without authentication) is decided once, by the table.

Source: ACP v1, pages "Initialization", "Session Setup", "Session List", "Session Modes", "Session Config Options",
"Prompt Turn".
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mockagent.acp import auth, prompts, render, settings
from mockagent.acp import params as p
from mockagent.acp.output import SessionOutput, TurnOutput
from mockagent.errors import Refusal
from mockagent.faults.interface import Page, Query
from mockagent.message import Message
from mockagent.scenario import model
from mockagent.script.output import Surface
from mockagent.script.settings import begin
from mockagent.world.cursors import Holder
from mockagent.world.sessions import Session, same_directory

if TYPE_CHECKING:
    from mockagent.acp.connection import Call, Connection


class Later(enum.Enum):
    """Marks a request that is answered when its turn ends."""

    LATER = enum.auto()


LATER: Final = Later.LATER


class Method(NamedTuple):
    """A row of the table.

    Attributes:
        params: what they are read as.
        call: does the work.
        capability: the one that the agent has to advertise, or None.
        early: may be called before `initialize`.
        open_door: may be called without authentication.
    """

    params: type[p.Params]
    call: Callable[[Connection, Any, Call], Any]
    capability: str | None = None
    early: bool = False
    open_door: bool = False


def handle(connection: Connection, call: Call) -> Any:
    """Answers a request.

    Returns:
        The result, or LATER.

    Raises:
        Refusal: the request is answered with an error.
    """
    row = METHODS.get(call.method)
    agent = connection.agent.scenario.agent
    if connection.version is None and not (row is not None and row.early):
        rule = "initialize comes first"
        raise Refusal("invalid_request", f"{call.method} came before initialize", method=call.method, rule=rule)
    if row is None or (row.capability is not None and not getattr(agent.capabilities, row.capability)):
        raise Refusal("method_not_found", f"Method not found: {call.method}", method=call.method)
    if not (connection.authenticated or row.open_door):
        raise Refusal("auth_required")
    return row.call(connection, p.read(row.params, call.message.data.get("params")), call)


def instead(connection: Connection, call: Call, do: str) -> Any:
    """What a scenario wants in place of a refusal (`sessions.unknown`, `sessions.invalid_cursor`, ...).

    Args:
        do: `create` makes the session and tries again, `first_page` forgets the cursor, `empty` answers with nothing.

    Raises:
        Refusal: that cannot be answered either.
    """
    if do == "empty":
        return {"sessions": []} if call.method == "session/list" else {}
    params = dict(call.message.data.get("params") or {})
    if do == "first_page":
        params.pop("cursor", None)
    else:
        connection.agent.world.sessions.create(params.get("cwd"), id=params.get("sessionId"))
    call.message = call.message.copy()
    call.message.data = {**call.message.data, "params": params}
    return handle(connection, call)


def notify(connection: Connection, message: Message) -> None:
    """Takes a notification; unknown ones are ignored, as JSON-RPC wants it.

    Raises:
        Refusal: its params are wrong, or it came before `initialize`; there is nobody to tell but the journal.
    """
    row = NOTIFICATIONS.get(message.method)
    if row is None:
        connection.backstage.note("ignored", connection.peer, message.session, method=message.method)
        return
    if connection.version is None:
        raise Refusal("invalid_request", f"{message.method} came before initialize")
    kind, take = row
    take(connection, p.read(kind, message.data.get("params")))


# --- set-up


def _initialize(connection: Connection, params: p.Initialize, call: Call) -> Any:
    if connection.version is not None:
        rule = "initialize is called once"
        raise Refusal("invalid_request", "initialize was called a second time", method="initialize", rule=rule)
    if not 0 <= params.protocol_version <= 65535:
        rule = "is an integer from 0 to 65535"
        raise Refusal("invalid_params", f"Invalid params: protocolVersion {rule}", field="protocolVersion", rule=rule)
    agent = connection.agent.scenario.agent
    versions = agent.acp
    connection.version = params.protocol_version if params.protocol_version in versions else max(versions)
    connection.client = params.client_capabilities
    connection.settle_in()
    call.then = partial(connection.agent.event, "connected", None)
    return {
        "protocolVersion": connection.version,
        "agentCapabilities": render.capabilities(agent),
        "agentInfo": {"name": agent.name, "version": agent.version} | ({"title": agent.title} if agent.title else {}),
        "authMethods": auth.offered(agent.auth, connection.client),
    }


def _logout(connection: Connection, params: p.Logout, call: Call) -> Any:
    rules = connection.agent.scenario.agent.auth
    if not (rules.methods and rules.logout):
        raise Refusal("method_not_found", "Method not found: logout", method="logout")
    connection.authenticated = not rules.required
    connection.logins += 1
    for output in list(connection.outputs.values()):
        connection.agent.close(output.session)
        connection.drop_tools(output.session.id)
    connection.outputs.clear()
    return {}


# --- sessions


def _set_up(connection: Connection, params: p.NewSession | p.ResumeSession) -> tuple[str, ...]:
    """Checks what all ways into a session have in common."""
    agent = connection.agent.scenario.agent
    p.absolute("cwd", params.cwd)
    if params.additional_directories and not agent.capabilities.additional_directories:
        rule = "the agent does not advertise sessionCapabilities.additionalDirectories"
        message = f"Invalid params: additionalDirectories: {rule}"
        raise Refusal("invalid_params", message, field="additionalDirectories", rule=rule)
    for index, directory in enumerate(params.additional_directories):
        p.absolute(f"additionalDirectories[{index}]", directory)
    p.mcp_servers(params.mcp_servers, http=agent.capabilities.mcp_http, sse=agent.capabilities.mcp_sse)
    return tuple(params.additional_directories)


def _state(connection: Connection, session: Session) -> dict[str, Any]:
    """Modes and options as they stand, as far as the agent has any."""
    agent = connection.agent.scenario.agent
    begin(agent, session)
    state = {
        "modes": render.modes(session, agent),
        "configOptions": render.config_options(session, agent, connection.client),
    }
    return {key: value for key, value in state.items() if value is not None}


def _open(connection: Connection, session: Session, call: Call) -> None:
    """The session is open here; what follows the reply is prepared."""
    output = connection.outputs[session.id] = SessionOutput(connection, session)
    connection.agent.presence.join(session, output)
    call.session = session.id
    call.then = partial(_opened, connection, session)
    if connection.agent.scenario.agent.mcp != "check":
        from mockagent.acp.mcp import connect

        connect(connection, session, call)


def _opened(connection: Connection, session: Session) -> None:
    agent = connection.agent
    commands = agent.scenario.agent.commands
    if commands and (output := connection.outputs.get(session.id)) is not None:
        output.emit(Surface(verb="commands", payload=commands), "handler")
    agent.opened(session)


def _new(connection: Connection, params: p.NewSession, call: Call) -> Any:
    directories = _set_up(connection, params)
    session = connection.agent.create(params.cwd, directories)
    _open(connection, session, call)
    return {"sessionId": session.id} | _state(connection, session)


def _enter(connection: Connection, params: p.LoadSession | p.ResumeSession, call: Call) -> Any:
    """What load and resume have in common; they differ in whether the history is replayed."""
    directories = _set_up(connection, params)
    session = connection.agent.session(params.session_id)
    if not same_directory(params.cwd, session.cwd):
        rule = "must be the session's own working directory"
        message = f"Invalid params: cwd: {params.cwd!r} {rule}, {session.cwd!r}"
        raise Refusal("invalid_params", message, field="cwd", rule=rule)
    connection.agent.world.sessions.activate(session, directories)
    rules = connection.agent.scenario.sessions.replay
    send = rules.send if call.method.rpartition("/")[2] in rules.for_ else "none"
    if send == "before":
        _replay(connection, session, call, rules.live)
        return LATER
    _open(connection, session, call)
    if send == "after":
        opened = call.then
        call.then = partial(_replay_late, connection, session, opened)
    return _state(connection, session)


def _replay(connection: Connection, session: Session, call: Call, live: str) -> None:
    """Replays the history. `live` says whether what happens in the session meanwhile is held back for this client."""
    output = SessionOutput(connection, session)
    if live == "mixed":
        connection.agent.presence.join(session, output)
    else:
        connection.replaying.append(session.id)
    connection.agent.replay(session, output, partial(_entered, connection, session, call))


def _entered(connection: Connection, session: Session, call: Call) -> None:
    """The history has been replayed: the call is answered, unless somebody has ended the session meanwhile."""
    if session.id in connection.replaying:
        connection.replaying.remove(session.id)
        connection.backstage.stage.wake()
    if session.state != "active":
        connection.refuse(call, Refusal("session_inactive", f"Session {session.id!r} was closed while it was loaded"))
        return
    _open(connection, session, call)
    connection.reply(call, _state(connection, session))


def _replay_late(connection: Connection, session: Session, then: Callable[[], None] | None) -> None:
    """The wrong way round, which `sessions.replay` can ask for."""
    connection.agent.replay(session, connection.outputs[session.id], then or _nothing)


def _nothing() -> None:
    pass


def _list(connection: Connection, params: p.ListSessions, call: Call) -> Any:
    if params.cwd is not None:
        p.absolute("cwd", params.cwd)
    agent = connection.agent
    holder = Holder(connection.peer.id, str(connection.logins))
    rows, cursor = agent.page(params.cwd, params.cursor, holder)
    page = Page(rows=[render.session_info(session, agent.scenario.agent) for session in rows], cursor=cursor)
    query = Query(peer=connection.peer, request=call.message, cwd=params.cwd, cursor=params.cursor)
    page = connection.backstage.faults.listing(query, page)
    call.then = partial(_listed, connection, rows)
    result: dict[str, Any] = {"sessions": page.rows}
    if page.cursor is not None or page.null_cursor:
        result["nextCursor"] = page.cursor
    return result


def _listed(connection: Connection, rows: list[Session]) -> None:
    connection.backstage.point("session_listed", connection.out)
    connection.agent.listed(rows)


def _fork(connection: Connection, params: p.ResumeSession, call: Call) -> Any:
    """Source: the ACP proposal "Session Fork"; unstable."""
    directories = _set_up(connection, params)
    parent = connection.agent.session(params.session_id)
    session = connection.agent.world.sessions.fork(parent, params.cwd, directories)
    _open(connection, session, call)
    return {"sessionId": session.id} | _state(connection, session)


def _shut(connection: Connection, session: Session, call: Call) -> Any:
    """The session is freed: the answer comes behind the ends of the turns that it cancels."""
    connection.outputs.pop(session.id, None)
    connection.drop_tools(session.id)
    ended = connection.agent.close(session, partial(connection.reply, call, {}))
    return {} if ended else LATER


def _close(connection: Connection, params: p.OneSession, call: Call) -> Any:
    return _shut(connection, connection.agent.active(params.session_id), call)


def _delete(connection: Connection, params: p.OneSession, call: Call) -> Any:
    """Deleting what is not there succeeds (Session Setup, deleting)."""
    session = connection.agent.world.sessions.get(params.session_id)
    if session is None:
        return {}
    answer = _shut(connection, session, call)
    connection.agent.world.sessions.delete(session)
    return answer


# --- turns


def _prompt(connection: Connection, params: p.Prompt, call: Call) -> Any:
    session = connection.agent.active(params.session_id)
    can = connection.agent.scenario.agent.capabilities
    _check_content(params.prompt, can)
    connection.out.release("next_prompt", session.id)
    output = TurnOutput(connection, session, call)
    call.turn = connection.agent.prompt(session, prompts.read(call.message), output)
    return LATER


_GATED: dict[type, tuple[str, str]] = {
    p.ImageBlock: ("image", "image"),
    p.AudioBlock: ("audio", "audio"),
    p.ResourceBlock: ("embedded_context", "embeddedContext"),
}


def _check_content(blocks: list[p.AnyBlock], can: model.Capabilities) -> None:
    """Source: Content: images, audio and embedded resources only if the agent advertised them."""
    for index, block in enumerate(blocks):
        gate = _GATED.get(type(block))
        if gate is not None and not getattr(can, gate[0]):
            field, rule = f"prompt[{index}]", f"the agent does not advertise promptCapabilities.{gate[1]}"
            raise Refusal("invalid_params", f"Invalid params: {field}: {rule}", field=field, rule=rule)
        if isinstance(block, p.ResourceBlock):
            inner = block.resource
            if not inner.holds:
                field, rule = f"prompt[{index}].resource", "has text, or blob, as a string"
                raise Refusal("invalid_params", f"Invalid params: {field} {rule}", field=field, rule=rule)


def _cancel(connection: Connection, params: p.OneSession) -> None:
    session = connection.agent.world.sessions.get(params.session_id)
    if session is None:
        raise Refusal("session_not_found", f"There is no session {params.session_id!r}")
    connection.agent.cancel(session)


def _cancel_request(connection: Connection, params: p.CancelRequest) -> None:
    """Only a prompt takes long enough to be cancelled; others are answered already, and it is ignored."""
    call = connection.calls.find(params.request_id)
    if call is not None and call.turn is not None:
        call.turn.cancel()


METHODS: dict[str, Method] = {
    "initialize": Method(p.Initialize, _initialize, early=True, open_door=True),
    "authenticate": Method(p.Authenticate, auth.authenticate, open_door=True),
    "logout": Method(p.Logout, _logout, open_door=True),
    "session/new": Method(p.NewSession, _new),
    "session/load": Method(p.LoadSession, _enter, "load"),
    "session/resume": Method(p.ResumeSession, _enter, "resume"),
    "session/fork": Method(p.ResumeSession, _fork, "fork"),
    "session/list": Method(p.ListSessions, _list, "list"),
    "session/close": Method(p.OneSession, _close, "close"),
    "session/delete": Method(p.OneSession, _delete, "delete"),
    "session/set_mode": Method(p.SetMode, settings.set_mode),
    "session/set_config_option": Method(p.SetOption, settings.set_option),
    "session/prompt": Method(p.Prompt, _prompt),
}
"""Every request a client may make."""

NOTIFICATIONS: dict[str, tuple[type[p.Params], Callable[[Connection, Any], None]]] = {
    "session/cancel": (p.OneSession, _cancel),
    "$/cancel_request": (p.CancelRequest, _cancel_request),
}
"""Every notification that means something."""
