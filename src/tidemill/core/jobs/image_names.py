"""Names of images in registries: the registry of a name, and its full form, whatever a customer left out. Pure.

An engine fetches from whatever host a name says, inside the network of a machine's owner, and reports the result. So
only public registries may be named: with any other host a customer could explore that network.
"""

import re

_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST = r"[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]{1,5})?"
REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT}){{0,7}})"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?P<digest>@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
NAME_MAX = 400

HUB, _HUBS_OWN = "docker.io", "library"
PUBLIC = (HUB, "gcr.io", "ghcr.io", "mcr.microsoft.com", "nvcr.io", "public.ecr.aws", "quay.io", "registry.gitlab.com")
"""Registries that anybody may fetch from."""


def full_name(reference: str) -> str:
    """The name with its registry and its tag or digest. Without a tag an engine fetches every image of that name."""
    match = REFERENCE.fullmatch(reference)
    assert match, "who asks has looked whether it is a name"
    host, path = registry(reference), match["path"]
    if match["host"] and host != match["host"]:
        path = f"{match['host']}/{path}"
    if host == HUB and "/" not in path:
        path = f"{_HUBS_OWN}/{path}"
    return f"{host}/{path}{match['tag'] or ('' if match['digest'] else ':latest')}{match['digest'] or ''}"


def registry(reference: str) -> str:
    """The host that an image would be fetched from. Docker's rule: a first part without a dot or a port is no host."""
    first, slash, _ = reference.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else HUB


def is_public(reference: str) -> bool:
    return registry(reference) in PUBLIC
