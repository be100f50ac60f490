"""The public names: s(q, k), and what may be added to it."""

from regard.core.biases import *  # noqa: F403
from regard.core.scores import *  # noqa: F403
