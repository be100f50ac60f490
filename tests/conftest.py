"""What all tests share: a browser, and profiles of hypothesis (`make test` runs `default`, `make fuzz` runs `fuzz`)."""

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.chromium import axe, browser, visit

__all__ = ["axe", "browser", "visit"]  # one browser for all tests of a process

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=250, deadline=None, derandomize=True, suppress_health_check=_quiet)
settings.register_profile("fuzz", max_examples=2500, deadline=None, suppress_health_check=_quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small model of every task, as a server has them: trained once in each process, in a few seconds."""
    from tests.web.small import make_models

    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def _repeatable() -> None:
    torch.manual_seed(0)
