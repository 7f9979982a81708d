"""The package of a network (``.xnn``, docs/package.md) and the manifest of its folder, written and read.

Imports nothing but the standard library, so that a package can be inspected anywhere.
"""

from xnncc.pack.layout import Package, Section, Tensor, Variant
from xnncc.pack.manifest import read_manifest, variant_manifests, write_manifest
from xnncc.pack.read import decode, read
from xnncc.pack.write import encode, write

__all__ = [
    "Package",
    "Section",
    "Tensor",
    "Variant",
    "decode",
    "encode",
    "read",
    "read_manifest",
    "variant_manifests",
    "write",
    "write_manifest",
]
