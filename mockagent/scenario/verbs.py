"""THE table of verbs: what each takes, what it does, what ACP and AAP make of it.

The validator, the JSON Schema and the reference are made from these rows; nothing about a verb is said anywhere else.
What a payload consists of, key by key, stands in `payloads` and `effects`.
"""

from __future__ import annotations

from typing import NamedTuple

from mockagent.scenario import payloads as of
from mockagent.scenario.blocks import Parts
from mockagent.scenario.effects import Disconnect, ErrorValue, Exit, Stall, Stderr
from mockagent.scenario.model import Together
from mockagent.scenario.shapes import Either, ListOf, Span
from mockagent.scenario.steps import BranchOf
from mockagent.scenario.types import JsonMap, Text, Type, Yes


class Verb(NamedTuple):
    """One row.

    Attributes:
        name: the key in a step.
        payload: type of its value.
        does: one sentence.
        acp, aap: what the protocols make of it.
        example: a step, as YAML in one line.
        group: heading in the reference.
        siblings: keys that can stand beside it.
    """

    name: str
    payload: Type
    does: str
    acp: str
    aap: str
    example: str
    group: str
    siblings: tuple[str, ...]


_ALWAYS = ("after", "when", "save")
_PLAIN = (*_ALWAYS, "meta")
_TEXT = (*_ALWAYS, "meta", "message_id", "pace", "join")
_ASKING = (*_ALWAYS, "meta", "timeout", "then", "otherwise")

_ROWS = (
    Verb(
        "say", Parts, "Says something to the user.",
        "`agent_message_chunk`s of one message", "`text_delta`s, or one `text`",
        "say: Hello", "text", _TEXT,
    ),
    Verb(
        "think", Parts, "Thinks aloud.",
        "`agent_thought_chunk`s of one message", "`thinking_delta`s, or one `thinking`",
        "think: The user wants a forecast.", "text", _TEXT,
    ),
    Verb(
        "user", Parts, "Shows a message of the user: in a history, or as an echo.",
        "`user_message_chunk`s of one message", "a user message in the history; nothing in a stream",
        "user: Why does login fail?", "text", _TEXT,
    ),
    Verb(
        "tool", of.ToolPayload,
        "Plays a whole tool call: start, permission if `ask`, progress, result. With `pace` the output streams.",
        "`tool_call`, `session/request_permission`, `tool_call_update`s (each carries all of the output so far)",
        "`tool_call` and `tool_result`; asks, by the client's `trust`, with a stop for `tool_use`",
        "tool: {name: web_search, kind: fetch, input: {q: Osaka}, takes: 800ms, output: 18°C}",
        "tools", (*_ASKING, "pace"),
    ),
    Verb(
        "tool_start", of.ToolStart, "Announces a tool call: one message, with exactly the keys given.",
        "`tool_call`", "`tool_call`",
        "tool_start: {id: call_1, title: Reading, kind: read, status: in_progress}", "tools", _PLAIN,
    ),
    Verb(
        "tool_update", of.ToolUpdate, "Changes a tool call: one message; `null` is sent, an absent key is not.",
        "`tool_call_update`", "`tool_result` once the status is final",
        "tool_update: {id: call_1, status: completed, content: Done}", "tools", _PLAIN,
    ),
    Verb(
        "ask", of.AskPayload, "Asks the user for permission.",
        "`session/request_permission`", "the tool call stops the turn with `tool_use`",
        "ask: {title: Delete the branch}", "tools", _ASKING,
    ),
    Verb(
        "plan", of.PlanPayload, "Shows a plan, in place of the one before; an empty list clears it.",
        "`plan`", "nothing",
        "plan: [{content: Look it up, status: in_progress}, {content: Answer}]", "session", _PLAIN,
    ),
    Verb(
        "info", of.Info, "Changes what is known of the session; null clears.",
        "`session_info_update`", "the title and time in the list of sessions",
        "info: {title: Weather in Osaka, meta: {tags: [weather]}}", "session", _PLAIN,
    ),
    Verb(
        "usage", of.Usage, "Tells how full the context is, and what the session has cost.",
        "`usage_update`", "nothing",
        "usage: {used: 1200, size: 200000}", "session", _PLAIN,
    ),
    Verb(
        "commands", ListOf(of.CommandRow), "Replaces the slash commands.",
        "`available_commands_update`", "nothing",
        "commands: [{name: plan, description: Make a plan, hint: what to plan}]", "session", _PLAIN,
    ),
    Verb(
        "mode", Text("the id of a mode"), "Changes the session's mode.",
        "`current_mode_update`", "nothing",
        "mode: code", "session", _PLAIN,
    ),
    Verb(
        "option", of.OptionChange, "Changes the value of an option.",
        "`config_option_update` with the whole set", "the option's value in the session",
        "option: {id: model, value: smart}", "session", _PLAIN,
    ),
    Verb(
        "notice", of.Notice, "Tells the user something beside the conversation.",
        "`notice`, if the client advertised it", "nothing",
        "notice: {title: The model is overloaded, severity: warning}", "session", _PLAIN,
    ),
    Verb(
        "compaction", of.Compaction, "Tells that the context is being summarised.",
        "`compaction_update` or `compaction_summary_chunk`, if the client advertised it", "nothing",
        "compaction: {id: compact_1, status: in_progress}", "session", _PLAIN,
    ),
    Verb(
        "read", of.ReadPayload, "Reads a file through the client.",
        "`fs/read_text_file`", "cannot: plays `otherwise`",
        "read: {path: src/a.py, line: 1, limit: 40}", "requests to the client", _ASKING,
    ),
    Verb(
        "write", of.WritePayload, "Writes a file through the client.",
        "`fs/write_text_file`", "cannot: plays `otherwise`",
        "write: {path: notes.txt, content: Hello}", "requests to the client", _ASKING,
    ),
    Verb(
        "terminal", of.TerminalPayload, "Runs a program in the client's terminal and takes its output.",
        "`terminal/create`, `terminal/wait_for_exit` (and `terminal/kill`), `terminal/output`, `terminal/release`",
        "cannot: plays `otherwise`",
        "terminal: {command: pytest, args: [-q], kill_after: 30s}", "requests to the client", _ASKING,
    ),
    Verb(
        "elicit", of.ElicitPayload, "Asks the user with a form, or sends them to a page.",
        "`elicitation/create`; accepted is `result`, declined and dismissed are the options `decline` and `cancel`",
        "cannot: plays `otherwise`",
        "elicit: {message: Which branch?, schema: {type: object, properties: {branch: {type: string}}}}",
        "requests to the client", _ASKING,
    ),
    Verb(
        "mcp", of.McpPayload, "Calls a tool of one of the client's MCP servers.",
        "a call to the server itself, shown as a tool call, if `agent.mcp` connects", "cannot: plays `otherwise`",
        "mcp: {server: files, tool: read, arguments: {path: a.txt}}", "requests to the client", _ASKING,
    ),
    Verb(
        "request", of.CallPayload, "Sends any request and waits for its answer.",
        "the request, with `sessionId` added unless given", "cannot: plays `otherwise`",
        "request: {method: _acme/ping, params: {n: 1}}", "requests to the client", _ASKING,
    ),
    Verb(
        "notify", of.CallPayload, "Sends any notification.",
        "the notification, with `sessionId` added unless given", "nothing",
        "notify: {method: _acme/tick, params: {n: 1}}", "raw", _PLAIN,
    ),
    Verb(
        "update", of.Update, "Sends a `session/update` as it is written here.",
        "the update, with `sessionId` added to its params", "nothing",
        "update: {sessionUpdate: plan, entries: []}", "raw", _ALWAYS,
    ),
    Verb(
        "send", Either(text=Text(), map=JsonMap("a message"), words="a message, or a text that is sent as it is"),
        "Sends a raw message: an object, or a text.",
        "the message in its frame; a text may be no JSON at all", "an SSE event `{event, data}`, or a text",
        "send: {jsonrpc: \"2.0\", method: session/update, params: {}}", "raw", _ALWAYS,
    ),
    Verb(
        "wait", Span, "Waits.", "nothing", "nothing", "wait: 2s", "flow", _ALWAYS,
    ),
    Verb(
        "wait_for", of.WaitForPayload, "Waits for something from the client.",
        "a request or notification of this method", "a request such as `POST /sessions/*/turns`",
        "wait_for: {method: session/cancel, timeout: 5s}", "flow", (*_ALWAYS, "then"),
    ),
    Verb(
        "repeat", of.RepeatPayload, "Plays steps several times.", "as the steps", "as the steps",
        "repeat: {times: 3, every: 1s, steps: [{say: tick, join: true}]}", "flow", _ALWAYS,
    ),
    Verb(
        "together", Either(
            list=ListOf(BranchOf, words="a list whose entries are a step or a list of steps"), make=Together,
        ),
        "Plays several steps, or lists of steps, at once; ends when all have ended.",
        "as the steps, interleaved", "all tool calls go out before the stop for `tool_use`",
        "together: [{say: A}, [{wait: 1s}, {say: B}]]", "flow", _ALWAYS,
    ),
    Verb(
        "stop", of.StopReason,
        "Ends the turn, from any depth; steps behind it in its list are played after the reply.",
        "the reply to `session/prompt`", "`turn_stop`",
        "stop: end_turn", "flow", _PLAIN,
    ),
    Verb(
        "fail", ErrorValue, "Ends the turn with an error.",
        "an error reply to `session/prompt`", "an HTTP error before the stream begins, else `turn_stop` with `error`",
        "fail: overloaded", "flow", _ALWAYS,
    ),
    Verb(
        "hang", Yes(), "Never ends the turn; a cancel still does.", "no reply", "no `turn_stop`",
        "hang: true", "flow", _ALWAYS,
    ),
    Verb(
        "stderr", Stderr, "Writes to standard error.", "bytes on stderr", "bytes on the server's stderr",
        "stderr: something went wrong", "connection", _ALWAYS,
    ),
    Verb(
        "disconnect", Disconnect, "Ends the connection behind what was sent before.",
        "stdout closes, or the socket", "the response ends",
        "disconnect: reset", "connection", _ALWAYS,
    ),
    Verb(
        "exit", Exit, "Ends the process.", "the process is gone", "the process is gone",
        "exit: {code: 1}", "connection", _ALWAYS,
    ),
    Verb(
        "stall", Stall, "Stops writing or reading for a while.", "silence", "silence",
        "stall: {write: 5s}", "connection", _ALWAYS,
    ),
)  # fmt: skip

#: name -> row
VERBS: dict[str, Verb] = {row.name: row for row in _ROWS}

#: verbs by which a scenario can break a rule by itself
RAW_VERBS = frozenset({"update", "send", "notify", "request", "disconnect", "exit", "stall", "hang"})
HISTORY_VERBS = ("user", "think", "say", "tool", "tool_start", "tool_update", "plan")
