"""Modes and options of a session: what can be chosen now, and what a choice brings about.

The mode, and the option of the category `mode`, are two names for one thing and change together. An option or a choice
with a `when` is there only while that holds; a value that is not there any more gives way to the first one that is.

Source: ACP v1, "Session Config Options", relationship to session modes; setting an option.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.script.match import Counters, matches

if TYPE_CHECKING:
    from mockagent.scenario import model
    from mockagent.world.sessions import Session


def choose_mode(agent: model.Agent, session: Session, mode: str) -> None:
    """The session's mode is this one from now on."""
    session.mode = mode
    option = mode_option(agent)
    if option is not None and mode in values(option):
        session.config[option.id] = mode
    _settle(agent, session)


def choose_option(agent: model.Agent, session: Session, id: str, value: Any) -> None:
    """An option has this value from now on."""
    session.config[id] = value
    option = mode_option(agent)
    if option is not None and option.id == id and any(mode.id == value for mode in agent.modes):
        session.mode = value
    _settle(agent, session)


def begin(agent: model.Agent, session: Session) -> None:
    """What is current where nobody has chosen anything yet: the option says it where both are given."""
    option = mode_option(agent)
    if option is not None and agent.modes:
        value = session.config.get(option.id)
        if value != session.mode and any(mode.id == value for mode in agent.modes):
            session.mode = value
    _settle(agent, session)


def mode_option(agent: model.Agent) -> model.Option | None:
    """The option that stands for the modes; the first one, if there are several."""
    return next((option for option in agent.options if option.category == "mode" and option.type == "select"), None)


def offered(agent: model.Agent, session: Session) -> list[model.Option]:
    """The options that there are in a session now, each with the choices that there are now."""
    found = []
    for option in agent.options:
        if not _holds(option.when, session):
            continue
        choices = tuple(kept for choice in option.choices if (kept := _choice(choice, session)) is not None)
        found.append(option if choices == option.choices else msgspec.structs.replace(option, choices=choices))
    return found


def values(option: model.Option) -> list[Any]:
    """The values of all choices, through all groups."""
    found: list[Any] = []
    for choice in option.choices:
        found += [inner["value"] for inner in choice["options"]] if "options" in choice else [choice["value"]]
    return found


def _choice(choice: dict[str, Any], session: Session) -> dict[str, Any] | None:
    """A choice, or a group with those of its choices that there are; None if nothing is left."""
    if "options" in choice:
        inner = [kept for each in choice["options"] if (kept := _choice(each, session)) is not None]
        return {**choice, "options": inner} if inner else None
    if "when" not in choice:
        return choice
    return {key: value for key, value in choice.items() if key != "when"} if _holds(choice["when"], session) else None


def _holds(when: model.When | None, session: Session) -> bool:
    if when is None:
        return True
    facts = {"mode": session.mode, "option": session.config}
    return matches(when, facts, Counters(), lambda purpose: Random(0)) is not None


def _settle(agent: model.Agent, session: Session) -> None:
    """Changes what is not on offer any more, until nothing changes; one change can bring about the next."""
    everything = {option.id: values(option) for option in agent.options}
    for _ in agent.options:
        changed = False
        for option in offered(agent, session):
            there, value = values(option), session.config.get(option.id)
            if there and value not in there and value in everything[option.id]:
                session.config[option.id] = there[0]
                changed = True
        if not changed:
            return
