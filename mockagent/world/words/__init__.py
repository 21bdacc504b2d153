"""What coders and their agents say, one bank of words for each locale.

To add a locale, add a file with a `BANK` and a row to the table.
"""

from __future__ import annotations

from importlib import import_module

from mockagent.world.words.bank import Bank

LOCALES = ("en_US", "de_DE", "es_ES", "fr_FR", "ja_JP", "zh_CN")


def bank(locale: str) -> Bank:
    """The words of a locale: its own, those of its language, or English ones."""
    language = locale.partition("_")[0]
    own = [name for name in LOCALES if name == locale] or [name for name in LOCALES if name[:2] == language]
    found: Bank = import_module(f"{__name__}.{(own or LOCALES)[0]}").BANK
    return found
