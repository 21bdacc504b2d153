from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.faults.framing import cuts, operations
from mockagent.net.channel import Bytes, Op, Pause, Rate

lines = st.text(alphabet="aß東𝄞", max_size=20).map(lambda text: text.encode() + b"\n")


def split(**value: object) -> tuple[str, object]:
    return "split", {"at": None, "parts": None, "into": "writes", "pause": None} | value


def joined(ops: Sequence[Op]) -> bytes:
    return b"".join(op.data for op in ops if isinstance(op, Bytes | Rate))


@given(lines, st.integers(2, 30))
def test_parts_are_the_same_bytes_again_each_in_a_write_of_its_own(data: bytes, parts: int) -> None:
    ops = operations([split(parts=parts)], data)
    assert joined(ops) == data
    assert all(isinstance(op, Bytes) and op.alone and op.data for op in ops)
    assert len(ops) == min(parts, len(data))


@given(lines, st.lists(st.integers(-30, 30), max_size=5))
def test_cuts_rise_and_lie_inside_the_data(data: bytes, at: list[int]) -> None:
    found = cuts(data, {"at": at})
    assert found == sorted(set(found))
    assert all(0 < offset < len(data) for offset in found)


@given(lines, st.integers(2, 5))
def test_a_utf8_split_is_inside_a_character(data: bytes, parts: int) -> None:
    offsets = cuts(data, {"at": "utf8", "parts": parts})
    several = sum(len(char.encode()) > 1 for char in data.decode())
    assert len(offsets) == min(parts - 1, several)
    for offset in offsets:
        with pytest.raises(UnicodeDecodeError):
            data[:offset].decode()


def test_a_utf8_split_leaves_plain_text_whole() -> None:
    assert operations([split(at="utf8", pause=1.0)], b"plain\n") == [Bytes(b"plain\n", alone=True)]


def test_pauses_stand_between_the_parts_and_nowhere_else() -> None:
    assert operations([split(at=(2, 4), pause=0.05)], b"abcdef") == [
        Bytes(b"ab", alone=True), Pause(0.05), Bytes(b"cd", alone=True), Pause(0.05), Bytes(b"ef", alone=True),
    ]  # fmt: skip


def test_only_the_first_bytes_leave_when_truncated() -> None:
    assert operations([("truncate", 3)], b"abcdef\n") == [Bytes(b"abc")]
    assert operations([("truncate", 100)], b"abc\n") == [Bytes(b"abc\n")]
    assert joined(operations([("truncate", 0)], b"abc\n")) == b""


def test_nothing_is_waited_for_behind_a_truncation() -> None:
    assert operations([split(at=(2,), pause=9.0), ("truncate", 2)], b"abcd") == [Bytes(b"ab", alone=True)]


def test_bytes_stand_around_the_line() -> None:
    value = {"before": "log: ", "after": "\udcffend"}
    assert operations([("bytes", value)], b"{}\n") == [Bytes(b"log: {}\n\xffend")]


def test_foreign_bytes_are_split_too() -> None:
    plan = [("bytes", {"before": "ab"}), split(at=(1,))]
    assert operations(plan, b"cd") == [Bytes(b"a", alone=True), Bytes(b"bcd", alone=True)]


def test_a_rate_makes_the_bytes_drip_part_by_part() -> None:
    plan = [split(parts=2, pause=1.0), ("rate", 10.0)]
    assert operations(plan, b"abcd") == [Rate(b"ab", 10.0), Pause(1.0), Rate(b"cd", 10.0)]


def test_coalescing_undoes_a_split() -> None:
    assert operations([split(parts=3, pause=1.0), ("coalesce", 2)], b"abc") == [Bytes(b"abc")]


def test_two_splits_cut_at_both_places_with_both_pauses() -> None:
    ops = operations([split(at=(2,), pause=1.0), split(at=(3,), pause=2.0)], b"abcd")
    assert ops == [
        Bytes(b"ab", alone=True), Pause(1.0), Bytes(b"c", alone=True), Pause(2.0), Bytes(b"d", alone=True),
    ]  # fmt: skip


def test_frames_cut_by_the_encoder_are_kept_apart_only_for_a_pause() -> None:
    assert operations([split(into="frames", pause=0.5)], [b"one", b"two"]) == [
        Bytes(b"one", alone=True), Pause(0.5), Bytes(b"two", alone=True),
    ]  # fmt: skip
    assert operations([split(into="frames")], [b"one", b"two"]) == [Bytes(b"onetwo")]
