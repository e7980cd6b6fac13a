"""The addresses of a process, by its settings."""

from tidemill.core.settings.tree import Settings


def own_address(settings: Settings) -> str:
    """Where this machine reaches its control process."""
    scheme = "https" if settings.http.tls_certificate else "http"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  # we bind nothing here
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def public_url(settings: Settings) -> str:
    """The address of the pool's pages for everybody else, without a slash at the end."""
    return (settings.mail.public_url or own_address(settings)).rstrip("/")
