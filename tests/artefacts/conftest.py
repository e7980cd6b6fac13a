"""One S3 server for all tests of a process; each test has a prefix of its own in its bucket."""

from collections.abc import Iterator

import pytest

from tests.worlds.artefacts.s3_server import s3_server


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as endpoint:
        yield endpoint
