"""Tests of the TensorFlow front-end share stored_cases.py and graph_writing.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
