"""What a worker process prints, on its way to the supervisor's standard error."""

from hypothesis import given
from hypothesis import strategies as st

from trotline.model.secret import HIDDEN, Secret
from trotline.rules.child_output import BURST, LONGEST_LINE, PER_SECOND, ChildOutput


def shown(*pieces: bytes, at: float = 0.0) -> str:
    printed = ChildOutput(at)
    return "".join([*(printed.feed(piece, at) for piece in pieces), printed.end(at)])


@given(st.lists(st.text("ab\n\t é", max_size=30)), st.integers(1, 7))
def test_plain_lines_come_out_as_they_went_in_however_they_are_cut_into_pieces(lines: list[str], size: int) -> None:
    text = "\n".join([*lines, ""])
    whole = text.encode()

    assert shown(*(whole[at : at + size] for at in range(0, len(whole), size))) == text


def test_lines_are_shown_as_soon_as_they_are_complete_and_the_last_one_at_the_end() -> None:
    printed = ChildOutput(0.0)

    assert printed.feed(b"one\ntw", 0.0) == "one\n"
    assert printed.feed(b"o", 0.0) == ""
    assert printed.end(0.0) == "two\n"
    assert printed.end(0.0) == ""


def test_a_long_line_is_cut_and_says_by_how_much() -> None:
    for pieces in ([b"x" * 5_000_000 + b"\n"], [b"x" * 65_536] * 100, [b"short\n" + b"x" * 200_000 + b"\nshort\n"]):
        told = shown(*pieces)
        assert "bytes cut)" in told
        assert max(map(len, told.splitlines())) < LONGEST_LINE + 50
    assert shown(b"a\n" + b"x" * 100_000 + b"\nb\n").splitlines()[::2] == ["a", "b"]
    assert shown(b"x" * 100_000).endswith(f" ... ({100_000 - LONGEST_LINE:,} bytes cut)\n")


def test_a_secret_is_hidden_wherever_the_pieces_or_the_line_are_cut() -> None:
    secret = Secret("correct-horse-battery").reveal().encode()
    for before in (0, 10, LONGEST_LINE - 10, LONGEST_LINE - 21, LONGEST_LINE):
        line = b"x" * before + secret + b" end\n"
        for piece in (1_000, 65_536):
            told = shown(*(line[at : at + piece] for at in range(0, len(line), piece)))
            assert "horse" not in told
            assert "correct" not in told
    assert HIDDEN in shown(secret + b"\n")


def test_control_characters_are_visible_and_move_nothing() -> None:
    assert shown(b"\x1b[2J\x07gone\rback\ttab\n") == "\\x1b[2J\\x07gone\\x0dback\ttab\n"
    assert shown("\u202eevil\x9b31m\n".encode()) == "\\u202eevil\\x9b31m\n"
    assert shown(b"\xff\xfe broken\n") == "\ufffd\ufffd broken\n"


def test_output_beyond_the_rate_is_dropped_and_counted() -> None:
    printed = ChildOutput(0.0)
    line = b"x" * 999 + b"\n"
    chunk = line * 65
    at_once = "".join(printed.feed(chunk, 0.0) for _ in range(100))
    later = printed.feed(b"later\n", 1.0)

    assert len(at_once) <= BURST
    missing = 100 * 65 - at_once.count("\n")
    assert later.splitlines() == [
        f"trotline: {missing:,} lines ({missing * 1000:,} bytes) printed by a worker process are not shown:"
        f" it prints more than {PER_SECOND:,} bytes per second",
        "later",
    ]
    assert printed.end(1.0) == ""


def test_what_was_dropped_is_counted_also_when_nothing_follows() -> None:
    printed = ChildOutput(0.0)
    for _ in range(200):
        printed.feed(b"x\n" * 30_000, 0.0)

    assert "lines" in printed.end(0.0)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_whatever_is_printed_ends_in_whole_printable_lines(pieces: list[bytes]) -> None:
    told = shown(*pieces)

    assert told == "" or told.endswith("\n")
    assert not [char for char in told if char not in "\n\t" and ord(char) < 0x20]
