"""Structured logs on stderr: lines for people on a terminal, JSON elsewhere. Libraries' logs take the same way."""

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import structlog

from tidemill.core.settings.sections.process import LogFormat, LogSettings
from tidemill.host.standard_error import printable, say

Announce = Callable[..., None]
"""Shows a sentence with fields to the person who started the process; a log line where logs are JSON."""


def configure_logs(settings: LogSettings) -> Announce:
    console = settings.format is LogFormat.CONSOLE or (settings.format is LogFormat.AUTO and sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[settings.level.value.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if console else "iso", utc=not console),
    ]
    last = [_lines_for_people()] if console else [structlog.processors.format_exc_info, _lines_for_programs()]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _configure_libraries(shared, last, max(level, logging.WARNING))
    return _say if console else structlog.get_logger().info


def _lines_for_people() -> Any:
    colors = sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    # A traceback is shown without the values of variables: there may be secrets among them.
    plain = structlog.dev.plain_traceback
    render = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=20, exception_formatter=plain)

    def render_printable(logger: Any, name: str, fields: Any) -> Any:
        printable_fields = {key: printable(value) if isinstance(value, str) else value for key, value in fields.items()}
        return render(logger, name, printable_fields)

    return render_printable


def _lines_for_programs() -> Any:
    encode = json.JSONEncoder(default=repr).encode  # structlog's own renderer makes an encoder for every line

    def render_ordered(_logger: Any, _name: str, fields: Any) -> Any:
        first = {key: fields.pop(key) for key in ("timestamp", "level", "event") if key in fields}
        return encode(first | fields)

    return render_ordered


def _configure_libraries(shared: list[Any], last: list[Any], level: int) -> None:
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    logging.basicConfig(handlers=[output], level=level, force=True)


def _say(sentence: str, **fields: str) -> None:
    width = max(map(len, fields), default=0)
    say("\n".join([sentence, *(f"  {name:<{width}}  {value}" for name, value in fields.items())]))
