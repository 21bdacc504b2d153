"""What a state file has to know of the scenario that it belongs to: one checksum for each part, so that a difference
can be named. Faults, expectations and waits may change between two runs; what sessions are made of may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mockagent.scenario.model import Scenario

_WHOLE = ("agent", "sessions", "turns")


def digest(scenario: Scenario, seed: int) -> dict[str, str]:
    """Checksums by path, such as `sessions/synthetic` or `turns/2`.

    Args:
        scenario: what is played.
        seed: as it is used, which may be the command line's.
    """
    parts: dict[str, Any] = {"seed": seed, "clock/now": scenario.clock.now}
    for name in _WHOLE:
        whole = getattr(scenario, name)
        inner = enumerate(whole) if isinstance(whole, tuple) else msgspec.structs.asdict(whole).items()
        parts |= {f"{name}/{key}": value for key, value in inner}
    return {path: _sum(value) for path, value in parts.items()}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The paths at which two digests differ."""
    paths = list(dict.fromkeys([*one, *other]))
    return [path for path in paths if one.get(path) != other.get(path)]


def _sum(value: Any) -> str:
    from hashlib import sha256

    plain = msgspec.to_builtins(value, enc_hook=_plain, builtin_types=())
    return sha256(msgspec.json.encode(_placeless(plain), order="deterministic")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else repr(value)


def _placeless(value: Any) -> Any:
    """Without the places in files, which say nothing."""
    if isinstance(value, dict):
        return {key: _placeless(item) for key, item in value.items() if key != "place"}
    return [_placeless(item) for item in value] if isinstance(value, list | tuple) else value
