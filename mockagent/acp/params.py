"""What a client may send: the params of every method of ACP v1, as strict as the official schema.

Unknown members pass (the schema leaves room for extensions), wrong types do not. What a struct cannot say (absolute
paths, the two kinds of MCP server) has a check of its own, so that a handler gets either good params or nothing.

Source: ACP v1 JSON Schema; the pages "Initialization", "Session Setup", "Session List", "Prompt Turn", "Content".
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from mockagent.acp.paths import is_absolute
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


class Nothing(Params, frozen=True, kw_only=True):
    """An object that says something by being there."""


class ConfigOptionAbilities(Params, frozen=True, kw_only=True):
    boolean: Nothing | None = None


class SessionAbilities(Params, frozen=True, kw_only=True):
    compaction: Nothing | None = None
    config_options: ConfigOptionAbilities | None = None
    notices: dict[str, Any] | None = None


class AuthAbilities(Params, frozen=True, kw_only=True):
    terminal: bool = False


class Elicitation(Params, frozen=True, kw_only=True):
    form: Nothing | None = None
    url: Nothing | None = None


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
        return options is not None and options.boolean is not None

    @property
    def notices(self) -> bool:
        """Whether notices may be sent."""
        return self.session is not None and self.session.notices is not None

    @property
    def compaction(self) -> bool:
        """Whether compaction updates may be sent."""
        return self.session is not None and self.session.compaction is not None

    def elicits(self, mode: Any) -> bool:
        """Whether the user can be asked in this way: `form` or `url`."""
        able = self.elicitation
        return able is not None and {"form": able.form, "url": able.url}.get(mode) is not None


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
    """`type` says something only if it is `boolean`; beside a text the schema lets it be anything."""

    session_id: str
    config_id: str
    value: str | bool
    type: Any = None


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
    """Text or blob; the schema lets both be there, as long as one of them is right."""

    uri: str
    mime_type: str | None = None
    text: Any = msgspec.UNSET
    blob: Any = msgspec.UNSET

    @property
    def holds(self) -> bool:
        """Whether there is something in it."""
        return isinstance(self.text, str) or isinstance(self.blob, str)


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
    """A server with an address; `kind` says over which transport."""

    kind: ClassVar[str] = ""

    name: str
    url: str
    headers: list[NameValue]


class McpHttp(McpRemote, frozen=True, kw_only=True):
    kind: ClassVar[str] = "http"


class McpSse(McpRemote, frozen=True, kw_only=True):
    kind: ClassVar[str] = "sse"


McpServer = McpStdio | McpRemote
_REMOTE: dict[str, type[McpRemote]] = {"http": McpHttp, "sse": McpSse}


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
        raise _refused(error) from None


def _refused(error: msgspec.ValidationError, inside: str = "") -> Refusal:
    """The refusal that a problem means; `inside` is the path of what was read."""
    rule, _, where = str(error).partition(" - at `$")
    field = (inside + where.rstrip("`")).lstrip(".")
    if rule.startswith("Object missing required field `"):  # a missing field is named itself
        field, rule = f"{field}.{rule.split('`')[1]}".lstrip("."), "is required"
    field = field or "params"
    return Refusal("invalid_params", f"Invalid params: {field}: {rule}", field=field, rule=rule)


def absolute(field: str, path: str) -> None:
    """Source: Session Setup, working directory: it has to be an absolute path.

    Windows paths count as absolute, whatever the mock runs on: the client's machine decides.

    Raises:
        Refusal: `invalid_params`.
    """
    if not is_absolute(path):
        rule = "must be an absolute path"
        raise Refusal("invalid_params", f"Invalid params: {field}: {path!r} {rule}", field=field, rule=rule)


def mcp_servers(servers: list[dict[str, Any]], *, http: bool, sse: bool) -> tuple[McpServer, ...]:
    """Checks the servers that a client names, and that their transports were advertised.

    A server that is neither of `http` nor of `sse` is one for stdio, whatever its `type` (schema, `McpServer`).

    Source: Session Setup, MCP servers, "Checking transport support".

    Raises:
        Refusal: `invalid_params`.
    """
    allowed = {"http": http, "sse": sse}
    return tuple(_mcp_server(f"mcpServers[{index}]", server, allowed) for index, server in enumerate(servers))


def _mcp_server(field: str, server: dict[str, Any], allowed: dict[str, bool]) -> McpServer:
    kind = server.get("type")
    remote = _REMOTE.get(kind) if isinstance(kind, str) else None
    try:
        checked: McpServer = msgspec.convert(server, McpStdio)
    except msgspec.ValidationError as problem:
        if kind is not None and remote is None:
            rule = "is http, sse, or absent for a server over stdio"
            field = f"{field}.type"
            raise Refusal("invalid_params", f"Invalid params: {field}: {rule}", field=field, rule=rule) from None
        if remote is None:
            raise _refused(problem, field) from None
        checked = _remote(field, server, remote)
    if isinstance(checked, McpRemote) and not allowed[checked.kind]:
        rule = f"the agent does not advertise mcpCapabilities.{checked.kind}"
        raise Refusal("invalid_params", f"Invalid params: {field}: {rule}", field=field, rule=rule)
    if isinstance(checked, McpStdio):
        absolute(f"{field}.command", checked.command)
    return checked


def _remote(field: str, server: dict[str, Any], kind: type[McpRemote]) -> McpRemote:
    try:
        return msgspec.convert(server, kind)
    except msgspec.ValidationError as problem:
        raise _refused(problem, field) from None
