from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from regard.web.app import make_app
from regard.web.models import Models
from tests.web.small import make_models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def client(models: Models) -> TestClient:
    return TestClient(make_app(models), base_url="http://localhost:8000")
