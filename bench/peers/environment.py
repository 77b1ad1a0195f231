"""An environment of their own for the peers, from PyPI, made once and kept in the project's cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WANTED = Path(__file__).parent / "requirements.txt"
CACHE = Path(__file__).parents[2] / ".bench" / "peers"


def is_one(folder: Path) -> bool:
    return Path(python_in(folder)).exists()


def python_in(folder: Path) -> str:
    """The interpreter of an environment."""
    return str(folder / "bin" / "python")


def own_python(folder: Path = CACHE) -> str:
    """The interpreter of ours; made anew when what is wanted has changed."""
    stamp = folder / "stamp"
    wanted = WANTED.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing the peers into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [python_in(folder), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "-r", str(WANTED)], check=True)
        stamp.write_text(wanted)
    return python_in(folder)
