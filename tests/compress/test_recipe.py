"""Recipes: the shipped ones are sound, the user's mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from xnncc.compress.recipe import METHODS, NEEDS, SHIPPED, load_recipe, method_named, parse_recipe
from xnncc.errors import CompressError


@pytest.mark.parametrize(("name", "needs"), list(zip(SHIPPED, ("nothing", "calib", "train", "train"), strict=True)))
def test_shipped_recipes_are_sound(name: str, needs: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.summary
    assert recipe.needs == needs


def test_the_table_is_sorted_and_every_entry_is_a_method() -> None:
    assert list(METHODS) == sorted(METHODS)
    assert set(METHODS.values()) <= set(NEEDS)
    for name in METHODS:
        if METHODS[name] != "train":  # those import torch
            assert callable(method_named(name))


def test_a_step_is_the_defaults_under_what_the_recipe_says() -> None:
    text = '[recipe]\nname = "own"\n[[step]]\nmethod = "quantise_round"\nbits = 4\nskip = ["stem*"]\nstrength = 1'
    step = parse_recipe(text, "own.toml").steps[0]
    assert step.params == {"bits": 4, "sensitive_bits": 8, "scale": "channel"}
    assert (step.layers, step.skip, step.strength, step.is_searched) == (("*",), ("stem*",), 1.0, True)


def test_no_steps_are_a_recipe() -> None:
    assert parse_recipe("", "own.toml").steps == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[step]]\nbits = 4", "step 1: no method"),
        ('[[step]]\nmethod = "quantise_rond"', "did you mean 'quantise_round'"),
        ('[[step]]\nmethod = "quantise_round"\nbit = 4', "unknown key 'bit'; did you mean 'bits'"),
        ('[[step]]\nmethod = "quantise_round"\nbits = "4"', "'bits' is '4', a str. It must be a whole number"),
        ('[[step]]\nmethod = "quantise_round"\nbits = 40', "'bits' is 40. It goes from 0 to 16"),
        ('[[step]]\nmethod = "quantise_round"\nscale = "row"', "'scale' is 'row'"),
        ('[[step]]\nmethod = "quantise_round"\nstrength = 1.5', "strength is 1.5"),
        ('[[step]]\nmethod = "quantise_round"\nlayers = [3]', "holds something that is no text"),
        ("[steps]\na = 1", "unknown table 'steps'"),
        ('[recipe]\nnam = "x"', "unknown key 'nam'"),
        ('[recipe]\nneeds = "data"', "'needs' is 'data'"),
        ("[[step]", "not TOML"),
        ("[step]\nmethod = 1", "two brackets"),
    ],
)
def test_mistakes_are_named(text: str, says: str) -> None:
    with pytest.raises(CompressError) as caught:
        parse_recipe(text, "own.toml")
    assert says in str(caught.value)


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="did you mean 'balanced'"):
        load_recipe("balancd")
    (tmp_path / "own.toml").write_text('[recipe]\nname = "own"\n')
    assert load_recipe(str(tmp_path / "own.toml")).name == "own"
