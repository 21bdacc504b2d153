"""Makes a scenario of a recorded conversation over AAP.

An exchange over HTTP is a request and its answer. A turn plays the events that it streamed; a turn that waited for the
client goes on in the next exchange of its session, and is one turn of the scenario. Every other answer is a fault at
its reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from mockagent.replay.plain import LIFE, ONCE, Kinds, Plain, after, effects_of, nth, picked, stop, whole_scenario
from mockagent.replay.reading import Line
from mockagent.replay.values import Values
from mockagent.script.match import glob

CREATE: Final = "POST /sessions"
TURNS: Final = "POST /sessions/*/turns"
_HEADERS_OF_HTTP: Final = frozenset({"date", "content-length", "transfer-encoding", "connection"})


class Exchange(msgspec.Struct, eq=False):
    """A request and what came of it.

    Attributes:
        asked: the request.
        reply: the head of the answer, or all of it; None: it never left.
        events: what was streamed behind it.
        life: what happened to the process or the connection as the request came, or behind a line of the answer.
    """

    asked: Line
    reply: Line | None = None
    events: list[Line] = []
    life: dict[int, Plain] = {}

    @property
    def session(self) -> str | None:
        return self.asked.session

    @property
    def is_turn(self) -> bool:
        """Whether a turn played."""
        return glob(TURNS, self.asked.kind) and self.status == 200

    @property
    def made(self) -> str | None:
        """The session that it has made."""
        made = self.reply.body.get("sessionId") if self.reply is not None else None
        return made if self.asked.kind == CREATE and isinstance(made, str) else None

    @property
    def status(self) -> int:
        return 0 if self.reply is None else int(self.reply.http.get("status", 200))

    @property
    def replies(self) -> list[Plain]:
        """Results and permissions that the request brings."""
        return [one for one in _dicts(self.asked.body.get("messages")) if "toolCallId" in one]

    @property
    def stop(self) -> str | None:
        """Why the turn stopped; None: it was cut off."""
        ends = [event for event in self.events if event.kind == "event:turn_stop"]
        told = ends[-1].body if ends else {} if self.streams or self.reply is None else self.reply.body
        reason = told.get("stopReason")
        return reason if isinstance(reason, str) else None

    @property
    def streams(self) -> bool:
        return self.reply is not None and "stream" in str(self.reply.http.get("headers", {}).get("Content-Type", ""))


def composed_of_aap(lines: Iterable[Line], name: str) -> tuple[Plain, list[str]]:
    """The scenario.

    Args:
        lines: of the recording; those of other protocols are passed over.
        name: of the scenario.

    Returns:
        It, and what could not be put into it, a sentence each.
    """
    exchanges = list(_exchanges(lines))
    composer = _Composer(exchanges)
    return composer.scenario(name), composer.left_out


def _exchanges(lines: Iterable[Line]) -> Iterator[Exchange]:
    """On one connection, one request follows the answer to another."""
    current: dict[str, Exchange] = {}
    pending: list[tuple[str, Plain]] = []
    made: list[Exchange] = []
    for line in lines:
        if effects := picked(line.does, LIFE):
            pending.append((str(line.detail.get("on")), effects))
        if line.protocol != "aap" or line.direction is None:
            continue
        if line.direction == "in":
            current[line.peer] = Exchange(line, events=[], life={})
            made.append(current[line.peer])
            continue
        exchange = current.get(line.peer)
        if exchange is None:
            continue
        if line.kind.startswith("reply:"):
            exchange.reply = exchange.reply or (None if line.unsent else line)
        else:
            exchange.events.append(line)
        for entry in [entry for entry in pending if entry[0] in (line.kind, exchange.asked.kind)][:1]:
            pending.remove(entry)
            exchange.life[id(line)] = entry[1]
    yield from made


class _Composer:
    def __init__(self, exchanges: list[Exchange]) -> None:
        self._exchanges = exchanges
        self._values = Values()
        self._kinds = Kinds()
        self._faults: list[Plain] = []
        self._making: dict[str, Plain] = {}
        self._arrived: list[str] = []
        self._left: list[str] = []
        self.left_out: list[str] = []
        self._shown = _shown(exchanges)
        for exchange in exchanges:
            if exchange.made is not None:
                self._values.session(exchange.made)

    def scenario(self, name: str) -> Plain:
        """All of it."""
        turns: list[Plain] = []
        waiting: dict[str | None, tuple[list[Plain], Plain]] = {}
        for exchange in self._exchanges:
            if not exchange.is_turn:
                self._answer(exchange)
                continue
            going_on = waiting.pop(exchange.session, None) if exchange.replies else None
            if exchange.replies and going_on is None:
                self.left_out.append(f"a turn in {exchange.session}: what it answers was asked before the recording")
                continue
            steps: list[Plain] = [] if going_on is None else going_on[0]
            asked = self._segment(exchange, steps, {} if going_on is None else going_on[1])
            if going_on is None:
                turns.append({"when": dict(ONCE), "steps": steps})
            if exchange.stop == "tool_use":
                waiting[exchange.session] = (steps, asked)
        for made in self._values.used:
            self._making[made]["save"] = {self._values.sessions[made]: "/sessionId"}
        return whole_scenario(
            name,
            agent=self._agent(),
            sessions={"auto_title": None} | self._stored(),
            turns=turns,
            faults=self._faults + self._kinds.faults,
        )

    # --- turns

    def _segment(self, exchange: Exchange, steps: list[Plain], asked: Plain) -> Plain:
        """Adds the steps of one answer.

        Args:
            exchange: whose answer.
            steps: of the turn.
            asked: the tools that the turn has waited for, by the id of the call; their results stand in this answer.

        Returns:
            The tools that it waits for at the end of this answer.
        """
        session = exchange.session
        self._pass(exchange, self._whole(exchange))
        self._arrived.append(exchange.asked.kind)
        said = list(_said(exchange))
        open_ = _open(said) if exchange.stop == "tool_use" else {}
        tools: Plain = {}
        now = exchange.asked.at
        for event, name, data in said:
            gap, now = event.at - now, max(now, event.at)
            if name == "tool_result" and data.get("toolCallId") in asked:
                asked.pop(data["toolCallId"])["tool"]["output"] = self._values.template(data.get("content"), session)
                self._own(event, exchange)
            elif name == "tool_call" and data.get("toolCallId") in open_:
                tools[data["toolCallId"]] = {"tool": self._tool(data, session)}
                self._own(event, exchange)
            elif name == "turn_stop":
                steps += _stop(gap, data, list(tools.values()))
                self._own(event, exchange)
            elif name == "turn_start":
                self._own(event, exchange)
            elif exchange.streams and not event.unsent:
                self._kinds.pass_("raw", effects_of(event.wire) | exchange.life.get(id(event), {}))
                steps.append(after(gap, {"send": self._event(event, name, data, session)}))
        if exchange.stop is None:
            steps.append({"hang": True})
        return tools

    def _event(self, event: Line, name: str, data: Any, session: str | None) -> Any:
        if event.text is not None:
            return self._values.template(event.text, session)
        return {"event": name, "data": self._values.template(data, session)}

    def _own(self, event: Line, exchange: Exchange) -> None:
        """An event that the mock sends by itself."""
        if exchange.streams:
            wire = effects_of({"drop": True, **event.wire} if event.unsent else event.wire)
            self._kinds.pass_(event.kind, wire | exchange.life.get(id(event), {}))

    def _tool(self, call: Plain, session: str | None) -> Plain:
        tool = {"name": call.get("name"), "id": call["toolCallId"]}
        if "input" in call:
            tool["input"] = self._values.template(call["input"], session)
        return tool if self._server_side(str(call.get("name"))) else {**tool, "side": "client"}

    def _server_side(self, name: str) -> bool:
        return any(tool.get("name") == name for tool in _dicts(self._shown.get("tools")))

    def _whole(self, exchange: Exchange) -> Plain:
        """What is set in the answer of a turn that is none of a stream."""
        if exchange.streams or exchange.reply is None:
            return {}
        return {"result": self._values.template(exchange.reply.message, exchange.session)}

    # --- all other answers

    def _answer(self, exchange: Exchange) -> None:
        kind = self._pattern(exchange)
        self._arrived.append(exchange.asked.kind)
        if exchange.reply is None:
            self._faults.append({"at": kind, "when": nth(_count(self._arrived, kind)), "drop": True})
            self._arrived.pop()  # the faults behind this one do not see it
            return
        head = exchange.reply.http
        body = self._values.template(exchange.reply.message, exchange.session or exchange.made)
        told: Plain = {"status": exchange.status, "headers": _headers(head.get("headers") or {})}
        error = told if exchange.reply.message is msgspec.UNSET else {**told, "body": body}
        if glob(TURNS, exchange.asked.kind):  # no turn plays for it
            self._faults.append({"at": kind, "when": nth(_count(self._arrived, kind)), "error": error})
            self._left.append(f"reply:{exchange.asked.kind}")
        else:
            self._pass(exchange, {"error": error})

    def _pass(self, exchange: Exchange, effects: Plain) -> None:
        """A reply leaves."""
        assert exchange.reply is not None
        self._left.append(f"reply:{exchange.asked.kind}")
        pattern = f"reply:{self._pattern(exchange)}"
        effects = effects | effects_of(exchange.reply.wire) | exchange.life.get(id(exchange.reply), {})
        if effects:
            fault: Plain = {"at": pattern, "when": nth(_count(self._left, pattern)), **effects}
            self._faults.append(fault)
            if exchange.made is not None:
                self._making[exchange.made] = fault

    def _pattern(self, exchange: Exchange) -> str:
        """The kind of a request, with a glob for an id that will be another."""
        kind, session = exchange.asked.kind, exchange.session
        return kind.replace(session, "*", 1) if session is not None and session in self._values.sessions else kind

    # --- the agent, and its sessions

    def _agent(self) -> Plain:
        shown = self._shown
        bodies = (exchange.asked.body.get("agent") for exchange in self._exchanges)
        wanted = [config for config in bodies if isinstance(config, dict)]
        names = [shown.get("name"), *(config.get("name") for config in wanted)]
        agent: Plain = {"name": next((name for name in names if isinstance(name, str)), None)}
        agent |= {key: shown[key] for key in ("title", "version", "description") if isinstance(shown.get(key), str)}
        agent["tools"] = [_tool_of_agent(tool) for tool in _dicts(shown.get("tools"))]
        agent["options"] = [_option(option) for option in _dicts(shown.get("options"))]
        return {key: value for key, value in agent.items() if value}

    def _stored(self) -> Plain:
        """Sessions that were there before."""
        fine = [exchange.session for exchange in self._exchanges if 0 < exchange.status < 400]
        known = [id for id in fine if id is not None and id not in self._values.sessions]
        return {"stored": [{"id": id} for id in dict.fromkeys(known)]} if known else {}


def _shown(exchanges: Iterable[Exchange]) -> Plain:
    """What `/meta` has told of the first agent."""
    for exchange in exchanges:
        if exchange.asked.kind == "GET /meta" and exchange.reply is not None:
            for agent in _dicts(exchange.reply.body.get("agents")):
                return agent
    return {}


def _said(exchange: Exchange) -> Iterator[tuple[Line, str, Plain]]:
    """What an answer says, as events: of a whole answer, those that matter to whoever waits."""
    if exchange.streams:
        for event in sorted(exchange.events, key=lambda event: event.unsent):  # a journal has those first
            yield event, event.kind.removeprefix("event:"), event.body
    elif exchange.reply is not None:
        for message in _dicts(exchange.reply.body.get("messages")):
            if message.get("role") == "tool":
                yield exchange.reply, "tool_result", message
            for block in _dicts(message.get("content")):
                if block.get("type") == "tool_use":
                    yield exchange.reply, "tool_call", block
        yield exchange.reply, "turn_stop", exchange.reply.body


def _open(said: list[tuple[Line, str, Plain]]) -> dict[str, None]:
    """The calls that have no result in the same answer."""
    done = {data.get("toolCallId") for _, name, data in said if name == "tool_result"}
    calls = (data.get("toolCallId") for _, name, data in said if name == "tool_call")
    return {id: None for id in calls if isinstance(id, str) and id not in done}


def _stop(gap: float, end: Plain, tools: list[Plain]) -> list[Plain]:
    """How an answer ends: with what the turn waits for, or with a reason."""
    if len(tools) > 1:
        return [after(gap, {"together": tools})]
    if tools:
        return [after(gap, tools[0])]
    return [after(gap, stop(end))]


def _tool_of_agent(tool: Plain) -> Plain:
    return {key: tool[key] for key in ("name", "title", "description", "parameters") if key in tool} | {"listed": True}


def _option(option: Plain) -> Plain:
    made = {"id": option.get("name"), "name": option.get("title") or option.get("name"), "type": option.get("type")}
    made["value"] = option.get("default") or ""
    if isinstance(option.get("description"), str):
        made["description"] = option["description"]
    if isinstance(option.get("options"), list):
        made["choices"] = [{"value": choice, "name": str(choice)} for choice in option["options"]]
    return made


def _headers(given: Plain) -> Plain:
    return {name: value for name, value in given.items() if name.lower() not in _HEADERS_OF_HTTP}


def _count(kinds: list[str], pattern: str) -> int:
    """Which of those that fit the last one is."""
    return sum(glob(pattern, kind) for kind in kinds)


def _dicts(value: Any) -> list[Plain]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
