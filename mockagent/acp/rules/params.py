"""Rules about the params of each method: what has to be there and of which type, and which paths are absolute.

The official schema decides. Where it lets a receiver fall back on a default, the sender is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mockagent.acp.paths import is_absolute
from mockagent.acp.rules.book import RULES, SETUP, params
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import ON, Check, got

SCHEMA: Final = "protocol/v1/schema"


def _string(value: Any) -> bool:
    return isinstance(value, str)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _list(value: Any) -> bool:
    """Null is read as an empty list (schema, `x-deserialize-default-on-null`)."""
    return value is None or isinstance(value, list)


def _entries(value: Any) -> bool:
    return isinstance(value, list)


def _value(value: Any) -> bool:
    return isinstance(value, str | bool)


def _id(value: Any) -> bool:
    return value is None or (isinstance(value, int | str) and not isinstance(value, bool))


Field = tuple[str, Callable[[Any], bool], str]

_SESSION: Field = ("sessionId", _string, "a string")
_CWD: Field = ("cwd", _string, "a string")
_SERVERS: Field = ("mcpServers", _list, "a list")

REQUIRED: Final[dict[str, tuple[Field, ...]]] = {
    "authenticate": (("methodId", _string, "a string"),),
    "session/new": (_CWD, _SERVERS),
    "session/load": (_SESSION, _CWD, _SERVERS),
    "session/resume": (_SESSION, _CWD),
    "session/prompt": (_SESSION, ("prompt", _entries, "a list of content blocks")),
    "session/cancel": (_SESSION,),
    "session/close": (_SESSION,),
    "session/delete": (_SESSION,),
    "session/set_mode": (_SESSION, ("modeId", _string, "a string")),
    "session/set_config_option": (
        _SESSION,
        ("configId", _string, "a string"),
        ("value", _value, "a string or a boolean"),
    ),
    "$/cancel_request": (("requestId", _id, "an id"),),
}
"""What the params of each method have to have."""


class HasParams(Check):
    """The params have every required member, of the right type; `about` says which."""

    @got(ON)
    def called(self, message: Message) -> None:
        given = at(message.data, "params")
        if not isinstance(given, dict):
            self.broken(f"its params were {word(given)}, not an object", message)
            return
        for name, right, kind in self.about:
            if name not in given:
                self.broken(f"it has no {name}", message)
                return
            if not right(given[name]):
                self.broken(f"{name} was {word(given[name])}, not {kind}", message)
                return
        self.met()


for _number, (_method, _fields) in enumerate(REQUIRED.items(), 1):
    RULES.add(
        f"ACP-PARAMS-{_number:02}",
        "MUST",
        f"{_method} has {', '.join(f'{name} ({kind})' for name, _, kind in _fields)}.",
        HasParams,
        source=f"{SCHEMA}#{_method.replace('/', '-')}",
        on=(_method,),
        about=_fields,
    )


@RULES.rule(
    "ACP-PARAMS-12",
    "MUST",
    "The cwd and the cursor of session/list are strings, if they are there.",
    source="protocol/v1/session-list#listing-sessions",
)
class ListsWithStrings(Check):
    @got("session/list")
    def called(self, message: Message) -> None:
        for name in ("cwd", "cursor"):
            value = params(message).get(name)
            if value is not None and not isinstance(value, str):
                self.broken(f"{name} was {word(value)}", message)
                return
        self.met()


# --- MCP servers


@RULES.rule(
    "ACP-MCP-01",
    "MUST",
    "An MCP server has all members that its transport asks for: name, command, args, env; or name, url, headers.",
    source=f"{SETUP}#transport-types",
)
class DescribesServers(Check):
    @got("session/new", "session/load", "session/resume")
    def called(self, message: Message) -> None:
        servers = items(params(message).get("mcpServers"))
        for index, server in enumerate(servers):
            for problem in _server_problems(server):
                self.broken(f"mcpServers[{index}] {problem}", message)
                return
        if servers:
            self.met()


_REMOTE: Final = (("name", _string), ("url", _string), ("headers", _list))
_LOCAL: Final = (("name", _string), ("command", _string), ("args", _list), ("env", _list))


def _server_problems(server: Any) -> Iterator[str]:
    if not isinstance(server, dict):
        yield "is no object"
        return
    for name, right in _REMOTE if server.get("type") in ("http", "sse") else _LOCAL:
        if name not in server:
            yield f"has no {name}"
        elif not right(server[name]):
            yield f"has {word(server[name])} for {name}"
    if not _strings(server.get("args") or []):
        yield "has args that are no strings"
    for name in ("env", "headers"):
        for pair in items(server.get(name)):
            if not (isinstance(at(pair, "name"), str) and isinstance(at(pair, "value"), str)):
                yield f"has {word(pair)} in {name}, not a name and a value"


# --- paths


class AbsolutePaths(Check):
    """The paths that `about` finds in the params are absolute."""

    @got(ON)
    def called(self, message: Message) -> None:
        paths = list(self.about(params(message)))
        for path in paths:
            if not is_absolute(path):
                self.broken(f"{word(path)} is not absolute", message)
                return
        if paths:
            self.met()


def _cwd(given: dict[str, Any]) -> Iterator[str]:
    if isinstance(cwd := given.get("cwd"), str):
        yield cwd


def _directories(given: dict[str, Any]) -> Iterator[str]:
    yield from (path for path in items(given.get("additionalDirectories")) if isinstance(path, str))


def _commands(given: dict[str, Any]) -> Iterator[str]:
    for server in items(given.get("mcpServers")):
        if at(server, "type") not in ("http", "sse") and isinstance(command := at(server, "command"), str):
            yield command


_OPENING: Final = ("session/new", "session/load", "session/resume")

for _rule, _what, _where, _on, _find in (
    ("ACP-PATH-01", "The working directory of a session is an absolute path.", "working-directory", _OPENING, _cwd),
    ("ACP-PATH-02", "Each of additionalDirectories is an absolute path.", "additional-workspace-roots", _OPENING,
     _directories),
    ("ACP-PATH-04", "The command of an MCP server is an absolute path.", "stdio-transport", _OPENING, _commands),
):  # fmt: skip
    RULES.add(_rule, "MUST", _what, AbsolutePaths, source=f"{SETUP}#{_where}", on=_on, about=_find)

RULES.add(
    "ACP-PATH-03",
    "MUST",
    "The cwd that session/list filters by is an absolute path.",
    AbsolutePaths,
    source="protocol/v1/session-list#listing-sessions",
    on=("session/list",),
    about=_cwd,
)


# --- nothing of one's own


_KNOWN: Final[dict[str, frozenset[str]]] = {
    "initialize": frozenset({"protocolVersion", "clientCapabilities", "clientInfo"}),
    "authenticate": frozenset({"methodId"}),
    "logout": frozenset(),
    "session/new": frozenset({"cwd", "mcpServers", "additionalDirectories", "systemPrompt"}),
    "session/load": frozenset({"sessionId", "cwd", "mcpServers", "additionalDirectories", "systemPrompt"}),
    "session/resume": frozenset({"sessionId", "cwd", "mcpServers", "additionalDirectories", "systemPrompt"}),
    "session/list": frozenset({"cwd", "cursor", "archived"}),
    "session/close": frozenset({"sessionId"}),
    "session/delete": frozenset({"sessionId"}),
    "session/set_mode": frozenset({"sessionId", "modeId"}),
    "session/set_config_option": frozenset({"sessionId", "configId", "value", "type"}),
    "session/prompt": frozenset({"sessionId", "prompt", "messageId"}),
    "session/cancel": frozenset({"sessionId"}),
    "$/cancel_request": frozenset({"requestId"}),
}
"""Members of the params of each method, those of drafts too."""

_CAPABILITIES: Final = frozenset({
    "fs", "terminal", "session", "auth", "elicitation", "plan", "subagents", "nes", "positionEncodings",
})  # fmt: skip


@RULES.rule(
    "ACP-META-01",
    "MUST",
    "Params, and the client's capabilities, have no members of the client's own: those belong into _meta.",
    source="protocol/v1/extensibility#the-meta-field",
)
class AddsNothing(Check):
    @got(*_KNOWN)
    def called(self, message: Message) -> None:
        given = params(message)
        unknown = given.keys() - _KNOWN[message.kind] - {"_meta"}
        able = given.get("clientCapabilities") if message.kind == "initialize" else None
        if isinstance(able, dict):
            unknown |= able.keys() - _CAPABILITIES - {"_meta"}
        if unknown:
            self.broken(f"it has {', '.join(sorted(unknown))}", message)
        else:
            self.met()


@RULES.rule(
    "ACP-META-02",
    "MUST",
    "_meta is an object, or null.",
    source="protocol/v1/extensibility#the-meta-field",
)
class MetaIsAnObject(Check):
    @got("*")
    def called(self, message: Message) -> None:
        holder = at(message.data, "params") or at(message.data, "result")
        if not isinstance(holder, dict) or "_meta" not in holder:
            return
        if holder["_meta"] is None or isinstance(holder["_meta"], dict):
            self.met()
        else:
            self.broken(f"_meta was {word(holder['_meta'])}", message)


_HEX: Final = frozenset("0123456789abcdef")


@RULES.rule(
    "ACP-META-03",
    "SHOULD",
    "The key traceparent of _meta holds a W3C trace context, and nothing else.",
    source="protocol/v1/extensibility#the-meta-field; W3C Trace Context, section 3.2",
)
class TracesInTheirForm(Check):
    @got("*")
    def called(self, message: Message) -> None:
        meta = at(message.data, "params", "_meta")
        if not isinstance(meta, dict) or "traceparent" not in meta:
            return
        value = meta["traceparent"]
        parts = value.split("-") if isinstance(value, str) else []
        sizes = [len(part) for part in parts[:4]]
        if sizes == [2, 32, 16, 2] and all(_HEX.issuperset(part) for part in parts[:4]):
            self.met()
        else:
            self.broken(f"traceparent was {word(value)}", message)
