"""Operations: callbacks. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.callbacks import CallbackAnswer
from noonday.client.bodies.callbacks import HeartbeatCall, ProgressCall, ReportBody, ResultBody, ResultCall
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["AsyncCallbacks", "Callbacks"]


class CallbacksCalls:
    @operation
    def call(
        self, execution: str, body: HeartbeatCall | ProgressCall | ResultCall, *, token: str
    ) -> Call[CallbackAnswer]:
        """Any report, told apart by its type."""
        return Call(
            method="POST",
            path=address("/api/v2/executions/{execution}/callback", execution=execution),
            answers={200: CallbackAnswer},
            body=body,
            headers={"Authorization": f"Bearer {token}"},
        )

    @operation
    def heartbeat(
        self, execution: str, body: ReportBody | None = None, *, token: str
    ) -> Call[CallbackAnswer]:
        """The run is alive."""
        return Call(
            method="POST",
            path=address("/api/v2/executions/{execution}/callback/heartbeat", execution=execution),
            answers={200: CallbackAnswer},
            body=body,
            headers={"Authorization": f"Bearer {token}"},
        )

    @operation
    def progress(self, execution: str, body: ReportBody, *, token: str) -> Call[CallbackAnswer]:
        """The run is alive and has come so far."""
        return Call(
            method="POST",
            path=address("/api/v2/executions/{execution}/callback/progress", execution=execution),
            answers={200: CallbackAnswer},
            body=body,
            headers={"Authorization": f"Bearer {token}"},
        )

    @operation
    def result(self, execution: str, body: ResultBody, *, token: str) -> Call[CallbackAnswer]:
        """The run has ended, well or not."""
        return Call(
            method="POST",
            path=address("/api/v2/executions/{execution}/callback/result", execution=execution),
            answers={200: CallbackAnswer},
            body=body,
            headers={"Authorization": f"Bearer {token}"},
        )


class Callbacks(CallbacksCalls, Group):
    """Callbacks, at once."""


class AsyncCallbacks(CallbacksCalls, AsyncGroup):
    """Callbacks, to be awaited."""
