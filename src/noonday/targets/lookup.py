"""From a task's name, or the path of a function, to the function; an unknown one is parked, never failed."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from functools import reduce
from typing import Any

from noonday.domain.outcome import Failed, Parked
from noonday.targets.results import raised
from noonday.targets.tasks import Task, TaskRegistry, make_task


async def find_task(name: str, registry: TaskRegistry, modules: tuple[str, ...]) -> Task | Parked | Failed:
    """Modules are imported off the loop: they may take their time."""
    task = registry.get(name)
    if task is not None:
        return task
    refusal = _refusal(name, registry, modules)
    if refusal:
        return Parked(detail=refusal)
    if name.partition(":")[0] in sys.modules:
        return _load(name, registry, modules)
    return await asyncio.to_thread(_load, name, registry, modules)


def knows_task(name: str, registry: TaskRegistry, modules: tuple[str, ...]) -> bool:
    """Is it worth trying? Says yes to a path whose module is there, without importing it."""
    if name in registry:
        return True
    if _refusal(name, registry, modules):
        return False
    module = name.partition(":")[0]
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def permitted(module: str, modules: tuple[str, ...]) -> bool:
    return any(allowed in ("*", module) or module.startswith(f"{allowed}.") for allowed in modules)


def _refusal(name: str, registry: TaskRegistry, modules: tuple[str, ...]) -> str | None:
    module, colon, function = name.partition(":")
    if not (colon and module and function):
        known = ", ".join(registry.names()[:10]) or "none"
        return f"no worker here knows the task {name[:200]!r}; known: {known}"
    parts = [*module.split("."), *function.split(".")]
    if not all(part.isidentifier() for part in parts):
        return f"{name[:200]!r} is not a path such as package.module:function"
    if not permitted(module, modules):
        return f"functions of {module} may not be called by path here: allow the module, or register a task"
    return None


def _load(path: str, registry: TaskRegistry, modules: tuple[str, ...]) -> Task | Parked | Failed:
    module, _, qualname = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as exc:
        if exc.name is not None and (module == exc.name or module.startswith(f"{exc.name}.")):
            return Parked(detail=f"no worker here has the module {module}")
        return raised(exc)
    except BaseException as exc:  # a module that calls sys.exit() must not end the scheduler
        return raised(exc)
    try:
        function = reduce(getattr, qualname.split("."), found)
        # `allowed.module:os.system` names a function of another module, whatever the way to it
        if not permitted(getattr(function, "__module__", None) or "", modules):
            return Parked(detail=f"{path} is a function of a module that is not allowed")
        return registry.by_path(path) or make_task(function, path)
    except (AttributeError, ValueError) as exc:
        return Parked(detail=f"{path} cannot be called: {exc}")
