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
    if settings.s3_endpoint is not None:
        return S3Store(_address(settings), settings.threads)
    return LocalStore(settings.place or home / "artefacts", settings.threads, settings.keep_free_bytes)


def _address(settings: ArtefactsSettings) -> BucketAddress:
    assert settings.s3_endpoint is not None
    assert settings.s3_bucket is not None
    assert settings.s3_access_key is not None
    assert settings.s3_secret_key is not None, "settings are checked before they are used"
    credentials = S3Credentials(settings.s3_access_key, settings.s3_secret_key, settings.s3_region)
    return BucketAddress(settings.s3_endpoint, settings.s3_bucket, settings.s3_prefix, credentials)
