"""The client's picture of the conversation: takes what arrives, keeps what may still change, prints what is settled.

Knows the updates of ACP and nothing of connections or time. An awkward agent may send anything: what cannot be shown as
what it claims to be is shown as it came.

Source: ACP v1 schema, `SessionUpdate`; the page "Prompt Turn".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from mockagent.demo.cards import Tool, block_text, plan_lines, session_lines, title_text, tool_lines, usage_text
from mockagent.demo.lines import brief, cut, items, shown, styled, wrapped
from mockagent.demo.screen import Screen
from mockagent.scenario import model

_LONGEST = 6000
"""Characters of one message that are shown."""

_ROWS = 5
"""Sessions of the list that are shown."""


class Stream:
    """A message that is being said: what does not fill a line yet.

    Args:
        key: role and id of the message.
        style: of its text.
    """

    def __init__(self, key: tuple[str, Any], style: str) -> None:
        self.key = key
        self.style = style
        self.rest = ""
        self.begun = False
        self.length = 0


class View:
    """Shows one conversation.

    Args:
        screen: where.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._glyphs = screen.glyphs
        self._stream: Stream | None = None
        self._last_key: tuple[str, Any] | None = None
        self._tools: dict[str, Tool] = {}
        self._settled: dict[str, Tool] = {}
        self._plan: list[dict[str, Any]] = []
        self._usage: dict[str, Any] | None = None
        self._titles: dict[str, Any] = {}
        self._session: str | None = None
        self._typing: str | None = None
        self._agent = ""
        self._busy = False
        self._over = False
        screen.region = self._region

    # --- before the first prompt

    def scenario(self, scenario: model.Scenario) -> None:
        """What is going to be seen."""
        width = self._screen.width
        lines = wrapped(f"mockagent demo: {shown(scenario.name)}", width, style="bold")
        lines += wrapped(shown(scenario.summary), width) if scenario.summary else []
        if scenario.legality != "allowed":
            meaning = {"violation": "this agent breaks the rules"}.get(scenario.legality, "the spec leaves this open")
            lines += wrapped(f"{scenario.legality}: {meaning}", width, style="red")
        if scenario.right_client:
            lines += wrapped(f"A good client: {shown(scenario.right_client)}", width, style="italic")
        self._block(lines, gap=False)

    def connected(self, result: dict[str, Any]) -> None:
        """The answer to `initialize`."""
        info = result.get("agentInfo")
        info = info if isinstance(info, dict) else {}
        self._agent = brief(info.get("title") or info.get("name") or "an agent without a name", 60)
        version = f" {brief(info['version'], 20)}" if "version" in info else ""
        spoken = f"ACP {brief(result.get('protocolVersion'), 20)} over stdio"
        self._block(wrapped(f"{self._agent}{version}{self._glyphs.dot}{spoken}", self._screen.width, style="bold cyan"))

    def sessions(self, rows: Sequence[dict[str, Any]], more: bool) -> None:
        """What the list of sessions holds."""
        for row in rows:
            self._titles[str(row.get("sessionId"))] = row.get("title")
        if not rows:
            return
        lines = [Text("Sessions", "bold")]
        for row in rows[:_ROWS]:
            lines += session_lines(row, self._screen.width, self._glyphs)
        if len(rows) > _ROWS or more:
            left = f"{max(len(rows) - _ROWS, 0)}{' or more' if more else ''}"
            lines.append(Text(f"  {self._glyphs.more} {left} others", "dim"))
        self._block(lines)

    def opened(self, session: str, params: dict[str, Any]) -> None:
        """A session is open."""
        self._session = session
        self._titles.setdefault(session, None)
        words = [f"session {brief(session, 60)}"]
        modes = params.get("modes")
        if isinstance(modes, dict):
            words.append(f"mode {brief(modes.get('currentModeId'), 40)}")
        words += [
            f"{brief(option.get('name'), 40)} {brief(option.get('currentValue'), 40)}"
            for option in items(params.get("configOptions"))
        ]
        self._block(wrapped(self._glyphs.dot.join(words), self._screen.width, style="dim"))

    # --- turns

    def typing(self, text: str | None) -> None:
        """The user types."""
        self._typing = text

    def prompt(self, text: str) -> None:
        """The user has said something."""
        self._typing = None
        self._busy, self._over = True, False
        first = Text(f"{self._glyphs.user} ", "bold green")
        self._block(wrapped(shown(text), self._screen.width, first=first, rest="  ", style="bold"))

    def ended(self, result: Any) -> None:
        """The prompt was answered."""
        reason = result.get("stopReason") if isinstance(result, dict) else None
        words = [
            f"stop: {brief(reason)}" if reason is not None else f"an answer without a stop reason: {brief(result)}"
        ]
        if self._usage is not None:
            words.append(usage_text(self._usage, self._glyphs))
        self._close_turn()
        self._block(wrapped(self._glyphs.dot.join(words), self._screen.width, first="  ", rest="  ", style="dim"))

    def failed(self, what: str, error: dict[str, Any]) -> None:
        """A request was answered with an error."""
        self._close_turn()
        data = f" {brief(error['data'])}" if "data" in error else ""
        self.alarm(f"{what}: error {brief(error.get('code'))} {brief(error.get('message'))}{data}")

    def alarm(self, text: str) -> None:
        """Something is wrong."""
        self._close_turn()
        self._block(
            wrapped(text, self._screen.width, first=Text(f"{self._glyphs.failed} ", "red"), rest="  ", style="red")
        )

    def _close_turn(self) -> None:
        """Nothing is open any more: what was, is printed as it stands."""
        self._over = self._over or self._busy
        self._busy = False
        self._end_stream()
        for tool in list(self._tools.values()):
            self._settle_tool(tool)
        if self._plan and self._screen.live:
            self._block(plan_lines(self._plan, self._screen.width, self._glyphs))
        self._plan = []

    def close(self) -> None:
        """The show is over."""
        self._close_turn()
        self._agent = ""

    # --- the client's own doing

    def asked(self, params: dict[str, Any]) -> None:
        """The agent asks for permission: the question belongs to its tool call."""
        self._end_stream()
        call = params.get("toolCall")
        call = call if isinstance(call, dict) else {}
        id = str(call.get("toolCallId"))
        tool = self._tools.get(id)
        if tool is None:
            tool = self._tools[id] = self._again(id) or Tool(id, announced=False)
        tool.change({key: value for key, value in call.items() if value is not None})
        tool.options = [brief(option.get("name"), 40) for option in items(params.get("options"))] or ["no options"]
        tool.choice = None

    def chose(self, params: dict[str, Any], choice: str) -> None:
        """The user has answered a question."""
        call = params.get("toolCall")
        tool = self._tools.get(str(call.get("toolCallId")) if isinstance(call, dict) else "None")
        if tool is not None:
            tool.choice = choice
            if not tool.announced:
                self._settle_tool(tool)

    def client_did(self, what: str) -> None:
        """The client did something for the agent, or of its own."""
        self._remark(f"the client {what}" if not what.startswith("the ") else what)

    def _remark(self, text: str) -> None:
        self._block(wrapped(text, self._screen.width, first="  ", rest="  ", style="dim"))

    def stderr(self, text: str) -> None:
        """The agent's standard error."""
        self._block(wrapped(shown(text), self._screen.width, first="  stderr: ", rest="  ", style="dim"))

    def puzzled(self, what: str, raw: bytes) -> None:
        """Something arrived that means nothing."""
        self._block(
            wrapped(f"{what}: {brief(raw.decode(errors='replace'))}", self._screen.width, rest="  ", style="magenta")
        )

    # --- what the agent sends

    def notified(self, method: str, params: Any) -> None:
        """A notification."""
        update = params.get("update") if isinstance(params, dict) else None
        if method != "session/update" or not isinstance(update, dict):
            self._remark(f"{shown(method)} {brief(params)}")
            return
        kind = str(update.get("sessionUpdate"))
        if self._over and kind not in _QUIET:
            self._over = False
            self._remark("after the turn:")
        show = _UPDATES.get(kind, View._unknown)
        try:
            show(self, str(params.get("sessionId")), update)
        except (TypeError, ValueError, KeyError, AttributeError):
            self._unknown("", update)

    def _unknown(self, session: str, update: dict[str, Any]) -> None:
        self._remark(f"update {brief(update)}")

    def _chunk(self, session: str, update: dict[str, Any]) -> None:
        key = (update["sessionUpdate"], update.get("messageId"))
        stream = self._stream
        if stream is None or stream.key != key:
            self._end_stream()
            stream = self._stream = Stream(key, _CHUNK_STYLES.get(key[0], ""))
            stream.begun = key == self._last_key and key[1] is not None
        left = _LONGEST - stream.length
        text = block_text(update.get("content"))
        stream.length += len(text)
        if left >= 0:  # one that is longer ends here
            stream.rest += text if len(text) <= left else f"{text[:left]}…"
            self._flow(stream)

    def _flow(self, stream: Stream) -> None:
        """Prints the lines that are full."""
        room = self._screen.width - 2
        if "\n" not in stream.rest and cell_len(stream.rest) <= room:
            return
        *paragraphs, last = stream.rest.split("\n")
        pieces = [piece for paragraph in paragraphs for piece in cut(paragraph, room)]
        *full, stream.rest = cut(last, room)
        for piece in [*pieces, *full]:
            self._say(stream, piece)

    def _say(self, stream: Stream, piece: str) -> None:
        lines = [] if stream.begun else [Text("")]
        lines.append(self._before(stream).append_text(styled(piece.rstrip(), stream.style)))
        lines[-1].rstrip()
        stream.begun = True
        self._screen.settle(lines)

    def _before(self, stream: Stream) -> Text:
        sign = {"agent_message_chunk": self._glyphs.agent, "user_message_chunk": self._glyphs.user}.get(stream.key[0])
        return Text("  ") if stream.begun or sign is None else Text(f"{sign} ", "cyan")

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        self._last_key = stream.key
        if stream.rest.strip() or not stream.begun:
            self._say(stream, stream.rest)

    def _tool(self, session: str, update: dict[str, Any]) -> None:
        id = str(update["toolCallId"])
        tool = self._tools.get(id)
        if tool is None:
            if update["sessionUpdate"] == "tool_call":
                self._end_stream()
            tool = self._tools[id] = self._again(id) or Tool(id)
        body = {key: value for key, value in update.items() if key not in ("sessionUpdate", "toolCallId")}
        tool.change(body)
        if tool.final:
            self._settle_tool(tool)

    def _again(self, id: str) -> Tool | None:
        """A tool call that had ended, and changes once more."""
        return self._settled.pop(id) if id in self._settled else None

    def _settle_tool(self, tool: Tool) -> None:
        self._settled[tool.id] = tool
        self._tools.pop(tool.id, None)
        self._block(tool_lines(tool, self._screen.width, self._glyphs))

    def _new_plan(self, session: str, update: dict[str, Any]) -> None:
        self._plan = items(update["entries"])
        if not self._screen.live:
            lines = plan_lines(self._plan, self._screen.width, self._glyphs)
            self._block(lines if self._plan else [Text("Plan: cleared", "dim")])

    def _info(self, session: str, update: dict[str, Any]) -> None:
        if "title" not in update:
            self._remark(f"session info {brief({key: update[key] for key in update if key != 'sessionUpdate'})}")
            return
        old, new = title_text(self._titles.get(session)), title_text(update["title"])
        self._titles[session] = update["title"]
        name = "title" if session == self._session else f"title of {brief(session, 40)}"
        late = ", after the turn" if self._over else ""
        text = f"{name}{late}: {old} {self._glyphs.arrow} {new}"
        first = Text(f"{self._glyphs.changed} ", "bold cyan")
        self._block(wrapped(text, self._screen.width, first=first, rest="  ", style="bold"))

    def _usage_update(self, session: str, update: dict[str, Any]) -> None:
        self._usage = update

    def _mode(self, session: str, update: dict[str, Any]) -> None:
        self._remark(f"mode {brief(update['currentModeId'], 60)}")

    def _options(self, session: str, update: dict[str, Any]) -> None:
        values = [
            f"{brief(option['id'], 40)} = {brief(option.get('currentValue'), 40)}"
            for option in items(update["configOptions"])
        ]
        self._remark(f"options {', '.join(values)}")

    def _commands(self, session: str, update: dict[str, Any]) -> None:
        names = [f"/{brief(command['name'], 40)}" for command in items(update["availableCommands"])]
        self._remark(f"commands {' '.join(names)}")

    def _notice(self, session: str, update: dict[str, Any]) -> None:
        self._remark(f"{brief(update.get('severity') or 'notice', 20)}: {brief(update['title'])}")

    # --- printing

    def _block(self, lines: Sequence[Text], *, gap: bool = True) -> None:
        self._end_stream()
        self._screen.settle([Text(""), *lines] if gap else lines)

    def _region(self, frame: int) -> list[Text]:
        """What is below the lines that stay."""
        width = self._screen.width
        lines: list[Text] = []
        if self._typing is not None:
            first = Text(f"{self._glyphs.user} ", "bold green")
            lines += [Text(""), *wrapped(f"{self._typing}_", width, first=first, rest="  ", style="bold")]
        if self._stream is not None:
            lines += [] if self._stream.begun else [Text("")]
            lines.append(self._before(self._stream).append_text(styled(self._stream.rest, self._stream.style)))
        for tool in self._tools.values():
            lines += [Text(""), *tool_lines(tool, width, self._glyphs, frame)]
        if self._plan:
            lines += [Text(""), *plan_lines(self._plan, width, self._glyphs, frame)]
        return [*lines, Text(""), self._state(frame)] if self._agent else lines

    def _state(self, frame: int) -> Text:
        """The line at the bottom."""
        sign = self._glyphs.running[frame % len(self._glyphs.running)] if self._busy else " "
        words = [self._agent, title_text(self._titles.get(self._session or ""))]
        if self._usage is not None:
            words.append(usage_text(self._usage, self._glyphs))
        return Text.assemble((f"{sign} ", "yellow"), (self._glyphs.dot.join(words), "dim"))


_CHUNK_STYLES = {"agent_thought_chunk": "dim italic", "user_message_chunk": "bold"}

_QUIET = frozenset({"session_info_update", "usage_update"})
"""Updates that are no news after a turn, or say themselves that they come late."""

_UPDATES: dict[str, Callable[[View, str, dict[str, Any]], None]] = {
    "agent_message_chunk": View._chunk,
    "agent_thought_chunk": View._chunk,
    "user_message_chunk": View._chunk,
    "tool_call": View._tool,
    "tool_call_update": View._tool,
    "plan": View._new_plan,
    "session_info_update": View._info,
    "usage_update": View._usage_update,
    "current_mode_update": View._mode,
    "config_option_update": View._options,
    "available_commands_update": View._commands,
    "notice": View._notice,
}
"""Kind of update to what shows it; all others are shown as they came."""
