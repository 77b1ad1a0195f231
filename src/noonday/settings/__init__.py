"""Settings: the fields there are, the values they take, and where those come from."""

from noonday.settings.fields import Settings, load
from noonday.settings.sources import Source
from noonday.settings.values import is_loopback, parse_duration

__all__ = ["Settings", "Source", "is_loopback", "load", "parse_duration"]
