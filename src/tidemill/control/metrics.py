"""All metrics of a control process. Each process has a registry of its own."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tidemill.control.placement.dispatch_metrics import DispatchMetrics
from tidemill.link.held.server import Links
from tidemill.serving.http_door import HttpDoor
from tidemill.serving.request_entry import BodyMemory

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Names start with `tidemill_`; suffixes carry units."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.http_requests = Histogram(
            "tidemill_http_request_seconds",
            "Time to answer, by route template and status.",
            ["method", "route", "status"],
            buckets=_FAST,
            registry=registry,
        )
        self.ticks = Histogram(
            "tidemill_loop_tick_seconds",
            "Time of one tick, by loop and outcome (done, failed).",
            ["loop", "outcome"],
            buckets=_FAST,
            registry=registry,
        )
        self.applied = Counter(
            "tidemill_loop_applied", "Items that a loop's ticks have changed.", ["loop"], registry=registry
        )
        self.loop_stopped = Gauge(
            "tidemill_loop_held", "1 while a loop waits for a switch or for the clock.", ["loop"], registry=registry
        )
        self.clock_difference = Gauge(
            "tidemill_clock_difference_seconds", "Database time minus ours at the last sample.", registry=registry
        )
        self.clock_trusted = Gauge(
            "tidemill_clock_trusted", "0 while the database's clock is in doubt.", registry=registry
        )
        self.connections_used = Gauge(
            "tidemill_database_connections_used", "Database connections in use.", registry=registry
        )
        self.event_readers = Gauge("tidemill_event_readers", "Open event streams.", registry=registry)
        self.mail_letters = Counter("tidemill_mail_letters", "Letters tried.", ["outcome"], registry=registry)
        self.mail_waiting = Gauge("tidemill_mail_waiting", "Letters that wait to be sent.", registry=registry)
        self.dispatch = DispatchMetrics(registry)
        Gauge("tidemill_build", "The version that runs.", ["version"], registry=registry).labels(version).set(1)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


class DoorMetrics(Collector):
    """Connections and bodies of the HTTP server, read when they are collected."""

    def __init__(self, door: HttpDoor, memory: BodyMemory) -> None:
        self._door, self._memory = door, memory

    def collect(self) -> Iterator[Metric]:
        door = self._door
        yield GaugeMetricFamily("tidemill_http_connections", "Connections, links aside.", value=door.open)
        yield GaugeMetricFamily(
            "tidemill_http_connections_waiting", "Connections that wait for their callers.", value=door.waiting
        )
        yield CounterMetricFamily(
            "tidemill_http_connections_displaced", "Connections closed to make room.", value=door.displaced
        )
        yield GaugeMetricFamily(
            "tidemill_http_body_bytes", "Memory taken by bodies being received.", value=self._memory.used_bytes
        )


class LinkMetrics(Collector):
    """The links of a process, read from the link server's counters when they are collected."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def collect(self) -> Iterator[Metric]:
        links, counters = self._links, self._links.counters
        yield GaugeMetricFamily("tidemill_links", "Links of nodes that this process holds.", value=links.open)
        yield GaugeMetricFamily(
            "tidemill_links_shaking_hands", "Connections that are not yet links.", value=links.shaking_hands
        )
        yield CounterMetricFamily("tidemill_links_welcomed", "Agents let in.", value=counters.welcomed)
        refused = CounterMetricFamily("tidemill_links_refused", "Agents turned away or cut off.", labels=["code"])
        for code, times in counters.refused.items():
            refused.add_metric([code], times)
        yield refused
        frames = CounterMetricFamily("tidemill_link_frames", "Frames through links.", labels=["direction"])
        frames.add_metric(["in"], counters.frames_in)
        frames.add_metric(["out"], counters.frames_out)
        yield frames
        octets = CounterMetricFamily("tidemill_link_bytes", "Bytes through links.", labels=["direction"])
        octets.add_metric(["in"], counters.bytes_in)
        octets.add_metric(["out"], counters.bytes_out)
        yield octets
