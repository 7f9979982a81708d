"""without_batchwise: what onnxruntime gets in place of batch-first recurrent nodes."""

from __future__ import annotations

from onnx_models import const, one_node, random, runtime

from xnncc.frontends.onnx.batchwise import without_batchwise


def test_a_model_without_them_stays_the_same_object() -> None:
    model, _ = one_node("Relu", random(2, 3))
    assert without_batchwise(model) is model


def test_transposes_stand_around_the_node() -> None:
    w, r = const(random(1, 2, 3)), const(random(1, 2, 2))
    model, feeds = one_node("RNN", random(4, 5, 3), w, r, outputs=2, layout=1, hidden_size=2)
    changed = without_batchwise(model)
    assert [n.op_type for n in changed.graph.node] == ["Transpose", "RNN", "Transpose", "Transpose"]
    y, yh = runtime(changed, feeds)
    assert y.shape == (4, 5, 1, 2) and yh.shape == (4, 1, 2)
    assert (y[:, -1] == yh).all()


def test_a_model_with_them_is_not_changed_itself() -> None:
    model, _ = one_node("RNN", random(4, 5, 3), const(random(1, 2, 3)), const(random(1, 2, 2)), layout=1)
    before = model.SerializeToString()
    without_batchwise(model)
    assert model.SerializeToString() == before
