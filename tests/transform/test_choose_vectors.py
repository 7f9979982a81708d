"""Short vectors where channels leave long ones empty, long ones elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from xnncc.target import Target, load_target
from xnncc.transform.choose_vectors import choose_vectors, network_cycles

SHORT = load_target("linux-x86-64")
LONG = replace(SHORT, machine=replace(SHORT.machine, lanes=16, registers=32, fma_ports=1, load_ports=1), narrower=SHORT)


def _network(channels: int, groups: int = 1) -> tvm.IRModule:
    """Return one 3x3 convolution of ``channels`` channels and a dense layer of as many columns."""
    weights = np.ones((channels, channels // groups, 3, 3), "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, channels, 28, 28), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.conv2d(x, relax.const(weights), padding=1, groups=groups))
            rows = builder.emit(op.reshape(y, (784, channels)))
            y = builder.emit_output(op.matmul(rows, relax.const(np.ones((channels, channels), "float32"))))
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize(("channels", "lanes"), [(24, 8), (8, 8), (32, 16), (256, 16)])
@pytest.mark.parametrize("is_depthwise", [False, True])
def test_channels_decide(channels: int, lanes: int, is_depthwise: bool) -> None:
    mod = _network(channels, channels if is_depthwise else 1)
    assert choose_vectors([mod], LONG).machine.lanes == lanes


def test_a_machine_of_one_width_stays() -> None:
    assert choose_vectors([_network(24)], SHORT) is SHORT


def test_where_long_vectors_are_twice_as_fast_half_empty_ones_are_no_loss() -> None:
    fast: Target = replace(LONG, machine=replace(LONG.machine, fma_ports=2, load_ports=2))
    assert choose_vectors([_network(24)], fast) is fast


def test_all_variants_count() -> None:
    assert choose_vectors([_network(24), _network(256)], LONG) is LONG


def test_empty_lanes_cost() -> None:
    assert network_cycles(_network(24), LONG.machine) > 1.5 * network_cycles(_network(16), LONG.machine)
