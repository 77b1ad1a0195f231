"""Names of schemas that people can read: FastAPI tells two models of one name apart by their modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["renamed"]

Json = dict[str, Any]
_REF = "#/components/schemas/"
_WAYS = ("-Input", "-Output")


def renamed(document: Json) -> Json:
    """`noonday__api__spreading__Shape` becomes SpreadingShape, a lone `Job-Output` plain Job."""
    schemas = document.get("components", {}).get("schemas", {})
    names = {name: _short(name, schemas) for name in schemas}
    if len(set(names.values())) < len(names):
        raise ValueError(f"two schemas would have one name: {sorted(names.values())}")
    made: Json = _walk(document, {f"{_REF}{old}": f"{_REF}{new}" for old, new in names.items()})
    if schemas:
        made["components"]["schemas"] = {
            names[old]: schema for old, schema in made["components"]["schemas"].items()
        }
    return made


def _short(name: str, schemas: Mapping[str, Any]) -> str:
    for way in _WAYS:
        if name.endswith(way):
            plain = name.removesuffix(way)
            alone = not any(plain + other in schemas for other in ("", *_WAYS) if other != way)
            return _short(plain, schemas) if alone else _short(plain, schemas) + way[1:]
    *_, module, own = ("", *name.split("__"))
    return "".join(word.capitalize() for word in module.split("_")) + own


def _walk(node: Any, references: Mapping[str, str]) -> Any:
    """A copy in which every reference has its new name, in discriminators too."""
    if isinstance(node, dict):
        return {key: _walk(value, references) for key, value in node.items()}
    if isinstance(node, list):
        return [_walk(value, references) for value in node]
    return references.get(node, node) if isinstance(node, str) else node
