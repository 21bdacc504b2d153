"""How session metadata changes: the algebra of `session_info_update`.

Omitted keeps, null clears, `_meta` merges recursively. Source: the ACP proposal "Session Info Update", section on
`_meta` and FAQ on long titles.
"""

from __future__ import annotations

from typing import Any

from mockagent.scenario.model import TitleLimit


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
    cleaned = "".join(" " if ord(char) < 32 or ord(char) == 127 else char for char in title).strip()
    if len(cleaned) <= limit.length:
        return cleaned
    if limit.then == "refuse":
        return None
    return cleaned[: max(limit.length - 1, 0)] + "…"


def title_from(prompt: str) -> str | None:
    """A title made from the first prompt: its first line, in at most sixty characters, cut between words."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    if not line:
        return None
    if len(line) <= 60:
        return line
    head = line[:60].rsplit(" ", 1)[0]
    return head + "…"
