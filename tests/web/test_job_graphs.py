"""The picture of dependencies stays readable: many jobs, deep and wide, with long names."""

from __future__ import annotations

import random
import re

from noonday.control.insights import Edge, Neighbour, Neighbourhood
from noonday.domain.job import JobId
from noonday.web import graphs
from tests.factories import a_job


def around(edges: list[tuple[str, str]], names: dict[str, str] | None = None) -> Neighbourhood:
    ids = {one for edge in edges for one in edge}
    given = names or {}
    known = {
        JobId(one): Neighbour(id=JobId(one), name=given.get(one, one), state="scheduled", last_status=None)
        for one in ids
    }
    made = tuple(Edge(JobId(parent), JobId(child), "depends_on") for parent, child in edges)
    return Neighbourhood(job=a_job(id=JobId(edges[0][0])), edges=made, known=known, more=False)


def fleet(size: int) -> list[tuple[str, str]]:
    """Each job waits for some of those before it, near and far."""
    chance = random.Random(3)
    return [
        (f"{parent:02}", f"{child:02}")
        for child in range(1, size)
        for parent in sorted(chance.sample(range(child), min(child, chance.randrange(1, 4))))
    ]


def inside(box: graphs.Box, x: float, y: float) -> bool:
    return box.x < x < box.x + graphs.WIDE and box.y < y < box.y + graphs.TALL


def test_no_two_boxes_touch_and_all_are_in_the_picture() -> None:
    drawn = graphs.picture(around(fleet(40)))
    assert len(drawn.boxes) == 40
    for place, box in enumerate(drawn.boxes):
        assert box.x + graphs.WIDE < drawn.width
        assert box.y + graphs.TALL < drawn.height
        for other in drawn.boxes[place + 1 :]:
            assert abs(box.x - other.x) > graphs.WIDE or abs(box.y - other.y) > graphs.TALL


def test_no_line_runs_through_a_box() -> None:
    drawn = graphs.picture(around(fleet(40)))
    for line in drawn.lines:
        # From column to column a line bends; past a column it is straight, from where it has come to `H`.
        came = re.findall(r"(\d+) (\d+)H(\d+)C", line.path)
        assert came
        for x, y, until in came:
            middle = (int(x) + int(until)) / 2
            assert not any(inside(box, middle, int(y)) for box in drawn.boxes)


def test_who_comes_later_stands_further_right() -> None:
    edges = fleet(40)
    places = {box.name: box.x for box in graphs.picture(around(edges)).boxes}
    assert all(places[parent] < places[child] for parent, child in edges)


def test_few_lines_cross() -> None:
    """Pairs that are named crosswise are drawn side by side."""
    edges = [(f"a{number}", f"b{9 - number}") for number in range(10)]
    drawn = graphs.picture(around(edges))
    rows = {box.name: box.y for box in drawn.boxes}
    assert all(rows[parent] == rows[child] for parent, child in edges)


def test_a_long_name_keeps_its_end() -> None:
    name = "import-of-all-orders-from-the-market-of-berlin"
    (box,) = (one for one in graphs.picture(around([("a", "b")], {"a": name})).boxes if one.name == name)
    assert len(box.short) <= 22
    assert (box.short[:9], box.short[-6:]) == ("import-of", "berlin")
