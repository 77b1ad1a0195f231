"""Colours as people see them: how far apart two are (CIEDE2000), also without green cones (deuteranopia)."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from typing import Final

Rgb = tuple[float, float, float]  # linear light, 0..1
Lab = tuple[float, float, float]
_Rows = tuple[Rgb, Rgb, Rgb]

# Machado, Oliveira and Fernandes 2009, severity 1
_DEUTERANOPIA: Final[_Rows] = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
_XYZ: Final[_Rows] = (  # of linear sRGB, over the white of D65
    (0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883),
)
_FAR: Final = 25.0**7


def light_of(text: str) -> Rgb:
    """Of `#rrggbb`."""
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return _linear(red), _linear(green), _linear(blue)


def without_green(light: Rgb) -> Rgb:
    red, green, blue = _times(_DEUTERANOPIA, light)
    return _within(red), _within(green), _within(blue)


def contrast(one: Rgb, other: Rgb) -> float:
    """As WCAG counts it: 1 to 21."""
    low, high = sorted(_times(_XYZ, light)[1] for light in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab_of(light: Rgb) -> Lab:
    x, y, z = (_root(value) for value in _times(_XYZ, light))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: Lab, other: Lab) -> float:
    """CIEDE2000; about 1 can just be told apart, side by side."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma = ((hypot(a1, b1) + hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * sqrt(chroma / (chroma + _FAR))
    c1, c2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    h1, h2 = (degrees(atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    lightness, mean_c, mean_h = (l1 + l2) / 2, (c1 + c2) / 2, h1 + turn / 2
    weight = (
        1
        - 0.17 * cos(radians(mean_h - 30))
        + 0.24 * cos(radians(2 * mean_h))
        + 0.32 * cos(radians(3 * mean_h + 6))
        - 0.20 * cos(radians(4 * mean_h - 63))
    )
    by_l = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / sqrt(20 + (lightness - 50) ** 2))
    by_c = (c2 - c1) / (1 + 0.045 * mean_c)
    by_h = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * mean_c * weight)
    blue = exp(-((((mean_h % 360) - 275) / 25) ** 2))
    bend = -2 * sqrt(mean_c**7 / (mean_c**7 + _FAR)) * sin(radians(60 * blue))
    return sqrt(by_l**2 + by_c**2 + by_h**2 + bend * by_c * by_h)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def _times(rows: _Rows, light: Rgb) -> Rgb:
    first, second, third = (sum(a * b for a, b in zip(row, light, strict=True)) for row in rows)
    return first, second, third


def _within(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _root(value: float) -> float:
    return float(value ** (1 / 3)) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116
