"""Which storage a process uses, by its settings."""

from pathlib import Path

from tidemill.artefacts.local import LocalStore
from tidemill.artefacts.s3 import S3Store
from tidemill.artefacts.s3_bucket import BucketAddress
from tidemill.artefacts.s3_signing import S3Credentials
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.settings.sections.artefacts import ArtefactsSettings


def open_store(settings: ArtefactsSettings, home: Path) -> ArtefactStore:
    """The storage of this pool. All its processes must have the same settings for it."""
    root = local_root(settings, home)
    if root is None:
        return S3Store(_address(settings), settings.threads)
    return LocalStore(root, settings.threads, settings.keep_free_bytes)


def local_root(settings: ArtefactsSettings, home: Path) -> Path | None:
    """The directory of the artefacts; None if a server keeps them."""
    return None if settings.s3_endpoint is not None else settings.place or home / "artefacts"


def _address(settings: ArtefactsSettings) -> BucketAddress:
    assert settings.s3_endpoint is not None
    assert settings.s3_bucket is not None
    assert settings.s3_access_key is not None
    assert settings.s3_secret_key is not None, "settings are checked before they are used"
    credentials = S3Credentials(settings.s3_access_key, settings.s3_secret_key, settings.s3_region)
    return BucketAddress(settings.s3_endpoint, settings.s3_bucket, settings.s3_prefix, credentials)
