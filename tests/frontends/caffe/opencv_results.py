#!/usr/bin/env python3
"""Writes tests/data/caffe/opencv.npz: what OpenCV 4's Caffe reader gives for every case that it can judge.

    pip install "opencv-contrib-python-headless<5"     version 5 reads no Caffe any more
    python tests/frontends/caffe/opencv_results.py

Needs OpenCV and numpy, not xnncc. Cases with a reason in ``Case.opencv`` are left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from caffe_files import save
from cases import CASES, Case

RESULTS = Path(__file__).resolve().parents[2] / "data" / "caffe" / "opencv.npz"


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


if __name__ == "__main__":
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(RESULTS, **results())
    print(f"{RESULTS}: {RESULTS.stat().st_size / 1024:.0f} KiB")
