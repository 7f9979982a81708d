"""Heads with many places in a sample: what the teacher sees weighs more, boxes are judged by their overlap."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

from xnncc.compress.dense_heads import are_boxes, attention, box_loss, seen  # noqa: E402
from xnncc.compress.distil import distillation_loss  # noqa: E402
from xnncc.compress.torch_network import Head  # noqa: E402

# eight places, the teacher sees something at the second alone
AIMS = torch.tensor([[8.0, 0.0], [0.0, 8.0]] + [[8.0, 0.0]] * 6)
BOXES = torch.tensor([[0.0, 0.0, 0.5, 0.5]] * 8)


def test_half_of_the_attention_goes_to_what_the_teacher_sees() -> None:
    w = attention(AIMS)
    assert w.sum().item() == pytest.approx(1)
    assert w[1].item() == pytest.approx(0.5 + 1 / 16, abs=2e-3)
    assert w[0].item() == pytest.approx(1 / 16, abs=2e-3)


def test_attention_is_even_where_the_teacher_sees_nothing_at_all() -> None:
    w = attention(torch.tensor([[90.0, 0.0]] * 4))
    torch.testing.assert_close(w * 8, torch.ones(4))


def test_overlap_of_boxes_by_hand() -> None:
    # shared 1, union 7, hull 9: GIoU = 1/7 - 2/9; apart: GIoU = 0 - 1/3
    a = torch.tensor([[0.0, 0, 2, 2], [0.0, 0, 1, 1]])
    b = torch.tensor([[1.0, 1, 3, 3], [2.0, 0, 3, 1]])
    expected = (3 * (1 - 1 / 7 + 2 / 9) + 1 * (1 + 1 / 3)) / 4
    assert box_loss(a, b, torch.tensor([3.0, 1.0])).item() == pytest.approx(expected)
    assert box_loss(a, a, torch.ones(2)).item() == pytest.approx(0)


def test_a_box_without_area_gives_numbers_and_gradients() -> None:
    flat = torch.zeros(8, 4, requires_grad=True)
    loss = box_loss(flat, BOXES, seen(AIMS))
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(flat.grad).all()


@pytest.mark.parametrize(
    ("goal", "places"), [(BOXES[:, :3], 6), (BOXES, 4), (BOXES[:, [2, 1, 0, 3]], 8)], ids=["three", "fewer", "order"]
)
def test_other_values_are_no_boxes(goal: torch.Tensor, places: int) -> None:
    assert are_boxes(BOXES[None], 8) and not are_boxes(goal, places)


def detector_loss(place: int) -> float:
    """Return the loss of a detector that has one of the teacher's eight boxes wrong."""
    wrong = BOXES.clone()
    wrong[place] += 0.2
    heads = [Head("boxes", "values", "boxes"), Head("scores", "softmax", "scores")]
    taught = [BOXES.reshape(1, 1, 8, 4), AIMS.reshape(1, 1, 8, 2)]
    return float(distillation_loss(heads, [wrong.reshape(1, 1, 8, 4), taught[1]], taught))


def test_a_box_counts_where_the_teacher_sees_something() -> None:
    assert detector_loss(1) > 0.3 and detector_loss(4) < 1e-3


def test_scores_of_what_the_teacher_sees_count_more() -> None:
    head = [Head("scores", "softmax", "scores")]
    at = {}
    for place in (1, 4):
        other = AIMS.clone()
        other[place] = torch.tensor([1.0, 1.0])
        at[place] = float(distillation_loss(head, [other[None]], [AIMS[None]], temperature=1.0))
    assert at[1] == pytest.approx(9 * at[4], rel=0.05)  # 1/2 + 1/16 against 1/16
