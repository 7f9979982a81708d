"""Wrappers that an app developer reads and copies: Kotlin over JNI, a Swift package, an ES module and a demo page.

Each is generated from one template by the network's stem, inputs and outputs, and ends with a usage example.
"""

from __future__ import annotations

from xnncc.bindings.header import write_header
from xnncc.bindings.write import BINDINGS, write_bindings, write_demo_page

__all__ = ["BINDINGS", "write_bindings", "write_demo_page", "write_header"]
