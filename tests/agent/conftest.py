"""Lets the tests of this folder import tests/*.py and the fakes of tests/rack."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "rack")]
