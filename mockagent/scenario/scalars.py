"""Small notations inside texts: YAML 1.2 core scalars, durations, rates, sizes, counts, times.

Pure functions from text to value. A `ValueError` carries the sentence that `check` prints; places are not known here.
"""

from __future__ import annotations

from typing import Any

from mockagent.scenario.model import Count, Micros

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DIGITS = frozenset("0123456789")

#: unit -> microseconds
UNITS: dict[str, int] = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_LONGEST = 36_500 * UNITS["d"]

#: unit -> bytes
SIZES: dict[str, int] = {"B": 1, "KB": 1_000, "MB": 1_000_000, "KiB": 1_024, "MiB": 1_048_576}


def resolve(text: str) -> Any:
    """The value of a plain (unquoted) scalar in the core schema of YAML 1.2, section 10.3.2.

    Returns:
        None, a bool, an int, a float, or the text itself when it is nothing else.
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    first = text[0]
    if first in _DIGITS or first in "+-.":
        return _number(text)
    return text


def _number(text: str) -> Any:
    if text[:2] == "0o" and text[2:] and not set(text[2:]) - set("01234567"):
        return int(text[2:], 8)
    if text[:2] == "0x" and text[2:] and not set(text[2:]) - set("0123456789abcdefABCDEF"):
        return int(text[2:], 16)
    body = text[1:] if text[0] in "+-" else text
    sign = -1 if text[0] == "-" else 1
    if body and not set(body) - _DIGITS:
        return sign * int(body) if len(body) <= 4000 else sign * float("inf")
    if body in (".inf", ".Inf", ".INF"):
        return sign * float("inf")
    if text in (".nan", ".NaN", ".NAN"):
        return float("nan")
    if body[:1] in ("", "+", "-") or set(body) - _DIGITS - set(".eE+-"):
        return text
    try:
        return float(text)
    except ValueError:
        return text


def duration(text: str) -> Micros:
    """`250ms`, `1.5s`, `30d` in microseconds, rounded to the nearest.

    Raises:
        ValueError: the text is no duration; says what one looks like.
    """
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    whole, dot, part = number.partition(".")
    if unit not in UNITS or not whole or set(whole + part) - _DIGITS or bool(dot) != bool(part):
        hint = f"; a duration needs its unit: `{number}s`" if number and not unit and _is_number(number) else ""
        raise ValueError(f"`{text}` is not a duration such as `250ms`, `1.5s`, `2m`, `3h` or `30d`{hint}")
    if len(number) > 30:
        raise ValueError(f"`{text[:40]}...` is not a sensible duration")
    scale = int("1" + "0" * len(part))
    micros = (int(whole + part) * UNITS[unit] * 2 + scale) // (2 * scale)
    if micros > _LONGEST:
        raise ValueError(f"`{text}` is longer than a hundred years")
    return micros


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def duration_text(micros: Micros) -> str:
    """The shortest text that `duration` reads back as the same number of microseconds."""
    for unit in ("d", "h", "m", "s", "ms"):
        if micros and micros % UNITS[unit] == 0:
            return f"{micros // UNITS[unit]}{unit}"
    if not micros:
        return "0s"
    return f"{micros // 1_000}.{micros % 1_000:03d}".rstrip("0") + "ms"


def per_second(text: str) -> float:
    """`60/s`: so many a second.

    Raises:
        ValueError: the text is no such rate.
    """
    number, slash, unit = text.partition("/")
    if slash and unit.strip() == "s" and _is_number(number) and float(number) > 0:
        return float(number)
    raise ValueError(f"`{text}` is not a rate such as `60/s`")


def byte_rate(text: str) -> float:
    """`2KB/s`: bytes a second. KB is 1000 bytes, KiB is 1024.

    Raises:
        ValueError: the text is no such rate.
    """
    size, slash, unit = text.partition("/")
    if slash and unit.strip() == "s":
        number = size.rstrip("BKMi ")
        scale = SIZES.get(size[len(number) :].strip())
        if scale and _is_number(number) and float(number) > 0:
            return float(number) * scale
    raise ValueError(f"`{text}` is not a rate of bytes such as `500B/s`, `2KB/s` or `1MB/s`")


def count(text: str) -> Count:
    """`2`, `3..`, `..4`, `2..4`.

    Raises:
        ValueError: the text is no count, or an empty range.
    """
    low, dots, high = text.partition("..")
    if not set(low + high) - _DIGITS and (low or high) and len(text) < 30:
        if not dots:
            return Count(numbers=frozenset({int(low)}))
        if low and high and int(low) > int(high):
            raise ValueError(f"the range `{text}` is empty")
        return Count(low=int(low) if low else None, high=int(high) if high else None)
    raise ValueError(f"`{text}` is not a count such as `2`, `3..` or `2..4`")


def instant(text: str) -> Micros:
    """An ISO 8601 time with its zone, in microseconds since the epoch.

    Raises:
        ValueError: the text is no such time.
    """
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a time such as `2026-01-15T09:00:00Z`") from None
    if moment.tzinfo is None:
        hint = f"write `{text}Z`" if len(text) > 10 else "and no time of day; write `2026-01-15T09:00:00Z`"
        raise ValueError(f"`{text}` has no time zone{';' if len(text) > 10 else ''} {hint}")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
