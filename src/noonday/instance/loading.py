"""Loading what a process consists of: much is made then that stays for as long as the process lives."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType

__all__ = ["all_is_loaded", "loaded", "new_loop", "share_one_heap"]

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


def loaded(name: str) -> ModuleType:
    """The module, without a search for garbage meanwhile: there is none, and it takes a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if was_on:
            gc.enable()


def new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - not there on Windows

    return uvloop.new_event_loop()
