"""Made-up values that read like a coder's day: titles and talk of sessions, and what Faker can make.

Titles and talk come from the banks of `world.words`. Faker is imported when something of its own is wanted, never
before; it gets our words as a provider, so that `coder_title` and the like are there for whoever uses it directly.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from mockagent.world.seeds import Seeds
from mockagent.world.words import bank

_FOLDERS = ("src", "app", "lib", "server", "web", "core")
_STEMS = (
    "auth", "cache", "config", "queue", "search", "session", "settings", "upload", "worker", "billing", "export",
    "router", "models", "client", "retry", "tokens", "dates", "menu", "jobs", "health",
)  # fmt: skip
_ENDINGS = (".py", ".py", ".ts", ".ts", ".go", ".rs")


class Coder:
    """Says what coders and their agents say.

    Args:
        rng: where the choices come from.
        locale: whose words.

    Attributes:
        thing: what the talk is about; it stays the same.
    """

    def __init__(self, rng: Random, locale: str = "en_US") -> None:
        self.words = bank(locale)
        self._rng = rng
        self.thing = rng.choice(self.words.things)

    def _say(self, lines: tuple[str, ...], file: str | None = None) -> str:
        line = self._rng.choice(lines)
        if "{file}" in line:
            line = line.replace("{file}", file or self.file())
        return line.replace("{thing}", self.thing)

    def title(self) -> str:
        """A title as an agent would give it."""
        line, place = self._say(self.words.titles), self._rng.choice(self.words.places)
        line = line[0].upper() + line[1:]
        return line + self.words.space + place if place else line

    def branch(self) -> str:
        """The name of a branch."""
        return f"{self._rng.choice(('fix', 'feature', 'chore', 'refactor'))}/{self._rng.choice(_STEMS)}"

    def file(self) -> str:
        """A path within the project."""
        return f"{self._rng.choice(_FOLDERS)}/{self._rng.choice(_STEMS)}{self._rng.choice(_ENDINGS)}"

    def ask(self, *, first: bool) -> str:
        """A prompt: the first one of a session, or a later one."""
        return self._say(self.words.asks if first else self.words.more)

    def thought(self, file: str) -> str:
        """What the agent thinks before it works on a file."""
        return self._say(self.words.thoughts, file)

    def answer(self, file: str) -> str:
        """What it says when it is done."""
        return self._say(self.words.answers, file)


_OWN = {
    "title": lambda coder: coder.title(),
    "branch": lambda coder: coder.branch(),
    "file": lambda coder: coder.file(),
    "prompt": lambda coder: coder.ask(first=True),
    "thought": lambda coder: coder.thought(coder.file()),
    "answer": lambda coder: coder.answer(coder.file()),
}


def fake(provider: str, seeds: Seeds, session: str | None, locale: str = "en_US") -> Any:
    """A value of a Faker provider (`name`, `email`, `sentence`, ...), or one of a coder's day: `title`, `branch`,
    `file`, `prompt`, `thought`, `answer`.

    Args:
        provider: name of a Faker method without arguments.
        seeds: where the chances come from.
        session: the session the value is for, or None.
        locale: whose words.

    Raises:
        LookupError: there is no such provider, or Faker does not know the locale.
    """
    own = _OWN.get(provider)
    if own is not None:
        return own(Coder(seeds.rng(f"fake {provider}s", session), locale))
    maker = _faker(locale)
    maker.seed_instance(seeds.rng("fakes", session).getrandbits(64))
    try:
        value = getattr(maker, provider)()
    except (AttributeError, TypeError) as error:
        raise LookupError(f"there is no Faker provider {provider!r} that needs no arguments") from error
    return value if isinstance(value, str | int | float | bool | list | dict | type(None)) else str(value)


@cache
def _faker(locale: str) -> Any:
    from faker import Faker

    try:
        maker = Faker(locale)
    except AttributeError as error:
        raise LookupError(f"Faker does not know the locale {locale!r}") from error
    maker.add_provider(coding_provider(locale))
    return maker


def coding_provider(locale: str = "en_US") -> Any:
    """A provider for Faker with our words: `coder_title`, `coder_branch`, `coder_file`, `coder_prompt`, ..."""
    from faker.providers import BaseProvider

    def method(name: str) -> Any:
        return lambda self: _OWN[name](Coder(self.generator.random, locale))

    return type("CodingProvider", (BaseProvider,), {f"coder_{name}": method(name) for name in _OWN})
