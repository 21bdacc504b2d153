"""Lines of the show: wrapping that loses nothing, and texts that cannot harm a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mockagent.demo.lines import clipped, cut, diff, shown, wrapped

PROSE = st.text(st.sampled_from("ab 字`é "), max_size=60)


@given(text=PROSE, width=st.integers(4, 20))
def test_pieces_of_a_paragraph_are_the_paragraph_and_fit(text: str, width: int) -> None:
    pieces = cut(text, width)
    assert "".join(pieces) == text
    assert all(cell_len(piece.rstrip()) <= width for piece in pieces)


@given(text=PROSE, more=PROSE, width=st.integers(4, 20))
def test_a_full_line_never_changes_while_text_streams(text: str, more: str, width: int) -> None:
    full = cut(text, width)[:-1]
    assert cut(text + more, width)[: len(full)] == full


def test_lines_hang_behind_what_stands_first() -> None:
    assert [line.plain for line in wrapped("one two three\n\nfour", 12, first="* ", rest="  ")] == [
        "* one two",
        "  three",
        "",
        "  four",
    ]


@given(st.text())
def test_nothing_that_is_shown_can_move_a_cursor(text: str) -> None:
    made = shown(text)
    assert not [char for char in made if char != "\n" and (ord(char) < 32 or 127 <= ord(char) < 160)]


def test_long_output_keeps_its_beginning_or_its_end() -> None:
    lines = [str(number) for number in range(10)]
    assert clipped(lines, 4) == ["0", "1", "2", "… 7 more lines"]
    assert clipped(lines, 4, tail=True) == ["… 7 more lines", "7", "8", "9"]
    assert clipped(lines[:5], 4) == lines[:5]  # a line about one line would be no shorter


def test_a_diff_shows_what_goes_and_what_comes() -> None:
    assert list(diff("a\nb\nc\n", "a\nB\nc\n")) == [("  a", "dim"), ("- b", "red"), ("+ B", "green"), ("  c", "dim")]
    assert list(diff(None, "new\n")) == [("+ new", "green")]
    assert list(diff("same", "same")) == []
