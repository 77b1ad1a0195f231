"""The way in for people and scripts at a terminal."""

from noonday.cli.app import main

__all__ = ["main"]
