"""JSON-RPC 2.0 as values: bytes in, requests, notifications, responses and faults of form out; and back to bytes.

No I/O, and no protocol on top: which methods exist and what their params mean is not known here. A request can be
answered (`Request.result`, `Request.error`, `Malformed.reply`); a notification has nothing to answer it with.

Source: https://www.jsonrpc.org/specification, sections 4 (request object), 5 (response object), 6 (batch). Inside one
JSON object the last of several equal keys counts; RFC 8259 section 4 leaves that to the receiver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

Id = int | float | str | None

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600

#: Deeper nesting is refused: whoever walks a message later may do so recursively.
MAX_DEPTH: Final = 200
#: A longer batch is refused as one: its answers would be far larger than itself.
MAX_BATCH: Final = 1000

_decode = msgspec.json.Decoder().decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
encode = msgspec.json.Encoder().encode


# --- what goes out


def result_message(id: Id, result: Any) -> dict[str, Any]:
    """A response with a result (section 5)."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_message(id: Id, code: int, message: str, data: Any = msgspec.UNSET) -> dict[str, Any]:
    """A response with an error (section 5.1). `data` is left out unless given; None is sent as `null`."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not msgspec.UNSET:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def request_message(id: Id, method: str, params: Any = msgspec.UNSET) -> dict[str, Any]:
    """A request (section 4). `params` is left out unless given."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not msgspec.UNSET:
        message["params"] = params
    return message


def notification_message(method: str, params: Any = msgspec.UNSET) -> dict[str, Any]:
    """A notification (section 4.1). `params` is left out unless given."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not msgspec.UNSET:
        message["params"] = params
    return message


def encode_result(id: Id, result: Any) -> bytes:
    """`result_message` as JSON text."""
    return encode(result_message(id, result))


def encode_error(id: Id, code: int, message: str, data: Any = msgspec.UNSET) -> bytes:
    """`error_message` as JSON text."""
    return encode(error_message(id, code, message, data))


def encode_request(id: Id, method: str, params: Any = msgspec.UNSET) -> bytes:
    """`request_message` as JSON text."""
    return encode(request_message(id, method, params))


def encode_notification(method: str, params: Any = msgspec.UNSET) -> bytes:
    """`notification_message` as JSON text."""
    return encode(notification_message(method, params))


# --- what comes in


class Request(msgspec.Struct, frozen=True):
    """A call that wants an answer. `id` may be None (`null`) or 0; the answer carries it unchanged.

    `params` is None when they are absent or `null`. `raw` is the JSON text as it was read, `data` the same decoded.
    """

    id: Id
    method: str
    params: dict[str, Any] | list[Any] | None
    raw: bytes
    data: dict[str, Any]

    def result(self, result: Any) -> dict[str, Any]:
        """The answer with a result."""
        return result_message(self.id, result)

    def error(self, code: int, message: str, data: Any = msgspec.UNSET) -> dict[str, Any]:
        """The answer with an error."""
        return error_message(self.id, code, message, data)


class Notification(msgspec.Struct, frozen=True):
    """A call without an id. It is never answered, not even with an error (section 4.1)."""

    method: str
    params: dict[str, Any] | list[Any] | None
    raw: bytes
    data: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    """The answer to a request of ours: `result`, or `error` when that is not None.

    `id` is None for a complaint about something that the other side could not read.
    """

    id: Id
    result: Any
    error: dict[str, Any] | None
    raw: bytes
    data: dict[str, Any]


class Malformed(msgspec.Struct, frozen=True):
    """Bytes that are no message, or no part of a batch.

    Attributes:
        code: -32700 (cannot be read) or -32600 (readable, not a message).
        message: what is wrong, for the answer and for people.
        id: the id of the request, or None when there is none that could be known.
        raw: what was read.
        answerable: whether an answer is owed. False for what is plainly a notification or a response: neither is ever
            answered, and an answer to a bad response would be taken for one to a request of the other side.
    """

    code: int
    message: str
    id: Id
    raw: bytes
    answerable: bool = True

    def reply(self) -> dict[str, Any] | None:
        """The error response that is owed, or None."""
        return error_message(self.id, self.code, self.message) if self.answerable else None


Single = Request | Notification | Response | Malformed
Incoming = Single | list[Single]


def parse(raw: bytes) -> Incoming:
    """Reads one message, or one batch.

    Args:
        raw: one JSON text, UTF-8, without framing; whitespace around it does no harm.

    Returns:
        The message; for a batch the list of its members, each of which may be malformed on its own. An empty batch is
        one malformed message (section 6).
    """
    try:
        data = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Malformed(PARSE_ERROR, _unreadable(raw, error), None, raw)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _deeper(data, MAX_DEPTH):
        return Malformed(PARSE_ERROR, f"Parse error: nested deeper than {MAX_DEPTH} levels", None, raw)
    if type(data) is not list:
        return _classify(data, raw)
    if not data:
        return Malformed(INVALID_REQUEST, "Invalid request: an empty batch", None, raw)
    if len(data) > MAX_BATCH:
        return Malformed(INVALID_REQUEST, f"Invalid request: a batch of more than {MAX_BATCH} messages", None, raw)
    return [_classify(member, bytes(text)) for member, text in zip(data, _split(raw), strict=True)]


def _unreadable(raw: bytes, error: Exception) -> str:
    """Says why bytes are no JSON text, in words about the input and not about the decoder."""
    if isinstance(error, RecursionError):
        return "Parse error: nested too deep"
    try:
        raw.decode()
    except UnicodeDecodeError as problem:
        return f"Parse error: not UTF-8 at byte {problem.start}"
    if not raw.strip():
        return "Parse error: nothing but whitespace"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "Parse error: a byte order mark before the JSON text"
    if isinstance(error, msgspec.ValidationError):
        return "Parse error: a number out of range"
    if b"\\u" in raw and _is_json(raw):
        return "Parse error: a lone surrogate in a string"
    return f"Parse error: {error}".replace("JSON is malformed", "not JSON").replace("Input data was", "the text is")


def _is_json(raw: bytes) -> bool:
    """Whether the JSON grammar admits the text; it admits lone surrogates, which no UTF-8 text can hold."""
    import json

    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _deeper(data: Any, limit: int) -> bool:
    """Whether containers stand deeper in each other than `limit`. Goes level by level, so that depth costs nothing."""
    level = [data]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def _is_id(value: Any) -> bool:
    """Whether a value can be an id (section 4): a string, a number without a fraction, or null. True is no number."""
    kind = type(value)
    return kind is int or kind is str or value is None or (kind is float and value.is_integer())


def _classify(data: Any, raw: bytes) -> Single:
    """What one JSON value is."""
    if type(data) is not dict:
        return Malformed(INVALID_REQUEST, "Invalid request: a message is an object", None, raw)
    id = data.get("id")
    wrong = _wrong(data, id)
    has_method = "method" in data
    if wrong is not None:
        # A bad response, or something that is a notification in all but its form, is not answered.
        bare = type(data.get("method")) is str and "id" not in data
        answerable = not bare and (has_method or not ("result" in data or "error" in data))
        known = id if _is_id(id) else None
        return Malformed(INVALID_REQUEST, f"Invalid request: {wrong}", known, raw, answerable)
    if not has_method:
        return Response(id, data.get("result"), data.get("error"), raw, data)
    if "id" in data:
        return Request(id, data["method"], data.get("params"), raw, data)
    return Notification(data["method"], data.get("params"), raw, data)


def _wrong(data: dict[str, Any], id: Any) -> str | None:
    """The first thing that keeps an object from being a message, or None."""
    if data.get("jsonrpc") != "2.0":
        return 'the member "jsonrpc" has to be "2.0"'
    if not _is_id(id):
        return "an id is a string, a number without a fraction, or null"
    if "method" in data:
        return _wrong_call(data)
    return _wrong_response(data)


def _wrong_call(data: dict[str, Any]) -> str | None:
    if type(data["method"]) is not str:
        return "a method is a string"
    if "result" in data or "error" in data:
        return "a request has neither result nor error"
    params = data.get("params")
    if params is not None and type(params) is not dict and type(params) is not list:
        return "params are an object or an array"
    return None


def _wrong_response(data: dict[str, Any]) -> str | None:
    if "result" not in data and "error" not in data:
        return "there is neither a method, nor a result, nor an error"
    if "id" not in data:
        return "a response has an id"
    error = data.get("error")
    if error is None:
        # `"error": null` beside a result is the form of JSON-RPC 1.0; its meaning is plain.
        return None if "result" in data else "an error is an object"
    if data.get("result") is not None:
        return "a response has a result or an error, not both"
    if type(error) is not dict or type(error.get("code")) is not int or type(error.get("message")) is not str:
        return "an error is an object with an integer code and a string message"
    return None


class Batch:
    """Collects the answers to one batch, and says when all are there (section 6).

    The answers stand in the order in which they were given. Members that are malformed are answered at once; a batch
    of notifications and responses alone is complete from the start, and has no answer.

    Args:
        members: what `parse` returned.
    """

    def __init__(self, members: Sequence[Single]) -> None:
        replies = [member.reply() for member in members if isinstance(member, Malformed)]
        self._replies: list[bytes] = [encode(reply) for reply in replies if reply is not None]
        self._open = sum(isinstance(member, Request) for member in members)

    @property
    def complete(self) -> bool:
        """Whether every request of the batch was answered or given up."""
        return self._open == 0

    def add(self, reply: bytes) -> None:
        """Takes the answer to one request, as JSON text.

        Raises:
            ValueError: every request has its answer already.
        """
        self.give_up()
        self._replies.append(reply)

    def give_up(self) -> None:
        """One request will not be answered (a scenario says so).

        Raises:
            ValueError: every request has its answer already.
        """
        if self._open == 0:
            raise ValueError("all requests of this batch are answered")
        self._open -= 1

    def text(self) -> bytes | None:
        """The answers so far as one array, or None when there are none: then nothing at all is sent."""
        return b"[" + b",".join(self._replies) + b"]" if self._replies else None
