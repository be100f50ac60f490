"""Draws what inspection and record give: in a terminal, as a figure, in a page. Never computes attention itself."""

from regard.see.picture import Picture
from regard.see.terminal import heatmap

__all__ = ["Picture", "heatmap"]
