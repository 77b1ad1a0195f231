"""What the settings say about new jobs, the same for the CLI as behind the API."""

from __future__ import annotations

from noonday import targets
from noonday.api.schemas import JobDefaults
from noonday.domain.job import Job, MisfirePolicy, OverlapPolicy
from noonday.settings import Settings

__all__ = ["defaults", "vet"]


def defaults(settings: Settings) -> JobDefaults:
    return JobDefaults(
        timeout=settings.job_timeout,
        misfire=MisfirePolicy(grace=settings.job_misfire_grace, coalesce=settings.job_coalesce),
        overlapping=OverlapPolicy(max_instances=settings.job_max_instances),
    )


def vet(settings: Settings, job: Job) -> None:
    """Refuse a target that may not be called. The names of `targets` are loaded here and not before."""
    policy = targets.NetworkPolicy(
        mode="strict" if settings.network_mode == "strict" else "open",
        allow=settings.network_allow,
        deny=settings.network_deny,
    )
    targets.check_target(job.target, policy)
