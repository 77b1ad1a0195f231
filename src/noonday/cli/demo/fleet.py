"""The jobs of the demonstration: those of a small company that collects, imports, sells and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

__all__ = ["AWAY", "CHANGES", "FLEET", "PAUSED", "PAUSED_UNTIL", "SERVICES", "Change", "Member"]

BERLIN, NEW_YORK, TOKYO = "Europe/Berlin", "America/New_York", "Asia/Tokyo"
HIGH, LOW = 1, 3
AWAY: Final = "northwind.localhost"  # where nobody answers
SERVICES: Final[Mapping[str, str]] = {
    "crawler": "Visits sites and keeps their pages",
    "search": "The index, suggestions and synonyms",
    "shop": "Orders, carts and the catalogue",
    "billing": "Usage, invoices and payments",
    "mailer": "Digests and messages to people",
    "partners": "Feeds of those we work with",
}
GREEN, RED, FAINT, PLAIN = "\033[32m", "\033[31m", "\033[2m", "\033[0m"
LINE: Final = f"{FAINT}{{word}} {{part}} of {{count}}{PLAIN} {GREEN}done{PLAIN}"
LAST: Final = f"{GREEN}all {{count}} parts done{PLAIN}"
_SCRIPT: Final = (
    'i=1; while [ "$i" -le {count} ]; do sleep {pause}; '
    'printf "{line}\\n"; i=$((i+1)); done; printf "{last}\\n"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A job as the API takes it, and how its runs usually go."""

    name: str
    body: Mapping[str, Any]
    by: str
    seconds: float  # that a run takes, usually
    fails: float = 0.02  # the share of attempts; half as many runs fail for good
    items: int = 0
    trouble: timedelta | None = None  # it has failed each time since so long ago
    slower: bool = False  # it takes longer week by week
    stuck: float = 0.0  # the share of runs that hang for a long time
    word: str = ""  # for the parts that a program tells of
    error: str = "HTTP 503: upstream is busy, try again later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What somebody changed of a job, some time ago."""

    job: str
    by: str
    ago: timedelta
    body: Mapping[str, Any] = field(default_factory=dict)


def at(service: str, endpoint: str) -> dict[str, Any]:
    return {"target": {"type": "service", "service": service, "endpoint": endpoint}}


def fetch(path: str) -> dict[str, Any]:
    """Of the demonstration's own server, whose address is filled in at the start."""
    return {"target": {"type": "fetch", "url": f"{{base}}{path}"}}


def lines(word: str, count: int, pause: float) -> dict[str, Any]:
    """A program that writes as it goes on."""
    line, last = LINE.format(word=word, part="$i", count=count), LAST.format(count=count)
    script = _SCRIPT.format(count=count, pause=pause, line=line, last=last).replace("\033", "\\033")
    return {"target": {"type": "command", "argv": ["sh", "-c", script]}}


def cron(text: str, zone: str = "UTC") -> dict[str, Any]:
    return {"schedule_type": "cron", "cron_expression": text, "timezone": zone}


def every(count: int, unit: str = "minutes", **more: Any) -> dict[str, Any]:
    return {"schedule_type": "interval", "interval_minutes": count, "interval_type": unit, **more}


def job(name: str, words: str, tags: str, *parts: Mapping[str, Any], by: str, **how: Any) -> Member:
    body: dict[str, Any] = {"name": name, "description": words, "tags": tags.split()}
    for part in parts:
        body |= part
    return Member(name=name, body=body, by=by, **how)


_ON = "on_success_of"
_UPSTREAM: Final = {"schedule_type": "manual"}

# fmt: off
CRAWLS: Final = (
    job("crawl-news", "Front pages of 240 news sites", "crawl news", at("crawler", "/crawl/news"),
        cron("*/15 * * * *"), {"priority": HIGH, "config": {"sites": 240, "depth": 1}},
        by="ada", seconds=42, items=1800, fails=0.03, stuck=0.01),
    job("crawl-products", "Product pages of all shops we compare", "crawl shop", at("crawler",
        "/crawl/products"),
        cron("20 */2 * * *"), {"timeout_seconds": 3600, "config": {"shops": 61, "delay_ms": 250}},
        by="ada", seconds=1500, items=9200, slower=True),
    job("crawl-press", "Press releases while offices are open", "crawl news", at("crawler", "/crawl/press"),
        cron("*/20 8-18 * * 1-5", BERLIN), {"calendar": {"holidays": "DE"}}, by="noor", seconds=25,
        items=140),
    job("crawl-archive", "Deep crawl of old pages, when nobody else needs the line", "crawl nightly",
        at("crawler", "/crawl/archive"), cron("H 1 * * *", BERLIN), {"priority": LOW, "jitter_seconds": 600},
        by="ada", seconds=5400, items=48000, fails=0.06),
    job("check-robots", "What sites allow us", "crawl", at("crawler", "/robots"), every(6, "hours"),
        by="noor", seconds=95, items=300),
    job("feed-weather", "Warnings of the weather services", "feed", fetch("/feeds/weather.xml"), every(10),
        {"priority": HIGH}, by="noor", seconds=0.4, fails=0.02),
    job("feed-events", "What is on in forty cities", "feed", fetch("/feeds/events.json"), every(20),
        by="noor", seconds=1.2),
    job("feed-rates", "Exchange rates, published each working day", "feed billing", fetch("/feeds/rates.xml"),
        cron("15 16 * * 1-5", BERLIN), {"max_retries": 5}, by="ada", seconds=0.8, fails=0.1),
)
SHOP: Final = (
    job("import-orders", "Orders of the marketplaces", "import shop", at("shop", "/orders/import"),
        cron("*/10 * * * *"), {"priority": HIGH, "max_retries": 5, "retry_backoff_seconds": 20},
        by="kofi", seconds=18, items=85, fails=0.04),
    job("import-catalogue", "The whole catalogue of all partners", "import shop nightly",
        at("shop", "/catalogue/import"), cron("30 2 * * *", BERLIN), by="kofi", seconds=2100, items=126000),
    job("import-stock", "Stock levels of the warehouses", "import shop", at("shop", "/stock/import"),
        every(30, after_completion=True), by="kofi", seconds=70, items=4100),
    job("import-northwind", "The feed of a partner that moved without telling us", "import partner",
        {"target": {"type": "fetch", "url": f"http://{AWAY}:9/items.xml"}}, cron("*/20 * * * *"),
        {"max_retries": 2, "retry_backoff_seconds": 30},
        by="kofi", seconds=6, trouble=timedelta(hours=31), items=220,
        error=f"cannot connect to {AWAY}:9"),
    job("check-checkout", "Buys the cheapest thing and sends it back", "watch shop", at("shop",
        "/checkout/probe"),
        cron("*/3 7-21 * * *", BERLIN), {"priority": HIGH, "max_retries": 0, "timeout_seconds": 20},
        by="mei", seconds=2.1, fails=0.015),
    job("reprice", "New prices after each crawl of products", "shop", at("shop", "/reprice"), _UPSTREAM,
        {_ON: ["crawl-products"]}, by="kofi", seconds=160, items=9000),
    job("abandoned-carts", "A friendly word about what was left behind", "mail shop", at("mailer", "/carts"),
        cron("0 10,16 * * *", NEW_YORK), {"calendar": {"holidays": "US"}}, by="mei", seconds=35, items=600),
    job("resize-images", "Thumbnails of what partners upload", "shop event", at("shop", "/images/resize"),
        {"schedule_type": "event", "trigger_webhook": "/uploads/*/image", "overlap": "allow",
        "max_instances": 5},
        by="mei", seconds=3.5, items=4),
)
SEARCH: Final = (
    job("index-news", "New pages into the index", "search", at("search", "/index/news"), _UPSTREAM,
        {_ON: ["crawl-news"]}, by="ada", seconds=21, items=1500),
    job("index-full", "The whole index anew, beside the old one", "search nightly", lines("segment", 180, 3),
        cron("0 3 * * *", BERLIN), {"windows": [{"start": "00:00", "end": "05:30"}], "outside": "move"},
        by="ada", seconds=540, items=180, word="segment", slower=True),
    job("suggestions", "What people search for now", "search", at("search", "/suggestions"),
        cron("5 * * * *"),
        by="ada", seconds=48, items=2500),
    job("synonyms", "Synonyms from the editors' table", "search", at("search", "/synonyms"),
        cron("40 6 * * 1", BERLIN), by="noor", seconds=11, items=840),
    job("train-ranking", "The ranking model, from last week's clicks", "search model",
        lines("epoch", 40, 30), cron("0 22 * * 6"), {"priority": LOW, "timeout_seconds": 14400},
        by="noor", seconds=1200, items=40, word="epoch"),
)
MAILS: Final = (
    job("digest-morning", "The morning's news, before breakfast", "mail digest", at("mailer",
        "/digest/morning"),
        cron("0 7 * * *", BERLIN), {"priority": HIGH, "depends_on": ["index-news"]}, by="mei", seconds=240,
        items=31000),
    job("digest-new-york", "The same for the other side of the ocean", "mail digest", at("mailer",
        "/digest/us"),
        cron("0 7 * * *", NEW_YORK), by="mei", seconds=180, items=22000),
    job("digest-tokyo", "And where the day begins", "mail digest", at("mailer", "/digest/jp"),
        cron("0 7 * * 1-5", TOKYO), {"calendar": {"holidays": "JP"}}, by="mei", seconds=90, items=8000),
    job("digest-weekly", "The week in ten paragraphs", "mail digest", at("mailer", "/digest/week"),
        {"schedule_type": "calendar", "frequency": "weekly", "time_config": {"day": 1, "hour": 8,
        "minute": 0},
         "timezone": BERLIN}, by="mei", seconds=300, items=54000),
    job("bounces", "Addresses that do not exist any more", "mail", at("mailer", "/bounces"), every(2,
        "hours"), {"timezone": BERLIN, "windows": [{"start": "06:00", "end": "22:00"}]},
        by="mei", seconds=14, items=60, fails=0.05),
)
MONEY: Final = (
    job("collect-usage", "What each customer used in the last hour", "billing", at("billing", "/usage"),
        {"schedule_type": "calendar", "frequency": "hourly", "time_config": {"minute": 2}},
        {"priority": HIGH, "catch_up": "all", "coalesce": False}, by="kofi", seconds=33, items=2600),
    job("charge-cards", "Payments that are due today", "billing", at("billing", "/charge"),
        cron("30 6 * * *", BERLIN),
        {"priority": HIGH, "max_retries": 4, "on_lost": "fail"}, by="kofi", seconds=410, items=730,
        fails=0.12),
    job("invoices", "Invoices of the month", "billing", at("billing", "/invoices"),
        {"schedule_type": "calendar", "frequency": "monthly", "time_config": {"day_of_month": 1, "hour": 4},
         "timezone": BERLIN}, by="kofi", seconds=1900, items=5100),
    job("invoice-papers", "Invoices as documents, once they are made", "billing", at("billing", "/papers"),
        _UPSTREAM,
        {_ON: ["invoices"]}, by="kofi", seconds=2500, items=5100),
    job("invoice-mails", "And on their way", "billing mail", at("mailer", "/invoices"), _UPSTREAM,
        {_ON: ["invoice-papers"]}, by="kofi", seconds=800, items=5100),
    job("reminders", "To those who forgot to pay", "billing mail", at("billing", "/reminders"),
        cron("0 9 * * 2,4", BERLIN), {"calendar": {"holidays": "DE-BE"}}, by="kofi", seconds=55, items=190),
    job("revenue-report", "Yesterday in numbers", "report billing", at("billing", "/report"),
        cron("45 5 * * *", BERLIN), {"depends_on": ["collect-usage", "import-orders"]}, by="mei",
        seconds=75, items=1),
)
HOUSE: Final = (
    job("backup", "All databases, to another continent", "house nightly", lines("table", 212, 2),
        cron("15 0 * * *"), {"priority": HIGH, "windows": [{"start": "00:00", "end": "06:00"}]},
        by="ada", seconds=424, items=212, word="table"),
    job("backup-check", "Restores the backup and looks into it", "house nightly", lines("table", 212, 1),
        _UPSTREAM,
        {_ON: ["backup"]}, by="ada", seconds=212, items=212, word="table", fails=0.08,
        error="table invoices: 5,097 rows instead of 5,100"),
    job("purge-sessions", "Sessions that nobody came back to", "house", at("shop", "/sessions/purge"),
        cron("*/30 * * * *"), by="ada", seconds=3.2, items=1100),
    job("rotate-logs", "Yesterday's logs, packed", "house", lines("file", 24, 1), cron("5 0 * * *"),
        by="ada",
        seconds=24, items=24, word="file"),
    job("certificates", "Which certificates end soon", "watch house", at("partners", "/certificates"),
        cron("0 6 * * *"), by="ada", seconds=12, items=43),
    job("disk-space", "How full the disks are", "watch house", {"target": {"type": "command", "argv": ["df",
        "-h"]}},
        every(30), by="ada", seconds=0.1),
    job("legacy-ftp", "The last file that comes by FTP; switched off in spring", "house old", lines("file",
        3, 0.1),
        cron("0 4 * * *"), {"schedule_enabled": False}, by="ada", seconds=9),
    job("rebuild-avatars", "By hand, when the design changes", "house", at("shop", "/avatars"),
        {"schedule_type": "manual"},
        by="mei", seconds=380, items=15000),
)
FLEET: Final = (*CRAWLS, *SHOP, *SEARCH, *MAILS, *MONEY, *HOUSE)

PAUSED: Final = ("train-ranking", "mei")  # a job that somebody paused, and who
PAUSED_UNTIL: Final = ("abandoned-carts", "noor", timedelta(days=2, hours=5))  # and for how long from now
CHANGES: Final = (
    Change(job="crawl-news", by="noor", ago=timedelta(days=19), body={"config": {"sites": 240, "depth": 2}}),
    Change(job="crawl-news", by="ada", ago=timedelta(days=12, hours=3), body={"config": {"sites": 240,
        "depth": 1}}),
    Change(job="import-orders", by="mei", ago=timedelta(days=9), body={"max_retries": 3}),
    Change(job="import-orders", by="kofi", ago=timedelta(days=6, hours=5),
           body={"max_retries": 5, "retry_backoff_seconds": 20}),
    Change(job="index-full", by="ada", ago=timedelta(days=4), body={"timeout_seconds": 7200}),
    Change(job="import-northwind", by="kofi", ago=timedelta(hours=20), body={"retry_backoff_seconds": 45}),
)
# fmt: on
