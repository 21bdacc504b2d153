"""Reads a recording: a journal of our own, or lines of `{time, direction, message}` that something else has written.

Knows the form of the lines and the outer forms of messages, and nothing of what the messages mean together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

DIRECTIONS: dict[str, Literal["in", "out"]] = {"in": "in", "client": "in", "out": "out", "agent": "out"}
"""What `direction` may say -> which way it is: `in` is from the client to the agent. Names of the sender do as well."""


class RecordingError(ValueError):
    """The file is no recording that can be played again."""


class Line(msgspec.Struct, kw_only=True):
    """One line.

    Attributes:
        at: time in seconds, from any beginning.
        direction: None for events.
        message: the JSON of the message; UNSET if there is none.
        text: what left in place of JSON.
        wire: what was done to its bytes, as a fault writes it.
        unsent: it never left.
        kind: as the journal has it; `kind_of` says what a replay of JSON-RPC will see.
        protocol: `aap`, or any other word for JSON-RPC.
        session: as the journal has it.
        http: the head, in lines of AAP.
        event, detail: something else that happened.
    """

    at: float = 0.0
    direction: Literal["in", "out"] | None = None
    peer: str = ""
    message: Any = msgspec.UNSET
    text: str | None = None
    wire: dict[str, Any] = {}
    unsent: bool = False
    kind: str = ""
    protocol: str = ""
    session: str | None = None
    http: dict[str, Any] = {}
    event: str | None = None
    detail: dict[str, Any] = {}

    @property
    def body(self) -> dict[str, Any]:
        """The message, if it is an object."""
        return self.message if isinstance(self.message, dict) else {}

    @property
    def does(self) -> dict[str, Any]:
        """What a fault did, by effect, if the line is that of one that has fired."""
        does = self.detail.get("does")
        fired = self.event == "fault" and self.detail.get("what") == "fired"
        return does if fired and isinstance(does, dict) else {}


def read(path: str) -> list[Line]:
    """The lines of a recording.

    A last line without its end is left out: the process was killed while it wrote it.

    Raises:
        OSError: the file cannot be read.
        RecordingError: a line is none of a recording, or there is no request in it.
    """
    with open(path, "rb") as file:
        lines = list(_lines(file.read(), path))
    if not any(line.direction == "in" and ("method" in line.body or line.protocol == "aap") for line in lines):
        raise RecordingError(f"{path}: there is no request of a client in it")
    return lines


def _lines(content: bytes, path: str) -> Iterator[Line]:
    rows = content.split(b"\n")
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            value = _json(row)
        except ValueError as error:
            if number == len(rows):
                return
            raise RecordingError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(value, dict):
            raise RecordingError(f"{path}:{number}: a line is an object such as {{time, direction, message}}")
        try:
            line = _line(value)
        except (ValueError, TypeError, msgspec.ValidationError) as error:
            raise RecordingError(f"{path}:{number}: {error}") from None
        if line is not None:
            yield line


def _json(text: bytes | str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):  # lone surrogates: only the slower reader takes them
        import json

        return json.loads(text)


def _line(value: dict[str, Any]) -> Line | None:
    if "direction" not in value and "event" not in value:
        raise ValueError("`direction` is missing: `in` (from the client) or `out` (from the agent)")
    direction = DIRECTIONS.get(str(value.get("direction", "")).lower())
    if "event" not in value and direction is None:
        raise ValueError(f"`direction` is `in` or `out`, and not {value['direction']!r:.40}")
    message = value.get("message", msgspec.UNSET)
    text = value.get("text")
    if isinstance(message, str):  # a recorder that keeps the lines as they were
        try:
            message = _json(message)
        except ValueError:
            message, text = msgspec.UNSET, message
    protocol, http = str(value.get("protocol", "")), value.get("http") or {}
    if direction is not None and message is msgspec.UNSET and text is None and not (protocol == "aap" and http):
        return None  # malformed input
    return Line(
        at=_seconds(value.get("time", 0)),
        direction=direction,
        peer=str(value.get("peer", "")),
        message=message,
        text=text,
        wire=value.get("wire") or {},
        unsent=value.get("fate") == "unsent",
        kind=str(value.get("kind", "")),
        protocol=protocol,
        session=value.get("session"),
        http=http,
        event=value.get("event"),
        detail=value.get("detail") or {},
    )


def _seconds(time: Any) -> float:
    """ISO 8601, or a number of seconds."""
    if isinstance(time, int | float) and not isinstance(time, bool):
        return float(time)
    from datetime import datetime

    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, TypeError):
        raise ValueError(f"`time` is ISO 8601 or a number of seconds, and not {time!r:.40}") from None


def kind_of(line: Line) -> str:
    """The kind under which faults will see a message of the agent when it is played again; replies have none here."""
    body, method = line.body, line.body.get("method")
    if not isinstance(method, str) or line.text is not None:
        return "raw"
    if "id" in body:
        return f"request:{method}"
    if method != "session/update":
        return f"notify:{method}"
    params = body.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    return f"update:{update.get('sessionUpdate', '?') if isinstance(update, dict) else '?'}"


def is_call(body: Any) -> bool:
    """Whether a message is a request or notification in good order, so that a step can send it by method and params."""
    return (
        isinstance(body, dict)
        and body.get("jsonrpc") == "2.0"
        and isinstance(body.get("method"), str)
        and isinstance(body.get("params"), dict)
        and body.keys() <= {"jsonrpc", "id", "method", "params"}
    )
