"""The weights of an artefact, coded where the model came with integers, and what the report says of it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from .ir.placement import CodedTable
from .ir.stored import CodedLayer, StoredWeights

if TYPE_CHECKING:
    from .job import Job

SMALLEST = 16  # weights: below that a record and a map take more bytes than the floats


def start_coding(job: Job) -> None:
    """Prepare to follow the coded weights of the model through the layouts."""
    from .transform.coded_readers import coded_readers

    job.coded = CodedTable(job.imported.coded)
    for variant in job.variants:
        job.coded_names = coded_readers(variant.mod, job.coded.tensors) | job.coded_names


def store_weights(job: Job) -> StoredWeights:
    """Return the weights blob of ``job`` with everything coded that can be."""
    from .pack.coding import encode_blob

    weights, table, names = job.emitted.weights, job.coded, job.coded_names
    large = {key for key, tensor in table.tensors.items() if tensor.size >= SMALLEST}
    if not large:
        return StoredWeights(weights)
    placed = [found for at, array in job.emitted.constants.items() if (found := table.place(at, array))]
    placed = [(key, placement) for key, placement in placed if key in large]
    missing = [key for key in table.tensors if key in large and key not in {key for key, _ in placed}]
    left = tuple(f"{names.get(key, 'a weight')}: {_why_left(job, key)}; stored as floats" for key in missing)
    if not placed:
        return StoredWeights(weights, left=left)
    coded = encode_blob(weights, [placement for _, placement in placed])
    layers = tuple(
        CodedLayer(names.get(key, ""), placement.tensor.shape, coder, size)
        for (key, placement), coder, size in zip(placed, coded.coders, coded.sizes, strict=True)
    )
    return StoredWeights(coded.data, len(weights), layers, left)


def _why_left(job: Job, key: str) -> str:
    shape = "x".join(map(str, job.coded.tensors[key].shape))
    if key not in job.coded_names:
        return f"the coded weight [{shape}] was changed when the graph was simplified"
    if job.coded.is_followed(key):
        return f"its coded weight [{shape}] is cut into parts or spread out for the kernel"
    return f"its coded weight [{shape}] was changed when constants were folded"


def coded_facts(stored: StoredWeights) -> dict[str, Any]:
    """Return what the manifest says of coded weights; nothing when there are none."""
    if stored.blob_bytes is None:
        return {}
    return {"coded_bytes": len(stored.data), "coded": [layer.document() for layer in stored.layers]}


def coded_in_words(stored: StoredWeights) -> dict[str, str | int | float]:
    """Return the report's lines about coded weights; nothing when there are none."""
    if stored.blob_bytes is None:
        return {}
    size = sum(layer.size for layer in stored.layers)
    weights = sum(prod(layer.shape) for layer in stored.layers)
    return {
        "weights section, bytes": len(stored.data),
        "coded weights": f"{len(stored.layers)} tensors, {weights} weights in {size} bytes",
        "coded, bits a weight": round(8 * size / weights, 3),
        "memory for decoded weights, bytes": stored.blob_bytes,
    }
