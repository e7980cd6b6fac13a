"""TLS, proxies, addresses, an outside database, traces: what surrounds a control process."""

import http.server
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from tests.worlds.places import processes_in
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.store.address import DatabaseUrls
from tidemill.store.embedded import tool


def test_listening_beyond_this_machine_needs_tls_or_a_proxy(place: Path) -> None:
    with pool_in(place) as pool:
        refused = pool.run("up", "--host", "0.0.0.0")
        assert refused.returncode == 3
        assert "tls_certificate" in refused.stderr
        assert "trusted_proxies" in refused.stderr
        assert not (place / "postgres").exists(), "nothing was started"
        half = pool.run("up", "--tls-certificate", str(place / "c.pem"))
        assert half.returncode == 3
        assert "tls_key" in half.stderr


def test_a_pool_with_a_certificate_speaks_tls_only(place: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    chain, key, root = place / "chain.pem", place / "key.pem", place / "root.pem"
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(root)
    with pool_in(place) as pool:
        up = pool.up("--host", "0.0.0.0", "--tls-certificate", str(chain), "--tls-key", str(key))
        up.scheme, up.verify = "https", ssl.create_default_context(cafile=root)
        up.until_ready()
        assert up.get("/healthz").status_code == 200
        settings = {"TIDEMILL_HTTP_TLS_CERTIFICATE": str(chain), "TIDEMILL_HTTP_TLS_KEY": str(key)}
        assert pool.run("status", **settings).returncode == 0
        assert pool.run("status").returncode == 4, "plain HTTP is not answered"
        assert up.end() == 0


def test_a_wrong_certificate_is_told_in_a_sentence(place: Path) -> None:
    (place / "c.pem").write_text("nonsense")
    with pool_in(place) as pool:
        wrong = pool.run("up", "--tls-certificate", str(place / "c.pem"), "--tls-key", str(place / "c.pem"))
        assert wrong.returncode == 5
        assert "c.pem" in wrong.stderr
        assert "Traceback" not in wrong.stderr
        assert processes_in(place) == []


def test_only_named_proxies_are_believed_about_the_caller(place: Path) -> None:
    with pool_in(place, TIDEMILL_LIMITS_STRANGER_PER_MINUTE="2") as pool:
        up = pool.up()
        up.until_ready()
        assert _asked_from(up, ("203.0.113.9", "203.0.113.10", "203.0.113.11")) == [200, 200, 429], "one caller"
        behind = pool.control("--behind-proxy", "127.0.0.1")
        behind.until_ready()
        assert _asked_from(behind, ("203.0.113.9", "203.0.113.10", "203.0.113.11")) == [200, 200, 200], "three callers"


def _asked_from(running: Running, addresses: Sequence[str]) -> list[int]:
    path = "/api/v1/openapi.json"
    return [running.get(path, headers={"X-Forwarded-For": address}).status_code for address in addresses]


def test_metrics_are_for_operators_and_for_the_metrics_token_only(place: Path) -> None:
    with pool_in(place) as pool:
        up = pool.up()
        up.until_ready()
        stranger = up.get("/metrics")
        assert (stranger.status_code, stranger.json()["code"]) == (401, "unauthenticated"), "on this machine, too"
        assert up.get("/metrics", headers=up.operator).status_code == 200
        token = pool.run("admin", "metrics-token").stdout.strip()
        scraper = {"Authorization": f"Bearer {token}"}
        assert "tidemill_http_request_seconds" in up.get("/metrics", headers=scraper).text
        elsewhere = up.get("/api/v1/admin/processes", headers=scraper)
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "scope_missing")
        assert up.post("/api/v1/admin/switches/all/stop", headers=scraper).status_code == 403
        assert (place / "metrics.token").stat().st_mode & 0o777 == 0o600


def test_browsers_are_told_to_use_tls_only_where_it_is_used(place: Path) -> None:
    with pool_in(place) as pool:
        behind = pool.up("--behind-proxy", "127.0.0.1")
        behind.until_ready()
        asked = {"Host": "pool.example", "X-Forwarded-Proto": "https"}
        told = behind.get("/healthz", headers=asked).headers
        assert told["strict-transport-security"] == "max-age=31536000"
        plain = [{"Host": "pool.example"}, {"X-Forwarded-Proto": "https"}]
        assert all("strict-transport-security" not in behind.get("/healthz", headers=how).headers for how in plain)


def test_an_outside_server_serves_several_processes(place: Path, urls: DatabaseUrls) -> None:
    settings = {"TIDEMILL_DATABASE_URL": urls.program, "TIDEMILL_DATABASE_OWNER_URL": urls.owner}
    with pool_in(place, **settings) as pool:
        first, second = pool.up(), pool.up()
        first.until_ready()
        second.until_ready()
        assert not (place / "postgres").exists()
        assert first.kinds().count("process.started") == 2
        assert pool.run("db", "check").returncode == 0
        assert pool.run("db", "backup", str(place / "dump")).returncode == 0
        refused = pool.run("db", "restore", str(place / "dump"), "--yes")
        assert (refused.returncode, "mark-restored" in refused.stderr) == (1, True)
        assert pool.run("db", "mark-restored", "a snapshot").returncode == 0
        until(lambda: "pool.restored" in second.kinds(), "the new generation is told")
        assert urls.program not in pool.run("config", "database_url").stdout


def test_one_role_for_everything_works_but_the_check_says_so(place: Path, empty_urls: DatabaseUrls) -> None:
    with pool_in(place, TIDEMILL_DATABASE_URL=empty_urls.owner) as pool:
        pool.up().until_ready()
        checked = pool.run("db", "check")
        assert checked.returncode == 1
        assert "TIDEMILL_DATABASE_OWNER_URL" in checked.stdout


def test_an_outside_server_that_is_away_is_a_fault_and_then_no_trouble(place: Path) -> None:
    with pool_in(place, TIDEMILL_DATABASE_URL="postgresql://someone:secret@127.0.0.1:1/x") as pool:
        away = pool.run("up")
        assert away.returncode == 5
        assert "cannot be reached" in away.stderr
        assert "secret" not in away.stderr


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A stand-in for an OpenTelemetry collector: it takes OTLP over HTTP and keeps what it is sent."""
    received: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
    finally:
        server.shutdown()
        server.server_close()


def test_traces_reach_a_collector_before_the_process_ends(place: Path) -> None:
    with collector() as (endpoint, received), pool_in(place, TIDEMILL_TRACING_ENDPOINT=endpoint) as pool:
        up = pool.up()
        up.until_ready()
        up.get("/api/v1/admin/switches", headers=up.operator)
        assert up.end() == 0
        assert b"/api/v1/admin/switches" in b"".join(received)
        assert b"tidemill-control" in b"".join(received)


@pytest.mark.parametrize("name", ["psql", "pg_dump", "pg_restore"])
def test_the_tools_of_the_database_are_there(name: str) -> None:
    assert tool(name).is_file()
