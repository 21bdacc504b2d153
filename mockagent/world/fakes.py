"""Made-up values that read like a coder's day: titles of sessions, and what Faker can make.

Faker is imported when the first value is wanted, never before.
"""

from __future__ import annotations

from typing import Any

from mockagent.world.seeds import Seeds

_VERBS = ("Fix", "Refactor", "Add", "Debug", "Document", "Speed up", "Migrate", "Review", "Test", "Simplify")
_THINGS = (
    "the login flow", "flaky integration tests", "the retry logic", "a memory leak in the worker", "pagination",
    "the settings page", "the build pipeline", "CSV export", "the rate limiter", "websocket reconnects",
    "the search index", "dark mode", "the upload queue", "error messages", "the onboarding wizard", "cache keys",
)  # fmt: skip
_PLACES = ("in the API", "for mobile", "after the upgrade", "in staging", "on Windows", "", "", "")


def title(seeds: Seeds, session: str | None) -> str:
    """A title as an agent would give it."""
    rng = seeds.rng("fake titles", session)
    words = (rng.choice(_VERBS), rng.choice(_THINGS), rng.choice(_PLACES))
    return " ".join(word for word in words if word)


def fake(provider: str, seeds: Seeds, session: str | None) -> Any:
    """A value of a Faker provider (`name`, `email`, `sentence`, ...), or a `title`.

    Args:
        provider: name of a Faker method without arguments.
        seeds: where the chances come from.
        session: the session the value is for, or None.

    Raises:
        LookupError: Faker has no such provider.
    """
    if provider == "title":
        return title(seeds, session)
    from faker import Faker

    maker = Faker()
    maker.seed_instance(seeds.rng("fakes", session).getrandbits(64))
    method = getattr(maker, provider, None)
    if method is None:
        raise LookupError(f"there is no Faker provider {provider!r}")
    value = method()
    return value if isinstance(value, str | int | float | bool | list | dict | type(None)) else str(value)
