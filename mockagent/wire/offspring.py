"""A child process that an agent leaves behind: it is in the agent's process group, and ends by itself after a while.

Clients that end only the agent, and not its group, keep it. It knows nothing of the mock.
"""

from __future__ import annotations

import subprocess
import sys
import threading

_PROGRAM = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(float(sys.argv[1]))"


def start(seconds: float) -> None:
    """Starts one that stays for so long (real time), and hears neither the end of its stdin nor SIGTERM.

    It has standard error in common with the agent, as the children of real agents do: a client that waits for the end
    of that waits for both.
    """
    arguments = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(seconds)]
    child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    threading.Thread(target=child.wait, daemon=True).start()  # no zombie stays, and nothing of ours is held up
