from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from noonday.ids import first_id, new_id, new_ids
from tests.factories import NOON


def test_ids_are_uuids_that_sort_by_the_time_of_their_making() -> None:
    made = [new_id(NOON), *new_ids(NOON, 50)]
    later = [new_id(NOON + timedelta(milliseconds=1)), *new_ids(NOON + timedelta(milliseconds=1), 50)]
    for one in (*made, *later):
        assert (UUID(one).version, UUID(one).variant, str(UUID(one))) == (7, "specified in RFC 4122", one)
    assert len({*made, *later}) == 102
    assert first_id(NOON) < min(made) <= max(made) < first_id(NOON + timedelta(milliseconds=1)) < min(later)


def test_many_at_once_are_in_their_order_and_use_all_of_their_chance() -> None:
    made = new_ids(NOON, 2000)
    assert made == sorted(set(made))
    drawn = [UUID(one).int & ((1 << 62) - 1) | (UUID(one).int >> 64 & 0xFFF) << 62 for one in made]
    for bit in range(74):
        assert 700 < sum(one >> bit & 1 for one in drawn) < 1300
    assert new_ids(NOON, 0) == []
