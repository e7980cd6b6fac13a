"""OpenTelemetry traces, when an endpoint is set. The libraries are an extra: nothing is imported without it."""

from collections.abc import Callable

from starlette.types import ASGIApp

from tidemill import __version__
from tidemill.core.faults import SettingsFault
from tidemill.core.settings.sections.process import TracingSettings


def traced(app: ASGIApp, settings: TracingSettings) -> tuple[ASGIApp, Callable[[], None]]:
    """The application with one span for each request, and a function that sends the last spans at the end."""
    if settings.endpoint is None:
        return app, lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise SettingsFault(
            "tracing.endpoint is set, but OpenTelemetry is not installed: install `tidemill[tracing]`, or unset it."
        ) from error
    resource = Resource.create({"service.name": "tidemill-control", "service.version": __version__})
    provider = TracerProvider(resource=resource, sampler=ParentBased(TraceIdRatioBased(settings.sample)))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.endpoint)))
    middleware = OpenTelemetryMiddleware(app, tracer_provider=provider, excluded_urls="healthz,readyz,metrics")
    return middleware, provider.shutdown
