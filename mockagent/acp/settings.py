"""What a client chooses for a session: `session/set_mode` and `session/set_config_option`.

Both are answered and bring about no update of their own; a schedule can listen for `mode_changed` and `option_changed`.

Source: ACP v1, "Session Modes", "Session Config Options".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mockagent.acp import params as p
from mockagent.acp import render
from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.script.settings import choose_mode, choose_option, values

if TYPE_CHECKING:
    from mockagent.acp.connection import Call, Connection


def set_mode(connection: Connection, params: p.SetMode, call: Call) -> Any:
    """`session/set_mode`; an agent without modes has no such method."""
    session = connection.agent.active(params.session_id)
    agent = connection.agent.scenario.agent
    if not agent.modes:
        raise _none(call, "modes")
    _one_of("modeId", params.mode_id, [mode.id for mode in agent.modes])
    choose_mode(agent, session, params.mode_id)
    connection.agent.world.sessions.touch(session)
    call.then = partial(connection.agent.event, "mode_changed", session)
    return {}


def set_option(connection: Connection, params: p.SetOption, call: Call) -> Any:
    """`session/set_config_option`; the answer has all options, since one can change with another."""
    if isinstance(params.value, bool) and params.type != "boolean":
        rule = 'is text, unless type is "boolean"'
        raise Refusal("invalid_params", f"Invalid params: value: {rule}", field="value", rule=rule)
    session = connection.agent.active(params.session_id)
    agent = connection.agent.scenario.agent
    if not any(option.type in ("select", "boolean") for option in agent.options):
        raise _none(call, "options")
    shown = {option.id: option for option in render.shown_options(session, agent, connection.client)}
    _one_of("configId", params.config_id, list(shown))
    option = shown[params.config_id]
    _check_value(option, params)
    choose_option(agent, session, option.id, params.value)
    connection.agent.world.sessions.touch(session)
    call.then = partial(connection.agent.event, "option_changed", session)
    return {"configOptions": render.config_options(session, agent, connection.client) or []}


def _none(call: Call, what: str) -> Refusal:
    return Refusal("method_not_found", f"Method not found: {call.method}: the agent has no {what}", method=call.method)


def _check_value(option: model.Option, params: p.SetOption) -> None:
    if option.type == "boolean":
        if not isinstance(params.value, bool):
            rule = f'option {option.id!r} is boolean: it takes type "boolean" and true or false'
            raise Refusal("invalid_params", f"Invalid params: value: {rule}", field="value", rule=rule)
        return
    _one_of("value", params.value, values(option))


def _one_of(field: str, value: Any, known: list[Any]) -> None:
    if value not in known:
        rule = f"is one of {', '.join(map(str, known))}" if known else "the agent has none"
        raise Refusal("invalid_params", f"Invalid params: {field}: {value!r}: {rule}", field=field, rule=rule)
