"""What goes wrong that is not the client's fault."""

from __future__ import annotations

from mockagent.watch.memory import Memory


class MockError(RuntimeError):
    """The mock itself has failed, or is used in a way that cannot work."""


def raise_bugs(memory: Memory) -> None:
    """A mistake of ours that the play has survived must not look like one of the client.

    Raises:
        MockError: the journal names such a mistake.
    """
    bugs = memory.events("bug")
    if bugs:
        told = "\n".join(f"  #{bug.seq} {bug.detail.get('error', bug.detail)}" for bug in bugs)
        raise MockError(f"this is a mistake of mockagent, not of the client:\n{told}")
