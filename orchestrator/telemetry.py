"""OpenTelemetry for those who switch it on: spans and figures of requests, sent by OTLP over HTTP.

The framework measures by itself; here it gets somewhere to send it. Where to, how often and under
which name say the usual variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, …), which the
SDK reads. Off by default, and then nothing of it is loaded.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread
from fastapi.telemetry import TelemetryConfig

from orchestrator.errors import SettingsFault

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

OFF: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What collects spans and figures until they are sent."""

    tracer_provider: "TracerProvider"
    meter_provider: "MeterProvider"

    @property
    def config(self) -> TelemetryConfig:
        """What the framework is told; logs go to standard error and nowhere else."""
        return {
            **OFF,
            "tracing": True,
            "metrics": True,
            "operation_spans": True,
            "tracer_provider": self.tracer_provider,
            "meter_provider": self.meter_provider,
        }

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send what is left at the end of the block."""
        try:
            yield
        finally:
            await to_thread.run_sync(self.tracer_provider.shutdown)
            await to_thread.run_sync(self.meter_provider.shutdown)


def make_telemetry() -> Telemetry:
    """Make what sends; raises `SettingsFault` where its packages are not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as fault:
        raise SettingsFault(
            f"the setting `telemetry` is on, and {fault.name} is not installed",
            hint="Install it with `pip install 'pocketbuild[telemetry]'`, or switch the setting off.",
        ) from fault
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or "pocketbuild"})
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return Telemetry(tracer_provider, MeterProvider([reader], resource=resource))
