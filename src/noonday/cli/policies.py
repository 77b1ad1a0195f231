"""What the settings say about new jobs, the same for the CLI as behind the API."""

from __future__ import annotations

from noonday import targets
from noonday.domain.job import Job
from noonday.instance.policies import defaults, networks
from noonday.settings import Settings

__all__ = ["defaults", "vet", "vet_url"]


def vet(settings: Settings, job: Job) -> None:
    """Refuse a target that may not be called. The names of `targets` are loaded here and not before."""
    targets.check_target(job.target, networks(settings))


def vet_url(settings: Settings, url: str) -> None:
    """Refuse an address that may not be called."""
    targets.check_url(url, networks(settings))
