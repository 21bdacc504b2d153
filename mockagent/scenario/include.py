"""`include`: reads the files that a scenario stands on and merges them, node by node, so that all places survive.

The merge knows nothing of scenarios but the keys `include` and `without`: mappings merge, everything else replaces.
"""

from __future__ import annotations

import os

from mockagent.scenario.model import Place
from mockagent.scenario.nodes import Node, describe, empty_map, read
from mockagent.scenario.problems import Problem

MAX_FILES = 100


def merge(under: Node, over: Node) -> Node:
    """What two nodes make together: keys of `over` replace those of `under`, mappings below merge again.

    An empty mapping changes nothing, and merging a node with itself gives the same values. Merging is associative
    unless a file in between turns a mapping into something else.
    """
    if under.kind != "map" or over.kind != "map":
        return over
    made = Node("map", over.file, over.line, over.column)
    upper = {key.text: (key, value) for key, value in over.pairs}
    for key, value in under.pairs:
        pair = upper.pop(key.text, None)
        made.pairs.append((key, value) if pair is None else (pair[0], merge(value, pair[1])))
    made.pairs.extend(upper.values())
    return made


def remove(node: Node, path: list[str]) -> Node | None:
    """A copy of a node without what stands under a path; None if nothing does."""
    name, rest = path[0], path[1:]
    made = Node(node.kind, node.file, node.line, node.column)
    found = False
    entries = node.pairs if node.kind == "map" else [(None, item) for item in node.items]
    for at, (key, value) in enumerate(entries):
        if (key.text if key is not None else str(at)) != name:
            kept: Node | None = value
        else:
            kept = remove(value, rest) if rest else None
            if rest and kept is None:
                return None
            found = True
        if kept is not None and key is not None:
            made.pairs.append((key, kept))
        elif kept is not None:
            made.items.append(kept)
    return made if found else None


class Reader:
    """Reads a file and all that it includes.

    Attributes:
        problems: of the syntax and of the inclusion.
        files: every file that was read, by absolute path.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.files: list[str] = []

    def load(self, file: str, asked: Place | None = None, above: tuple[str, ...] = ()) -> Node | None:
        """The merged root of a file; None if it cannot be read at all.

        Args:
            file: its path; places show it as it is given here.
            asked: where it is included, for problems with the file itself.
            above: absolute paths of the files that led here.
        """
        where = asked or Place(file, 0, 0)
        data = self._data(file, where)
        if data is None:
            return None
        self.files.append(os.path.abspath(file))
        return self.root(data, file, above)

    def root(self, data: bytes, file: str, above: tuple[str, ...] = ()) -> Node | None:
        """The merged root of a file whose bytes are known."""
        root, problems = read(data, file)
        self.problems += problems
        if root is None:
            return None
        if root.kind != "map":
            self.problems.append(
                Problem(root.place(), f"a scenario is a mapping with keys such as `turns`, not {describe(root)}")
            )
            return None
        return self._with_included(root, file, (*above, os.path.realpath(file)))

    def _data(self, file: str, where: Place) -> bytes | None:
        try:
            with open(file, "rb") as stream:
                return stream.read()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            name = "" if where.file == file else f"`{file}`: "
            self.problems.append(Problem(where, f"{name}cannot be read: {why[:1].lower() + why[1:]}"))
            return None

    def _with_included(self, root: Node, file: str, chain: tuple[str, ...]) -> Node:
        asked = root.get("include")
        if asked is None:
            return root
        names = asked.items if asked.kind == "list" else [asked]
        base = empty_map(file)
        for name in names:
            if name.kind == "text" and name.value is not None:
                base = merge(base, self._included(name, file, chain))
        return merge(self._reduced(base, root.get("without")), root)

    def _included(self, name: Node, file: str, chain: tuple[str, ...]) -> Node:
        path = os.path.join(os.path.dirname(file), name.text)
        real = os.path.realpath(path) if "\0" not in path else path
        if real in chain:
            circle = " includes ".join(os.path.basename(step) for step in (*chain[chain.index(real) :], real))
            self.problems.append(Problem(name.place("include"), f"this goes round in a circle: {circle}"))
            return empty_map(file)
        if len(self.files) >= MAX_FILES:
            self.problems.append(Problem(name.place("include"), f"more than {MAX_FILES} files are included"))
            return empty_map(file)
        made = self.load(path, name.place("include"), chain)
        if made is None:
            return empty_map(file)
        # what an included file says about its own includes has been done
        inner = Node("map", made.file, made.line, made.column)
        inner.pairs = [(key, value) for key, value in made.pairs if key.text not in ("include", "without")]
        return inner

    def _reduced(self, base: Node, without: Node | None) -> Node:
        if without is None:
            return base
        for path in without.items if without.kind == "list" else [without]:
            steps = [step for step in path.text.split("/") if step] if path.kind == "text" else []
            if not steps:
                continue  # the type of `without` complains
            less = remove(base, steps)
            if less is None:
                self.problems.append(
                    Problem(path.place("without"), f"the included files say nothing under `{path.text}`")
                )
            else:
                base = less
        return base
