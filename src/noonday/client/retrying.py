"""Whether a call that brought no answer is worth another try, and when."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ASK_AGAIN", "NO_RETRIES", "Retries"]

ASK_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """`attempts` counts the first one; delays are seconds and double until `longest`."""

    attempts: int = 4
    first: float = 0.25
    longest: float = 10.0

    def after_status(
        self, attempt: int, status: int, retry_after: float | None, chance: float
    ) -> float | None:
        """Seconds until the next try, as the server wishes within bounds; None: the answer stands."""
        if status not in ASK_AGAIN or attempt >= self.attempts:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.longest else None
        return self.delay(attempt, chance)

    def after_silence(self, attempt: int, chance: float, *, repeatable: bool) -> float | None:
        """`repeatable`: it did not arrive, or twice does no more than once."""
        return self.delay(attempt, chance) if repeatable and attempt < self.attempts else None

    def delay(self, attempt: int, chance: float) -> float:
        """Half of it is chance, so that many clients do not come back in step."""
        whole = min(self.first * 2.0 ** min(attempt - 1, 30), self.longest)
        return whole * (0.5 + chance / 2)


NO_RETRIES = Retries(attempts=1)
