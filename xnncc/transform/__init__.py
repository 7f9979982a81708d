"""Passes on the graph that keep its numbers: prepare, layouts, legalise, fuse. ``pipeline.py`` is their order."""
