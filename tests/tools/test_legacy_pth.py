"""read_state_dict: tensors of a legacy .pth without torch, and nothing but tensors."""

from __future__ import annotations

import collections
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from fetch.legacy_pth import read_state_dict

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


class _Named:
    """Pickles as the global ``module.name``."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Tensor:
    """Pickles as a call of torch's rebuild function."""

    def __init__(self, storage: tuple, offset: int, size: tuple, stride: tuple) -> None:
        self.arguments = (storage, offset, size, stride, False, collections.OrderedDict())


class _StoragePickler(pickle._Pickler):  # type: ignore[name-defined]  # the Python one can be taught new types
    """Writes what torch would write, without torch."""

    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def persistent_id(self, obj: object) -> object:
        return obj if isinstance(obj, tuple) and obj and obj[0] == "storage" else None

    def save_pers(
        self, pid: object
    ) -> None:  # the tuple itself is the id: write its items, not a reference to it again
        kind, storage, key, device, count = pid  # type: ignore[misc]
        self.write(pickle.MARK)
        self.save(kind)
        self.save(storage)
        for part in (key, device, count):
            self.save(part)
        self.write(pickle.TUPLE + pickle.BINPERSID)

    def _save_named(self, obj: _Named) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())

    def _save_tensor(self, obj: _Tensor) -> None:
        self._save_named(_Named("torch._utils", "_rebuild_tensor_v2"))
        self.save(obj.arguments)
        self.write(pickle.REDUCE)

    dispatch[_Named] = _save_named
    dispatch[_Tensor] = _save_tensor


def _write(path: Path, state: object, storages: dict[str, np.ndarray], magic: int = MAGIC) -> Path:
    with path.open("wb") as file:
        for part in (magic, VERSION, {"little_endian": True}, state, list(storages)):
            _StoragePickler(file, protocol=2).dump(part)
        for elements in storages.values():
            file.write(struct.pack("<q", elements.size) + elements.tobytes())
    return path


def _storage(key: str = "0", kind: str = "FloatStorage") -> tuple:
    return ("storage", _Named("torch", kind), key, "cpu", 6)


SIX = np.arange(6, dtype=np.float32)


def test_reads_offsets_strides_and_dtypes(tmp_path: Path) -> None:
    state = collections.OrderedDict(
        whole=_Tensor(_storage(), 0, (2, 3), (3, 1)),
        turned=_Tensor(_storage(), 0, (3, 2), (1, 3)),
        tail=_Tensor(_storage(), 4, (2,), (1,)),
        count=_Tensor(_storage("1", "LongStorage"), 0, (), ()),
    )
    path = _write(tmp_path / "s.pth", state, {"0": SIX, "1": np.array([7], np.int64)})
    arrays = read_state_dict(path)
    np.testing.assert_array_equal(arrays["whole"], SIX.reshape(2, 3))
    np.testing.assert_array_equal(arrays["turned"], SIX.reshape(2, 3).T)
    np.testing.assert_array_equal(arrays["tail"], [4, 5])
    assert arrays["count"] == 7 and arrays["count"].dtype == np.int64


def test_refuses_a_pickle_that_calls_a_function(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (os.mkdir, (str(tmp_path / "made"),))

    path = tmp_path / "evil.pth"
    with path.open("wb") as file:
        for part in (MAGIC, VERSION, {}, Evil()):
            pickle.dump(part, file, protocol=2)
    with pytest.raises(ValueError, match="mkdir"):
        read_state_dict(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("size", "stride", "offset"), [((7,), (1,), 0), ((2,), (1,), 5), ((2, 3), (4, 1), 0), ((2,), (-1,), 1)]
)
def test_refuses_a_view_beyond_its_storage(tmp_path: Path, size: tuple, stride: tuple, offset: int) -> None:
    state = collections.OrderedDict(t=_Tensor(_storage(), offset, size, stride))
    with pytest.raises(ValueError, match="'t'"):
        read_state_dict(_write(tmp_path / "s.pth", state, {"0": SIX}))


def test_refuses_a_cut_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "s.pth", collections.OrderedDict(t=_Tensor(_storage(), 0, (6,), (1,))), {"0": SIX})
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="cut off"):
        read_state_dict(path)


def test_refuses_another_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no legacy PyTorch file"):
        read_state_dict(_write(tmp_path / "s.pth", {}, {}, magic=1))
    (tmp_path / "text.pth").write_text("not a pickle")
    with pytest.raises(ValueError, match="no legacy PyTorch state dict"):
        read_state_dict(tmp_path / "text.pth")
