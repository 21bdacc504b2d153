"""Durations, counts, rates, times and plain scalars."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario import scalars


@given(st.integers(0, 36_500 * 86_400_000_000))
def test_a_duration_survives_being_written_and_read(micros: int) -> None:
    assert scalars.duration(scalars.duration_text(micros)) == micros


@given(st.integers(0, 30_000), st.integers(0, 30_000), st.sampled_from(sorted(scalars.UNITS)))
def test_durations_are_ordered_like_their_numbers(one: int, other: int, unit: str) -> None:
    low, high = sorted((one, other))
    assert scalars.duration(f"{low}{unit}") <= scalars.duration(f"{high}{unit}")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0s", 0),
        ("250ms", 250_000),
        ("1.5s", 1_500_000),
        ("0.0015ms", 2),
        ("2m", 120_000_000),
        ("3h", 10_800_000_000),
        ("30d", 2_592_000_000_000),
        ("1.25d", 108_000_000_000),
    ],
)
def test_durations(text: str, micros: int) -> None:
    assert scalars.duration(text) == micros


@pytest.mark.parametrize("text", ["", "5", "s", ".5s", "5.s", "-1s", "+1s", "1 s", "1e3s", "1w", "٣s", "1s2m", "0x1s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        scalars.duration(text)


@given(st.text(max_size=12))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    scalars.resolve(text)
    for parse in (scalars.duration, scalars.count, scalars.byte_rate, scalars.per_second, scalars.instant):
        with contextlib.suppress(ValueError):
            parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("nULL", "nULL"),
        ("True", True),
        ("tRUE", "tRUE"),
        ("014", 14),
        ("0o14", 12),
        ("0o18", "0o18"),
        ("0xfF", 255),
        ("-0x1", "-0x1"),
        ("-7", -7),
        ("+7", 7),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1e", "1e"),
        ("-.inf", float("-inf")),
        ("inf", "inf"),
        ("2026-01-15", "2026-01-15"),
        ("٣", "٣"),
        ("--1", "--1"),
        ("1..3", "1..3"),
        (".", "."),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    made = scalars.resolve(text)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("text", "rate"), [("500B/s", 500), ("2KB/s", 2000), ("1MiB/s", 1_048_576), ("1.5 KB/s", 1500)]
)
def test_byte_rates(text: str, rate: float) -> None:
    assert scalars.byte_rate(text) == rate


def test_an_instant_counts_from_the_epoch() -> None:
    assert scalars.instant("1970-01-01T00:00:01.5Z") == 1_500_000
    assert scalars.instant("1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(ValueError, match="time zone"):
        scalars.instant("2026-01-15T09:00:00")
