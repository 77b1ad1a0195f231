"""A module that cannot be imported."""

import noonday_has_no_such_module  # type: ignore[import-not-found]  # noqa: F401 - that is its point
