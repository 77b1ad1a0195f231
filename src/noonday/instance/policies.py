"""What the settings say about jobs and their database, the same behind the API and for the CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonday import targets
from noonday.domain.job import MisfirePolicy, OverlapPolicy
from noonday.settings import Settings
from noonday.store.engines import StoreOptions

if TYPE_CHECKING:
    from noonday.api.schemas import JobDefaults

__all__ = ["defaults", "networks", "store_options"]


def defaults(settings: Settings) -> JobDefaults:
    from noonday.api.schemas import JobDefaults  # noqa: PLC0415 - 6 MB that a worker does not need

    return JobDefaults(
        timeout=settings.job_timeout,
        misfire=MisfirePolicy(grace=settings.job_misfire_grace, coalesce=settings.job_coalesce),
        overlapping=OverlapPolicy(max_instances=settings.job_max_instances),
    )


def networks(settings: Settings) -> targets.NetworkPolicy:
    """Which hosts may be called. The names of `targets` are loaded here and not before."""
    return targets.NetworkPolicy(
        mode=settings.network_mode, allow=settings.network_allow, deny=settings.network_deny
    )


def store_options(settings: Settings) -> StoreOptions:
    return StoreOptions(transaction_pooling=settings.database_pooled)
