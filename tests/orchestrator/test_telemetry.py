"""OpenTelemetry: off by default, and to the place that the usual variables name once it is on."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI, Request, Response
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from orchestrator.serving import serving
from tests.orchestrator.conftest import Start

pytestmark = pytest.mark.anyio
BARE = """
import sys
from pathlib import Path
for name in ("opentelemetry.sdk", "opentelemetry.exporter"):
    sys.modules[name] = None
from orchestrator.app import create_app
from orchestrator.engine.bridges import open_phone
from orchestrator.errors import SettingsFault
from orchestrator.settings import load_settings
data = Path(sys.argv[1])
create_app(load_settings(data_dir=data).settings, open_phone)
try:
    create_app(load_settings(data_dir=data, telemetry=True).settings, open_phone)
except SettingsFault as fault:
    print(fault, fault.hint)
"""


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, dict[str, list[bytes]]]]:
    got: dict[str, list[bytes]] = {"traces": [], "metrics": []}
    app = FastAPI()

    @app.post("/v1/{signal}")
    async def take(signal: str, request: Request) -> Response:
        got[signal].append(await request.body())
        return Response(media_type="application/x-protobuf")

    async with serving(app, "127.0.0.1", 0) as url:
        yield url, got


@pytest.mark.parametrize("is_on", [True, False])
async def test_requests_are_told_to_a_collector_where_that_is_switched_on(
    start: Start, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    async with collector() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        async with start(telemetry=is_on) as running:
            assert (await running.http.get("/v1/builds/none")).status_code == 404
    traces = [ExportTraceServiceRequest.FromString(body) for body in got["traces"]]
    spans = {
        span.name
        for trace in traces
        for resource in trace.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    metrics = [ExportMetricsServiceRequest.FromString(body) for body in got["metrics"]]
    names = {
        metric.name
        for request in metrics
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert ("GET /v1/builds/{build_id}" in spans) == is_on, spans
    assert ("http.server.request.duration" in names) == is_on, names
    assert bool(got["traces"] or got["metrics"]) == is_on
    if is_on:
        attributes = {
            each.key: each.value.string_value for each in traces[0].resource_spans[0].resource.attributes
        }
        assert attributes["service.name"] == "pocketbuild"


def test_a_service_without_the_packages_says_what_to_install(tmp_path: Path) -> None:
    program = [sys.executable, "-c", BARE, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert "pocketbuild[telemetry]" in done.stdout
