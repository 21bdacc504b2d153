"""What is wrong with an AAP agent's answers, as far as AAP version 3 and the grammar of server-sent events say.

Knows nothing of mockagent: the tables are the protocol's pages once more. Errors are not judged, as the protocol has no
word on their bodies, and neither is anything that no answer shows.
"""

from __future__ import annotations

import json
from typing import Any

from tests.faults.wire import Reply

Json = dict[str, Any]

EVENTS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "turn_start": {},
    "text_delta": {"delta": str},
    "thinking_delta": {"delta": str},
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_call": {"toolCallId": str, "name": str, "input": dict},
    "tool_result": {"toolCallId": str, "content": (str, list)},
    "turn_stop": {"stopReason": str},
}
"""The members that the data of each event has to have."""

STOPS = {"end_turn", "tool_use", "max_tokens", "refusal", "error"}


class AapJudge:
    """Judges the answers of one session, in the order in which they came.

    Attributes:
        problems: what is wrong, in words.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._called: set[str] = set()
        self._cursors: set[str] = set()

    def turn(self, reply: Reply | None) -> None:
        """The answer to a turn."""
        if reply is None:
            self.problems.append("the connection has ended without an answer")
        elif not reply.complete:
            self.problems.append("the answer breaks off")
        elif reply.status == 200 and reply.headers["content-type"].startswith("text/event-stream"):
            self._stream(reply)
        elif reply.status == 200 and b"event: turn_start" in reply.body:
            self.problems.append(f"a stream of events that says it is {reply.headers['content-type']}")

    def listing(self, reply: Reply) -> None:
        """A page of the list of sessions."""
        cursor = reply.json.get("next") if reply.status == 200 else None
        if cursor in self._cursors:
            self.problems.append(f"a page leads to one that was there before: {cursor!r}")
        if cursor is not None:
            self._cursors.add(cursor)

    def _stream(self, reply: Reply) -> None:
        blocks = reply.body.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
        if blocks.pop() != "":
            self.problems.append("the stream ends within an event")
        events = [_event(block) for block in blocks]
        names = [name for name, data in events if name is not None]
        if names[:1] != ["turn_start"] or names[-1:] != ["turn_stop"] or names.count("turn_stop") != 1:
            self.problems.append(f"a stream begins with turn_start and ends with its only turn_stop: {names}")
        for name, data in events:
            if name is not None:
                self._judge(name, data)

    def _judge(self, name: str, text: str) -> None:
        try:
            data = json.loads(text)
        except ValueError:
            self.problems.append(f"the data of {name or 'an event'} is no JSON: {text[:80]!r}")
            return
        if name not in EVENTS or not isinstance(data, dict):
            self.problems.append(f"there is no such event: {name!r} {text[:80]}")
            return
        for member, kind in EVENTS[name].items():
            if not isinstance(data.get(member), kind):
                self.problems.append(f"{name}.{member} is {data.get(member)!r}")
        if name == "tool_call":
            if data.get("toolCallId") in self._called:
                self.problems.append(f"the id of a tool call is used again: {data['toolCallId']!r}")
            self._called.add(str(data.get("toolCallId")))
        if name == "turn_stop" and data.get("stopReason") not in STOPS:
            self.problems.append(f"there is no such stop reason: {data.get('stopReason')!r}")


def _event(block: str) -> tuple[str | None, str]:
    """Name and data of an event; None for a block of comments."""
    fields = [line.partition(":") for line in block.split("\n") if not line.startswith(":")]
    values = [(key, value.removeprefix(" ")) for key, _, value in fields]
    if not values:
        return None, ""
    names = [value for key, value in values if key == "event"]
    return (names or [""])[-1], "\n".join(value for key, value in values if key == "data")
