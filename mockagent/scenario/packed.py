"""A built scenario as bytes and back, without the parser, the tables or any look at type annotations.

Structs become lists that begin with their number, so that reading back is one walk over what msgspec decodes. The form
belongs to the classes of `model` as they are now: `fingerprint` changes whenever they do, and old bytes are not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockagent.scenario import model

_STRUCTS: list[type[msgspec.Struct]] = sorted(
    (
        thing
        for thing in vars(model).values()
        if isinstance(thing, type) and issubclass(thing, msgspec.Struct) and thing is not msgspec.Struct
    ),
    key=lambda struct: struct.__name__,
)
_NUMBERS = {struct: number for number, struct in enumerate(_STRUCTS)}
_NO_FOLDER = "\0"
_LIST, _TUPLE, _SET, _UNSET, _PATH = -1, -2, -3, -4, -5


def fingerprint() -> int:
    """Changes when a class of the model gets, loses or renames a field, or another default."""
    from binascii import crc32

    told = [(struct.__name__, struct.__struct_fields__, repr(struct.__struct_defaults__)) for struct in _STRUCTS]
    return crc32(repr(told).encode())


def pack(scenario: model.Scenario, folder: str) -> bytes:
    """The bytes of a scenario.

    Args:
        scenario: as `load` built it.
        folder: absolute; paths below it are kept relative to it.
    """
    return msgspec.msgpack.encode(_pack(scenario, folder.rstrip("/\\")))


def pack_value(value: Any) -> bytes:
    """The bytes of any value of the model, such as a fault or steps; its paths stay as they are."""
    return msgspec.msgpack.encode(_pack(value, _NO_FOLDER))


def unpack_value(data: bytes) -> Any:
    """The value that `pack_value` packed, by the same version."""
    value = msgspec.msgpack.decode(data)
    return _reader(_NO_FOLDER)(value) if isinstance(value, list | dict) else value


def _pack(value: Any, folder: str) -> Any:
    if isinstance(value, msgspec.Struct):
        defaults = _defaults(type(value))
        fields = {}
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if name not in defaults or defaults[name] != inner or type(defaults[name]) is not type(inner):
                fields[name] = _pack(inner, folder)
        return [_NUMBERS[type(value)], fields]
    if isinstance(value, str):
        below = value.startswith(folder) and value[len(folder) : len(folder) + 1] in ("/", "\\")
        return [_PATH, value[len(folder) + 1 :]] if below else value
    if isinstance(value, dict):
        return {key: _pack(item, folder) for key, item in value.items()}
    for kind, number in ((list, _LIST), (tuple, _TUPLE), (frozenset, _SET)):
        if isinstance(value, kind):
            return [number, *(_pack(item, folder) for item in value)]
    return [_UNSET] if value is msgspec.UNSET else value


def _defaults(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Fields that need not be written because their default says the same."""
    given = struct.__struct_defaults__
    named = zip(struct.__struct_fields__[len(struct.__struct_fields__) - len(given) :], given, strict=True)
    return {
        name: value for name, value in named if isinstance(value, int | float | str | tuple | None | msgspec.Struct)
    }


def unpack(data: bytes, folder: str) -> model.Scenario:
    """The scenario that was packed.

    Args:
        data: from `pack`, with the same fingerprint.
        folder: where the files lie now.

    Raises:
        ValueError: the bytes are not what `pack` makes.
    """
    try:
        made = _reader(folder)(msgspec.msgpack.decode(data))
    except (msgspec.MsgspecError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(f"not a packed scenario: {error}") from error
    if not isinstance(made, model.Scenario):
        raise ValueError("not a packed scenario")
    return made


def _reader(folder: str) -> Callable[[Any], Any]:
    def walk(value: Any) -> Any:
        kind = type(value)
        if kind is list:
            number = value[0]
            if number >= 0:
                fields = value[1]
                for name, inner in fields.items():
                    if type(inner) is list or type(inner) is dict:
                        fields[name] = walk(inner)
                return _STRUCTS[number](**fields)
            if number == _PATH:
                return f"{folder}/{value[1]}"
            if number == _UNSET:
                return msgspec.UNSET
            items = [walk(item) for item in value[1:]]
            return items if number == _LIST else tuple(items) if number == _TUPLE else frozenset(items)
        if kind is dict:
            return {key: walk(item) for key, item in value.items()}
        return value

    return walk
