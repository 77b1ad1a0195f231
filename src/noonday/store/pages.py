"""A page of a longer list, and the place where the next one goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The last row of a page: its id, and what it was sorted by as text. The row itself may be gone since."""

    order: str
    key: str | None
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    items: tuple[T, ...]
    total: int
    limit: int
    offset: int
    next: Mark | None = None  # None = this is the last page
    least: bool = False  # there may be more than `total`: nobody counted further

    @property
    def bounds(self) -> dict[str, int]:
        """As every list tells them."""
        return {"total": self.total, "limit": self.limit, "offset": self.offset}
