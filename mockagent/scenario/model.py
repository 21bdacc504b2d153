"""What a scenario file means, as plain frozen values.

Made by `load` (which has checked everything there is to check without playing), read by everybody above. Times are
whole microseconds, so that sums of waits never depend on rounding. Strings may hold placeholders; whoever plays a value
fills it first (`script.placeholders`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Micros = int


class Place(msgspec.Struct, frozen=True):
    """Where something stands: file, line and column (from 1), and its path in the file (`turns/0/steps/2`)."""

    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line or not self.file else self.file


NOWHERE = Place()


class Uniform(msgspec.Struct, frozen=True):
    """A wait drawn evenly between two bounds (microseconds)."""

    low: Micros
    high: Micros


class Lognormal(msgspec.Struct, frozen=True):
    """A wait with a long tail: median in microseconds, sigma of the logarithm."""

    median: Micros
    sigma: float


Span = Micros | Uniform | Lognormal


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How text streams. `rate`: chunks a second (None: all at once); `chunk`: `word`, `line`, or a character count."""

    first: Span = 0
    rate: float | None = None
    chunk: Literal["word", "line"] | int = "word"
    jitter: float = 0.0


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """`nth` as given: single numbers, and/or an open or closed range. `high` None: no end."""

    numbers: frozenset[int] = frozenset()
    low: int | None = None
    high: int | None = None


class When(msgspec.Struct, frozen=True, kw_only=True):
    """A condition: all keys that are given must hold. Patterns are globs, or `/regex/`."""

    prompt: str | None = None
    command: str | None = None
    turn: Count | None = None
    session: str | None = None
    mode: str | None = None
    option: dict[str, Any] | None = None
    params: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    origin: tuple[str, ...] | None = None
    running: bool | None = None
    last_stop: str | None = None
    tool_result: str | None = None
    protocol: str | None = None
    transport: str | None = None
    chance: float | None = None
    nth: Count | None = None
    every: int | None = None
    times: int | None = None
    per: Literal["session", "connection", "process"] | None = None
    outcome: str | None = None
    text: str | None = None
    place: Place = NOWHERE


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step: a verb with its payload, and the siblings that every verb may have."""

    verb: str
    payload: Any
    after: Span = 0
    when: When | None = None
    message_id: str | msgspec.UnsetType | None = msgspec.UNSET
    meta: dict[str, Any] | None = None
    pace: Pace | None = None
    join: bool = False
    save: dict[str, str] | None = None
    timeout: Span | None = None
    then: tuple[Branch, ...] | None = None
    otherwise: tuple[Step, ...] | None = None
    place: Place = NOWHERE
    dynamic: bool = False
    """Whether a placeholder stands anywhere in the payload, `meta` or `message_id` (not in the steps inside)."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One way on, in `then`."""

    when: When | None = None
    steps: tuple[Step, ...] = ()
    place: Place = NOWHERE


# --- payloads. A text verb's payload is a tuple of parts: text, or a content block as a dict in the scenario's form.


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """`tool`: a whole tool call, from its start to its result."""

    name: str | None = None
    id: str | None = None
    kind: str | None = None
    title: str | None = None
    input: Any = msgspec.UNSET
    content: Any = msgspec.UNSET
    output: Any = msgspec.UNSET
    ask: Ask | bool = False
    takes: Span = 0
    status: str = "completed"
    locations: Any = msgspec.UNSET
    side: Literal["server", "client"] = "server"
    listed: bool | None = None


class ToolFields(msgspec.Struct, frozen=True, kw_only=True):
    """`tool_start`, `tool_update`: one message. `fields` holds exactly the keys that were written, null included."""

    id: str
    fields: dict[str, Any]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """`ask`: a permission request for a tool already shown, or for one that only the request tells of."""

    tool: str | None = None
    title: str | None = None
    content: Any = msgspec.UNSET
    options: tuple[dict[str, Any], ...] = (
        {"id": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"id": "reject_once", "name": "Reject", "kind": "reject_once"},
    )


class Read(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    line: int | None = None
    limit: int | None = None


class Write(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    content: str


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = {}
    limit: int | None = None
    kill_after: Span | None = None
    tool: str | None = None


class Elicit(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None
    id: str | None = None
    tool: str | None = None


class McpCall(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    tool: str
    arguments: dict[str, Any] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """`request` and `notify`: any method. `params` UNSET: none are sent but the session's id."""

    method: str
    params: Any = msgspec.UNSET


class WaitFor(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    timeout: Span | None = None


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    times: int | None = None
    every: Span = 0
    steps: tuple[Step, ...] = ()


class InfoFields(msgspec.Struct, frozen=True, kw_only=True):
    """`info`: UNSET keeps, None clears. `force` passes the title limit."""

    title: str | msgspec.UnsetType | None = msgspec.UNSET
    updated_at: str | msgspec.UnsetType | None = msgspec.UNSET
    meta: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    force: bool = False


class Together(msgspec.Struct, frozen=True):
    """`together`: each entry a list of steps."""

    branches: tuple[tuple[Step, ...], ...]


# --- the parts of a file


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    when: When | None = None
    steps: tuple[Step, ...] = ()
    save: dict[str, str] | None = None
    place: Place = NOWHERE


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    after: Span = 0
    every: Span | None = None
    times: int | None = None
    session: str = "current"
    when: When | None = None
    steps: tuple[Step, ...] = ()
    place: Place = NOWHERE


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """`effects` maps each effect's name to its value, checked by `load`, in the order of the layers."""

    at: str
    when: When | None = None
    save: dict[str, str] | None = None
    effects: dict[str, Any] = {}
    place: Place = NOWHERE
    shorthand: str | None = None
    """The key under `sessions` that this fault was compiled from."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `expect`: what is looked for (`request`, `never`, `permission`, `reply_error`, `disconnect`,
    `single_submit`) with its value, and the conditions beside it."""

    what: str
    value: Any
    count: Count | None = None
    within: Micros | None = None
    params: dict[str, Any] | None = None
    after: str | None = None
    to: str | None = None
    place: Place = NOWHERE


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    cwd: str | None = None
    additional_directories: tuple[str, ...] = ()
    title: str | None = None
    updated_at: str | msgspec.UnsetType | None = msgspec.UNSET
    meta: dict[str, Any] | None = None
    history: tuple[Step, ...] = ()
    place: Place = NOWHERE


class Synthetic(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    cwds: tuple[str, ...] = ()
    turns: tuple[int, int] = (1, 6)
    untitled: float = 0.0
    span: Micros = 30 * 86_400_000_000
    locale: str = "en_US"


class AutoTitle(msgspec.Struct, frozen=True, kw_only=True):
    after: Span = 0


class TitleLimit(msgspec.Struct, frozen=True, kw_only=True):
    length: int = 500
    then: Literal["truncate", "refuse"] = "truncate"


class MetaLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How large `_meta` of a session may get: bytes of JSON, levels of objects and lists."""

    size: int = 65_536
    depth: int = 16


class CursorRules(msgspec.Struct, frozen=True, kw_only=True):
    lifetime: Micros | None = None
    uses: int | None = None
    scope: Literal["connection", "session", "process", "any"] = "process"


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    send: Literal["before", "after", "none"] = "before"
    for_: tuple[str, ...] = ("load",)
    pace: Span = 0
    live: Literal["held", "mixed"] = "held"


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    cwd: str = "/home/dev/project"
    auto_title: AutoTitle | None = AutoTitle()
    title_limit: TitleLimit = TitleLimit()
    meta_limit: MetaLimit = MetaLimit()
    update_rate: float | None = None
    """`info` updates a second, of one session; one that comes too soon waits."""
    stored: tuple[Stored, ...] = ()
    synthetic: Synthetic | None = None
    page_size: int = 25
    cursor: CursorRules = CursorRules()
    compaction_keep: int = 4
    replay: Replay = Replay()
    busy: Any = "busy"
    """A prompt while a turn runs: a named error, `{code, ...}`, `queue`, `replace`, `parallel`."""
    invalid_cursor: Literal["error", "empty", "first_page"] = "error"
    """What an invalid cursor gets."""
    unknown: Any = "session_not_found"
    """What a request for an unknown session gets: a named error, `{code, ...}`, `create`, `empty`."""
    inactive: Any = "session_inactive"
    """What a request for a session that is not open gets: a named error, or `{code, ...}`."""


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    required: bool = False
    logout: bool = True
    methods: tuple[dict[str, Any], ...] = ()
    tokens: tuple[str, ...] = ()
    public_meta: bool = True


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    description: str | None = None


class Option(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    type: Literal["select", "boolean", "text", "secret"]
    value: Any
    description: str | None = None
    category: str | None = None
    choices: tuple[dict[str, Any], ...] = ()
    when: When | None = None


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    listed: bool = True


class Command(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    hint: str | None = None


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    load: bool = True
    list: bool = True
    resume: bool = True
    close: bool = True
    delete: bool = True
    fork: bool = False
    additional_directories: bool = True
    image: bool = True
    audio: bool = True
    embedded_context: bool = True
    mcp_http: bool = True
    mcp_sse: bool = True
    history_full: bool = True
    history_compacted: bool = True
    stream_delta: bool = True
    stream_message: bool = True
    stream_none: bool = True
    client_tools: bool = True
    images_http: bool = True
    images_data: bool = True


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    name: str = "mock-agent"
    title: str | None = "Mock Agent"
    version: str = "1.0.0"
    description: str | None = None
    acp: tuple[int, ...] = (1,)
    aap: tuple[int, ...] = (3,)
    capabilities: Capabilities = Capabilities()
    message_ids: bool = True
    auth: Auth = Auth()
    modes: tuple[Mode, ...] = ()
    options: tuple[Option, ...] = ()
    mcp: Literal["check", "connect", "require"] = "check"
    commands: tuple[Command, ...] = ()
    tools: tuple[ListedTool, ...] = ()


class ClockRules(msgspec.Struct, frozen=True, kw_only=True):
    """`now`: start of the logical clock, microseconds since the epoch; None is the wall clock."""

    now: Micros | None = None
    speed: float = 1.0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario file, with what it includes."""

    name: str = "unnamed"
    summary: str = ""
    legality: Literal["allowed", "violation", "unspecified"] = "allowed"
    right_client: str | None = None
    tags: tuple[str, ...] = ()
    seed: int = 0
    clock: ClockRules = ClockRules()
    pace: Pace | None = None
    agent: Agent = Agent()
    sessions: Sessions = Sessions()
    turns: tuple[Turn, ...] = ()
    schedule: tuple[Scheduled, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: tuple[Expectation, ...] = ()
    file: str = ""
