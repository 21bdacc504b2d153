"""Histories that were there before anybody spoke: what scenarios write under `stored`, and what is invented.

Both are made when they are first looked at. Messages are numbered apart from those that come later, so that ids stay
unique in the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.scenario import model
from mockagent.world.history import Called, Entry, History, Part

if TYPE_CHECKING:
    from random import Random

    from mockagent.world.fakes import Coder

Fill = Callable[[model.Step], Any]
"""The payload of a step, with its placeholders filled."""


class _Recall:
    """Turns the steps of a history into entries."""

    def __init__(self, fill: Fill) -> None:
        self.history = History()
        self._fill = fill
        self._prompts = 0
        self._messages = 0
        self._calls = 0
        self._last: dict[str, str | None] = {}

    def take(self, step: model.Step) -> None:
        """Adds what a step has left behind."""
        _TAKE[step.verb](self, step, self._fill(step))

    def _text(self, step: model.Step, payload: Any) -> None:
        parts: list[Part] = [_part(part) for part in payload]
        role: Any = step.verb
        self.history.say(role, parts, self._message_id(step))

    def _message_id(self, step: model.Step) -> str | None:
        if step.message_id is not msgspec.UNSET:
            id: str | None = step.message_id
        elif step.join and step.verb in self._last:
            id = self._last[step.verb]
        elif step.verb == "user":
            self._prompts += 1
            id = f"user_{self._prompts}"
        else:
            self._messages += 1
            id = f"past_{self._messages}"
        self._last[step.verb] = id
        return id

    def _tool(self, step: model.Step, payload: model.Tool) -> None:
        given = {"kind": payload.kind, "title": payload.title}
        fields: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        if payload.locations is not msgspec.UNSET:
            fields["locations"] = payload.locations
        id = payload.id
        if id is None:
            self._calls += 1
            id = f"past_call_{self._calls}"
        arguments = None if payload.input is msgspec.UNSET else payload.input
        fields["status"] = "pending"
        self.history.call(Called(id=id, name=payload.name, input=arguments, fields=fields, side=payload.side))
        if payload.side == "client" and payload.output is msgspec.UNSET:
            return  # left open: its result is for the client to bring
        done: dict[str, Any] = {"status": payload.status}
        if payload.content is not msgspec.UNSET:
            done["content"] = payload.content
        elif isinstance(payload.output, str):
            done["content"] = [payload.output]
        if payload.output is not msgspec.UNSET:
            done["output"] = payload.output
        self.history.update(id, done, done.get("output", done.get("content", "")))

    def _start(self, step: model.Step, payload: model.ToolFields) -> None:
        fields = dict(payload.fields)
        name = fields.pop("name", None)
        self.history.call(Called(id=payload.id, name=name, input=fields.get("input"), fields=fields))

    def _update(self, step: model.Step, payload: model.ToolFields) -> None:
        fields = dict(payload.fields)
        final = fields.get("status") in ("completed", "failed")
        result = fields.get("output", fields.get("content", "")) if final else msgspec.UNSET
        self.history.update(payload.id, fields, result)

    def _plan(self, step: model.Step, payload: Any) -> None:
        self.history.plan(payload)


_TAKE: dict[str, Callable[[_Recall, model.Step, Any], None]] = {
    "user": _Recall._text,
    "think": _Recall._text,
    "say": _Recall._text,
    "tool": _Recall._tool,
    "tool_start": _Recall._start,
    "tool_update": _Recall._update,
    "plan": _Recall._plan,
}


def _part(part: Any) -> Part:
    return part if isinstance(part, str | dict) else msgspec.json.encode(part).decode()


def written(steps: Sequence[model.Step], fill: Fill) -> list[Entry]:
    """The entries of a history as a scenario writes it.

    Args:
        steps: `history` of a stored session.
        fill: fills placeholders.
    """
    recall = _Recall(fill)
    for step in steps:
        recall.take(step)
    return recall.history.entries


def invented(rng: Random, locale: str, turns: int) -> list[Entry]:
    """The entries of an invented history: prompts, thoughts, plans, tool calls and answers.

    Args:
        rng: the session's chances; the same ones give the same history, and the talk is about what its title names.
        locale: whose words.
        turns: how many prompts.
    """
    from mockagent.world.fakes import Coder

    coder = Coder(rng, locale)
    talk = _Talk(coder, rng)
    for number in range(1, turns + 1):
        talk.turn(number)
    return talk.history.entries


class _Talk:
    """Makes up one history."""

    def __init__(self, coder: Coder, rng: Random) -> None:
        self.history = History()
        self._coder = coder
        self._rng = rng
        self._messages = 0
        self._calls = 0

    def turn(self, number: int) -> None:
        """One prompt and what came of it."""
        coder, rng = self._coder, self._rng
        file = coder.file()
        self.history.say("user", [coder.ask(first=number == 1)], f"user_{number}")
        if rng.random() < 0.7:
            self.history.say("think", [coder.thought(file)], self._id())
        if number == 1 and rng.random() < 0.4:
            self._plan()
        if rng.random() < 0.8:
            self._read(file)
        if rng.random() < 0.5:
            self._edit(file)
        if rng.random() < 0.4:
            self._test()
        self.history.say("say", [coder.answer(file)], self._id())

    def _id(self) -> str:
        self._messages += 1
        return f"past_{self._messages}"

    def _plan(self) -> None:
        steps = self._coder.words.plan
        begin = self._rng.randint(0, 1)
        wanted = steps[begin : begin + self._rng.randint(2, 4)]
        self.history.plan([{"content": step, "priority": "medium", "status": "completed"} for step in wanted])

    def _call(self, name: str, fields: dict[str, Any], given: Any, done: dict[str, Any], result: str) -> None:
        self._calls += 1
        id = f"past_call_{self._calls}"
        self.history.call(Called(id=id, name=name, input=given, fields=fields | {"status": "pending"}))
        self.history.update(id, {"status": "completed"} | done, result)

    def _read(self, file: str) -> None:
        text = f"def {_stem(file)}(value):\n    return value\n"
        title = self._title(self._coder.words.reads, file)
        fields = {"kind": "read", "title": title, "locations": [{"path": file, "line": self._rng.randint(1, 90)}]}
        self._call("read_file", fields, {"path": file}, {"content": [text], "output": text}, text)

    def _edit(self, file: str) -> None:
        name = _stem(file)
        old, new = f"    return {name}(value)\n", f"    return {name}(value) if value else None\n"
        fields = {"kind": "edit", "title": self._title(self._coder.words.edits, file), "locations": [{"path": file}]}
        change = [{"diff": {"path": file, "old": old, "new": new}}]
        self._call("edit_file", fields, {"path": file}, {"content": change}, "ok")

    def _test(self) -> None:
        text = self._coder.words.passed.replace("{n}", str(self._rng.randint(3, 400)))
        fields = {"kind": "execute", "title": self._title(self._coder.words.runs, "")}
        self._call("run_tests", fields, {"command": "make test"}, {"content": [text], "output": text}, text)

    def _title(self, lines: tuple[str, ...], file: str) -> str:
        return self._rng.choice(lines).replace("{file}", file)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
