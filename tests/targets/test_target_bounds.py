from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.targets.bounds import as_count, cut_stack, cut_text, kept_json, parse_json, plain_json
from noonday.targets.output import HeadAndTail, Output


@given(st.lists(st.binary(max_size=40)), st.integers(8, 64))
def test_head_and_tail_are_those_of_the_stream(chunks: list[bytes], limit: int) -> None:
    kept, whole = HeadAndTail(limit), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    assert kept.received == len(whole)
    if len(whole) <= limit:
        expected = whole.decode("utf-8", "replace")
    else:
        head, tail = whole[: limit // 4], whole[-(limit - limit // 4) :]
        middle = f"\n[… {len(whole) - limit} bytes left out …]\n"
        expected = head.decode("utf-8", "replace") + middle + tail.decode("utf-8", "replace")
    assert kept.text() == expected.replace("\x00", "␀")


def test_a_long_stream_takes_little_memory() -> None:
    kept = HeadAndTail(1000)
    for _ in range(1000):
        kept.add(b"x" * 1000)
    assert len(kept._tail) <= 2 * 750 + 1000
    assert len(kept.text()) < 1100


class Faucet(asyncio.ReadTransport):
    def __init__(self) -> None:
        super().__init__()
        self.open = True
        self.opened = asyncio.Event()

    def pause_reading(self) -> None:
        self.open = False

    def resume_reading(self) -> None:
        self.open = True
        self.opened.set()

    def is_closing(self) -> bool:
        return False


async def test_a_flood_is_made_to_pause() -> None:
    output, faucet = Output(lambda _: None), Faucet()
    output.connection_made(faucet)
    poured = 0
    while faucet.open and poured < 2 * 1024 * 1024:
        output.data_received(b"x" * 65536)
        poured += 65536
    assert poured == 1024 * 1024
    await faucet.opened.wait()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON)
def test_whatever_is_kept_can_be_stored(value: Any) -> None:
    plain = plain_json(value)
    assert plain_json(plain) == plain
    text = repr(plain)
    assert "\\x00" not in text.replace("\\\\", "")
    kept, why_not = kept_json(value)
    assert why_not is None or kept is None


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x", {1: 2}, {"a": {("t",): 1}}, [10**5000], print])
def test_what_is_not_json_is_dropped_with_a_reason(value: Any) -> None:
    kept, why_not = kept_json(value)
    assert kept is None
    assert why_not


def test_a_circle_is_dropped_with_a_reason() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert kept_json(circle) == (None, "nested deeper than 64 levels")


def test_tuples_become_lists() -> None:
    assert kept_json({"a": (1, 2)}) == ({"a": [1, 2]}, None)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"{'a': 1}", b"[" * 2000])
def test_it_refuses_what_is_not_json(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(data)


def test_texts_are_cut_at_the_useful_end() -> None:
    assert cut_text("abcdef", 4) == "abc…"
    assert cut_stack("a" * 20_000 + "the error").endswith("the error")
    assert len(cut_stack("a" * 20_000)) == 16_000


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (7, 7), (7.0, 7), (2**31 - 1, 2**31 - 1), (2**31, None), (-1, None)]
)
def test_counts_fit_a_column(value: Any, count: int | None) -> None:
    assert as_count(value) == count
