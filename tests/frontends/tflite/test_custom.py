"""A user's own operator in a TFLite file: tensors as TFLite has them, options as bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tflite_models import Out, T, const, one_operator


def test_an_operator_of_the_users_own(my_plus: Callable, load: Callable) -> None:
    image = np.arange(24, dtype="float32").reshape(1, 2, 3, 4)
    data, feeds = one_operator("MyPlus", T(image), const(image * 2), out=Out(image.shape), custom=b"\x01\x02")
    imported = load(data, feeds)
    assert imported.check is not None and imported.check.max_relative_error == 0
    assert imported.runtime.name == "xnncc's TFLite interpreter"
    np.testing.assert_array_equal(imported.reference(feeds)["y0"], image * 3)
    call = my_plus()[0]
    assert (call.kind, call.name, call.shapes) == ("MyPlus", "y0", (image.shape,) * 2)
    assert call.attributes == {"custom_options": b"\x01\x02"}
    assert call.constants[0] is None and np.array_equal(call.constants[1], image * 2)


def test_quantised_tensors_are_refused(my_plus: Callable, refuses: Callable) -> None:
    x = T(np.zeros((2, 2), "int8"), scale=0.5)
    data, _ = one_operator("MyPlus", x, x, out=Out((2, 2), "int8", scale=0.5))
    assert "it is not supported on quantised int8" in refuses(data)
