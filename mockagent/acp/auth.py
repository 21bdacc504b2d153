"""Who may use the agent: the methods it offers, `authenticate`, and the login in a terminal.

Being logged in belongs to a connection. A login in a terminal is another process' success; it is there for connections
of later processes only where a state file keeps it.

Source: ACP v1, "Authentication".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mockagent.acp import params as p
from mockagent.errors import Refusal

if TYPE_CHECKING:
    from mockagent.acp.connection import Call, Connection
    from mockagent.scenario import model

_OURS = frozenset({"exit"})
"""Members of a method that the client does not see."""


def offered(auth: model.Auth, client: p.ClientCapabilities) -> list[dict[str, Any]]:
    """`authMethods`: those in a terminal only for clients that can run one."""
    return [_shown(method) for method in auth.methods if method.get("type") != "terminal" or client.auth.terminal]


def _shown(method: dict[str, Any]) -> dict[str, Any]:
    terminal = method.get("type") == "terminal"
    hidden = _OURS if terminal else _OURS | {"type", "args", "env"}
    return {key: value for key, value in method.items() if key not in hidden}


def authenticate(connection: Connection, params: p.Authenticate, call: Call) -> Any:
    """`authenticate`; a terminal method is none that could be called by its id."""
    methods = {method["id"]: method for method in connection.agent.scenario.agent.auth.methods}
    method = methods.get(params.method_id)
    callable_ = [id for id, each in methods.items() if each.get("type") != "terminal"]
    if method is None or params.method_id not in callable_:
        rule = f"is one of {', '.join(callable_)}" if callable_ else "the agent has no methods that can be called"
        if method is not None:
            rule = f"is a terminal method, which the client runs itself; it {rule}"
        message = f"Invalid params: methodId: {params.method_id!r}: {rule}"
        raise Refusal("invalid_params", message, field="methodId", rule=rule)
    connection.authenticated = True
    connection.logins += 1
    return {}


def terminal_login(scenario: model.Scenario, method_id: str) -> tuple[int, str]:
    """The login that a client starts in a terminal (`mockagent acp SCENARIO --login`).

    Args:
        scenario: says how it ends.
        method_id: which method; empty: the first one of its kind.

    Returns:
        The exit status, and what to tell the user.
    """
    methods = [method for method in scenario.agent.auth.methods if method.get("type") == "terminal"]
    found = [method for method in methods if method_id in ("", method["id"])]
    if not found:
        known = ", ".join(method["id"] for method in methods) or "there are none"
        named = f"`{method_id}`" if method_id else "of any name"
        return 2, f"{scenario.name} has no terminal method {named}: {known}"
    status: int = found[0].get("exit", 0)
    agent = scenario.agent.title or scenario.agent.name
    ended = "You are logged in." if status == 0 else "The login failed."
    return status, f"{agent}: {found[0]['name']}\n{ended}"
