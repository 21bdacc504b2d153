"""A turn request of AAP in the script's words: its text, its parts, and what conditions can see of it.

Works on messages as they come in, checked or not: faults look at turns before any handler does.

Source: AAP endpoints page, `POST /sessions/:id/turns`.
"""

from __future__ import annotations

from typing import Any

from mockagent.aap.params import UserMessage
from mockagent.aap.transcript import parts
from mockagent.message import Message
from mockagent.script.match import command_of
from mockagent.script.prompt import Prompt


def read(message: Message, said: UserMessage) -> Prompt:
    """The prompt in a checked turn request.

    Args:
        message: the request.
        said: its one user message.
    """
    told = facts(message) | around(message)
    return Prompt(text=told["prompt"], parts=parts(said.content), message=message.data, facts=told)


def resumed(message: Message, text: str, tool: str | None) -> Prompt:
    """The prompt of a turn that starts with the results of calls which the history had left open.

    Args:
        message: the request.
        text: the results in words.
        tool: name of the first tool among them.
    """
    told = around(message) | {"prompt": text}
    return Prompt(text=text, parts=[], message=message.data, facts=told, tool_result=tool or "")


def around(message: Message) -> dict[str, Any]:
    """What conditions see beside the prompt."""
    query = message.http.query if message.http is not None else {}
    body = message.data if isinstance(message.data, dict) else {}
    peer = message.peer
    return {"protocol": "aap", "transport": peer.transport, "connection": peer.id, "params": {**query, **body}}


def facts(message: Message) -> dict[str, Any]:
    """`prompt`, and `command` where it is one: of the user's message, or of the results that come back."""
    text = "\n".join(_texts(message.data))
    return {"prompt": text, "command": command_of(text)}


def _texts(body: Any) -> list[str]:
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return []
    texts: list[str] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, list):
            pieces = [piece.get("text") for piece in content if isinstance(piece, dict)]
            texts += [words for words in pieces if isinstance(words, str)]
    return texts
