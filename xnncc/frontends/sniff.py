"""What a file seems to be, from its first bytes: for error messages, never for a decision."""

from __future__ import annotations

import zipfile
from pathlib import Path

_MAGICS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"version https://git-lfs", "a Git LFS pointer: run 'git lfs pull' to get the file behind it"),
    (0, b"\x89PNG", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x89HDF\r\n", "an HDF5 file (Keras .h5)"),
    (0, b"\x1f\x8b", "a gzip archive: unpack it first"),
    (0, b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (0, b"\x80\x02", "a Python pickle (PyTorch weights?): export the network with torch.onnx.export"),
    (0, b"\x80\x04", "a Python pickle: export the network as ONNX"),
    (0, b"\x7fELF", "a program or shared library"),
    (0, b"XNN", "an xnncc package: it is built already"),
    (0, b"\x93NUMPY", "a numpy array"),
    (0, b"ncnn", "an ncnn model"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (4, b"ORTM", "an onnxruntime .ort model: use the .onnx file it was made from"),
)  # fmt: skip


def looks_like(path: Path) -> str:
    """Return a few words on what ``path`` seems to hold."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        return "an empty file"
    for offset, magic, words in _MAGICS:
        if head[offset : offset + len(magic)] == magic:
            return words
    if head[:4] == b"PK\x03\x04":
        return _zip_kind(path)
    return _text_kind(head) or "binary data"


def _zip_kind(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged zip archive"
    if any(name.endswith("data.pkl") for name in names):
        return "a PyTorch file: export the network with torch.onnx.export"
    if "config.json" in names and any(name.endswith(".h5") for name in names):
        return "a Keras .keras file"
    return "a zip archive: unpack it first"


def _text_kind(head: bytes) -> str:
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page: the download gave an HTML page instead of the model"
    if start.startswith(b"<?xml"):
        return "an XML file (an OpenVINO model?)"
    if start.startswith((b"{", b"[")):
        return "a JSON file"
    if b"layer {" in start or b"layers {" in start:
        return "a Caffe prototxt"
    printable = sum(32 <= byte < 127 or byte in b"\r\n\t" for byte in head)
    return "a text file" if printable > 0.95 * len(head) else ""
