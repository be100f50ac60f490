"""The public names: from one query's scores to its weights."""

from regard.core.normalizers import *  # noqa: F403
