"""A mock agent inside the tests of a client, in any framework.

    from mockagent.testing import MockAgent

    with MockAgent("lists/late-title") as mock:
        start_my_client(mock.stdio_command)
        mock.wait_for("session/list", timeout=2)
        mock.verify()

Nothing is imported before it is asked for: the pytest plugin is loaded in every run of everybody who has installed us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockagent.scenario.problems import ScenarioError
    from mockagent.testing.agent import Armed, MockAgent
    from mockagent.testing.errors import MockError
    from mockagent.testing.memory import MemoryAgent
    from mockagent.watch.entries import Entry

__all__ = ["Armed", "Entry", "MemoryAgent", "MockAgent", "MockError", "ScenarioError"]

_HOMES = {
    "Armed": "mockagent.testing.agent",
    "Entry": "mockagent.watch.entries",
    "MemoryAgent": "mockagent.testing.memory",
    "MockAgent": "mockagent.testing.agent",
    "MockError": "mockagent.testing.errors",
    "ScenarioError": "mockagent.scenario.problems",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
