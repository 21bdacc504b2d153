"""Runs pytest in a folder as a user would: in a process of its own, with nothing of this project's set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import mockagent

ROOT = Path(mockagent.__file__).parents[1]

ALONE = tuple(part for name in ("trio", "anyio", "hypothesispytest", "xdist", "faker") for part in ("-p", f"no:{name}"))
"""Leaves out plugins for which a project has no use: importing them takes longer than its tests."""


def environment(**more: str) -> dict[str, str]:
    """The environment without what pytest and this project's own tools have put there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    if not installed():
        kept["PYTHONPATH"] = str(ROOT)
    return kept | more


def installed() -> bool:
    """Whether pytest finds the plugin by itself; in a tree that is not installed it is named."""
    return any(point.value == "mockagent.testing.plugin" for point in entry_points(group="pytest11"))


def run_pytest(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a folder."""
    named = () if installed() else ("-p", "mockagent.testing.plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *named, *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=100,
    )
