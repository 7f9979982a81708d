"""Where Strassen's products are chosen, and how pixels are cut into pieces."""

from __future__ import annotations

import pytest

from xnncc.target import Machine, load_target
from xnncc.transform.choose_strassen import is_strassen, strassen_pays, strassen_pieces

MACHINE = load_target("linux-x86-64").machine
ZEN4 = Machine(lanes=16, registers=32, fma_ports=1, l2_kib=1024)


@pytest.mark.parametrize(
    ("pixels", "c", "o", "pays"),
    [
        (196, 512, 512, True),
        (49, 1024, 1024, True),
        (784, 256, 256, False),
        (196, 256, 512, False),
        (49, 512, 1024, False),  # weights come from far, and are 7/4 as many
        (197, 192, 768, False),
        (196, 128, 512, False),
        (12544, 32, 64, False),
        (196, 768, 32, False),
    ],
)
def test_pays_with_many_channels_on_both_sides(pixels: int, c: int, o: int, pays: bool) -> None:
    assert strassen_pays(pixels, c, o, ZEN4) == pays


def test_does_not_pay_with_few_registers() -> None:
    assert not strassen_pays(196, 512, 512, MACHINE)


def test_halves() -> None:
    assert is_strassen(196, 4, 2)
    assert not is_strassen(196, 3, 2) and not is_strassen(196, 4, 5) and not is_strassen(4, 4, 4)


@pytest.mark.parametrize(("pixels", "c"), [(196, 512), (49, 1024), (3136, 256), (50, 64), (12544, 512), (13, 4096)])
def test_pieces_cover_the_pixels(pixels: int, c: int) -> None:
    pieces, half = strassen_pieces(pixels, c, MACHINE)
    assert pixels <= 2 * half * pieces < pixels + 2 * pieces
    assert pieces == 1 or 2 * half * pieces == pixels  # a ragged last half is only made once
