"""Records of a graph: the same module back, names too, and no module out of nonsense."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import tvm
from network_running import module, variable
from tvm import relax, te
from tvm.ir import StringImm
from tvm.relax import op

from xnncc.errors import BadModel, UnsupportedModel
from xnncc.ir.graph_records import module_of, record_module
from xnncc.ir.recurrent import NAME, Activation, Recurrent
from xnncc.pack.plain import decode_plain, encode_plain


def _const(*shape: int, dtype: str = "float32") -> relax.Expr:
    return relax.const(np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape))


def _image(emit: Any, x: relax.Var) -> list[relax.Var]:
    y = emit(op.nn.conv2d(x, _const(8, 4, 3, 3), strides=2, padding=1, groups=1), "conv1")
    y = emit(op.nn.relu(emit(op.add(y, _const(1, 8, 1, 1)), "bias")), "relu/1:0")
    y = emit(op.nn.max_pool2d(y, (2, 2), strides=(2, 2)), "pool")
    z = emit(op.clip(emit(op.permute_dims(y, [0, 2, 3, 1]), "t"), -0.5, 6.0), "clip")
    parts = emit(op.split(z, 2, axis=3), "parts")
    both = emit(op.concat([relax.TupleGetItem(parts, 0), relax.TupleGetItem(parts, 1)], axis=1), "both")
    cut = emit(op.strided_slice(both, [1, 2], [0, 0], [2, 2]), "cut")
    flat = emit(op.reshape(cut, (1, -1)), "flat")
    score = emit(op.matmul(flat, _const(16, 5)), "score")
    wide = emit(op.image.resize2d(y, (8, 8), method="linear"), "wide")
    kept = emit(op.where(emit(op.greater(wide, relax.const(0.5)), "mask"), wide, relax.const(0.0)), "kept")
    return [emit(op.nn.softmax(score, axis=1), "prob"), emit(op.mean(kept, [2, 3], keepdims=True), "mean"), y]


def _round_trip(mod: tvm.IRModule) -> tvm.IRModule:
    records, constants = record_module(mod)
    return module_of(decode_plain(encode_plain(records), "x"), constants, "x")[0]


def _names(mod: tvm.IRModule) -> list[str]:
    return [binding.var.name for block in mod["main"].body.blocks for binding in block.bindings]


def test_a_network_comes_back() -> None:
    mod = module(_image, variable("data", (1, 4, 16, 16)))
    again = _round_trip(mod)
    assert _names(again) == [name for name in _names(mod) if not name.startswith("gv")]
    assert _round_trip(again).script() == again.script()
    records, _ = record_module(mod)
    assert record_module(again)[0] == records


def test_equal_constants_are_stored_once() -> None:
    def twice(emit: Any, x: relax.Var) -> relax.Var:
        return emit(op.matmul(emit(op.matmul(x, _const(4, 4)), "a"), _const(4, 4)), "b")

    records, constants = record_module(module(twice, variable("x", (2, 4))))
    assert len(constants) == 1
    assert records[2][0][-1] == 0  # the next constant
    assert records[2][1][-1] == [0, 0]  # constant 0 once more


def test_a_recurrent_layer_comes_back() -> None:
    spec = Recurrent(
        "lstm", 3, (False,), tuple(Activation(n) for n in ("sigmoid", "tanh", "tanh")), ("x", "w", "r"), ("y", "yh")
    )
    types = [relax.TensorType(spec.shape(name, 5, 1), "float32") for name in spec.outputs]

    def layer(emit: Any, x: relax.Var) -> relax.Var:
        text = StringImm(spec.to_json())
        call = op.call_pure_packed(NAME, x, _const(1, 12, 2), _const(1, 12, 3), text, ty_args=relax.TupleType(types))
        return emit(relax.TupleGetItem(emit(call, "both"), 0), "y")

    mod = module(layer, variable("x", (5, 1, 2)))
    tvm.ir.assert_structural_equal(_round_trip(_round_trip(mod)), _round_trip(mod))
    records, constants = record_module(mod)
    broken = copy.deepcopy(records)
    broken[2][0][1] = spec.to_json().replace('"hidden": 3', '"hidden": 4')
    with pytest.raises(BadModel, match="recurrent operand w is"):
        module_of(broken, constants, "m.xq")


def test_a_kernel_comes_back_and_must_fit_its_operands() -> None:
    def doubled(a: te.Tensor) -> te.Tensor:
        return te.compute(a.shape, lambda *i: a(*i) + a(*i), "doubled")

    builder = relax.BlockBuilder()
    x = variable("x", (1, 6))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.Tuple([builder.emit(builder.call_te(doubled, x), "y")]))
        builder.emit_func_output(out)
    mod = builder.get()
    again = _round_trip(mod)
    tvm.ir.assert_structural_equal(again["doubled"], mod["doubled"])
    records, constants = record_module(mod)
    records[0][0][1] = [1, 5]  # the input is smaller than what the kernel reads
    with pytest.raises(BadModel, match="kernel 'doubled' takes"):
        module_of(records, constants, "m.xq")


def test_unknown_operators_are_all_named() -> None:
    def odd(emit: Any, x: relax.Var) -> relax.Var:
        return emit(op.nn.prelu(emit(op.triu(x), "a"), _const(4), axis=1), "b")

    with pytest.raises(UnsupportedModel, match=r"nn\.prelu.*triu"):
        record_module(module(odd, variable("x", (4, 4))))


def test_mutated_records_are_a_module_or_bad_model() -> None:
    records, constants = record_module(module(_image, variable("data", (1, 4, 16, 16))))
    data = bytearray(encode_plain(records))
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(150):
        changed = bytearray(data)
        changed[int(rng.integers(len(data)))] = int(rng.integers(256))
        try:
            module_of(decode_plain(bytes(changed), "m.xq"), constants, "m.xq")
        except BadModel as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 40
