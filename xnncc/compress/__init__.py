"""Passes that change the numbers: one method a file (``result.Method``), joined by a recipe (``recipe.py``)."""
