"""Profiles of hypothesis: `make test` runs `default`, `make fuzz` runs `fuzz`."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=250, deadline=None, derandomize=True, suppress_health_check=_quiet)
settings.register_profile("fuzz", max_examples=2500, deadline=None, suppress_health_check=_quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _repeatable() -> None:
    torch.manual_seed(0)
