#!/usr/bin/env python3
"""The twelve real networks that xnncc is proved on: file, shapes, real data, and a judge of the answer.

    tools/real_models.py [NAMES]     judge them under onnxruntime: what right looks like

A judge takes an engine (:mod:`engines`), so the same question is put to onnxruntime and to what xnncc built.

onnxruntime 1.32 is judged right on all twelve (2026-11-30, the numbers the judges' limits are drawn from):

    efficientnet-lite0   cat 0.36 (of five cat classes), espresso 0.93; 18 of 20 labelled pictures
    ppocr-det            5 of 5 lines found, nothing elsewhere
    ppocr-rec            5 of 5 lines read
    ppocr-cls            10 of 10 lines told apart, the least sure with 0.998
    blazeface            the face at (226, 129), 95 px wide, 0.921; a cup 0.30, a cat 0.48
    silero-vad           speech 0.90, silence 0.005, noise 0.013 (without espeak-ng: vowels 0.41)
    basic-pitch          5 of 5 chords heard
    magika               5 of 5 file types named, the least sure with 0.83
    minilm               cos(cat, kitten) 0.79, cos(cat, stocks) 0.21; 7 pairs
    multistyle26         4 styles, likeness 0.55 to 0.76, mean distance 0.15
    captcha-crnn         6 of 6 captchas read
    mlsd-tiny            4 segments for 4 sides, within 2.2 px
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from judges import ocr, sound, text, vision
from judges.verdict import Feeds, Run, Verdict

MODELS = Path(__file__).resolve().parent.parent / "models"


@dataclass(frozen=True)
class RealModel:
    """A network with real data.

    ``file`` is relative to the models folder; ``shapes`` gives the free dimensions (as ``--shape``); ``needs`` names
    what tools/fetch_models.py must have fetched; ``everywhere`` marks the four that run on every platform.
    """

    name: str
    about: str
    file: str
    sample: Callable[[Path], Feeds]
    judge: Callable[[Run, Path, bool], Verdict]
    needs: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    everywhere: bool = False

    def path(self, data: Path = MODELS) -> Path:
        """The model file."""
        return data / self.file

    def flags(self) -> list[str]:
        """``--shape`` flags for the command line."""
        return [
            part for name, shape in self.shapes.items() for part in ("--shape", f"{name}={','.join(map(str, shape))}")
        ]

    def absent(self, data: Path = MODELS) -> list[str]:
        """Names of ``needs`` of which nothing is under ``data``."""
        return [name for name in self.needs if not (data / name).is_dir()]


_WORDS_SHAPE = (1, 16)
_MODELS = (
    RealModel(
        "efficientnet-lite0",
        "classifier, 224 px",
        "efficientnet-lite0/efficientnet-lite0.onnx",
        vision.classifier_sample,
        vision.judge_classifier,
        ("efficientnet-lite0", "photos", "imagenet-names", "imagenet-pictures"),
        everywhere=True,
    ),
    RealModel(
        "ppocr-det",
        "text detector, 320 px",
        "ppocr-v4/ch_PP-OCRv4_det_infer.onnx",
        ocr.detector_sample,
        ocr.judge_detector,
        ("ppocr-v4",),
        {"x": (1, 3, 320, 320)},
    ),
    RealModel(
        "ppocr-rec",
        "text recogniser, 48 x 320 px",
        "ppocr-v4/ch_PP-OCRv4_rec_infer.onnx",
        ocr.recogniser_sample,
        ocr.judge_recogniser,
        ("ppocr-v4",),
        {"x": (1, 3, 48, 320)},
        everywhere=True,
    ),
    RealModel(
        "ppocr-cls",
        "text orientation, 48 x 192 px",
        "ppocr-v4/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        ocr.orientation_sample,
        ocr.judge_orientation,
        ("ppocr-v4",),
        {"x": (1, 3, 48, 192)},
    ),
    RealModel(
        "blazeface",
        "face detector, 128 px",
        "blazeface-onnx/face_detection_front_128x128_barracuda.onnx",
        vision.face_sample,
        vision.judge_face,
        ("blazeface-onnx", "photos"),
        everywhere=True,
    ),
    RealModel(
        "silero-vad",
        "voice activity, 32 ms",
        "silero-vad/silero_vad_op18_ifless.onnx",
        sound.speech_sample,
        sound.judge_speech,
        ("silero-vad",),
        {"input": (1, 576), "state": (2, 1, 128)},
        everywhere=True,
    ),
    RealModel(
        "basic-pitch",
        "notes from sound, 2 s",
        "basic-pitch/icassp_2022/nmp.onnx",
        sound.chord_sample,
        sound.judge_chords,
        ("basic-pitch",),
        {"serving_default_input_2:0": (1, 43844, 1)},
    ),
    RealModel(
        "magika",
        "file type, 2048 bytes",
        "magika/model.onnx",
        text.file_sample,
        text.judge_files,
        ("magika", "photos"),
        {"bytes": (1, 2048)},
    ),
    RealModel(
        "minilm",
        "sentence vectors, 16 tokens",
        "minilm-int8/model.onnx",
        text.word_sample,
        text.judge_words,
        ("minilm-int8",),
        {"input_ids": _WORDS_SHAPE, "attention_mask": _WORDS_SHAPE, "token_type_ids": _WORDS_SHAPE},
    ),
    RealModel(
        "multistyle26",
        "style transfer, 256 px",
        "style-transfer/multistyle26.onnx",
        vision.style_sample,
        vision.judge_style,
        ("style-transfer", "photos"),
        {"image": (1, 3, 256, 256)},
    ),
    RealModel(
        "captcha-crnn",
        "captcha reader, 60 x 160 px",
        "captcha-crnn/captcha_crnn.onnx",
        ocr.captcha_sample,
        ocr.judge_captcha,
        ("captcha-crnn",),
        {"image": (1, 3, 60, 160)},
    ),
    RealModel(
        "mlsd-tiny",
        "line segments, 320 px",
        "mlsd/mlsd_320x320_tiny.onnx",
        vision.line_sample,
        vision.judge_lines,
        ("mlsd",),
    ),
)

REAL_MODELS: dict[str, RealModel] = {model.name: model for model in _MODELS}


def main(names: list[str]) -> int:
    """Judge the named models (all by default) under onnxruntime; returns 1 when one is wrong or missing."""
    from engines import onnxruntime_engine

    wrong = 0
    for name in names or list(REAL_MODELS):
        model = REAL_MODELS.get(name)
        if model is None or model.absent():
            missing = (
                "unknown name" if model is None else f"not fetched: tools/fetch_models.py {' '.join(model.absent())}"
            )
            print(f"{name:<20} {missing}")
            wrong += 1
            continue
        verdict = model.judge(onnxruntime_engine(model.path()), MODELS, False)
        wrong += not verdict.right
        print(f"{name:<20} {'right' if verdict.right else 'WRONG'}  {verdict.said}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
