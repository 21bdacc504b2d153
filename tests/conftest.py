"""Settings that hold for every test; what a single package needs stands beside its own tests."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

# No example fails for being slow on a busy machine, and CI tries the same examples each time.
settings.register_profile(
    "mockagent",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mockagent")


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: collections of garbage need not walk through it each time."""
    gc.collect()
    gc.freeze()
