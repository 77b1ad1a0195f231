"""What routes answer, for the document alone: nothing of it is made before somebody asks for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

__all__ = ["Route", "Router", "Shape"]


class Shape(BaseModel):
    """Of an answer, as OpenAPI shows it: no answer passes through it."""

    model_config = ConfigDict(defer_build=True)


class Route(APIRoute):
    """Keeps the shapes that it is given as `responses`; their fields are a good part of making a route."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(path, endpoint, **more)
        self.responses = responses or {}

    def describe(self) -> None:
        """Before the document is made."""
        whole = APIRoute(
            self.path, self.endpoint, name=self.name, methods=self.methods, responses=self.responses
        )
        self.response_fields = whole.response_fields


class Router(APIRouter):
    def __init__(self, *, route_class: type[Route] = Route, **more: Any) -> None:
        super().__init__(route_class=route_class, **more)
