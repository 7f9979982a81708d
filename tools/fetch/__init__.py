"""Trained networks and labelled data out of pinned packages: what (catalogue), how (download), what is made of it."""
