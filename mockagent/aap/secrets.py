"""Where secrets stand in what AAP clients send, for whoever keeps what was said (journals, reports).

Looks at scenarios alone, so that it can be asked before anything is set up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockagent.scenario.model import Option, Scenario

_KINDS = ("POST /sessions", "POST /sessions/*/turns")


def pointers(scenarios: Iterable[Scenario]) -> dict[str, list[str]]:
    """Pointers to secret options, by kind of request."""
    found = [f"/agent/options/{_escaped(option.id)}" for option in _secrets(scenarios)]
    return dict.fromkeys(_KINDS, found) if found else {}


def values(scenarios: Iterable[Scenario]) -> list[str]:
    """Secrets that the scenarios themselves hold: tokens, and values of secret options."""
    scenarios = list(scenarios)
    tokens = [token for scenario in scenarios for token in scenario.agent.auth.tokens]
    return tokens + [option.value for option in _secrets(scenarios) if isinstance(option.value, str) and option.value]


def _secrets(scenarios: Iterable[Scenario]) -> list[Option]:
    return [option for scenario in scenarios for option in scenario.agent.options if option.type == "secret"]


def _escaped(token: str) -> str:
    """RFC 6901, section 3."""
    return token.replace("~", "~0").replace("/", "~1")
