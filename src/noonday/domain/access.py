"""Who asks, and what they may do: roles are sets of rights, and every route needs one right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Right(StrEnum):
    READ = "read"  # jobs, history, figures, events
    RUN = "run"  # start what is defined: force-run, retry, triggers by hand
    OPERATE = "operate"  # pause, resume, cancel, enable, reset a breaker
    EDIT = "edit"  # create, change, delete jobs and their triggers
    REGISTER = "register"  # declare a service's own jobs
    MANAGE = "manage"  # drain instances, move engines, rebalance, say where services live
    ACCESS = "access"  # keys and the audit trail


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    SERVICE = "service"  # may register and run its own jobs, and read them


RIGHTS: Final[Mapping[Role, frozenset[Right]]] = {
    Role.VIEWER: frozenset({Right.READ}),
    Role.OPERATOR: frozenset({Right.READ, Right.RUN, Right.OPERATE, Right.EDIT}),
    Role.ADMIN: frozenset(Right),
    Role.SERVICE: frozenset({Right.READ, Right.RUN, Right.REGISTER}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`service` confines a caller with the role service to the jobs of that service."""

    name: str  # for the audit and `triggered_by_user`
    role: Role
    service: str | None = None

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]

    @property
    def confined(self) -> bool:
        return self.role is Role.SERVICE

    def owns(self, service: str | None) -> bool:
        """May it touch a job that belongs to this service? None = to nobody in particular."""
        return not self.confined or (service is not None and service == self.service)


ANYBODY: Final = Caller(name="anonymous", role=Role.ADMIN)  # where the API is open
