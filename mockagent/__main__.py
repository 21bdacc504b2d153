"""`python -m mockagent`, and the same by the path of this file, for whoever starts it with a trimmed environment.

Started by its path it finds its package without any environment: the folder above is looked at last, so that nothing
beside the package gets in front of anything else.
"""

from __future__ import annotations

import os
import sys


def find_package() -> None:
    """Makes the package importable, whose folder the interpreter has put on the path for a script in it."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]  # the modules in there are not top-level ones
    above = os.path.dirname(here)
    if above not in sys.path:
        sys.path.append(above)


if __name__ == "__main__":
    if not __package__:
        find_package()
    from mockagent.cli import main

    main(prog_name="mockagent")
