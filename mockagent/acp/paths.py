"""Paths of the client's machine: what a scenario's relative ones mean, and which ones an agent may ask for.

Pure text: the client may run on another machine and another system, so nothing is ever looked up here.

Source: ACP v1, "Overview" (all paths are absolute), "Session Setup" (working directory, additional directories).
"""

from __future__ import annotations

from collections.abc import Iterable


def is_absolute(path: str) -> bool:
    """Whether a path is absolute, on whichever system."""
    drive = len(path) > 2 and path[0].isalpha() and path[1] == ":" and path[2] in "\\/"
    return drive or path.startswith(("/", "\\\\"))


def absolute(path: str, cwd: str) -> str:
    """A path as ACP wants all of them: a scenario's relative ones start at the session's working directory."""
    if is_absolute(path) or path.startswith("\\"):
        return path
    separator = "\\" if "\\" in cwd and "/" not in cwd else "/"
    while path.startswith(("./", ".\\")):
        path = path[2:]
    base = cwd.rstrip("/\\")
    return (cwd if path in ("", ".") else f"{base}{separator}{path}") or "/"


def inside(path: str, roots: Iterable[str]) -> bool:
    """Whether an absolute path is one of the roots or below one of them, with `..` taken into account.

    Args:
        path: what is asked for.
        roots: the session's working directory and its additional directories.
    """
    parts = _parts(path)
    return parts is not None and any(
        (root := _parts(each)) is not None and parts[: len(root)] == root for each in roots
    )


def _parts(path: str) -> list[str] | None:
    """The names on the way down from the top; None for a path that leads above it."""
    windows = not path.startswith("/")
    names: list[str] = []
    for name in (path.replace("\\", "/").lower() if windows else path).split("/"):
        if name == "..":
            if not names:
                return None
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return names
