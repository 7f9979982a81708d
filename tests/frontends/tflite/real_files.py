"""The real TFLite files that tools/fetch_models.py brings, what is fed to them, and which outputs are recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xnncc.frontends.tflite.read import read_tflite

MODELS = Path(__file__).resolve().parents[3] / "models"
FLOAT = {
    "blazeface short": "face-tflite/face_detection_short_range.tflite",
    "blazeface full": "face-tflite/face_detection_full_range.tflite",
    "blazeface sparse": "face-tflite/face_detection_full_range_sparse.tflite",
    "face mesh": "face-tflite/face_landmark.tflite",
    "selfie": "selfie-seg/selfie_segmentation.tflite",
    "selfie landscape": "selfie-seg/selfie_segmentation_landscape.tflite",
    "ssd": "ssd-mobilenetv2-oidv4/ssd_mobilenetv2_oidv4_fp16.tflite",
    "basic-pitch": "basic-pitch/icassp_2022/nmp.tflite",
}
SPOTTERS = {name: f"microwakeword/{name}.tflite" for name in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")}
STEPS = 60  # of a spotter's stream
KEPT = 1000  # numbers of each output that are recorded


def image(shape: tuple[int, ...]) -> np.ndarray:
    """Return input in [-1, 1) for a network of real numbers."""
    return np.random.default_rng(7).uniform(-1, 1, shape).astype("float32")


def figure(shape: tuple[int, ...]) -> np.ndarray:
    """Return head and shoulders before coloured blocks, in noise: the networks that look for people see some here.

    On noise alone their whole output is below 1e-5, and a comparison would say nothing.
    """
    rng, (_, height, width, _) = np.random.default_rng(3), shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    person = (x**2 + (y + 0.3) ** 2 < 0.1) | ((np.abs(x) < 0.5) & (y > 0.1))
    blocks = rng.uniform(0, 1, (1, -(-height // 16), -(-width // 16), 3)).repeat(16, 1).repeat(16, 2)
    picture = 0.7 * np.where(person, 0.8, 0.2)[None, :, :, None] * [1, 0.8, 0.7] + 0.3 * blocks[:, :height, :width]
    return (picture + rng.normal(0, 0.2, shape)).astype("float32")


def feed(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the input of a network of ``FLOAT``."""
    return figure(shape) if name.startswith("selfie") else image(shape)


def stream() -> np.ndarray:
    """Return features [STEPS, 1, 3, 40] int8: spectrogram slices that get louder and fainter."""
    rng = np.random.default_rng(11)
    loud = np.abs(np.sin(np.arange(STEPS) / 7)).reshape(-1, 1, 1, 1)
    return np.clip(rng.normal(-60, 60, (STEPS, 1, 3, 40)) * loud, -128, 127).astype("int8")


def logit(path: Path) -> tuple[int, str]:
    """Return number and name of a spotter's last tensor before the sigmoid, which hides small numbers."""
    graph = read_tflite(path).main
    (layer,) = [op for op in graph.operators if op.kind == "FULLY_CONNECTED"]
    return layer.outputs[0], graph.tensors[layer.outputs[0]].name


def sampled(output: np.ndarray) -> np.ndarray:
    """Return about ``KEPT`` numbers of an output, evenly spread."""
    flat = np.ascontiguousarray(output).reshape(-1)
    return flat[:: max(flat.size // KEPT, 1)]
