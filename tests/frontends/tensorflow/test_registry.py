"""The table of converters holds what the conv nets, recurrent cells and post-processing of mobile models use."""

from __future__ import annotations

import pytest

from xnncc.frontends.tensorflow.interpret import MEANINGS
from xnncc.frontends.tensorflow.meanings import meaning
from xnncc.frontends.tensorflow.operators import CONVERTERS
from xnncc.frontends.tensorflow.registry import converter

PROMISED = """Identity Conv2D DepthwiseConv2dNative Conv2DBackpropInput BiasAdd MatMul BatchMatMulV2 FusedBatchNorm
FusedBatchNormV2 FusedBatchNormV3 Add AddV2 AddN Sub Mul RealDiv Div Maximum Minimum Pow Square Sqrt Rsqrt Exp Log Neg
Abs Floor Relu Relu6 LeakyRelu Elu Selu Sigmoid Tanh Softplus Softmax LogSoftmax MaxPool AvgPool Mean Sum Max Min Prod
ArgMax Reshape Squeeze ExpandDims Transpose ConcatV2 Split SplitV Slice StridedSlice Pack Unpack Pad PadV2 MirrorPad
Tile Gather GatherV2 Cast Shape Fill Range ResizeBilinear ResizeNearestNeighbor SpaceToDepth DepthToSpace SpaceToBatchND
BatchToSpaceND FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel Equal Greater Less Select SelectV2 LogicalAnd
LogicalOr LogicalNot ReverseV2 Cumsum""".split()  # noqa: SIM905 (ninety lines otherwise)


@pytest.mark.parametrize("kind", PROMISED)
def test_is_converted_and_has_a_meaning(kind: str) -> None:
    assert kind in CONVERTERS and kind in MEANINGS


def test_every_converter_has_a_formula_to_be_checked_with() -> None:
    assert sorted(set(CONVERTERS) - set(MEANINGS)) == ["ResourceGather"]


def test_a_second_converter_is_refused() -> None:
    with pytest.raises(ValueError, match="operator 'Relu' has two converters"):
        converter("Relu")(lambda n: n.expr(0))
    with pytest.raises(ValueError, match="operator 'Relu' has two meanings"):
        meaning("Relu")(lambda o, x: x)
