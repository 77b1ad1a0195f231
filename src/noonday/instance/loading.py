"""Loading what a process consists of: much is made then that stays for as long as the process lives."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import cast

__all__ = ["all_is_loaded", "loaded", "loaded_beside", "loaded_without", "new_loop", "share_one_heap"]

_SEARCHES = (20_000, 20, 50)  # how many new objects, and how many smaller searches, make one due
_MOST_HEAPS = -8  # M_ARENA_MAX of the C library's mallopt


def share_one_heap() -> None:
    """Otherwise each thread gets a heap of its own, which keeps what it needed once. Few ever meet in one."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_MOST_HEAPS, 1)


def all_is_loaded() -> None:
    """What is there now stays, and no later search for garbage goes through it.

    Runs leave next to none, but thousands of them under way look like garbage to be: with the interpreter's
    own figures a third of the time goes into searches, and a full one stops everything for 0.1 s.
    """
    gc.freeze()
    gc.set_threshold(*_SEARCHES)


def loaded(name: str, *, to_stay: bool = False) -> ModuleType:
    """The module, without a search for garbage meanwhile: there is none, and it takes a sixth of the time.

    With `to_stay`, none afterwards either, which would be a long one: everything is new to it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        module = import_module(name)
        if to_stay:
            all_is_loaded()
        return module
    finally:
        if was_on:
            gc.enable()


def loaded_without(unwanted: str, name: str) -> None:
    """A module that would load another one for no better reason than that it is installed."""
    if unwanted in sys.modules or name in sys.modules:
        return
    sys.modules[unwanted] = cast(ModuleType, None)  # as the import system says it: not to be had
    try:
        import_module(name)
    finally:
        del sys.modules[unwanted]


async def loaded_beside(name: str) -> ModuleType:
    """On a thread, while the loop goes on: what is due meanwhile is a few milliseconds late at most."""
    if name in sys.modules:
        return sys.modules[name]
    return await asyncio.to_thread(loaded, name, to_stay=True)


def new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - not there on Windows

    return uvloop.new_event_loop()
