"""Where everything in a picture stands: layers along the flow of data, boxes in boxes, lines between them.

Nothing here knows a program or a format: rectangles with members and lines go in, coordinates come out. Linear but for
sorting, and without recursion.
"""

from synmod.view.layout.boxes import Box, Layout, Measure, arranged
from synmod.view.layout.labels import Label, labelled
from synmod.view.layout.routes import Line
from synmod.view.layout.sizes import Rectangle

__all__ = ["Box", "Label", "Layout", "Line", "Measure", "Rectangle", "arranged", "labelled"]
