"""Messages of AAP: made while a turn plays, made from a history, and taken apart into one.

An assistant's message holds what was said and called up to the next result of a tool; results follow as messages of
their own. What a client reads in an answer without a stream and in the full history is the same.

Source: AAP pages on messages and content blocks, and `GET /sessions/:id/history`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mockagent.aap import params as p
from mockagent.world.history import Called, Part, Said
from mockagent.world.sessions import Session

_TYPES = {"say": "text", "think": "thinking"}
FAILED = "Tool call failed"
"""The result of a tool that ended without one."""

NO_INPUT: Mapping[str, Any] = {}


class Transcript:
    """Puts messages together in the order in which things happen."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []
        self._texts: list[tuple[dict[str, Any], list[str]]] = []
        self._open: dict[tuple[str, str | None], list[str]] = {}
        self._listed = False  # a part came as a block: the message stays a list of blocks

    def say(self, role: str, parts: Iterable[Part], message_id: str | None, *, starts: bool = True) -> None:
        """Adds what the agent says or thinks; pieces of one message come together in one block."""
        key = (role, message_id)
        if starts and message_id is None:
            self._open.pop(key, None)
        for part in parts:
            self._listed = self._listed or not isinstance(part, str)
            text = part if isinstance(part, str) else part.get("text")
            if not isinstance(text, str):
                self._blocks.append(block(part))
                self._open.pop(key, None)
                continue
            pieces = self._open.get(key)
            if pieces is None:
                pieces = self._open[key] = []
                made = {"type": _TYPES[role], _TYPES[role]: ""}
                self._blocks.append(made)
                self._texts.append((made, pieces))
            pieces.append(text)

    def call(self, id: str, name: str | None, given: Any) -> None:
        """Adds a tool call."""
        self._blocks.append({"type": "tool_use", "toolCallId": id, "name": name or id, "input": tool_input(given)})

    def result(self, id: str, content: Any) -> None:
        """Adds the result of a tool."""
        self.close()
        self._messages.append({"role": "tool", "toolCallId": id, "content": content})

    def other(self, message: dict[str, Any]) -> None:
        """Adds a message that is not the agent's."""
        self.close()
        self._messages.append(message)

    def messages(self) -> list[dict[str, Any]]:
        """All messages so far."""
        self.close()
        return self._messages

    def close(self) -> None:
        """The assistant's message is complete; what comes now is another one."""
        for made, pieces in self._texts:
            made[made["type"]] = "".join(pieces)
        blocks, self._blocks = self._blocks, []
        self._texts.clear()
        self._open.clear()
        if blocks:
            alone = len(blocks) == 1 and blocks[0]["type"] == "text" and not self._listed
            self._listed = False
            self._messages.append({"role": "assistant", "content": blocks[0]["text"] if alone else blocks})


# --- parts


def tool_input(value: Any) -> Any:
    """The input of a tool is an object in AAP; anything else stands in one."""
    return {} if value is None else value if isinstance(value, dict) else {"input": value}


def tool_content(value: Any) -> str | list[dict[str, Any]]:
    """The result of a tool: text as it is, a list of content as blocks, everything else as JSON."""
    if value is None or value is msgspec.UNSET:
        return FAILED
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(part, str) or _is_content(part) for part in value):
        blocks = [block(part) for part in value]
        if all(made["type"] == "text" for made in blocks):
            return blocks[0]["text"] if len(blocks) == 1 and isinstance(value[0], str) else blocks
        return blocks
    return msgspec.json.encode(value).decode()


_OWN = ("thinking", "tool_use")
"""Blocks that only AAP has."""

_CONTENT = ("type", "text", "image", "link", "resource", "diff", "terminal")


def _is_content(part: Any) -> bool:
    return isinstance(part, dict) and any(isinstance(part.get(key), str | dict) for key in _CONTENT)


def block(part: Any) -> dict[str, Any]:
    """A content block from a part in the scenario's form, in ACP's, or in AAP's own."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.get("type") == "content" and isinstance(part.get("content"), dict):
        return block(part["content"])
    if "aap" in part or part.get("type") in _OWN:
        return dict(part.get("aap", part))
    if "url" in part:
        return {"type": "image", "url": part["url"]}
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "image" and "data" in part:
        return {"type": "image", "url": f"data:{part.get('mimeType', 'image/png')};base64,{part['data']}"}
    if "image" in part:
        return {"type": "image", "url": _image_url(part)}
    if isinstance(part.get("link"), str):
        return {"type": "text", "text": part["link"]}
    return {"type": "text", "text": msgspec.json.encode(part).decode()}


def _image_url(part: Mapping[str, Any]) -> str:
    source = part["image"]
    if source.startswith(("https:", "http:", "data:")):
        return str(source)
    import base64
    from pathlib import Path

    data = part.get("data") or base64.b64encode(Path(source).read_bytes()).decode("ascii")
    return f"data:{part.get('mime') or 'image/png'};base64,{data}"


def parts(content: str | list[Any]) -> list[Part]:
    """A message's content in the history's form, from which ACP can be made too."""
    if isinstance(content, str):
        return [content]
    return [_part(piece) for piece in content]


def _part(piece: Any) -> Part:
    if isinstance(piece, p.TextBlock):
        return {"type": "text", "text": piece.text}
    if not isinstance(piece, p.ImageBlock):
        own = msgspec.to_builtins(piece)
        return {"text": own.get("thinking") or msgspec.json.encode(own).decode(), "aap": own}
    scheme, _, rest = piece.url.partition(":")
    if scheme.lower() != "data":
        return {"link": piece.url, "url": piece.url}
    head, _, data = rest.partition(",")
    mime, *how = head.split(";")
    if "base64" not in how:
        return {"link": piece.url, "url": piece.url}
    return {"image": "", "data": data, "mime": mime or "image/png", "url": piece.url}


# --- histories


def full(session: Session) -> list[dict[str, Any]]:
    """The whole history, each result where it came."""
    made = Transcript()
    results = sorted(_returned(session), key=lambda found: found[0], reverse=True)
    for index, entry in enumerate(session.history.entries):
        _put_results(made, results, index)
        if isinstance(entry, Called | Said) and entry.begins:
            made.close()
        if isinstance(entry, Called):
            made.call(entry.id, entry.name, entry.input)
        elif isinstance(entry, Said):
            _put_said(made, entry)
    _put_results(made, results, len(session.history.entries))
    return made.messages()


def _returned(session: Session) -> list[tuple[tuple[int, int], Called]]:
    """Calls with a result, and when it came; stored ones have it at once."""
    return [
        (entry.returned or (index + 1, 0), entry)
        for index, entry in enumerate(session.history.entries)
        if isinstance(entry, Called) and not entry.open
    ]


def _put_results(made: Transcript, results: list[tuple[tuple[int, int], Called]], index: int) -> None:
    while results and results[-1][0][0] <= index:
        call = results.pop()[1]
        made.result(call.id, denial(call.denied) if call.denied is not None else tool_content(call.result))


def denial(reason: str) -> str:
    """What is stored in place of the result of a tool that the client did not let run."""
    return f"Tool call denied: {reason}" if reason else "Tool call denied"


def _put_said(made: Transcript, entry: Said) -> None:
    if entry.role in _TYPES:
        made.say(entry.role, entry.parts, entry.message_id)
    elif entry.role == "system":
        made.other({"role": "system", "content": "".join(part for part in entry.parts if isinstance(part, str))})
    else:
        made.other({"role": "user", "content": _content(entry.parts)})


def _content(parts: list[Part]) -> str | list[dict[str, Any]]:
    if parts and all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    return [block(part) for part in parts]


def compacted(session: Session, keep: int) -> list[dict[str, Any]]:
    """The last messages as they are, all before them as one summary. A result is never parted from its call.

    Args:
        session: whose history.
        keep: how many messages are kept at least.
    """
    messages = full(session)
    start = max(len(messages) - keep, 0)
    while start < len(messages) and start > 0 and messages[start]["role"] == "tool":
        start -= 1
    if start == 0:
        return messages
    first = next((message for message in messages[:start] if message["role"] == "user"), messages[0])
    words = first["content"] if isinstance(first["content"], str) else msgspec.json.encode(first["content"]).decode()
    summary = f"Summary of {start} earlier messages, which began with: {words[:80]}"
    return [{"role": "system", "content": summary}, *messages[start:]]


def seed(session: Session, messages: Iterable[Any], client_tools: Iterable[str]) -> None:
    """Begins a session's history with what a client gives."""
    mine = frozenset(client_tools)
    history = session.history
    for message in messages:
        if isinstance(message, p.SystemMessage):
            history.say("system", [message.content], None)
        elif isinstance(message, p.UserMessage):
            history.say("user", parts(message.content), None)
        elif isinstance(message, p.ToolMessage):
            history.update(message.tool_call_id, {"status": "completed"}, result(message.content))
        else:
            _seed_assistant(session, message, mine)


def _seed_assistant(session: Session, message: p.AssistantMessage, mine: frozenset[str]) -> None:
    history = session.history
    first = len(history.entries)
    for piece in [message.content] if isinstance(message.content, str) else message.content:
        if isinstance(piece, str):
            history.say("say", [piece], None)
        elif isinstance(piece, p.ToolUseBlock):
            side: Any = "client" if piece.name in mine else "server"
            fields: dict[str, Any] = {"status": "pending"}
            history.call(Called(id=piece.tool_call_id, name=piece.name, input=piece.input, fields=fields, side=side))
        elif isinstance(piece, p.ThinkingBlock):
            history.say("think", [piece.thinking], None)
        else:
            history.say("say", [_part(piece)], None)
    for entry in history.entries[first : first + 1]:
        if isinstance(entry, Called | Said):
            entry.begins = True


def result(content: str | list[Any]) -> Any:
    """A client's tool result as the history keeps it."""
    return content if isinstance(content, str) else [msgspec.to_builtins(piece) for piece in content]


def open_calls(session: Session) -> list[Called]:
    """The calls at the end of the history that wait for a result or a permission."""
    found: list[Called] = []
    for entry in reversed(session.history.entries):
        if isinstance(entry, Said) and entry.role == "user":
            break
        if isinstance(entry, Called) and entry.open:
            found.append(entry)
    return found[::-1]
