"""Words and bytes: sentence vectors (MiniLM), file types (magika)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from judges.verdict import Feeds, Run, Verdict

# MiniLM: input_ids, attention_mask, token_type_ids [1, S] int64; last_hidden_state [1, S, 384]. The vector of a
# sentence is the mean over its tokens. The package has no tokenizer: the ids are bert-base-uncased's for whole words.

_LENGTH = 16
_START, _END = 101, 102
_WORDS = {
    "cat": 4937, "kitten": 18401, "dog": 3899, "puppy": 17022, "car": 2482, "truck": 4744,
    "paris": 3000, "france": 2605, "stocks": 15768,
}  # fmt: skip
_ALIKE = (("cat", "kitten"), ("dog", "puppy"), ("paris", "france"), ("car", "truck"))
_UNLIKE = (("cat", "stocks"), ("kitten", "stocks"), ("puppy", "paris"))


def word_feeds(*words: str) -> Feeds:
    """Token ids of words, framed and padded to 16."""
    ids = [_START, *(_WORDS[word] for word in words), _END]
    padded = np.zeros((2, 1, _LENGTH), np.int64)
    padded[0, 0, : len(ids)], padded[1, 0, : len(ids)] = ids, 1
    zeros = np.zeros((1, _LENGTH), np.int64)
    return {"input_ids": padded[0], "attention_mask": padded[1], "token_type_ids": zeros}


def _vector(run: Run, word: str) -> np.ndarray:
    """[384] unit vector."""
    feeds = word_feeds(word)
    count = int(feeds["attention_mask"].sum())
    vector = run(feeds)["last_hidden_state"].reshape(_LENGTH, -1)[:count].mean(axis=0)
    return vector / np.linalg.norm(vector)


def word_sample(data: Path) -> Feeds:
    """Four words."""
    return word_feeds("cat", "kitten", "paris", "stocks")


def judge_words(run: Run, data: Path, quick: bool) -> Verdict:
    """Alike words have a cosine above 0.6, unlike ones below 0.35."""
    alike, unlike = (_ALIKE[:1], _UNLIKE[:1]) if quick else (_ALIKE, _UNLIKE)
    vectors = {word: _vector(run, word) for word in sorted({w for pair in alike + unlike for w in pair})}
    cosine = {pair: float(vectors[pair[0]] @ vectors[pair[1]]) for pair in alike + unlike}
    right = all(cosine[pair] > 0.6 for pair in alike) and all(cosine[pair] < 0.35 for pair in unlike)
    said = ", ".join(f"cos({a}, {b}) {cosine[a, b]:.2f}" for a, b in (alike[0], unlike[0]))
    return Verdict(right, f"{said}; {len(cosine)} pairs")


# magika: bytes [1, 2048] int32 = the first 1024 (leading blanks off), the last 1024 (trailing blanks off), 256 where a
# file is shorter; target_label [1, 214] = probabilities.

_HALF, _BLOCK, _PADDING = 1024, 4096, 256


def file_feeds(content: bytes) -> Feeds:
    """What magika wants to see of a file."""
    head = list(content[:_BLOCK].lstrip()[:_HALF])
    tail = list(content[-_BLOCK:].rstrip()[-_HALF:])
    row = head + [_PADDING] * (_HALF - len(head)) + [_PADDING] * (_HALF - len(tail)) + tail
    return {"bytes": np.array([row], np.int32)}


def _known_files(data: Path) -> list[tuple[str, bytes]]:
    """File type and content."""
    script = b'#!/bin/sh\nset -eu\nfor f in "$@"; do\n  if [ -f "$f" ]; then echo "$f"; fi\ndone\nexit 0\n'
    return [
        ("python", Path(__file__).read_bytes()),
        ("png", (data / "photos" / "astronaut.png").read_bytes()),
        ("json", (data / "magika" / "config.min.json").read_bytes()),
        ("onnx", (data / "magika" / "model.onnx").read_bytes()),
        ("shell", script),
    ]


def file_sample(data: Path) -> Feeds:
    """This Python file."""
    return file_feeds(Path(__file__).read_bytes())


def judge_files(run: Run, data: Path, quick: bool) -> Verdict:
    """Every file's type is named, with more than 0.5."""
    labels = json.loads((data / "magika" / "config.min.json").read_text("utf-8"))["target_labels_space"]
    wrong, answers = [], []
    for kind, content in _known_files(data)[: 2 if quick else None]:
        scores = run(file_feeds(content))["target_label"].reshape(-1)
        best = int(scores.argmax())
        answers.append(f"{labels[best]} {scores[best]:.2f}")
        if labels[best] != kind or scores[best] <= 0.5:
            wrong.append(kind)
    said = f"{len(answers) - len(wrong)} of {len(answers)} file types named: {', '.join(answers)}"
    return Verdict(not wrong, said)
