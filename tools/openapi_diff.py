"""What has changed between two OpenAPI documents, and which of it breaks those who call the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
METHODS = ("get", "put", "post", "delete", "patch")


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    where: str
    what: str
    breaking: bool = True

    def __str__(self) -> str:
        return f"{'BREAKING ' if self.breaking else ''}{self.where}: {self.what}"


def differences(old: Json, new: Json) -> list[Difference]:
    return sorted(set(_operations(old, new)), key=lambda one: (not one.breaking, one))


def may_break(old: Json, new: Json) -> bool:
    """Has the major version grown? Before 1.0 the minor one counts as such, as SemVer has it."""
    return _major(new["info"]["version"]) > _major(old["info"]["version"])


def _major(version: str) -> tuple[int, int]:
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, 0) if major else (0, minor)


def _operations(old: Json, new: Json) -> Iterator[Difference]:
    before, after = _listed(old), _listed(new)
    yield from (Difference(where, "is gone") for where in before.keys() - after.keys())
    yield from (Difference(where, "is new", False) for where in after.keys() - before.keys())
    for where in before.keys() & after.keys():
        yield from _Operation(where, old, new, before[where], after[where]).differences()


def _listed(document: Json) -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": item[method]
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    }


@dataclass(frozen=True, slots=True)
class _Operation:
    where: str
    old_document: Json
    new_document: Json
    old: Json
    new: Json

    def differences(self) -> Iterator[Difference]:
        if self.old["operationId"] != self.new["operationId"]:
            yield Difference(
                self.where, f"is called {self.new['operationId']}, not {self.old['operationId']}"
            )
        if self.old.get("security") == [] and self.new.get("security") != []:
            yield Difference(self.where, "wants a proof of who calls")
        yield from self._parameters()
        yield from self._body()
        yield from self._answers()

    def _schemas(self, where: str, old: Json, new: Json, *, sent: bool) -> Iterator[Difference]:
        return Schemas(self.old_document, self.new_document, sent=sent).compare(where, old, new)

    def _parameters(self) -> Iterator[Difference]:
        before = {(p["in"], p["name"].lower()): p for p in self.old.get("parameters", ())}
        after = {(p["in"], p["name"].lower()): p for p in self.new.get("parameters", ())}
        for place, name in sorted(before.keys() | after.keys()):
            old, new = before.get((place, name)), after.get((place, name))
            where = f"{self.where} {place} {name}"
            if new is None:
                yield Difference(where, "is gone")
            elif old is None:
                needed = new.get("required", False)
                yield Difference(where, "is new and needed" if needed else "is new", needed)
            else:
                if new.get("required") and not old.get("required"):
                    yield Difference(where, "is needed now")
                yield from self._schemas(where, old["schema"], new["schema"], sent=True)

    def _body(self) -> Iterator[Difference]:
        old, new = self.old.get("requestBody"), self.new.get("requestBody")
        where = f"{self.where} body"
        if old is None or new is None:
            if old is not None:
                yield Difference(where, "is gone")
            if new is not None:
                needed = new.get("required", False)
                yield Difference(where, "is new and needed" if needed else "is new", needed)
            return
        if new.get("required") and not old.get("required"):
            yield Difference(where, "is needed now")
        for media, content in old.get("content", {}).items():
            if media not in new.get("content", {}):
                yield Difference(where, f"may not be {media} any more")
            else:
                after = new["content"][media].get("schema", {})
                yield from self._schemas(where, content.get("schema", {}), after, sent=True)

    def _answers(self) -> Iterator[Difference]:
        for status, answer in self.old["responses"].items():
            if int(status) >= 400:
                continue
            where = f"{self.where} {status}"
            if status not in self.new["responses"]:
                yield Difference(where, "is gone")
                continue
            after = self.new["responses"][status].get("content", {})
            for media, content in answer.get("content", {}).items():
                if media not in after:
                    yield Difference(where, f"is not {media} any more")
                else:
                    old, new = content.get("schema", {}), after[media].get("schema", {})
                    yield from self._schemas(where, old, new, sent=False)


@dataclass(frozen=True, slots=True)
class Schemas:
    """Compares shapes. What callers send may only become wider, what they are sent only narrower."""

    old_document: Json
    new_document: Json
    sent: bool
    seen: set[tuple[str, str]] = field(default_factory=set)

    def compare(self, where: str, old: Json, new: Json) -> Iterator[Difference]:
        pair = (str(old.get("$ref", "")), str(new.get("$ref", "")))
        if all(pair) and pair in self.seen:
            return
        self.seen.add(pair)
        before = alternatives(self.old_document, old)
        after = _aligned(before, alternatives(self.new_document, new))
        for kind in sorted(before.keys() | after.keys()):
            if kind in before and kind in after:
                yield from self._same_kind(where, kind, before[kind], after[kind])
            elif not _covered(kind, before if kind in after else after):
                yield self._one_sided(where, kind, gone=kind in before)

    def _one_sided(self, where: str, kind: str, *, gone: bool) -> Difference:
        if gone:
            return Difference(where, f"cannot be {kind} any more", self.sent)
        return Difference(where, f"can be {kind}", not self.sent)

    def _same_kind(self, where: str, kind: str, old: Json, new: Json) -> Iterator[Difference]:
        yield from self._values(where, old, new)
        if self.sent:
            yield from _bounds(where, old, new)
        if kind.startswith("object"):
            yield from self._fields(where, old, new)
        if kind == "array":
            yield from self.compare(f"{where}[]", old.get("items", {}), new.get("items", {}))

    def _values(self, where: str, old: Json, new: Json) -> Iterator[Difference]:
        before, after = old.get("enum"), new.get("enum")
        if self.sent and after is not None:
            lost = "any" if before is None else sorted(set(map(str, before)) - set(map(str, after)))
            if lost:
                yield Difference(where, f"takes fewer values: {lost}")
        if not self.sent and before is not None and after is None:
            yield Difference(where, "can have any value")

    def _fields(self, where: str, old: Json, new: Json) -> Iterator[Difference]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed_before, needed_after = set(old.get("required", ())), set(new.get("required", ()))
        for name in sorted(before.keys() | after.keys()):
            place = f"{where}.{name}"
            if name not in after:
                yield Difference(place, "is gone")
            elif name not in before:
                breaks = self.sent and name in needed_after
                yield Difference(place, "is new and needed" if breaks else "is new", breaks)
            else:
                if self.sent and name in needed_after - needed_before:
                    yield Difference(place, "is needed now")
                if not self.sent and name in needed_before - needed_after:
                    yield Difference(place, "may be missing")
                yield from self.compare(place, before[name], after[name])


_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def _bounds(where: str, old: Json, new: Json) -> Iterator[Difference]:
    for key in (*_LOWER, *_UPPER):
        before, after = old.get(key), new.get(key)
        if after is None or before == after:
            continue
        tighter = before is None or (after > before if key in _LOWER else after < before)
        yield Difference(where, f"{key} is {after}, was {before}", tighter)
    if new.get("pattern") and new.get("pattern") != old.get("pattern"):
        yield Difference(where, f"must match {new['pattern']}")


def alternatives(document: Json, schema: Json) -> dict[str, Json]:
    """What a schema allows, by kind: `string`, `null`, `array`, `object Job`, `object http`."""
    schema = _resolved(document, schema)
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        merged: dict[str, Json] = {}
        for one in several:
            merged |= alternatives(document, one)
        return merged
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    kinds = schema.get("type", "anything")
    if kinds == "object" or (kinds == "anything" and "properties" in schema):
        return {f"object {_tag(schema)}".strip(): schema}
    return dict.fromkeys(kinds if isinstance(kinds, list) else [kinds], schema)


def _tag(schema: Json) -> str:
    return str(schema.get("properties", {}).get("type", {}).get("const", schema.get("title", "")))


def _aligned(before: Mapping[str, Json], after: Mapping[str, Json]) -> dict[str, Json]:
    """A shape that has only got another name is the same shape."""
    gone = [kind for kind in before if kind.startswith("object") and kind not in after]
    new = [kind for kind in after if kind.startswith("object") and kind not in before]
    if len(gone) == len(new) == 1:
        return {gone[0] if kind == new[0] else kind: schema for kind, schema in after.items()}
    return dict(after)


def _covered(kind: str, others: Mapping[str, Json]) -> bool:
    return "anything" in others or (kind == "integer" and "number" in others)


def _resolved(document: Json, node: Json) -> Json:
    while "$ref" in node:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node
