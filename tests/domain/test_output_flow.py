"""What an attempt writes, piece by piece: nothing is lost below the bounds, no number above."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.output import HEAD, LONGEST, TAIL, Flow, Piece


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@given(st.lists(st.text(alphabet="ab\n", max_size=50), max_size=50))
def test_pieces_stand_where_they_say(texts: list[str]) -> None:
    flow = Flow()
    taken: list[Piece] = []
    for text in texts:
        flow.add(text)
        if len(text) % 3 == 0:
            taken += flow.take()
    taken += flow.take()
    whole = "".join(texts)
    assert joined(taken) == whole
    for piece in taken:
        assert whole[piece.place : piece.end] == piece.text
        assert piece.line == whole[: piece.place].count("\n")
    assert not flow


def test_small_writes_become_one_piece() -> None:
    flow = Flow()
    for number in range(100):
        flow.add(f"{number}\n")
    assert len(flow.take()) == 1


def test_a_piece_is_of_the_head_or_behind_it() -> None:
    flow = Flow()
    flow.add("x" * (HEAD - 10))
    flow.add("y" * 30)
    pieces = flow.take()
    assert all(piece.end <= HEAD or piece.place >= HEAD for piece in pieces)
    assert max(len(piece.text) for piece in pieces) <= LONGEST


def test_a_flood_loses_its_middle_and_counts_it() -> None:
    flow = Flow()
    line = "0123456789" * 9 + "012345678\n"
    lines = 5 * TAIL // len(line)
    flow.add(line * lines)
    pieces = flow.take()
    assert sum(len(piece.text) for piece in pieces) <= HEAD + TAIL
    assert pieces[0].place == 0
    assert pieces[-1].end == len(line) * lines
    tail = [piece for piece in pieces if piece.place >= HEAD]
    assert tail[0].place > HEAD
    assert tail[0].line == tail[0].place // len(line)


def test_what_could_not_be_written_comes_first_again() -> None:
    flow = Flow()
    flow.add("one\n")
    kept = flow.take()
    flow.add("two\n")
    flow.put_back(kept)
    assert joined(flow.take()) == "one\ntwo\n"


def test_what_may_be_stored_already_does_not_grow() -> None:
    """The same piece again is known by its place: with more in it, that would be lost."""
    flow = Flow()
    flow.add("one\n")
    kept = flow.take()
    flow.put_back(kept)
    flow.add("two\n")
    assert flow.take() == [*kept, Piece(4, 1, "two\n")]


def test_a_store_that_is_away_does_not_fill_the_memory() -> None:
    flow = Flow()
    for _ in range(20):
        flow.add("z" * (TAIL // 2))
        flow.put_back(flow.take())
    assert sum(len(piece.text) for piece in flow.take()) <= HEAD + TAIL
