"""Figures for Prometheus, read from the database when they are asked for; no build id is a label."""

import time
from collections.abc import Iterator

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.engine.placement import standing
from orchestrator.engine.resources import Stores
from orchestrator.settings import PhoneCare
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store
from orchestrator.store.tables import artifacts, builds, runs

_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"})
_HEALTH = {
    "battery_percent": "Charge of the phone's battery.",
    "is_charging": "Whether the phone's battery fills.",
    "heat_celsius": "Heat of the phone's battery.",
    "thermal_status": "Android's thermal state, 0 (none) to 6 (shutdown).",
    "free_bytes": "Free storage of the phone.",
}
"""What phones tell of their health, by name; a phone has no sample of what it does not tell."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of this process, and a reading of the database at each scrape."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "pocketbuild_http_requests", "Answered requests.", ["method", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "pocketbuild_http_request_seconds", "Time to the head of the answer.", registry=self.registry
        )

    async def scrape(self, stores: Stores, now_s: float) -> bytes:
        """Read the database and give everything in Prometheus' text form."""
        read = await stores.database.read(lambda c: _read(c, stores.settings.care, now_s))
        return generate_latest(self.registry) + generate_latest(read)


class Measured:
    """ASGI middleware that counts answers and the time to their heads."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request through and measure its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requests.labels(method, str(message["status"])).inc()
                self._metrics.request_seconds.observe(time.perf_counter() - began_s)
            await send(message)

        await self._app(scope, receive, send_measured)


def _mean_stage_s(connection: sa.Connection) -> Iterator[tuple[str, float]]:
    latest = sa.select(runs.c.stage_s).where(runs.c.finished_s.is_not(None))
    sums: dict[str, list[float]] = {}
    for (stage_s,) in connection.execute(latest.order_by(runs.c.finished_s.desc()).limit(100)):
        for stage, seconds in stage_s.items():
            sums.setdefault(stage, []).append(seconds)
    for stage, values in sums.items():
        yield stage, sum(values) / len(values)


def _read(connection: sa.Connection, care: PhoneCare, now_s: float) -> CollectorRegistry:
    """Give what the database says now; each scrape has gauges of its own, for several come at once."""
    read = CollectorRegistry()
    count_of = Gauge(
        "pocketbuild_builds", "Builds by state and outcome.", ["state", "outcome"], registry=read
    )
    for (state, outcome), count in build_store.count_by_state(connection).items():
        count_of.labels(state, outcome).set(count)
    phones = Gauge("pocketbuild_phones", "Phones by state.", ["state"], registry=read)
    health = {
        name: Gauge(f"pocketbuild_phone_{name}", what, ["phone"], registry=read)
        for name, what in _HEALTH.items()
    }
    for phone in phone_store.list_all(connection):
        phones.labels(standing(phone, care)).inc()
        for name, value in (phone.health or {}).items():
            if name in _HEALTH and value is not None:
                health[name].labels(phone.address).set(value)
    waits_s = Gauge("pocketbuild_oldest_queued_seconds", "Age of the oldest build that waits.", registry=read)
    oldest = connection.execute(sa.select(sa.func.min(builds.c.created_s)).where(builds.c.state == "queued"))
    since_s = oldest.scalar()
    waits_s.set(0 if since_s is None else now_s - since_s)
    artifact_bytes = Gauge(
        "pocketbuild_artifact_bytes", "Bytes of all artifacts, each content once.", registry=read
    )
    contents = sa.select(artifacts.c.sha256, artifacts.c.size_bytes).distinct().subquery()
    total = connection.execute(sa.select(sa.func.sum(contents.c.size_bytes))).scalar()
    artifact_bytes.set(float(total or 0))
    means_s = Gauge(
        "pocketbuild_stage_seconds_mean",
        "Mean seconds of each stage over the last hundred runs.",
        ["stage"],
        registry=read,
    )
    for stage, mean_s in _mean_stage_s(connection):
        means_s.labels(stage).set(mean_s)
    return read
