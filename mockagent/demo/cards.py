"""How the things of a session look: a tool call, a plan, a session in the list, the line of state at the bottom.

Pure: values as the agent sent them go in, lines come out. Every value may be of any type; nothing here trusts one.

Source of the fields: ACP v1 schema, `SessionUpdate`, `ToolCallContent`, `SessionInfo`.
"""

from __future__ import annotations

from typing import Any

from rich.text import Text

from mockagent.demo.lines import Glyphs, brief, clipped, cut, diff, items, shown, wrapped

_OUTPUT_LINES = 10
_LONG_LINE = 1000
_PLAN_ENTRIES = 20

_STATUS_STYLES = {"completed": "green", "failed": "red", "in_progress": "yellow", "pending": "dim"}


class Tool:
    """A tool call as the client knows it: the last value of each field, and what was asked about it.

    Args:
        id: the agent's.
        announced: False for a call that only a permission request tells of.
    """

    def __init__(self, id: str, *, announced: bool = True) -> None:
        self.id = id
        self.announced = announced
        self.fields: dict[str, Any] = {}
        self.options: list[str] = []
        self.choice: str | None = None

    def change(self, body: dict[str, Any]) -> None:
        """Takes what an update says; absent fields stay."""
        self.fields |= body

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.fields.get("status") in ("completed", "failed")

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked."""
        return bool(self.options) and self.choice is None


def tool_lines(tool: Tool, width: int, glyphs: Glyphs, frame: int | None = None) -> list[Text]:
    """A tool call.

    Args:
        tool: what is known of it.
        width: cells in a line.
        glyphs: signs.
        frame: number of the picture, for the sign that turns; None when nothing moves any more.
    """
    status = str(tool.fields.get("status") or "pending")
    kind = brief(tool.fields.get("kind") or "tool", 20)
    style = _STATUS_STYLES.get(status, "")
    head = Text.assemble((_status_glyph(tool, status, glyphs, frame), style), " ", (f"{kind:<8}", "bold"), " ")
    title = brief(tool.fields.get("title") or tool.fields.get("name") or tool.id)
    note = "" if tool.final or frame is not None else f" ({brief(status, 40)})"
    lines = wrapped(title + note, width, first=head, rest=" " * 11)
    places = [_place(item) for item in items(tool.fields.get("locations"))]
    if places:
        lines += wrapped(", ".join(places), width, first="  ", rest="  ", style="dim")
    named = {item.get("path") for item in items(tool.fields.get("locations")) if isinstance(item.get("path"), str)}
    for item in items(tool.fields.get("content")):
        lines += _content(item, width, glyphs, named=named, tail=not tool.final)
    return lines + _question(tool, width, glyphs)


def _status_glyph(tool: Tool, status: str, glyphs: Glyphs, frame: int | None) -> str:
    if tool.waiting:
        return glyphs.ask
    if status == "in_progress" and frame is not None:
        return glyphs.running[frame % len(glyphs.running)]
    return {"completed": glyphs.done, "failed": glyphs.failed}.get(status, glyphs.open)


def _place(item: dict[str, Any]) -> str:
    line = item.get("line")
    return brief(item.get("path"), 80) + (f":{line}" if isinstance(line, int) else "")


def _content(item: dict[str, Any], width: int, glyphs: Glyphs, *, named: set[Any], tail: bool) -> list[Text]:
    """One entry of a tool call's content; `named` are files that need not be named again."""
    bar = Text(f"  {glyphs.bar} ", "dim")
    if item.get("type") == "diff":
        old = item.get("oldText")
        changes = diff(old if isinstance(old, str) else None, shown(item.get("newText")))
        body = [Text(f"    {line}", style) for line, style in changes]
        path = item.get("path")
        same = isinstance(path, str) and path in named
        return body if same else [Text.assemble(bar, (brief(path, 80), "dim")), *body]
    if item.get("type") == "terminal":
        return [Text.assemble(bar, (f"terminal {brief(item.get('terminalId'), 40)}", "dim"))]
    text = block_text(item.get("content")).rstrip("\n")
    room = max(width - 4, 10)
    lines = [piece.rstrip() for line in text.split("\n") for piece in cut(line[:_LONG_LINE], room)]
    return [Text.assemble(bar, line) for line in clipped(lines, _OUTPUT_LINES, tail=tail)]


def _question(tool: Tool, width: int, glyphs: Glyphs) -> list[Text]:
    if not tool.options:
        return []
    question = f"permission: {' / '.join(tool.options)}"
    if tool.choice is not None:
        question += f" {glyphs.arrow} {tool.choice}"
    return wrapped(question, width, first=Text(f"  {glyphs.ask} ", "bold yellow"), rest="    ", style="yellow")


def block_text(block: Any) -> str:
    """A content block in words; for text, the text."""
    if not isinstance(block, dict):
        return shown(block)
    describe = _BLOCKS.get(str(block.get("type")))
    return describe(block) if describe is not None else brief(block)


def _resource(block: dict[str, Any]) -> str:
    inner = block.get("resource")
    return f"[resource {brief(inner.get('uri') if isinstance(inner, dict) else inner, 100)}]"


def _data(block: dict[str, Any]) -> str:
    return f"[{block['type']} {brief(block.get('mimeType'), 40)}, {len(str(block.get('data'))) * 3 // 4} bytes]"


_BLOCKS = {
    "text": lambda block: shown(block.get("text")),
    "image": _data,
    "audio": _data,
    "resource_link": lambda block: f"[link {brief(block.get('name'), 60)} {brief(block.get('uri'), 100)}]",
    "resource": _resource,
}


def plan_lines(entries: list[dict[str, Any]], width: int, glyphs: Glyphs, frame: int | None = None) -> list[Text]:
    """A plan as a checklist."""
    lines = [Text("Plan", "bold")]
    for entry in entries[:_PLAN_ENTRIES]:
        status = entry.get("status")
        sign = {"completed": glyphs.done, "in_progress": glyphs.arrow}.get(str(status), glyphs.open)
        style = {"completed": "green", "in_progress": "bold"}.get(str(status), "dim")
        lines += wrapped(brief(entry.get("content")), width, first=Text(f"  {sign} ", style), rest="    ", style=style)
    if len(entries) > _PLAN_ENTRIES:
        lines.append(Text(f"  {glyphs.more} {len(entries) - _PLAN_ENTRIES} more", "dim"))
    return lines


UNTITLED = "(untitled)"


def title_text(title: Any) -> str:
    """The title of a session as a list shows it."""
    return UNTITLED if title is None else brief(title, 100)


def session_lines(row: dict[str, Any], width: int, glyphs: Glyphs) -> list[Text]:
    """A row of the list of sessions."""
    when = row.get("updatedAt")
    line = title_text(row.get("title")) + (f"{glyphs.dot}{brief(when, 40)[:16].replace('T', ' ')}" if when else "")
    return wrapped(line, width, first="  ", rest="    ", style="dim")


def usage_text(usage: dict[str, Any], glyphs: Glyphs) -> str:
    """How full the context is, and what it has cost."""
    used, size, cost = usage.get("used"), usage.get("size"), usage.get("cost")
    if not (isinstance(used, int) and isinstance(size, int) and size > 0):
        return f"usage {brief(usage, 60)}"
    text = f"{used:,} of {size:,} tokens"
    if isinstance(cost, dict):
        text += f"{glyphs.dot}{brief(cost.get('amount'), 20)} {brief(cost.get('currency'), 20)}"
    return text
