"""`noonday token`: a token for a person or a service, signed with the scheduler's own secret."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from noonday.api.door.tokens import signed
from noonday.cli import output
from noonday.cli.desk import user
from noonday.cli.flags import Json
from noonday.cli.keys import ROLES, a_name
from noonday.cli.values import duration
from noonday.cli.words import one_of
from noonday.clock import SystemClock
from noonday.domain.access import Caller, Role
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.settings import load

__all__ = ["token"]

_LONGEST: Final = timedelta(days=366)


def token(
    *,
    role: str = Role.VIEWER.value,
    name: str | None = None,
    service: str | None = None,
    expires: str = "1h",
    json: Json = False,
) -> None:
    """Sign a token with JWT_SECRET and print it. A token cannot be revoked: let it end soon.

    Parameters
    ----------
    role:
        viewer, operator, admin or service [viewer].
    name:
        Who holds it, as it is to appear in the audit [the service, or the user of this terminal].
    service:
        With the role service: whose jobs it may register, run and read.
    expires:
        After how long it ends [1h].
    """
    settings = load()
    if settings.jwt_secret is None:
        raise Invalid(Problem("JWT_SECRET", "is not set: tokens are signed with it"))
    wanted = Role(one_of("--role", role, ROLES))
    if (wanted is Role.SERVICE) != bool(service):
        raise invalid("--service", service, "goes with the role service, and only with that")
    lifetime = duration("--expires", expires)
    if not timedelta() < lifetime <= _LONGEST:
        raise invalid("--expires", expires, f"must lie between 1s and {_LONGEST.days}d")
    holder = a_name("--name", name or service or user())
    now = SystemClock().now()
    caller = Caller(name=holder, role=wanted, service=service)
    text = signed(settings.jwt_secret.get_secret_value(), caller, settings.token_rules, now, lifetime)
    ends = output.time(now + lifetime)
    output.say(f"a token with the role {wanted} for {holder}, good until {ends}")
    if json:
        shown = {"token": text, "name": holder, "role": wanted.value, "service": service}
        output.data(shown | {"expires_at": (now + lifetime).isoformat()})
    else:
        print(text)
