"""Turns what was recorded of a conversation into a scenario that plays the agent's part again.

Works on text and values alone: it plays nothing, and knows the runner only by the scenario that it writes.
"""

from __future__ import annotations

from mockagent.replay.aap import composed_of_aap
from mockagent.replay.compose import composed
from mockagent.replay.reading import RecordingError, read
from mockagent.replay.walk import walk
from mockagent.replay.writing import yaml_text

__all__ = ["RecordingError", "replayed"]


def replayed(path: str, *, name: str = "replay") -> tuple[str, list[str]]:
    """The scenario that plays a recording again.

    Args:
        path: a journal, or lines of `{time, direction, message}`.
        name: of the scenario.

    Returns:
        Its text, and what could not be put into it, a sentence each.

    Raises:
        OSError: the file cannot be read.
        RecordingError: it is no recording of a conversation; the text names file and line.
    """
    lines = read(path)
    of_aap = [line for line in lines if line.protocol == "aap"]
    others = [line for line in lines if line.protocol != "aap"]
    if not any(line.direction == "in" for line in others):
        scenario, left_out = composed_of_aap(lines, name)
        return yaml_text(scenario), left_out
    recording = walk(others)
    if any(line.direction == "in" for line in of_aap):
        recording.left_out.append("what was said over AAP, beside ACP")
    return yaml_text(composed(recording, name)), recording.left_out
