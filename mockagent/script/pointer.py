"""JSON pointers, as `edit`, `save` and `when` use them: RFC 6901, with two additions for lists.

`-` at the end appends (as in RFC 6902), and `N+` inserts before index N. A change never touches the document it is
given: what lies on the way is copied, the rest is shared. Knows nothing of messages.
"""

from __future__ import annotations

from typing import Any


class Absent(LookupError):
    """What a pointer names is not there, or cannot be.

    Args:
        pointer: the whole pointer.
        token: the part of it that leads nowhere.
    """

    def __init__(self, pointer: str, token: str) -> None:
        self.pointer = pointer
        self.token = token
        super().__init__(f"{pointer!r} leads nowhere at {token!r}")


def parse(pointer: str) -> list[str]:
    """The parts of a pointer, unescaped (RFC 6901 sections 3 and 4); none for the whole document.

    Raises:
        ValueError: it does not start with `/`, or has a `~` that escapes nothing.
    """
    if not pointer:
        return []
    if pointer[0] != "/":
        raise ValueError(f"a pointer starts with '/': {pointer!r}")
    if "~" not in pointer:
        return pointer[1:].split("/")
    return [_unescape(token, pointer) for token in pointer[1:].split("/")]


def _unescape(token: str, pointer: str) -> str:
    if "~" in token.replace("~0", "").replace("~1", ""):
        raise ValueError(f"'~' is written '~0', and '/' in a name '~1': {pointer!r}")
    return token.replace("~1", "/").replace("~0", "~")


def escape(name: str) -> str:
    """A name as one part of a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def get(document: Any, pointer: str) -> Any:
    """What a pointer names.

    Raises:
        Absent: nothing is there. `null` is something.
    """
    here = document
    for token in parse(pointer):
        if isinstance(here, dict) and token in here:
            here = here[token]
        elif isinstance(here, list | tuple) and (index := _index(token)) is not None and index < len(here):
            here = here[index]
        else:
            raise Absent(pointer, token)
    return here


def put(document: Any, pointer: str, value: Any) -> Any:
    """A document that holds a value at a place.

    Missing parents are made (`null` counts as missing): a list where `-`, `0` or `0+` follows, else an object. In a
    list, an index replaces, `-` or the list's length appends, `N+` inserts.

    Returns:
        The changed copy; what did not change is shared with the original.

    Raises:
        Absent: a text, a number or an index beyond the end stands in the way.
    """
    return _put(document, parse(pointer), 0, value, pointer)


def _put(here: Any, tokens: list[str], depth: int, value: Any, pointer: str) -> Any:
    if depth == len(tokens):
        return value
    token = tokens[depth]
    if here is None:
        here = [] if token in ("-", "0", "0+") else {}
    if isinstance(here, dict):
        return {**here, token: _put(here.get(token), tokens, depth + 1, value, pointer)}
    if isinstance(here, list | tuple):
        return _put_in_list(list(here), tokens, depth, value, pointer)
    raise Absent(pointer, token)


def _put_in_list(items: list[Any], tokens: list[str], depth: int, value: Any, pointer: str) -> list[Any]:
    token = tokens[depth]
    inserts = token.endswith("+")
    index = len(items) if token == "-" else _index(token[:-1] if inserts else token)
    if index is None or index > len(items):
        raise Absent(pointer, token)
    if inserts or index == len(items):
        items.insert(index, _put(None, tokens, depth + 1, value, pointer))
    else:
        items[index] = _put(items[index], tokens, depth + 1, value, pointer)
    return items


def remove(document: Any, pointer: str) -> Any:
    """A document without what a pointer names; the same document if that is absent. The whole of it leaves None."""
    tokens = parse(pointer)
    if not tokens:
        return None
    try:
        get(document, pointer)
    except Absent:
        return document
    return _remove(document, tokens, 0)


def _remove(here: Any, tokens: list[str], depth: int) -> Any:
    key: Any = tokens[depth] if isinstance(here, dict) else int(tokens[depth])
    copied = dict(here) if isinstance(here, dict) else list(here)
    if depth == len(tokens) - 1:
        del copied[key]
    else:
        copied[key] = _remove(here[key], tokens, depth + 1)
    return copied


def _index(token: str) -> int | None:
    """An array index (RFC 6901 section 4: digits without a leading zero), or None."""
    if token.isascii() and token.isdigit() and (token == "0" or token[0] != "0"):
        return int(token)
    return None
