"""Which requests may have a body as large as an artefact: those that bring bytes of an upload, and no others.

Such a body is bounded by the upload's declared length, which its reader enforces, and by the largest artefact.
"""

UPLOADS = "/api/v1/artefacts/uploads"

PACE_BYTES_PER_S = 1024
"""No real upload is slower than this: a slower sender occupies a connection and brings nothing."""


def may_be_large(method: str, path: str) -> bool:
    return (method == "PATCH" and path.startswith(f"{UPLOADS}/")) or (method == "POST" and path == UPLOADS)


def is_of_uploads(path: str) -> bool:
    return path == UPLOADS or path.startswith(f"{UPLOADS}/")
