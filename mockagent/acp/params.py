"""What a client may send: the params of every method of ACP v1, as strict as the official schema.

Unknown members pass (the schema leaves room for extensions), wrong types do not. What a struct cannot say (absolute
paths, the two kinds of MCP server) is checked by `read`, so that a handler gets either good params or nothing.

Source: ACP v1 JSON Schema; the pages "Initialization", "Session Setup", "Session List", "Prompt Turn", "Content".
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from mockagent.errors import Refusal

Meta = dict[str, Any] | None


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all params."""

    meta: Meta = msgspec.field(default=None, name="_meta")


class Implementation(Params, frozen=True, kw_only=True):
    name: str
    version: str
    title: str | None = None


class FileSystem(Params, frozen=True, kw_only=True):
    read_text_file: bool = False
    write_text_file: bool = False


class SessionAbilities(Params, frozen=True, kw_only=True):
    compaction: dict[str, Any] | None = None
    config_options: dict[str, Any] | None = None
    notices: dict[str, Any] | None = None


class AuthAbilities(Params, frozen=True, kw_only=True):
    terminal: bool = False


class Elicitation(Params, frozen=True, kw_only=True):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientCapabilities(Params, frozen=True, kw_only=True):
    fs: FileSystem = FileSystem()
    terminal: bool = False
    session: SessionAbilities | None = None
    auth: AuthAbilities = AuthAbilities()
    elicitation: Elicitation | None = None

    @property
    def boolean_options(self) -> bool:
        """Whether boolean config options may be sent."""
        options = self.session.config_options if self.session is not None else None
        return bool(options and options.get("boolean") is not None)

    @property
    def notices(self) -> bool:
        """Whether notices may be sent."""
        return self.session is not None and self.session.notices is not None

    @property
    def compaction(self) -> bool:
        """Whether compaction updates may be sent."""
        return self.session is not None and self.session.compaction is not None


class Initialize(Params, frozen=True, kw_only=True):
    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


class Authenticate(Params, frozen=True, kw_only=True):
    method_id: str


class Logout(Params, frozen=True, kw_only=True):
    pass


class NewSession(Params, frozen=True, kw_only=True):
    cwd: str
    mcp_servers: list[dict[str, Any]]
    additional_directories: list[str] = []


class LoadSession(NewSession, frozen=True, kw_only=True):
    session_id: str


class ResumeSession(Params, frozen=True, kw_only=True):
    session_id: str
    cwd: str
    mcp_servers: list[dict[str, Any]] = []
    additional_directories: list[str] = []


class ListSessions(Params, frozen=True, kw_only=True):
    cwd: str | None = None
    cursor: str | None = None


class OneSession(Params, frozen=True, kw_only=True):
    """Params of `session/close`, `session/delete`, `session/cancel`."""

    session_id: str


class SetMode(Params, frozen=True, kw_only=True):
    session_id: str
    mode_id: str


class SetOption(Params, frozen=True, kw_only=True):
    session_id: str
    config_id: str
    value: str | bool
    type: str | None = None


class Annotations(Params, frozen=True, kw_only=True):
    audience: list[Literal["assistant", "user"]] | None = None
    last_modified: str | None = None
    priority: float | None = None


class Block(Params, frozen=True, kw_only=True, tag_field="type"):
    """A content block of a prompt."""

    annotations: Annotations | None = None


class TextBlock(Block, frozen=True, kw_only=True, tag="text"):
    text: str


class ImageBlock(Block, frozen=True, kw_only=True, tag="image"):
    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(Block, frozen=True, kw_only=True, tag="audio"):
    data: str
    mime_type: str


class LinkBlock(Block, frozen=True, kw_only=True, tag="resource_link"):
    name: str
    uri: str
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    title: str | None = None


class Resource(Params, frozen=True, kw_only=True):
    """Text or blob; exactly one of them is there."""

    uri: str
    mime_type: str | None = None
    text: str | msgspec.UnsetType = msgspec.UNSET
    blob: str | msgspec.UnsetType = msgspec.UNSET


class ResourceBlock(Block, frozen=True, kw_only=True, tag="resource"):
    resource: Resource


AnyBlock = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class Prompt(Params, frozen=True, kw_only=True):
    session_id: str
    prompt: list[AnyBlock]


class CancelRequest(Params, frozen=True, kw_only=True):
    request_id: int | str | None


class NameValue(Params, frozen=True, kw_only=True):
    name: str
    value: str


class McpStdio(Params, frozen=True, kw_only=True):
    name: str
    command: str
    args: list[str]
    env: list[NameValue]


class McpRemote(Params, frozen=True, kw_only=True):
    name: str
    url: str
    headers: list[NameValue]


P = TypeVar("P", bound=Params)


def read(kind: type[P], params: Any) -> P:
    """Reads the params of one method.

    Args:
        kind: what they have to be.
        params: as decoded; None counts as an empty object.

    Raises:
        Refusal: `invalid_params`, with the field and the rule in its message and data.
    """
    try:
        return msgspec.convert({} if params is None else params, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").lstrip(".") or "params"
        field = _missing(problem, field)
        raise Refusal("invalid_params", f"Invalid params: {field}: {problem}", field=field, rule=problem) from None


def _missing(problem: str, field: str) -> str:
    """A missing field is named itself, not the object in which it is missing."""
    if not problem.startswith("Object missing required field `"):
        return field
    name = problem.split("`")[1]
    return name if field == "params" else f"{field}.{name}"


def absolute(field: str, path: str) -> None:
    """Source: Session Setup, working directory: it has to be an absolute path.

    Windows paths count as absolute, whatever the mock runs on: the client's machine decides.

    Raises:
        Refusal: `invalid_params`.
    """
    drive = len(path) > 2 and path[0].isalpha() and path[1] == ":" and path[2] in "\\/"
    if not (path.startswith(("/", "\\\\")) or drive):
        rule = "must be an absolute path"
        raise Refusal("invalid_params", f"Invalid params: {field}: {path!r} {rule}", field=field, rule=rule)


def mcp_servers(servers: list[dict[str, Any]], *, http: bool, sse: bool) -> None:
    """Checks the servers that a client names, and that their transports were advertised.

    Source: Session Setup, MCP servers, "Checking transport support".

    Raises:
        Refusal: `invalid_params`.
    """
    allowed = {"http": http, "sse": sse}
    for index, server in enumerate(servers):
        field = f"mcpServers[{index}]"
        kind = server.get("type", "stdio")
        if kind not in ("stdio", "http", "sse"):
            rule = "is one of http, sse, or absent for stdio"
            raise Refusal("invalid_params", f"Invalid params: {field}.type {rule}", field=f"{field}.type", rule=rule)
        if not allowed.get(kind, True):
            rule = f"the agent does not advertise mcpCapabilities.{kind}"
            raise Refusal("invalid_params", f"Invalid params: {field}: {rule}", field=field, rule=rule)
        try:
            checked = msgspec.convert(server, McpStdio if kind == "stdio" else McpRemote)
        except msgspec.ValidationError as error:
            problem = str(error)
            raise Refusal("invalid_params", f"Invalid params: {field}: {problem}", field=field, rule=problem) from None
        if isinstance(checked, McpStdio):
            absolute(f"{field}.command", checked.command)
