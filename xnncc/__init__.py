"""xnncc: from a trained network to a small library for one device.

    xnncc.build("model.onnx", "android-arm64")         -> BuildResult: the folder, its manifest, the report's facts
    xnncc.verify("model.onnx", "model-android-arm64")  -> VerifyResult: how far the artefact is from the source
    xnncc.compress("model.onnx", "model.xq")           -> CompressResult: a smaller model file, and what it cost
    xnncc.load("model-host")                           -> a callable network on numpy arrays
    @xnncc.custom_op("com.example::Swirl")             -> an operator of your own (docs/plugins.md)

Importing this package is cheap: TVM, onnx and numpy are imported by the verb that needs them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xnncc.build import build as build
    from xnncc.device.network import load as load
    from xnncc.frontends.custom_ops import custom_op as custom_op
    from xnncc.squeeze.compress import compress as compress
    from xnncc.verify import verify as verify

__version__ = "0.1.0"
__all__ = ["__version__", "build", "compress", "custom_op", "load", "verify"]

_HOME_OF = {
    "build": "xnncc.build",
    "compress": "xnncc.squeeze.compress",
    "custom_op": "xnncc.frontends.custom_ops",
    "load": "xnncc.device.network",
    "verify": "xnncc.verify",
}


def __getattr__(name: str) -> Any:
    """Import a verb when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'xnncc' has no attribute {name!r}")
    from importlib import import_module

    verb = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = verb
    return verb


class _Package(ModuleType):
    """``xnncc.build`` stays the verb although a submodule has the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOME_OF and isinstance(value, ModuleType):
            return  # the import system binding submodule xnncc.build; `from xnncc.build import ...` still finds it
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
