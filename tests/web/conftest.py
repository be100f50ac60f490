from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from regard.web.app import make_app
from regard.web.models import Models


@pytest.fixture(scope="session")
def client(models: Models) -> TestClient:
    return TestClient(make_app(models), base_url="http://localhost:8000")
