"""Fills `${...}` in what a scenario says.

The syntax and the names are `scenario.placeholders`'; here is what they stand for while something plays. Plain
substitution: no expressions, no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.scenario.placeholders import Ref, parse

if TYPE_CHECKING:
    from mockagent.scenario.model import Step
    from mockagent.world.sessions import Session
    from mockagent.world.world import World


class Unset(Exception):
    """A placeholder has no value here: the step or fault that needs it is skipped.

    Args:
        name: what stands between `${` and `}`, without an offset.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"${{{name}}} has no value here")


class Scope:
    """What placeholders see at one place.

    Args:
        world: clock and chances.
        session: the session, or None outside sessions.
        prompt: text of the prompt that is being answered.
        groups: what the regex that matched the prompt caught, by number (as text) and name.
        message: the message being answered, or being edited by a fault.
        saved: what `save` kept for the connection; the session's own comes first.
        value: the old value, in an `edit`.
    """

    __slots__ = ("groups", "message", "prompt", "saved", "session", "value", "world")

    def __init__(
        self,
        world: World,
        session: Session | None = None,
        *,
        prompt: str | None = None,
        groups: Mapping[str, str | None] | None = None,
        message: Any = None,
        saved: Mapping[str, Any] | None = None,
        value: Any = msgspec.UNSET,
    ) -> None:
        self.world = world
        self.session = session
        self.prompt = prompt
        self.groups = groups or {}
        self.message = message
        self.saved = saved or {}
        self.value = value

    def look_up(self, ref: Ref) -> Any:
        """The value of one placeholder.

        Raises:
            Unset: it has none here.
        """
        look = _NAMES.get(ref.name)
        if look is None:
            family, _, rest = ref.name.partition(".")
            found = _FAMILIES[family](self, rest)
        else:
            found = look(self, ref)
        if found is msgspec.UNSET:
            raise Unset(ref.name)
        return found

    def keep(self, name: str, value: Any) -> None:
        """Keeps a value for `${saved.NAME}`, in the session."""
        if self.session is not None:
            self.session.saved[name] = value
        elif isinstance(self.saved, dict):
            self.saved[name] = value


def _prompt(scope: Scope, ref: Ref) -> Any:
    return msgspec.UNSET if scope.prompt is None else scope.prompt


def _of_session(name: str) -> Callable[[Scope, Ref], Any]:
    def look(scope: Scope, ref: Ref) -> Any:
        value = getattr(scope.session, name, None)
        return msgspec.UNSET if value is None else value

    return look


def _now(scope: Scope, ref: Ref) -> Any:
    return scope.world.clock.iso(ref.offset)


def _http_now(scope: Scope, ref: Ref) -> Any:
    return scope.world.clock.http_date(ref.offset)


def _match(scope: Scope, name: str) -> Any:
    found = scope.groups.get(name)
    return msgspec.UNSET if found is None else found


def _fake(scope: Scope, name: str) -> Any:
    from mockagent.world.fakes import fake

    synthetic = scope.world.scenario.sessions.synthetic
    locale = "en_US" if synthetic is None else synthetic.locale
    try:
        return fake(name, scope.world.seeds, None if scope.session is None else scope.session.id, locale)
    except LookupError:
        return msgspec.UNSET


_PANGRAM = "The quick brown fox jumps over the lazy dog. "


def _filler(scope: Scope, name: str) -> Any:
    size = int(name)
    text = (_PANGRAM * (size // len(_PANGRAM) + 1))[:size]
    return text[:-1] + "." if text.endswith(" ") else text  # nobody trims it


def _request_id(scope: Scope, ref: Ref) -> Any:
    return scope.message.get("id", msgspec.UNSET) if isinstance(scope.message, dict) else msgspec.UNSET


def _saved(scope: Scope, name: str) -> Any:
    if scope.session is not None and name in scope.session.saved:
        return scope.session.saved[name]
    return scope.saved.get(name, msgspec.UNSET)


def _value(scope: Scope, ref: Ref) -> Any:
    return scope.value


_NAMES: dict[str, Callable[[Scope, Ref], Any]] = {
    "prompt": _prompt,
    "session.id": _of_session("id"),
    "session.cwd": _of_session("cwd"),
    "session.title": _of_session("title"),
    "turn": _of_session("turns"),
    "now": _now,
    "now.http": _http_now,
    "request.id": _request_id,
    "value": _value,
}
_FAMILIES: dict[str, Callable[[Scope, str], Any]] = {"match": _match, "filler": _filler, "fake": _fake, "saved": _saved}


def fill_text(text: str, scope: Scope) -> Any:
    """Fills one string. One that is exactly one placeholder keeps the value's JSON type.

    Raises:
        Unset: a placeholder has no value.
    """
    if "$" not in text:
        return text
    parts = parse(text)
    if len(parts) == 1 and isinstance(parts[0], Ref):
        return scope.look_up(parts[0])
    return "".join(part if isinstance(part, str) else _as_text(scope.look_up(part)) for part in parts)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def fill(value: Any, scope: Scope, *, words: bool = False) -> Any:
    """Fills every string inside a JSON value or a payload of the model; what holds no string comes back as it is.

    Args:
        value: what to fill.
        scope: where values come from.
        words: text is wanted everywhere but in `_meta`, so that a number becomes its digits.

    Raises:
        Unset: a placeholder has no value.
    """
    if isinstance(value, str):
        filled = fill_text(value, scope)
        return _as_text(filled) if words else filled
    if isinstance(value, dict):
        return {key: fill(item, scope, words=words and key not in _META) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(fill(item, scope, words=words) for item in value)
    if isinstance(value, list):
        return [fill(item, scope, words=words) for item in value]
    if isinstance(value, msgspec.Struct):
        return _fill_struct(value, scope)
    return value


def _fill_struct(value: msgspec.Struct, scope: Scope) -> msgspec.Struct:
    changed = {}
    kinds = type(value).__annotations__
    for name in value.__struct_fields__:
        before = getattr(value, name)
        if name in _STEPS:
            continue
        kind = str(kinds.get(name))
        after = fill(before, scope, words=kind.startswith(_WORDS))
        if after == "null" and "None" in kind:  # the text, or a null that may be sent
            after = fill(before, scope)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(value, **changed) if changed else value


_META = frozenset({"meta", "_meta"})

_WORDS = ("str", "tuple[str", "dict[str, str]")
"""How the annotations of members begin that hold text, and nothing else."""

_STEPS = frozenset({"steps", "then", "otherwise", "branches", "place"})
"""Members that hold steps: those are filled when they play, not before."""


_WORDY = frozenset({"plan", "notice", "commands", "mode", "compaction"})
"""Verbs with payloads in which every string is text."""


def fill_step(step: Step, scope: Scope) -> Any:
    """The payload of a step, filled.

    Raises:
        Unset: a placeholder has no value.
    """
    return fill(step.payload, scope, words=step.verb in _WORDY) if step.dynamic else step.payload


def fill_meta(step: Step, scope: Scope) -> dict[str, Any] | None:
    """The `_meta` of a step, filled; None for one without.

    Raises:
        Unset: a placeholder has no value.
    """
    if step.meta is None:
        return None
    meta: dict[str, Any] = fill(step.meta, scope) if step.dynamic else step.meta
    return meta
