"""Pieces and waits: how a text streams, and how long a span of the scenario is this time."""

from __future__ import annotations

import math
import re
from random import Random

from mockagent.scenario.model import Lognormal, Micros, Pace, Span, Uniform
from mockagent.world.clock import SECOND

_WORDS = re.compile(r"\s*\S+\s*|\s+")


def draw(span: Span, rng: Random) -> Micros:
    """The length of a span: itself, or a draw from its distribution (microseconds, never negative)."""
    if isinstance(span, Uniform):
        return rng.randint(span.low, span.high)
    if isinstance(span, Lognormal):
        return round(rng.lognormvariate(math.log(max(span.median, 1)), span.sigma))
    return span


def pieces(text: str, pace: Pace | None) -> list[str]:
    """Cuts a text into the chunks it streams in; joined again they are the text.

    An empty text is one empty chunk: the scenario said something, if nothing.
    """
    if pace is None or not text:
        return [text]
    if pace.chunk == "word":
        return _WORDS.findall(text)
    if pace.chunk == "line":
        return text.splitlines(keepends=True)
    return [text[start : start + pace.chunk] for start in range(0, len(text), pace.chunk)]


def gap(pace: Pace, rng: Random) -> Micros:
    """The wait between two chunks, with its jitter (a fraction of the wait, to both sides)."""
    if pace.rate is None:
        return 0
    wait = SECOND / pace.rate
    if pace.jitter:
        wait *= 1 + rng.uniform(-pace.jitter, pace.jitter)
    return max(round(wait), 0)
