"""The links of a process as metrics, read from what the link server counts when somebody asks."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tidemill.link.server import Links


class LinkMetrics(Collector):
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
