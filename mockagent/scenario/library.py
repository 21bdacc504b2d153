"""The bundled scenarios: what there is, and how SCENARIO on the command line becomes one.

They lie in `mockagent/_scenarios` of an installed package, in `scenarios` of a checkout. The package has them built
beforehand as well, in one file; whatever in it is out of date is ignored and read from the YAML.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from mockagent import __version__
from mockagent.scenario.model import Scenario
from mockagent.scenario.problems import ScenarioError, suggestion

PACKED = "library.msgpack"
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Summary(msgspec.Struct, frozen=True):
    """A row of the table of scenarios."""

    name: str
    summary: str
    legality: str
    tags: tuple[str, ...]


def folder() -> str:
    """The absolute path of the folder of bundled scenarios.

    Raises:
        ScenarioError: neither the package nor a checkout has one.
    """
    for place in (os.path.join(_HERE, "_scenarios"), os.path.join(os.path.dirname(_HERE), "scenarios")):
        if os.path.isdir(place):
            return place
    raise ScenarioError.single("this installation has no bundled scenarios; name a YAML file")


def names() -> list[str]:
    """The names of all bundled scenarios (`demo`, `lists/late-title`), sorted; those at the top come first."""
    found = _names_below(folder())
    return sorted(found, key=lambda name: ("/" in name, name))


def _names_below(root: str, prefix: str = "") -> list[str]:
    found = []
    with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
        for entry in entries:
            if entry.name.startswith(("_", ".")):
                continue
            if entry.is_dir():
                found += _names_below(root, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".yaml"):
                found.append(prefix + entry.name[:-5])
    return found


def path_of(name: str) -> str:
    """The absolute path of a bundled scenario's file.

    Raises:
        ScenarioError: there is no such scenario; suggests a near one.
    """
    place = os.path.join(folder(), *name.split("/")) + ".yaml"
    if _is_name(name) and os.path.isfile(place):
        return place
    known = names()
    last = {entry.rpartition("/")[2]: entry for entry in known}
    near = f"; did you mean `{last[name]}`?" if name in last else suggestion(name, known)
    raise ScenarioError.single(
        f"there is no bundled scenario `{name}`{near or '; `mockagent scenarios` lists them, a path ends in .yaml'}"
    )


def _is_name(name: str) -> bool:
    return not any(
        part.startswith((".", "_")) or not part or "\0" in part for part in name.replace("\\", "/").split("/")
    )


def text(name: str) -> str:
    """The YAML text of a bundled scenario. Raises ScenarioError."""
    with open(path_of(name), encoding="utf-8") as file:
        return file.read()


def open_scenario(argument: str = "demo") -> Scenario:
    """The scenario that a SCENARIO argument means: the name of a bundled one, or the path of a file.

    A path is told by its ending `.yaml` or `.yml`, or by a file or folder of that name when no bundled one has it.

    Raises:
        ScenarioError: there is no such scenario, or its file has mistakes.
    """
    if argument.endswith((".yaml", ".yml")) or argument.startswith((".", os.sep)):
        return _load(argument)
    if _is_name(argument):
        packed = _packed_scenario(argument)
        if packed is not None:
            return packed
    try:
        place = path_of(argument)
    except ScenarioError:
        if os.path.exists(argument):
            return _load(argument)
        raise
    return _load(place)


def open_bundled(name: str) -> Scenario:
    """The bundled scenario of that name; no path is taken for one.

    Raises:
        ScenarioError: there is no such scenario.
    """
    path_of(name)
    return open_scenario(name)


def is_bundled(scenario: Scenario) -> bool:
    """Whether a scenario comes from the library."""
    try:
        return os.path.abspath(scenario.file).startswith(folder() + os.sep)
    except ScenarioError:
        return False


def _load(path: str) -> Scenario:
    from mockagent.scenario.load import load

    return load(path)


# --- the packed library


class _Packed(msgspec.Struct, frozen=True):
    """What `library.msgpack` holds.

    Attributes:
        version, form: of the package, and of the model's classes.
        rows: name -> summary, legality, tags.
        sources: name -> the files that it was made of, relative, with size and checksum.
        scenarios: name -> the packed scenario.
    """

    version: str
    form: int
    rows: dict[str, Any]
    sources: dict[str, Any]
    scenarios: dict[str, bytes]


_cache: dict[str, dict[str, Any] | None] = {}


def _packed(root: str) -> dict[str, Any] | None:
    """The packed library beside the files, or None if there is none of this version."""
    if root not in _cache:
        _cache[root] = _read_packed(os.path.join(root, PACKED))
    return _cache[root]


def _read_packed(file: str) -> dict[str, Any] | None:
    from mockagent.scenario.packed import fingerprint

    try:
        with open(file, "rb") as stream:
            data = msgspec.msgpack.decode(stream.read())
    except (OSError, msgspec.MsgspecError):
        return None
    if not isinstance(data, dict) or data.get("version") != __version__ or data.get("form") != fingerprint():
        return None
    return data


def _fresh(root: str, sources: list[list[Any]]) -> bool:
    """Whether the files are still those that the packed form was made of."""
    from binascii import crc32

    for name, size, checksum in sources:
        try:
            with open(os.path.join(root, name), "rb") as file:
                data = file.read()
        except OSError:
            return False
        if len(data) != size or crc32(data) != checksum:
            return False
    return True


def _packed_scenario(name: str) -> Scenario | None:
    try:
        root = folder()
    except ScenarioError:
        return None
    library = _packed(root)
    if library is None or name not in library["scenarios"] or not _fresh(root, library["sources"][name]):
        return None
    from mockagent.scenario.packed import unpack

    try:
        return unpack(library["scenarios"][name], root)
    except ValueError:
        return None


def summaries() -> list[Summary]:
    """A row for each bundled scenario, in the order of `names`.

    Raises:
        ScenarioError: one of them has mistakes.
    """
    root = folder()
    library = _packed(root)
    rows = []
    for name in names():
        if library is not None and name in library["rows"] and _fresh(root, library["sources"][name]):
            summary, legality, tags = library["rows"][name]
            rows.append(Summary(name, summary, legality, tuple(tags)))
        else:
            made = _load(path_of(name))
            rows.append(Summary(name, made.summary, made.legality, made.tags))
    return rows


def compile_library(source_dir: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Writes all scenarios of a folder in built form into one file; for the hook that builds the wheel.

    Args:
        source_dir: the folder of the YAML files.
        target: the file that is written, or the folder that it goes into as `library.msgpack`. It belongs beside the
            YAML files.

    Returns:
        How many scenarios there are.

    Raises:
        ScenarioError: one of them has mistakes.
    """
    from mockagent.scenario.load import load, sources
    from mockagent.scenario.packed import fingerprint, pack

    root = os.path.abspath(source_dir)
    made = _Packed(__version__, fingerprint(), {}, {}, {})
    for name in sorted(_names_below(root)):
        source = os.path.join(root, *name.split("/")) + ".yaml"
        scenario = load(source)
        made.rows[name] = (scenario.summary, scenario.legality, scenario.tags)
        made.sources[name] = [_stamp(root, file) for file in sources(source)]
        made.scenarios[name] = pack(scenario, root)
    place = os.path.join(target, PACKED) if os.path.isdir(target) else target
    with open(place, "wb") as file:
        file.write(msgspec.msgpack.encode(made))
    return len(made.scenarios)


def _stamp(root: str, file: str) -> tuple[str, int, int]:
    from binascii import crc32

    with open(file, "rb") as stream:
        data = stream.read()
    return os.path.relpath(file, root).replace(os.sep, "/"), len(data), crc32(data)
