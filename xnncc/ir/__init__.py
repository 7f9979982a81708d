"""Helpers on Relax and the plain dataclasses in which the stages meet. Analysis only."""
