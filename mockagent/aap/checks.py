"""What only an agent can say about a request: are there such tools and options, are such images taken.

Each check raises a refusal that names the field. Nothing here changes anything.

Source: AAP endpoints page (agent.tools, agent.options, tools), pages on tools and on images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mockagent.aap import params as p
from mockagent.aap.params import wrong
from mockagent.aap.roster import Served
from mockagent.scenario import model


def _words(names: Iterable[str]) -> str:
    known = list(names)
    return f"one of {', '.join(known)}" if known else "there is none"


def tools(served: Served, enabled: Sequence[p.EnabledTool], declared: Sequence[p.ClientTool]) -> None:
    """Checks the tools of one request: known, declared in a way the agent takes, and no name twice.

    Raises:
        Refusal: `invalid_params`.
    """
    if declared and not served.capabilities.client_tools:
        raise wrong("tools", "the agent does not declare capabilities.application.tools")
    seen: set[str] = set()
    for index, tool in enumerate(enabled):
        if tool.name not in served.tools:
            raise wrong(f"agent.tools[{index}].name", f"{tool.name!r} is not known: {_words(served.tools)}")
        _once(f"agent.tools[{index}].name", tool.name, seen)
    for index, mine in enumerate(declared):
        _once(f"tools[{index}].name", mine.name, seen)


def _once(field: str, name: str, seen: set[str]) -> None:
    if name in seen:
        raise wrong(field, f"{name!r} is taken: names of tools are unique in a session, on both sides together")
    seen.add(name)


def together(server: Iterable[str], client: Iterable[str]) -> None:
    """Checks that a session's tools do not clash once a request has changed one side only.

    Raises:
        Refusal: `invalid_params`.
    """
    both = set(server) & set(client)
    if both:
        raise wrong("tools", f"{sorted(both)[0]!r} is the name of a server-side and of a client-side tool")


def options(served: Served, given: Mapping[str, Any]) -> None:
    """Checks option values. They are never repeated in the message: one may be a secret.

    Raises:
        Refusal: `invalid_params`.
    """
    for id, value in given.items():
        field = f"agent.options.{id}"
        option = served.options.get(id)
        if option is None:
            raise wrong(field, f"there is no such option: {_words(served.options)}")
        if not isinstance(value, str):
            raise wrong(field, "must be a string")
        if option.type == "select" and value not in choices(option):
            raise wrong(field, _words(choices(option)))


def choices(option: model.Option) -> list[str]:
    """The values of a select option; AAP knows no groups."""
    values: list[str] = []
    for choice in option.choices:
        values += [inner["value"] for inner in choice["options"]] if "options" in choice else [choice["value"]]
    return values


def messages(served: Served, given: Sequence[Any]) -> None:
    """Checks the images in messages.

    Raises:
        Refusal: `invalid_params`.
    """
    for index, message in enumerate(given):
        content = getattr(message, "content", None)
        for place, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, p.ImageBlock):
                _image(served.capabilities, f"messages[{index}].content[{place}].url", block.url)


def _image(can: model.Capabilities, field: str, url: str) -> None:
    scheme = url.partition(":")[0].lower()
    allowed = {"https": can.images_http, "data": can.images_data}
    if scheme not in allowed:
        raise wrong(field, "must be an https: or a data: URL")
    if not allowed[scheme]:
        name = "http" if scheme == "https" else "data"
        raise wrong(field, f"the agent does not declare capabilities.image.{name}")


def seeds(given: Sequence[Any]) -> None:
    """Checks that each result in a seeded history belongs to a call before it that had none.

    Raises:
        Refusal: `invalid_params`.
    """
    called: set[str] = set()
    waiting: set[str] = set()
    for index, message in enumerate(given):
        if isinstance(message, p.AssistantMessage) and isinstance(message.content, list):
            for place, block in enumerate(message.content):
                if isinstance(block, p.ToolUseBlock):
                    if block.tool_call_id in called:
                        field = f"messages[{index}].content[{place}].toolCallId"
                        raise wrong(field, f"{block.tool_call_id!r} is the id of another call")
                    called.add(block.tool_call_id)
                    waiting.add(block.tool_call_id)
        elif isinstance(message, p.ToolMessage):
            if message.tool_call_id not in waiting:
                raise wrong(f"messages[{index}].toolCallId", f"no call {message.tool_call_id!r} waits for a result")
            waiting.discard(message.tool_call_id)


def given(value: Any) -> bool:
    """Whether a member was there."""
    return value is not msgspec.UNSET
