"""Draws what inspection and record give: in a terminal, as a figure, in a page. Never computes attention itself."""

from regard.see.figure import figure, save
from regard.see.page import page, save_page
from regard.see.picture import Picture
from regard.see.terminal import heatmap

__all__ = ["Picture", "figure", "heatmap", "page", "save", "save_page"]
