"""The list of misbehaving clients: one for each rule, and what each is let loose on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Awaitable[None]])


class Client(NamedTuple):
    """A client that breaks one rule.

    Attributes:
        rule: which.
        play: plays it; takes what its transport gives it.
        over: `stdio`, `ws`, `http` or `aap`.
        scenario: YAML of the agent.
    """

    rule: str
    play: Callable[..., Awaitable[None]]
    over: str
    scenario: str


CLIENTS: dict[str, Client] = {}


def breaks(rule: str, *, over: str, scenario: str = "") -> Callable[[F], F]:
    """Registers the client below: it breaks that rule, and no other."""

    def register(play: F) -> F:
        assert rule not in CLIENTS, f"there is a client for {rule} already"
        CLIENTS[rule] = Client(rule, play, over, scenario)
        return play

    return register


def broken(report: dict[str, Any]) -> set[str]:
    """The rules that a report says were broken."""
    return {rule["id"] for rule in report["rules"] if rule["broken"]}
