"""What must hold after every test here: no thread, no socket, no child and no file of a mock is left."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


def sockets() -> set[str]:
    """The sockets of this process; empty where the system does not tell."""
    found = set()
    try:
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
            if target.startswith("socket:"):
                found.add(target)
    except OSError:
        pass
    return found


def children() -> set[str]:
    """The children of this process that have not been waited for; empty where the system does not tell."""
    try:
        return set(Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split())
    except OSError:
        return set()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Compares what there is before and after the test."""
    before = sockets(), children(), set(os.listdir(tempfile.gettempdir()))
    yield
    gc.collect()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("mockagent")] == []
    assert sockets() - before[0] == set()
    assert children() - before[1] == set()
    assert [name for name in set(os.listdir(tempfile.gettempdir())) - before[2] if "mockagent" in name] == []


collect_ignore = ["example"]  # it is run as a project of its own
