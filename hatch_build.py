"""Puts the bundled scenarios into the wheel, as text and, where the library can do it, compiled.

Runs inside the build backend, for wheels only. It knows where the files go and nothing about what is in them: the
format of the compiled library belongs to `mockagent.scenario.library`.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "mockagent/_scenarios"


class ScenarioHook(BuildHookInterface[Any]):
    """Adds `scenarios/` to a wheel; an editable install reads the folder where it lies."""

    PLUGIN_NAME = "custom"
    _compiled: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Collect the files before the wheel is written.

        Args:
            version: `standard` or `editable`.
            build_data: what hatchling builds from; its `force_include` maps paths to places in the wheel.
        """
        if version == "editable":
            return
        source = Path(self.root, "scenarios")
        build_data["force_include"][str(source)] = PLACE
        compile_library = find_compiler(self.root)
        if compile_library is not None:
            self._compiled = Path(tempfile.mkdtemp(prefix="mockagent-scenarios-"))
            compile_library(source, self._compiled)
            for path in sorted(self._compiled.rglob("*")):
                if path.is_file():
                    build_data["force_include"][str(path)] = f"{PLACE}/{path.relative_to(self._compiled).as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, once it is in the wheel."""
        if self._compiled is not None:
            shutil.rmtree(self._compiled, ignore_errors=True)


def find_compiler(root: str) -> Any:
    """The function `compile_library(source, target)` of the tree that is being built, or None without one."""
    sys.path.insert(0, root)
    try:
        library = importlib.import_module("mockagent.scenario.library")
    except ModuleNotFoundError as error:
        if error.name != "mockagent.scenario.library":
            raise  # the library is there and lacks something: a wheel without it would start slowly, unnoticed
        return None
    finally:
        sys.path.remove(root)
    return getattr(library, "compile_library", None)
