"""How session metadata changes: the algebra of `session_info_update`, and its limits.

Omitted keeps, null clears, `_meta` merges recursively. Source: the ACP proposal "Session Info Update", section on
`_meta`, security considerations (lengths, sizes, control characters), and FAQ on long titles.
"""

from __future__ import annotations

from typing import Any

from mockagent.scenario.model import MetaLimit, Micros, TitleLimit


class Refused(Exception):
    """New metadata is not taken, because it goes beyond a limit. Nothing has changed."""


def merge(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
    """Merges `_meta`: null inside removes that key, null as a whole removes everything.

    Args:
        old: what stood before; never changed.
        new: what came.

    Returns:
        The merged object, or None when nothing is left over from a removal of everything.
    """
    if new is None:
        return None
    merged = dict(old or {})
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = merge(before if isinstance(before, dict) else None, value)
        else:
            merged[key] = value
    return merged


def clean_title(title: str, limit: TitleLimit) -> str | None:
    """A title as it may be sent: without control characters, within the limit.

    Returns:
        The title, cut with an ellipsis if the limit says `truncate`, or None if it says `refuse`.
    """
    cleaned = _printable(title)
    if len(cleaned) <= limit.length:
        return cleaned
    if limit.then == "refuse":
        return None
    return cleaned[: max(limit.length - 1, 0)] + "…"


def _printable(text: str) -> str:
    return "".join(" " if ord(char) < 32 or ord(char) == 127 else char for char in text).strip()


def check_meta(meta: dict[str, Any] | None, limit: MetaLimit) -> None:
    """Checks `_meta` as it would be after a change.

    Raises:
        Refused: it is too large or too deep.
    """
    if meta is None:
        return
    if _depth(meta, limit.depth) > limit.depth:
        raise Refused(f"_meta is more than {limit.depth} levels deep")
    import msgspec

    if len(msgspec.json.encode(meta)) > limit.size:
        raise Refused(f"_meta has more than {limit.size} bytes")


def _depth(value: Any, most: int) -> int:
    """How deep objects and lists are nested; counting stops one level beyond `most`."""
    depth, level = 0, [value]
    while level and depth <= most:
        depth += 1
        inner = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
        level = [item for item in inner if isinstance(item, dict | list)]
    return depth


def clean_meta(meta: Any) -> Any:
    """`_meta` without control characters in its texts, but for tabs and line ends."""
    if isinstance(meta, str):
        return "".join(char for char in meta if (ord(char) >= 32 and ord(char) != 127) or char in "\t\n\r")
    if isinstance(meta, dict):
        return {clean_meta(key): clean_meta(value) for key, value in meta.items()}
    return [clean_meta(value) for value in meta] if isinstance(meta, list) else meta


def moment_of(text: str, now: Micros) -> Micros | None:
    """A time as scenarios write it: an ISO time, `now`, or `2h ago`; None for a text that is no time.

    Args:
        text: as it was written.
        now: scenario time in microseconds since the epoch.
    """
    from datetime import UTC, datetime

    from mockagent.scenario.scalars import duration

    if text == "now":
        return now
    try:
        if text.endswith(" ago"):
            return now - duration(text[:-4].strip())
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1_000_000)


def title_from(prompt: str) -> str | None:
    """A title made from the first prompt: its first line, in at most sixty characters, cut between words."""
    line = next(filter(None, map(_printable, prompt.splitlines())), "")
    if not line:
        return None
    if len(line) <= 60:
        return line
    head = line[:60].rsplit(" ", 1)[0]
    return head + "…"
