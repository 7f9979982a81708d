"""The plain dataclasses in which the stages meet."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from xnncc.ir.plan import DTYPE_BYTES, TensorInfo


@pytest.mark.parametrize("dtype", [d for d in DTYPE_BYTES if d != "bfloat16"])
def test_bytes_are_numpys(dtype: str) -> None:
    assert DTYPE_BYTES[dtype] == np.dtype(dtype).itemsize


@pytest.mark.parametrize(
    ("shape", "dtype", "size"),
    [((1, 3, 4, 5), "float32", 240), ((), "int64", 8), ((7,), "bool", 7), ((2, 0), "int8", 0)],
)
def test_size_of_a_tensor(shape: tuple[int, ...], dtype: str, size: int) -> None:
    assert TensorInfo("x", shape, dtype).size_bytes == size


def test_the_plan_is_read_without_tvm() -> None:
    code = "import sys, xnncc.ir.plan, xnncc.ir.names; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
