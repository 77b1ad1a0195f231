"""What may become of a call that got no whole answer. No text names the URL: it may hold a secret."""

from __future__ import annotations

import ssl


class CallFailed(Exception):
    """No whole answer came."""


class NoConnection(CallFailed):
    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.error = error


class NotTrusted(NoConnection):
    """The certificate was refused."""

    def __init__(self, error: ssl.SSLCertVerificationError) -> None:
        super().__init__(error)
        self.args = (str(error),)


class NoAnswer(CallFailed):
    """The connection was closed, and not a byte had come."""

    def __init__(self) -> None:
        super().__init__("the connection was closed without an answer")


class BrokeOff(CallFailed):
    """The answer began, and did not end."""

    def __init__(self, why: str = "the connection was closed before the end of the answer") -> None:
        super().__init__(why)


class NotHttp(CallFailed):
    """What came cannot be read."""
