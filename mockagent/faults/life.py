"""What effects come to where there is no message: at a point in life, and as a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mockagent.faults.effects import EFFECTS, Context, Work
from mockagent.faults.interface import Life
from mockagent.faults.listing import Skip
from mockagent.message import Message, Peer


def life_of_step(verb: str, payload: Any) -> Life:
    """What `disconnect`, `exit`, `stall` or `stderr` means as a step; the payload is that of the effect, filled."""
    work = Work(Message("raw", None, Peer("", "acp", "memory")))
    EFFECTS[verb].apply(work, payload, Context(lambda value, old: value, lambda span: float(span) / 1e6))
    [life] = [*work.notices, *work.life]
    return life


def point_life(work: Work) -> list[Life]:
    """What effects mean where there is no message.

    Raises:
        Skip: one of them needs a message.
    """
    idle = Work(work.message)
    idle.notices, idle.life, idle.ignores, idle.dropped = work.notices, work.life, work.ignores, work.dropped
    untouched = all(getattr(work, name) == getattr(idle, name) for name in work.__slots__)
    if not untouched or work.message.shape is not None or work.message.data is not None:
        raise Skip("this needs a message")
    return [*work.notices, *work.life]


def joined(first: Life | None, others: Iterable[Life]) -> Life | None:
    """Several things that happen at one point as one: text adds up, of the rest the last counts."""
    life = first
    for other in others:
        if life is None:
            life = other
            continue
        changes = {
            name: value
            for name in other.__struct_fields__
            if (value := getattr(other, name)) is not None and value is not False
        }
        if life.stderr and other.stderr:
            changes["stderr"] = life.stderr + other.stderr
        life = msgspec.structs.replace(life, **changes)
    return life
