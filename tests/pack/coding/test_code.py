"""Coded tensors come back bit for bit, whichever the coder; what is damaged is refused, never followed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xnncc.errors import BadPackage
from xnncc.ir.coded import LARGEST, CodedTensor
from xnncc.pack import coding
from xnncc.pack.coding.coders import CODERS, decode_plain, encode_stream
from xnncc.pack.coding.layout import Stream

sys.path.insert(0, str(Path(__file__).parent))
from weights_for_coding import dense, entropy_bytes, scaled, sparse

ONE = np.array([0.125], np.float32)


def same(a: CodedTensor, b: CodedTensor) -> bool:
    table = np.array_equal(a.table.view(np.uint32), b.table.view(np.uint32))
    values = np.array_equal(a.values().view(np.uint32), b.values().view(np.uint32))
    return a.shape == b.shape and np.array_equal(a.integers, b.integers) and table and values


@st.composite
def coded_tensors(draw: st.DrawFn) -> CodedTensor:
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=4)))
    seed, largest = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0, 1, 2, 14, 15, 16, 200, LARGEST]))
    rng = np.random.default_rng(seed)
    density = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    integers = rng.integers(-largest, largest, shape, np.int32, endpoint=True) * (rng.random(shape) < density)
    integers = np.asarray(integers, np.int32)
    kind = draw(st.sampled_from(["one", "steps", "codebook"]))
    if kind == "codebook":
        size = draw(st.integers(1, 20))
        codebook = rng.standard_normal(size).astype(np.float32)
        return CodedTensor(np.asarray(np.abs(integers.astype(np.int64)) % size, np.int32), codebook=codebook)
    axis = draw(st.integers(0, max(len(shape) - 1, 0)))
    if kind == "steps" and shape:
        steps = rng.random(shape[axis]).astype(draw(st.sampled_from([np.float16, np.float32])))
        return CodedTensor(integers, steps.astype(np.float32), axis=axis)
    return CodedTensor(integers, ONE)


@settings(max_examples=150, deadline=None)
@given(st.lists(coded_tensors(), max_size=5), st.sampled_from([CODERS, *[(name,) for name in CODERS]]), st.booleans())
def test_what_was_coded_comes_back(tensors: list[CodedTensor], coders: tuple[str, ...], parallel: bool) -> None:
    data = coding.encode(tensors, coders, parallel)
    back = coding.decode(data)
    assert len(back) == len(tensors)
    assert all(same(a, b) for a, b in zip(tensors, back, strict=True))
    assert coding.encode(tensors, coders, parallel) == data


@settings(max_examples=100, deadline=None)
@given(st.lists(coded_tensors(), min_size=1, max_size=4), st.data())
def test_damage_is_refused(tensors: list[CodedTensor], data: st.DataObject) -> None:
    coded = bytearray(coding.encode(tensors))
    at = data.draw(st.integers(0, len(coded) - 1))
    coded[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadPackage, match="the coded weights cannot be read"):
        coding.decode(bytes(coded))
    with pytest.raises(BadPackage):
        coding.decode(bytes(coded[:at]))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([0, 1, 2, 3]), st.integers(0, 255), st.integers(0, 255), st.binary(max_size=60), st.data())
def test_any_stream_gives_tensors_or_none(
    coder: int, first: int, second: int, data: bytes, draw: st.DataObject
) -> None:
    """Compiled and plain decoders agree on streams that no encoder wrote."""
    from xnncc.pack.coding import native

    shapes = draw.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=3))
    plain = decode_plain(Stream(coder, first, second, data), shapes)
    fast = native.load()
    if fast is None:
        pytest.skip("no C compiler here: nothing to compare with")
    found = fast.decode(coder, first, second, data, shapes)
    assert (plain is None) == (found is None)
    assert plain is None or all(np.array_equal(a, b) for a, b in zip(plain, found, strict=True))


@pytest.mark.parametrize("shapes", [[(1, 1), (1, 8)], [(1, 9)], [(3, 3)]])
def test_no_decoder_takes_more_zeros_than_an_encoder_leaves_out(shapes: list[tuple[int, int]]) -> None:
    """Nine weights with five low bits of their own do not fit the eight zero bytes behind an empty stream."""
    from xnncc.pack.coding import native

    assert decode_plain(Stream(2, 0, 5, b""), shapes) is None
    fast = native.load()
    if fast is not None:
        assert fast.decode(2, 0, 5, b"", shapes) is None


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("density", [0.02, 0.1, 0.6, 1.0])
def test_compiled_and_plain_coders_write_the_same(coder: str, density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from xnncc.pack.coding import native

    if native.load() is None:
        pytest.skip("no C compiler here: nothing to compare with")
    tensors = [dense(20, 30, density, seed=1), dense(3, 70, density, seed=2) * np.int32(25)]
    stream, _ = encode_stream(tensors, [coder])
    monkeypatch.setattr(native, "load", lambda: None)
    assert encode_stream(tensors, [coder])[0] == stream
    back = decode_plain(stream, [t.shape for t in tensors])
    assert back is not None
    assert all(np.array_equal(a, b) for a, b in zip(tensors, back, strict=True))


EIGHT_BITS = [scaled(480, 80, 127, 1), scaled(672, 112, 127, 2), scaled(80, 480, 127, 3), scaled(1280, 320, 127, 4)]


@pytest.mark.parametrize(
    "weights", [dense(400, 400, 0.9, 1), dense(300, 600, 0.5, 2), sparse(500, 800, 0.1, 3), *EIGHT_BITS]
)
def test_range_coder_is_below_the_static_entropy(weights: np.ndarray) -> None:
    """Columns and rows that differ in scale: what contexts learn pays more than learning costs."""
    stream, _ = encode_stream([weights], ["range"])
    assert len(stream.data) < entropy_bytes(weights)


def test_a_tenth_of_the_weights_is_a_fraction_of_the_bytes() -> None:
    full, tenth = dense(500, 500, 1.0, 1), sparse(500, 500, 0.1, 1)
    sizes = [len(coding.encode([CodedTensor(w, ONE)])) for w in (full, tenth)]
    assert sizes[1] < 0.27 * sizes[0]
    assert sizes[1] * 8 / tenth.size < 0.75  # bits a weight; an index and a value would take 0.1 * (5 + 5) = 1


def test_zeros_cost_next_to_nothing() -> None:
    """The least probability that a counter keeps is 2^-11: 0.0014 bits a weight."""
    assert len(coding.encode([CodedTensor(np.zeros((1000, 1000), np.int32), ONE)])) < 250


def test_small_tensors_share_a_stream() -> None:
    tensors = [CodedTensor(dense(10, 20, 0.3, seed), ONE) for seed in range(10)]
    apart = sum(len(coding.encode([tensor])) for tensor in tensors)
    assert len(coding.encode(tensors)) < 0.8 * apart


def test_a_large_network_is_coded_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one way, so that it takes a minute and not an hour; the size is within a percent of the best."""
    from xnncc.pack.coding import native

    tensors = [CodedTensor(dense(200, 400, 0.3, 1), ONE)]
    best = len(coding.encode(tensors, ("range",)))
    monkeypatch.setattr(native, "load", lambda: None)
    data = coding.encode(tensors, ("range",))
    assert best <= len(data) < 1.01 * best
    assert same(coding.decode(data)[0], tensors[0])


def test_sizes_tell_where_the_bytes_are() -> None:
    tensors = [CodedTensor(dense(100, 100, 0.5, 1), ONE), CodedTensor(dense(10, 10, 0.5, 1), ONE)]
    encoded = coding.encode_with_sizes(tensors)
    assert len(encoded.data) - 16 <= sum(encoded.sizes) <= len(encoded.data)
    assert encoded.sizes[0] > 50 * encoded.sizes[1]
    assert set(encoded.coders) <= set(CODERS)


def test_values_outside_the_codebook_are_refused() -> None:
    from xnncc.pack.coding.layout import CODEBOOK, Record, write

    stream, _ = encode_stream([np.array([[0, 5]], np.int32)], ["range"])
    data = write([Record((2,), CODEBOOK, np.zeros(3, np.float32))], [stream])
    with pytest.raises(BadPackage, match=r"integers 0\.\.5 for a codebook of 3 values"):
        coding.decode(data)


def test_a_stream_that_cannot_hold_its_weights_is_refused_before_memory_is_asked_for() -> None:
    from xnncc.pack.coding.layout import ONE_STEP, Record, write

    data = write([Record((1 << 15, 1 << 15), ONE_STEP, ONE)], [Stream(2, 0, 0, b"abc")])
    with pytest.raises(BadPackage, match="3 bytes cannot hold 1073741824 weights"):
        coding.decode(data)


def test_many_tensors_in_one_stream_come_back() -> None:
    """More shapes than numpy keeps small allocations for: C must read arrays that Python still holds."""
    tensors = [
        CodedTensor(np.full((1, 4 + i % 7), i % 3 - 1, np.int32), steps=np.ones(1, np.float32)) for i in range(400)
    ]
    assert [t.integers.tolist() for t in coding.decode(coding.encode(tensors))] == [
        t.integers.tolist() for t in tensors
    ]
