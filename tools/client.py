"""Writes the generated part of the client anew, from docs/openapi.json: bodies, answers and operations."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from tools.client_operations import method, operations
from tools.client_types import Json, Side, Types, alias, answer_class, body_class

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "docs" / "openapi.json"
CLIENT = ROOT / "src" / "noonday" / "client"
FOLDERS = ("answers", "bodies", "operations")
_SIDES: tuple[Side, ...] = ("answers", "bodies")
_MADE = "Made by `make openapi`: change the routes, not this file."
_FROM = {
    "datetime": ("date", "datetime"),
    "dataclasses": ("dataclass", "field"),
    "typing": ("Any", "Literal", "Required", "TypedDict"),
    "collections.abc": ("Callable", "Coroutine"),
    "noonday.client.calling": ("AsyncGroup", "Call", "Group", "address", "operation"),
}


def sources(document: Json) -> dict[str, str]:
    """The files below `client/`, by their path, not yet in house style."""
    types = Types(document["components"]["schemas"])
    made: dict[str, str] = {}
    tags: list[str] = []
    for tag, listed in groupby(operations(document), key=lambda one: one.tag):
        types.module = tag.replace("-", "_")
        tags.append(types.module)
        methods = [method(types, one) for one in listed]
        made[f"operations/{types.module}.py"] = _operations(types, types.module, methods)
    for side in _SIDES:
        made |= {f"{side}/{tag}.py": text for tag in tags if (text := _shapes(types, side, tag))}
        made[f"{side}/__init__.py"] = _package(types, side)
    made["values.py"] = _values(types)
    made["operations/__init__.py"] = _groups(sorted(tags))
    return made


def _operations(types: Types, tag: str, methods: list[str]) -> str:
    name = _camel(tag)
    body = [
        f"class {name}Calls:\n" + "\n\n".join(methods),
        f'class {name}({name}Calls, Group):\n    """{name}, at once."""',
        f'class Async{name}({name}Calls, AsyncGroup):\n    """{name}, to be awaited."""',
    ]
    text = "\n\n\n".join(body)
    return _module(types, f"Operations: {tag}.", text, exported=[f"Async{name}", name])


def _shapes(types: Types, side: Side, tag: str) -> str:
    names = types.names_in(side, tag)
    made = [answer_class(types, name) if side == "answers" else body_class(types, name) for name in names]
    what = "What is sent" if side == "bodies" else "What comes back"
    return _module(types, f"{what}: {tag}.", "\n\n\n".join(made), names) if names else ""


def _values(types: Types) -> str:
    names = sorted(name for side, name in types.placed if side == "values")
    return _module(
        types, "Words that stand for one of several.", "\n".join(alias(types, n) for n in names), names
    )


def _module(types: Types, words: str, text: str, exported: list[str]) -> str:
    """The head of a module: its docstring and the imports that its text needs."""
    bare = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    # Names of fields and arguments are no names of types.
    used = set(re.findall(r"\w+", re.sub(r'"[^"]*"|\b\w+(?=: )', "", bare)))
    lines = [f'"""{words} {_MADE}"""', "", "from __future__ import annotations", ""]
    for module, names in _FROM.items():
        wanted = [name for name in names if name in used and name not in exported]
        if wanted:
            lines.append(f"from {module} import {', '.join(wanted)}")
    for (side, name), place in sorted(types.placed.items()):
        if name in used and name not in exported and _belongs(side, text):
            lines.append(f"from noonday.client.{side}{place and '.'}{place} import {name}")
    lines += ["", f"__all__ = {sorted(exported, key=_order)!r}", ""]
    return "\n".join([*lines, text]) + "\n"


def _belongs(side: Side, text: str) -> bool:
    """Bodies know bodies, answers know answers; operations know both."""
    if "@operation" in text or side == "values":
        return True
    return (side == "answers") == ("@dataclass" in text)


def _package(types: Types, side: Side) -> str:
    names = {name: place for (where, name), place in types.placed.items() if where == side}
    words = "What may be sent: TypedDicts." if side == "bodies" else "What comes back: frozen dataclasses."
    lines = [f'"""{words} {_MADE}"""', "", "from __future__ import annotations", ""]
    lines += [f"from noonday.client.{side}.{place} import {name}" for name, place in sorted(names.items())]
    return "\n".join([*lines, "", f"__all__ = {sorted(names, key=_order)!r}"]) + "\n"


def _groups(tags: list[str]) -> str:
    lines = [f'"""All operations by their tags. {_MADE}"""', "", "from __future__ import annotations", ""]
    lines += ["from collections.abc import Callable, Coroutine", "from typing import Any", ""]
    lines.append("from noonday.client.calling import Call")
    for tag in tags:
        lines.append(f"from noonday.client.operations.{tag} import Async{_camel(tag)}, {_camel(tag)}")
    lines += ["", '__all__ = ["AsyncOperations", "Operations"]', "", ""]
    for prefix, answer in (("", "Any"), ("Async", "Coroutine[Any, Any, Any]")):
        lines.append(f"class {prefix}Operations:")
        lines.append(f"    def __init__(self, send: Callable[[Call[Any]], {answer}]) -> None:")
        lines += [f"        self.{tag} = {prefix}{_camel(tag)}(send)" for tag in tags] + ["", ""]
    return "\n".join(lines)


def _camel(tag: str) -> str:
    return "".join(word.capitalize() for word in tag.split("_"))


def _order(name: str) -> tuple[bool, bool, str]:
    return (not name.isupper(), not name[0].isupper(), name)


def main() -> int:
    made = sources(json.loads(SNAPSHOT.read_text(encoding="utf-8")))
    for folder in FOLDERS:
        for stale in (CLIENT / folder).glob("*.py"):
            stale.unlink()
    for path, text in made.items():
        file = CLIENT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    folders = [str(CLIENT / part) for part in (*FOLDERS, "values.py")]
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--quiet", "--fix", "--select", "I", *folders], cwd=ROOT, check=True)
    subprocess.run([*ruff, "format", "--quiet", *folders], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
