"""From JSON schemas to types of the client: TypedDicts for what is sent, dataclasses for what comes back."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Mapping[str, Any]
Side = Literal["bodies", "answers", "values"]  # values: what is no object, on whichever way
REF = "#/components/schemas/"
WIDTH = 104
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_SHADOWS = frozenset({"str", "int", "float", "bool", "list", "dict", "date", "datetime"})  # used as types


def safe(name: str) -> str:
    """A name that Python lets us use: `from` becomes `from_`."""
    plain = name.replace("-", "_").replace(".", "_")
    return f"{plain}_" if keyword.iskeyword(plain) or plain in _SHADOWS else plain


def class_names(schemas: Json) -> dict[str, str]:
    """Schema -> class: without `Shape` at the end, unless something else has that name already."""
    names = {
        schema: schema if (short := schema.removesuffix("Shape")) in schemas else short for schema in schemas
    }
    if len(set(names.values())) != len(names):
        raise ValueError("two schemas would have the same class")
    return names


def docstring(text: str, indent: str = "    ") -> str:
    """Wrapped, and harmless inside of triple quotes."""
    clean = text.replace("\\", "\\\\").replace('"""', "'''").strip()
    paragraphs = [textwrap.fill(" ".join(part.split()), WIDTH - len(indent)) for part in clean.split("\n\n")]
    whole = "\n\n".join(paragraphs)
    if "\n" in whole:
        whole += "\n"
    elif whole.endswith('"'):
        whole += " "
    return textwrap.indent(f'"""{whole}"""', indent).replace(f"\n{indent}\n", "\n\n")


@dataclass(slots=True)
class Types:
    """Hands out type expressions, and remembers which module asked first for a shape: there it lives."""

    schemas: Json
    module: str = ""
    placed: dict[tuple[Side, str], str] = field(default_factory=dict)
    names: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = class_names(self.schemas)

    def of(self, schema: Json, side: Side) -> str:
        if "$ref" in schema:
            return self._named(schema["$ref"].removeprefix(REF), side)
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return " | ".join(dict.fromkeys(self.of(one, side) for one in several))
        if "const" in schema or "enum" in schema:
            return f"Literal{list(schema.get('enum') or [schema['const']])!r}"
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(self.of({**schema, "type": kind}, side) for kind in kinds)
        return self._plain(schema, side)

    def _plain(self, schema: Json, side: Side) -> str:
        match schema.get("type"):
            case "array":
                return f"list[{self.of(schema.get('items', {}), side)}]"
            case "object":
                more = schema.get("additionalProperties")
                return f"dict[str, {self.of(more, side) if isinstance(more, Mapping) else 'Any'}]"
            case "string" if schema.get("format") in ("date-time", "date"):
                kind = {"date-time": "datetime", "date": "date"}[schema["format"]]
                return kind if side == "answers" else f"str | {kind}"
            case str(kind):
                return _SCALARS[kind]
        return "Any"

    def _named(self, schema: str, side: Side) -> str:
        name = self.names[schema]
        if not is_object(self.schemas[schema]):
            self.placed[("values", name)] = ""
        elif (side, name) not in self.placed:
            self.placed[(side, name)] = self.module
            for inner in _references(self.schemas[schema]):
                self._named(inner, side)
        return name

    def schema_of(self, name: str) -> Json:
        found: Json = next(self.schemas[schema] for schema, own in self.names.items() if own == name)
        return found

    def names_in(self, side: Side, module: str) -> list[str]:
        """Those that live in a module, each followed by what it is made of."""
        own = [name for (where, name), place in self.placed.items() if where == side and place == module]
        done: dict[str, None] = {}

        def add(name: str) -> None:
            if name in own and name not in done:
                done[name] = None
                for inner in sorted(_references(self.schema_of(name))):
                    add(self.names[inner])

        for name in sorted(own):
            add(name)
        return list(done)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(REF)
        for key, value in schema.items():
            if key != "discriminator":
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def is_object(schema: Json) -> bool:
    return "properties" in schema


def alias(types: Types, name: str) -> str:
    """Something that is no object: an enumeration, mostly."""
    return f"{name} = {types.of(types.schema_of(name), 'bodies')}"


def answer_class(types: Types, name: str) -> str:
    schema = types.schema_of(name)
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:"]
    if schema.get("description"):
        lines += [docstring(schema["description"]), ""]
    for wire, inner in schema["properties"].items():
        kind = types.of(inner, "answers")
        if wire not in schema.get("required", ()) and kind != "Any" and "None" not in kind.split(" | "):
            kind += " | None"
        here = safe(wire)
        told = "" if here == wire else f' = field(metadata={{"wire": "{wire}"}})'
        lines.append(f"    {here}: {kind}{told}")
    return "\n".join(lines)


def body_class(types: Types, name: str) -> str:
    schema = types.schema_of(name)
    needed = schema.get("required", ())
    fields = {
        wire: f"Required[{types.of(inner, 'bodies')}]" if wire in needed else types.of(inner, "bodies")
        for wire, inner in schema["properties"].items()
    }
    if any(not wire.isidentifier() or keyword.iskeyword(wire) for wire in fields):
        listed = ", ".join(f'"{wire}": {kind}' for wire, kind in fields.items())
        return f'{name} = TypedDict("{name}", {{{listed}}}, total=False)'
    lines = [f"class {name}(TypedDict, total=False):"]
    if schema.get("description"):
        lines += [docstring(schema["description"]), ""]
    return "\n".join([*lines, *(f"    {wire}: {kind}" for wire, kind in fields.items())])
