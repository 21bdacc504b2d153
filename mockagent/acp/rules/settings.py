"""Rules about modes and config options: only values that the agent listed.

Lists may change while a client writes, so a value counts as listed if any list of the session had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mockagent.acp.rules.book import RULES, Client, is_result, params
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got, sent

MODES: Final = "protocol/v1/session-modes#setting-the-current-mode"
OPTIONS: Final = "protocol/v1/session-config-options"
_OPENED: Final = ("reply:session/new", "reply:session/load", "reply:session/resume")


@RULES.rule(
    "ACP-MODE-01",
    "MUST",
    "session/set_mode names one of the modes that the agent listed for the session.",
    source=MODES,
    scope="session",
)
class ChoosesAListedMode(Check):
    """An answer to load or resume may leave the modes out; then nothing is known, and nothing is judged."""

    def start(self) -> None:
        self.listed: set[Any] = set()
        self.known = False

    @sent(*_OPENED)
    def opened(self, message: Message) -> None:
        if not is_result(message):
            return
        modes = at(message.data, "result", "modes")
        self.known = self.known or modes is not None or message.kind == "reply:session/new"
        self.listed |= {at(mode, "id") for mode in items(at(modes, "availableModes"))}

    @got("session/set_mode")
    def chosen(self, message: Message) -> None:
        mode = params(message).get("modeId")
        if not self.known or not isinstance(mode, str):
            return
        if mode in self.listed:
            self.met()
        else:
            self.broken(f"{word(mode)} is not among {', '.join(sorted(map(str, self.listed))) or 'no modes'}", message)


class Options(Check):
    """Knows the options that the agent listed: for each id, all types and all values it ever had."""

    def start(self) -> None:
        self.known = False
        self.types: dict[str, set[Any]] = {}
        self.values: dict[str, set[Any]] = {}

    @sent(*_OPENED, "reply:session/set_config_option")
    def answered(self, message: Message) -> None:
        if is_result(message):
            options = at(message.data, "result", "configOptions")
            self.known = self.known or options is not None or message.kind == "reply:session/new"
            self._learn(options)

    @sent("update:config_option_update")
    def updated(self, message: Message) -> None:
        self.known = True
        self._learn(at(message.data, "params", "update", "configOptions"))

    def _learn(self, options: Any) -> None:
        for option in items(options):
            id = at(option, "id")
            if isinstance(id, str):
                self.types.setdefault(id, set()).add(option.get("type"))
                self.values.setdefault(id, set()).update(_values(option.get("options")))

    @got("session/set_config_option")
    def chosen(self, message: Message) -> None:
        given = params(message)
        id, value = given.get("configId"), given.get("value")
        if self.known and isinstance(id, str) and isinstance(value, str | bool):
            self.judge(message, id, value)

    def judge(self, message: Message, id: str, value: str | bool) -> None:
        """Looks at what the client has chosen."""
        raise NotImplementedError


def _values(choices: Any) -> Iterator[Any]:
    """The values of a select option, those in groups too."""
    for choice in items(choices):
        if isinstance(value := at(choice, "value"), str):
            yield value
        yield from _values(at(choice, "options"))


@RULES.rule(
    "ACP-CONFIG-01",
    "MUST",
    "session/set_config_option names an option that the agent listed for the session.",
    source=f"{OPTIONS}#setting-a-config-option",
    scope="session",
)
class ChoosesAListedOption(Options):
    def judge(self, message: Message, id: str, value: str | bool) -> None:
        if id in self.types:
            self.met()
        else:
            self.broken(f"{word(id)} is not among {', '.join(self.types) or 'no options'}", message)


@RULES.rule(
    "ACP-CONFIG-02",
    "MUST",
    "The value for a select option is one of those that the agent listed.",
    source=f"{OPTIONS}#setting-a-config-option",
    scope="session",
)
class ChoosesAListedValue(Options):
    def judge(self, message: Message, id: str, value: str | bool) -> None:
        if self.types.get(id) != {"select"}:
            return
        if value in self.values[id]:
            self.met()
        else:
            self.broken(f"{word(value)} is not among {', '.join(sorted(self.values[id]))}", message)


@RULES.rule(
    "ACP-CONFIG-03",
    "MUST",
    "The value for a boolean option is a boolean, with type boolean.",
    source=f"{OPTIONS}#setting-a-config-option",
    scope="session",
)
class ChoosesABoolean(Options):
    def judge(self, message: Message, id: str, value: str | bool) -> None:
        if self.types.get(id) != {"boolean"}:
            return
        kind = params(message).get("type")
        if isinstance(value, bool) and kind == "boolean":
            self.met()
        else:
            self.broken(f"value was {word(value)}, type {word(kind)}", message)


@RULES.rule(
    "ACP-CONFIG-04",
    "SHOULD",
    "A client that supports config options uses the option for the mode, not session/set_mode, where there are both.",
    source=f"{OPTIONS}#relationship-to-session-modes",
)
class PrefersOptions(Check):
    """A client supports them if it has said so in its capabilities, or has set one before."""

    knows = (Client,)

    def start(self) -> None:
        self.has_set_one = False
        self.both: set[str | None] = set()

    @sent(*_OPENED)
    def opened(self, message: Message) -> None:
        result = at(message.data, "result")
        options = items(at(result, "configOptions"))
        if at(result, "modes") is not None and any(at(option, "category") == "mode" for option in options):
            self.both.add(message.session)

    @got("session/set_config_option")
    def set_option(self, message: Message) -> None:
        self.has_set_one = True
        if message.session in self.both:
            self.met()

    @got("session/set_mode")
    def set_mode(self, message: Message) -> None:
        if message.session in self.both and self._supports_them():
            self.broken("the agent has listed an option for the mode too", message)

    def _supports_them(self) -> bool:
        told = at(self.consult(Client).capabilities, "session", "configOptions")
        return self.has_set_one or isinstance(told, dict)
