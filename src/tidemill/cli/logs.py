"""Structured logs on stderr: lines for people on a terminal, JSON elsewhere. Libraries' logs take the same way."""

import logging
import sys
from typing import Any

import structlog

from tidemill.core.settings import LogFormat, LogSettings


def configure_logs(settings: LogSettings) -> None:
    console = settings.format is LogFormat.CONSOLE or (settings.format is LogFormat.AUTO and sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[settings.level.value.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if not console else "%H:%M:%S", utc=not console),
    ]
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=20)
        if console
        else structlog.processors.JSONRenderer()
    )
    tracebacks = [] if console else [structlog.processors.format_exc_info]
    structlog.configure(
        processors=[*shared, *tracebacks, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tracebacks, renderer],
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(formatter)
    logging.basicConfig(handlers=[output], level=max(level, logging.WARNING), force=True)
