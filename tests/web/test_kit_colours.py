"""The colours of states: readable on every ground, and told apart by those who see no green."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations
from typing import Final

import pytest

from noonday.web.words import STATES
from tests.web import colours

_THEMES: Final = ("light", "dark")
_LOOKS: Final = sorted({look for look, _ in STATES.values()})
_APART: Final = 10.0
_CONTRAST: Final = 4.5  # WCAG AA for text


def palette(theme: str) -> dict[str, str]:
    style = (files("noonday.web") / "static" / "kit.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", style)
    return {name: both[_THEMES.index(theme)] for name, *both in pairs}


@pytest.mark.parametrize("theme", _THEMES)
def test_no_two_states_look_alike_without_green(theme: str) -> None:
    seen = {
        look: colours.lab_of(colours.without_green(colours.light_of(palette(theme)[look]))) for look in _LOOKS
    }
    near = {
        f"{one} and {other}": round(distance, 1)
        for one, other in combinations(_LOOKS, 2)
        if (distance := colours.apart(seen[one], seen[other])) < _APART
    }
    assert near == {}


@pytest.mark.parametrize("theme", _THEMES)
def test_words_in_the_colour_of_a_state_can_be_read(theme: str) -> None:
    known = {name: colours.light_of(text) for name, text in palette(theme).items()}
    weak = {
        f"{look} on {ground}": round(found, 2)
        for look in (*_LOOKS, "faint", "text", "accent")
        for ground in ("ground", "raised", "hover", "chosen", "row")
        if (found := colours.contrast(known[look], known[ground])) < _CONTRAST
    }
    assert weak == {}


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [  # from the test data of Sharma, Wu and Dalal
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_distances_are_those_of_the_standard(one: colours.Lab, other: colours.Lab, distance: float) -> None:
    assert colours.apart(one, other) == pytest.approx(distance, abs=1e-4)
