"""What there is at the path of a journal or a report, and whether it can be written: asked before anything is played.

It knows neither: what they do when the disk is full later is their own affair.
"""

from __future__ import annotations

import os


def is_stream(path: str) -> bool:
    """Whether it is a pipe or a device, and so takes what is written and keeps nothing."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def why_not(path: str) -> str | None:
    """The reason why a file cannot be written, or None. What is in it stays; one that is not there is made, empty.

    A pipe is not opened: its reader would take that for everything there is.
    """
    if is_stream(path):
        return None if os.access(path, os.W_OK) else "Permission denied"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    return None
