"""The suffix table."""

from __future__ import annotations

import pytest

from xnncc.errors import BadModel, UnsupportedModel
from xnncc.frontends import load_model, supported_suffixes


def test_unknown_suffix_says_what_is_supported_and_what_the_file_is(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(UnsupportedModel) as refusal:
        load_model(path)
    words = str(refusal.value)
    assert "suffix '.pt' is not a model format that xnncc reads; the file looks like a Python pickle" in words
    assert words.endswith(f"Supported: {supported_suffixes()}.") and ".onnx (ONNX)" in supported_suffixes()


def test_missing_file(tmp_path):
    with pytest.raises(BadModel, match="no such file"):
        load_model(tmp_path / "gone.xyz")
