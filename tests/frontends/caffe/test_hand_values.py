"""Layers that OpenCV cannot judge, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from caffe_files import input_text, layer_text

from xnncc.frontends.evaluate import evaluate

COUNT = np.arange(1, 9, dtype="f4").reshape(1, 2, 2, 2)  # channels [[1, 2], [3, 4]] and [[5, 6], [7, 8]]


def run(load, kind: str, params: str, *inputs: np.ndarray, blobs=(), tops=("out",)) -> list[np.ndarray]:
    """Return what the converted layer gives; the formula is compared on the way."""
    feeds = {f"x{i}": np.asarray(x, "f4") for i, x in enumerate(inputs)}
    text = "".join(input_text(name, x.shape) for name, x in feeds.items()) + layer_text(
        kind, params, tuple(feeds), tops
    )
    imported = load(text, {kind.lower(): [np.asarray(b, "f4") for b in blobs]} if blobs else None, feeds)
    return evaluate(imported.mod, list(feeds.values()))[0]


def test_argmax_of_equal_values_is_the_last(load):
    """Caffe sorts pairs of value and index downwards."""
    (out,) = run(load, "ArgMax", "", np.array([[3, 7, 7, 1], [5, 5, 5, 5]]))
    assert out.tolist() == [[[2]], [[3]]]


def test_argmax_top_k_with_values(load):
    (out,) = run(load, "ArgMax", "argmax_param { top_k: 3 out_max_val: true }", np.array([[3, 7, 7, 1]]))
    assert out.tolist() == [[[2, 1, 0], [7, 7, 3]]]


def test_argmax_along_an_axis(load):
    (out,) = run(load, "ArgMax", "argmax_param { axis: 1 }", COUNT)
    assert out.tolist() == [[[[1, 1], [1, 1]]]]


def test_argmax_of_a_picture_has_four_dimensions(load):
    (out,) = run(load, "ArgMax", "argmax_param { top_k: 2 }", COUNT)
    assert out.shape == (1, 1, 2, 1) and out.reshape(-1).tolist() == [7, 6]


@pytest.mark.parametrize(
    ("operation", "value"), [("SUM", [10, 26]), ("ASUM", [10, 26]), ("SUMSQ", [30, 174]), ("MEAN", [2.5, 6.5])]
)
def test_reduction(load, operation, value):
    (out,) = run(load, "Reduction", f"reduction_param {{ operation: {operation} axis: 2 coeff: 2 }}", COUNT)
    assert out.tolist() == [[2 * v for v in value]]


def test_reduction_of_everything_is_a_scalar(load):
    (out,) = run(load, "Reduction", "", COUNT)
    assert out.shape == () and out == 36


def test_tile(load):
    (out,) = run(load, "Tile", "tile_param { axis: 1 tiles: 2 }", np.array([[1, 2]]))
    assert out.tolist() == [[1, 2, 1, 2]]


def test_embed_cuts_to_whole_numbers_and_adds_the_bias(load):
    table, bias = [[1, 2], [3, 4], [5, 6]], [10, 20]
    (out,) = run(load, "Embed", "embed_param { input_dim: 3 num_output: 2 }", np.array([2, 0.9]), blobs=(table, bias))
    assert out.tolist() == [[15, 26], [11, 22]]


def test_threshold_is_strict(load):
    (out,) = run(load, "Threshold", "threshold_param { threshold: 2 }", np.array([[1, 2, 3]]))
    assert out.tolist() == [[0, 0, 1]]


def test_clip(load):
    (out,) = run(load, "Clip", "clip_param { min: -1 max: 2 }", np.array([[-3, 0.5, 3]]))
    assert out.tolist() == [[-1, 0.5, 2]]


def test_hard_sigmoid(load):
    (out,) = run(load, "HSigmoid", "", np.array([[-3, 0, 1.5, 4]]))
    assert np.allclose(out, [[0, 0.5, 0.75, 1]])


def test_swish_beta(load):
    (out,) = run(load, "Swish", "swish_param { beta: 2 }", np.array([[1.0, -1.0]]))
    assert np.allclose(out, [[1 / (1 + np.exp(-2)), -1 / (1 + np.exp(2))]])


def test_axpy(load):
    (out,) = run(load, "Axpy", "", np.array([[10, 100]]).reshape(1, 2, 1, 1), COUNT, np.ones((1, 2, 2, 2)))
    assert out.reshape(-1).tolist() == [11, 21, 31, 41, 501, 601, 701, 801]


def test_upsample(load):
    (out,) = run(load, "Upsample", "upsample_param { scale: 2 }", np.array([[[[1, 2]]]]))
    assert out.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]


def test_interp_shrink_takes_the_corners(load):
    """9 elements by a factor of 4: (9 - 1) / 4 + 1 = 3, from corner to corner."""
    x = np.arange(81, dtype="f4").reshape(1, 1, 9, 9)
    (out,) = run(load, "Interp", "interp_param { shrink_factor: 4 }", x)
    assert out[0, 0].tolist() == [[0, 4, 8], [36, 40, 44], [72, 76, 80]]


def test_interp_crops_by_its_pads_and_zooms(load):
    """Of [9, 1, 3, 9] the middle is left: two elements become 2 + 1 * (3 - 1) = 4 (zoom 3), in thirds."""
    x = np.tile(np.array([9, 1, 4, 9], "f4"), (4, 1))[None, None]
    (out,) = run(load, "Interp", "interp_param { zoom_factor: 3 pad_beg: -1 pad_end: -1 }", x)
    assert np.allclose(out[0, 0, 0], [1, 2, 3, 4])


def test_bias_over_two_axes(load):
    (out,) = run(load, "Bias", "bias_param { axis: 2 num_axes: 2 }", COUNT, blobs=([[10, 20], [30, 40]],))
    assert out.reshape(-1).tolist() == [11, 22, 33, 44, 15, 26, 37, 48]


def test_scale_by_one_number(load):
    (out,) = run(load, "Scale", "scale_param { num_axes: 0 }", np.array([[1, 2]]), blobs=(3.0,))
    assert out.tolist() == [[3, 6]]


def test_log_base(load):
    (out,) = run(load, "Log", "log_param { base: 2 scale: 4 shift: 4 }", np.array([[0, 1, 3]]))
    assert np.allclose(out, [[2, 3, 4]])


def test_innerproduct_transposed(load):
    params = "inner_product_param { num_output: 2 transpose: true bias_term: false }"
    (out,) = run(load, "InnerProduct", params, np.array([[1, 10]]), blobs=([[1, 2], [3, 4]],))
    assert out.tolist() == [[31, 42]]


def test_lrn_k(load):
    """One channel: 1 * (2 + 8 / 1 * 1 ^ 2) ^ -1."""
    params = "lrn_param { local_size: 1 alpha: 8 beta: 1 k: 2 }"
    assert np.allclose(run(load, "LRN", params, np.ones((1, 1, 1, 1)))[0], 0.1)


def test_lrn_within_a_channel_leaves_k_out_and_divides_by_the_whole_window(load):
    """x = 1 in the corner: 4 of 9 places count, 1 * (1 + 9 * 4 / 9) ^ -1."""
    params = "lrn_param { local_size: 3 alpha: 9 beta: 1 k: 5 norm_region: WITHIN_CHANNEL }"
    assert np.allclose(run(load, "LRN", params, np.ones((1, 1, 2, 2)))[0], 0.2)


def test_average_pool_divides_by_input_and_pads_but_not_beyond(load):
    """Size 4, kernel 3, stride 2, pad 1: windows from -1, 1 and 3 (rounded up), the last one cut at 5: 2 elements."""
    (out,) = run(load, "Pooling", "pooling_param { pool: AVE kernel_h: 1 kernel_w: 3 stride: 2 pad_w: 1 }",
                 np.array([[[[3, 6, 9, 12]]]]))  # fmt: skip
    assert np.allclose(out, [[[[3, 9, 6]]]])


def test_pool_rounds_down_when_told(load):
    x = np.array([[[[1, 2, 3, 4, 5]]]])
    params = "pooling_param {{ kernel_h: 1 kernel_w: 2 stride: 2 {} }}"
    assert run(load, "Pooling", params.format(""), x)[0].tolist() == [[[[2, 4, 5]]]]
    assert run(load, "Pooling", params.format("round_mode: FLOOR"), x)[0].tolist() == [[[[2, 4]]]]


def test_spp_pools_into_one_and_four_bins(load):
    (out,) = run(load, "SPP", "spp_param { pyramid_height: 2 }", COUNT)
    assert out.tolist() == [[4, 8, 1, 2, 3, 4, 5, 6, 7, 8]]


def test_deconvolution_spreads_a_dilated_kernel(load):
    params = "convolution_param { num_output: 1 kernel_h: 1 kernel_w: 2 dilation: 2 bias_term: false }"
    (out,) = run(load, "Deconvolution", params, np.array([[[[1, 10]]]]), blobs=([[[[2, 3]]]],))
    assert out.tolist() == [[[[2, 20, 3, 30]]]]


def test_split_and_slice(load):
    assert [o.tolist() for o in run(load, "Split", "", np.array([[1, 2]]), tops=("a", "b"))] == [[[1, 2]], [[1, 2]]]
    parts = run(load, "Slice", "slice_param { slice_dim: 1 slice_point: 1 }", np.array([[1, 2, 3]]), tops=("a", "b"))
    assert [o.tolist() for o in parts] == [[[1]], [[2, 3]]]


def test_priorbox_cuts_sizes_to_whole_numbers(load):
    """min_size 20.7 is 20: from 50 - 10 to 50 + 10 of 100."""
    params = "prior_box_param { min_size: 20.7 }"
    (out,) = run(load, "PriorBox", params, np.ones((1, 1, 1, 1)), np.ones((1, 1, 100, 100)))
    assert np.allclose(out[0], [[0.4, 0.4, 0.6, 0.6], [0.1] * 4])


def test_priorbox_flips_ratios(load):
    params = "prior_box_param { min_size: 10 max_size: 40 aspect_ratio: 4 }"
    (out,) = run(load, "PriorBox", params, np.ones((1, 1, 1, 1)), np.ones((1, 1, 100, 100)))
    sides = (out[0, 0].reshape(-1, 4)[:, 2:] - out[0, 0].reshape(-1, 4)[:, :2]) * 100
    assert np.allclose(sides, [[10, 10], [20, 20], [20, 5], [5, 20]])
