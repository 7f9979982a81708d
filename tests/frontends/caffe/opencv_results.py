#!/usr/bin/env python3
"""Writes tests/data/caffe: what OpenCV 4's Caffe reader gives for every case that it can judge, and for real networks.

    pip install "opencv-contrib-python-headless<5"     version 5 reads no Caffe any more
    python tests/frontends/caffe/opencv_results.py

Needs OpenCV and numpy, not xnncc; for the real networks what tools/fetch_models.py fetches. Cases with a reason in
``Case.opencv`` are left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from caffe_cases import CASES, Case
from caffe_files import save

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "tests" / "data" / "caffe" / "opencv.npz"
REAL_RESULTS = RESULTS.with_name("real.npz")
REAL = {
    "sr": ("wechat-qr-caffe/sr.prototxt", "wechat-qr-caffe/sr.caffemodel"),
    "detect": ("wechat-qr-caffe/detect.prototxt", "wechat-qr-caffe/detect.caffemodel"),
    "nsfw": ("open-nsfw-caffe/deploy.prototxt", "open-nsfw-caffe/resnet_50_1by2_nsfw.caffemodel"),
}
KEPT = 7  # of the super-resolved picture every 7th row and column is stored


def opencv_outputs(case: Case) -> list[np.ndarray]:
    """Return the outputs of the last layer, in order."""
    import cv2

    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder), case.text, case.blobs)
        net = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
    for name, value in case.inputs.items():
        net.setInput(value, name)
    return [np.asarray(out) for out in net.forward(net.getUnconnectedOutLayersNames())]


def results() -> dict[str, np.ndarray]:
    """Return ``<case>/<output's number>`` for every case that OpenCV can judge."""
    return {
        f"{name}/{index}": value
        for name, case in CASES.items()
        if not case.opencv
        for index, value in enumerate(opencv_outputs(case))
    }


def real_input(name: str, scene: np.ndarray) -> np.ndarray:
    """Return the input of a real network: noise for two of them, a picture with two QR codes for the detector."""
    rng = np.random.default_rng(5)
    if name == "detect":
        return (scene / 255).astype("f4")[None, None]
    return rng.uniform(0, 1, (1, 1, 224, 224)).astype("f4") if name == "sr" else _noise(rng)


def _noise(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-120, 120, (1, 3, 224, 224)).astype("f4")


def qr_scene() -> np.ndarray:
    """Return [384, 384] uint8: two QR codes of 150 and 90 pixels on a blurred ground."""
    import cv2

    picture = np.random.default_rng(7).uniform(60, 200, (384, 384)).astype("u1")
    picture = cv2.GaussianBlur(picture, (0, 0), 5)
    for text, side, (y, x) in (("xnncc reads Caffe", 150, (110, 70)), ("second", 90, (275, 265))):
        code = cv2.resize(cv2.QRCodeEncoder.create().encode(text), (side, side), interpolation=cv2.INTER_NEAREST)
        picture[y - 10 : y + side + 10, x - 10 : x + side + 10] = 255
        picture[y : y + side, x : x + side] = code
    return picture


def real_results(models: Path) -> dict[str, np.ndarray]:
    """Return the scene, and the output of each real network."""
    import cv2

    found = {"scene": qr_scene()}
    for name, (prototxt, caffemodel) in REAL.items():
        net = cv2.dnn.readNetFromCaffe(str(models / prototxt), str(models / caffemodel))
        net.setInput(real_input(name, found["scene"]))
        output = net.forward()
        found[name] = output[..., ::KEPT, ::KEPT] if name == "sr" else output
    return found


if __name__ == "__main__":
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(RESULTS, **results())
    np.savez_compressed(REAL_RESULTS, **real_results(ROOT / "models"))
    print(f"{RESULTS}: {RESULTS.stat().st_size / 1024:.0f} KiB")
