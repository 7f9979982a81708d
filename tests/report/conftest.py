"""A small network's report data: a convolution, a dense layer, a softmax."""

from __future__ import annotations

import pytest

from xnncc.ir.plan import BufferLife, MemoryPlan, OpRecord, Region, TensorInfo
from xnncc.report import FileSize, ReportData


def _weights(offset: int, size: int) -> Region:
    return Region("weights", offset, size)


def _arena(offset: int, size: int, *shape: int, layout: str = "plain") -> Region:
    return Region("arena", offset, size, shape=shape, layout=layout)


@pytest.fixture
def data() -> ReportData:
    """See above; two operators share 64 bytes of weights."""
    ops = (
        OpRecord(
            0, "conv_relu", "conv2d_direct", "analytic 2x14", ("net/conv", "net/relu"), 73_728,
            (Region("input", 0, 768), _weights(0, 432), _weights(448, 64)),
            (_arena(0, 1024, 1, 4, 8, 8, layout="NCHW8c"),), (_arena(1024, 128),),
        ),
        OpRecord(
            1, "dense", "gemv_blocks", "analytic", ("net/fc",), 2_560,
            (_arena(0, 1024), _weights(512, 10_240), _weights(448, 64)), (_arena(1152, 64, 1, 10),),
        ),
        OpRecord(
            2, "softmax", "rowwise", "fallback: one row", ("net/prob",), 0,
            (_arena(1152, 64),), (Region("output", 0, 40, shape=(1, 10)),),
        ),
    )  # fmt: skip
    buffers = (
        BufferLife("net/relu", 0, 1024, 0, 1),
        BufferLife("scratch of conv_relu", 1024, 128, 0, 0, "scratch"),
        BufferLife("net/fc", 1152, 64, 1, 2),
    )
    return ReportData(
        name="small <net>",
        target="android-arm64",
        target_summary="Android phones",
        source_file="small.onnx",
        source_sha256="ab" * 32,
        tools={"xnncc": "0.1.0", "tvm": "0.27.0.post1"},
        inputs=(TensorInfo("data", (1, 3, 8, 8), "float32"),),
        outputs=(TensorInfo("prob", (1, 10), "float32"),),
        ops=ops,
        memory=MemoryPlan(1216, 0, 10_752, 1152, buffers),
        files=(
            FileSize("libsmall.so", 20_480, "library"),
            FileSize("small.xnn", 11_000, "package"),
            FileSize("small.h", 900, "header"),
        ),
        warnings=("weight 'fc' holds NaN & more",),
        facts={"import check, max relative error": 3e-7},
    )
