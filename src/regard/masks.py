"""The public names: which pairs exist, combined with `& | ~`."""

from regard.core.masks import *  # noqa: F403
