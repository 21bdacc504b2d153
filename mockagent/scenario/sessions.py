"""The sessions: what a scenario file says under `sessions`: those that are there, and the rules for all.

What happens in them is said elsewhere: steps in `verbs`, the agent in `agent`, the other keys of a file in `top`.
"""

from __future__ import annotations

from mockagent.errors import NAMED
from mockagent.scenario import model
from mockagent.scenario.effects import ErrorValue
from mockagent.scenario.payloads import Moment
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import Couple, Either, Field, ListOf, Nullable, Record, Span, distinct
from mockagent.scenario.steps import StepList
from mockagent.scenario.types import (
    REQUIRED,
    Choice,
    JsonMap,
    Micros,
    Number,
    PerSecond,
    Text,
    Whole,
)
from mockagent.scenario.verbs import HISTORY_VERBS

#: group -> its switches; the attribute of the model behind each

History = StepList("HistoryStep", HISTORY_VERBS, "a history holds what has happened")

StoredType = distinct("session", "id")(
    Record(
        "Stored",
        [
            Field("id", Text(least=1), "Its id.", REQUIRED, "sess_auth"),
            Field("cwd", Text(), "Its folder.", "`sessions.cwd`", "/home/dev/api"),
            Field("additional_directories", ListOf(Text()), "More folders.", "none"),
            Field("title", Nullable(Text()), "Its title.", "untitled", "Debug authentication flow"),
            Field("updated_at", Nullable(Moment), "Last activity: an ISO time, `2h ago`, or null.", "now", "2h ago"),
            Field("meta", JsonMap(), "`_meta` of its row.", example="{messageCount: 12}"),
            Field(
                "history",
                History,
                "What was said.",
                "nothing",
                '[{user: "Why does login fail?"}, {say: The token has expired.}]',
            ),
        ],
        model.Stored,
    )
)
_REPLACING = ("queue", "replace", "parallel")

SessionsType = Record(
    "Sessions",
    [
        Field("cwd", Text(), "Folder of sessions that come without one.", "/home/dev/project"),
        Field(
            "auto_title",
            Nullable(
                Record(
                    "AutoTitle",
                    [Field("after", Span, "So long after the first turn.", "0s", "2s")],
                    model.AutoTitle,
                )
            ),
            "A title is made from the first prompt; null: never.",
            "{after: 0s}",
        ),
        Field(
            "title_limit",
            Record(
                "TitleLimit",
                [
                    Field("length", Whole(1), "Characters.", "500"),
                    Field("then", Choice("truncate", "refuse"), "What becomes of a longer one.", "truncate"),
                ],
                model.TitleLimit,
            ),
            "Longest title that the agent sends.",
            "{length: 500, then: truncate}",
        ),
        Field(
            "meta_limit",
            Record(
                "MetaLimit",
                [
                    Field("size", Whole(2), "Bytes of JSON.", "65536"),
                    Field("depth", Whole(1, 100), "Levels of objects and lists.", "16"),
                ],
                model.MetaLimit,
            ),
            "Largest `_meta` that a session may have; an `info` that would make it larger is skipped.",
            "{size: 65536, depth: 16}",
        ),
        Field(
            "update_rate",
            Nullable(PerSecond),
            "How often a session's `info` is sent; one that comes too soon waits.",
            "null",
            "10/s",
        ),
        Field("stored", StoredType, "Sessions that are there from the start.", "none"),
        Field(
            "synthetic",
            Record(
                "Synthetic",
                [
                    Field("count", Whole(0, 1_000_000), "How many.", REQUIRED, "250"),
                    Field("cwds", ListOf(Text(), single=True), "Their folders.", "`sessions.cwd`", "[/home/dev/api]"),
                    Field("turns", Couple(Whole(0, 100_000)), "Turns in each history.", "[1, 6]"),
                    Field("untitled", Number(0, 1), "Part of them without a title.", "0", "0.1"),
                    Field("span", Micros, "Their times reach back so far.", "30d"),
                    Field("locale", Text(), "Locale of their words.", "en_US", "de_DE"),
                ],
                model.Synthetic,
            ),
            "Invented sessions, the same for the same seed.",
            "none",
            "{count: 250, untitled: 0.1}",
        ),
        Field("page_size", Whole(1, 1_000_000), "Rows of a page.", "25"),
        Field(
            "cursor",
            Record(
                "CursorRules",
                [
                    Field("lifetime", Nullable(Micros), "How long a cursor is good for.", "null", "10m"),
                    Field("uses", Nullable(Whole(1)), "How often.", "null", "1"),
                    Field(
                        "scope",
                        Choice("connection", "session", "process", "any"),
                        "Where: `any` survives restarts.",
                        "process",
                    ),
                ],
                model.CursorRules,
            ),
            "Which cursors are valid.",
            "{lifetime: null, uses: null, scope: process}",
        ),
        Field(
            "compaction",
            Record("CompactionRule", [Field("keep", Whole(0), "Last messages that are kept.", "4")]),
            "AAP's compacted history.",
            "{keep: 4}",
        ),
        Field(
            "invalid_cursor",
            Choice("error", "empty", "first_page"),
            "What an invalid cursor gets. A shorthand for a fault.",
            "error",
        ),
        Field(
            "unknown",
            Either(text=Choice(*NAMED, "create", "empty"), map=ErrorValue, words="an error, `create` or `empty`"),
            "What a request for an unknown session gets. A shorthand for a fault.",
            "session_not_found",
        ),
        Field(
            "inactive",
            ErrorValue,
            "What a request for a session that is not open gets. A shorthand for a fault.",
            "session_inactive",
        ),
        Field(
            "busy",
            Either(text=Choice(*NAMED, *_REPLACING), map=ErrorValue, words=f"an error, {listed(_REPLACING)}"),
            "What a prompt gets while a turn runs.",
            "busy",
            "queue",
        ),
        Field(
            "replay",
            Record(
                "Replay",
                [
                    Field(
                        "send",
                        Choice("before", "after", "none"),
                        "The history comes before or after the reply.",
                        "before",
                    ),
                    Field(
                        "for", ListOf(Choice("load", "resume"), single=True), "What replays it.", "[load]", attr="for_"
                    ),
                    Field("pace", Span, "Wait between two updates.", "0s"),
                    Field("live", Choice("held", "mixed"), "What else happens meanwhile.", "held"),
                ],
                model.Replay,
            ),
            "How a loaded session's history is played.",
            "{send: before, for: [load], pace: 0s, live: held}",
        ),
    ],
    lambda **values: values,
)
