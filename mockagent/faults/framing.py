"""What wire effects make of the bytes of one message: operations for its channel.

Pure functions over `net.channel` operations. The bytes are opaque: lines, events and WebSocket frames are made by the
encoder, and `message.Shape` tells it what has to be known there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mockagent.net.channel import Bytes, Op, Pause, Rate

Plan = Sequence[tuple[str, Any]]
"""Effects on the bytes, in the order in which they apply: names of this module's table, and their values."""


def operations(plan: Plan, data: bytes | Sequence[bytes]) -> list[Op]:
    """The operations that take the place of one write.

    Args:
        plan: what is to be done.
        data: the encoded message, or the frames or messages that it was cut into.
    """
    ops: list[Op] = [Bytes(data)] if isinstance(data, bytes) else _apart(plan, data)
    for name, value in plan:
        ops = _FRAMING[name](ops, value)
    return ops


def _apart(plan: Plan, pieces: Sequence[bytes]) -> list[Op]:
    """Pieces that the encoder has cut, each in a write of its own where a pause is wanted between them."""
    pauses = [value["pause"] for name, value in plan if name == "split" and value["pause"] is not None]
    if not pauses:
        return [Bytes(b"".join(pieces))]
    ops: list[Op] = []
    for piece in pieces:
        ops += [Pause(pauses[-1]), Bytes(piece, alone=True)]
    return ops[1:]


def _truncate(ops: list[Op], left: int) -> list[Op]:
    """Only the first bytes leave; nothing is waited for behind them."""
    out: list[Op] = []
    for op in ops:
        if left <= 0:
            break
        if isinstance(op, Bytes | Rate):
            op = _replaced(op, op.data[:left])
            left -= len(op.data)
        out.append(op)
    return out


def _replaced(op: Bytes | Rate, data: bytes) -> Bytes | Rate:
    return Bytes(data, op.alone) if isinstance(op, Bytes) else Rate(data, op.bytes_per_second)


def _bytes(ops: list[Op], value: Mapping[str, Any]) -> list[Op]:
    """Foreign bytes before and after."""
    before, after = (_encoded(value.get(key)) for key in ("before", "after"))
    if len(ops) == 1 and isinstance(ops[0], Bytes):
        return [Bytes(before + ops[0].data + after, ops[0].alone)]
    return [*([Bytes(before)] if before else []), *ops, *([Bytes(after)] if after else [])]


def _encoded(text: Any) -> bytes:
    """UTF-8; a lone surrogate U+DC80 to U+DCFF stands for the single byte 80 to FF."""
    return b"" if text is None else str(text).encode("utf-8", "surrogateescape")


def _split(ops: list[Op], value: Mapping[str, Any]) -> list[Op]:
    """Each part leaves in a write of its own, with pauses in between; offsets count over all bytes of the message."""
    if value["into"] != "writes":
        return ops
    offsets = cuts(b"".join(op.data for op in ops if isinstance(op, Bytes | Rate)), value)
    out: list[Op] = []
    at = 0
    for op in ops:
        if not isinstance(op, Bytes | Rate):
            out.append(op)
            continue
        inner = [offset - at for offset in offsets if at < offset < at + len(op.data)]
        if at in offsets and value["pause"] is not None:
            out.append(Pause(value["pause"]))
        for start, end in zip([0, *inner], [*inner, len(op.data)], strict=True):
            if start and value["pause"] is not None:
                out.append(Pause(value["pause"]))
            part = op.data[start:end]
            out.append(Bytes(part, alone=True) if isinstance(op, Bytes) else Rate(part, op.bytes_per_second))
        at += len(op.data)
    return out


def _coalesce(ops: list[Op], count: int) -> list[Op]:
    """Everything in one write, with what else is waiting to leave."""
    return [Bytes(b"".join(op.data for op in ops if isinstance(op, Bytes | Rate)))]


def _rate(ops: list[Op], bytes_per_second: float) -> list[Op]:
    return [Rate(op.data, bytes_per_second) if isinstance(op, Bytes) else op for op in ops]


_FRAMING: dict[str, Callable[[list[Op], Any], list[Op]]] = {
    "truncate": _truncate,
    "bytes": _bytes,
    "split": _split,
    "coalesce": _coalesce,
    "rate": _rate,
}


def cuts(data: bytes, value: Mapping[str, Any]) -> list[int]:
    """The offsets at which `split` cuts: rising, all inside the data, none twice.

    `at: [N]` says them (negative ones count from the end); `parts` makes parts of equal length, two if nothing is said;
    `at: utf8` cuts inside as many characters, behind their first byte, and not at all where there is no character of
    several bytes.
    """
    at, parts = value.get("at"), value.get("parts") or 2
    if at == "utf8":
        offsets = _inside_characters(data, parts - 1)
    elif at is not None:
        offsets = [offset if offset >= 0 else len(data) + offset for offset in at]
    else:
        offsets = [len(data) * part // parts for part in range(1, parts)]
    return sorted({offset for offset in offsets if 0 < offset < len(data)})


def _inside_characters(data: bytes, count: int) -> list[int]:
    """Offsets behind the first byte of characters of several bytes, evenly chosen among them."""
    inside = [at + 1 for at, byte in enumerate(data) if byte >= 0xC0]
    return [inside[len(inside) * number // count] for number in range(count)] if inside and count > 0 else []
