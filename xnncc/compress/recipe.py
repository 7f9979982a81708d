"""A recipe: which methods, in which order, on which layers, how hard. TOML, checked before anything runs.

    [recipe]
    name = "safe"
    summary = "8-bit weights, no data needed"
    needs = "nothing"            # "calib" or "train" refuse to run without; default: what the methods need

    [[step]]
    method = "quantise_round"    # a key of METHODS
    layers = ["*"]               # patterns over layer names, as in a shell; default all
    skip = ["stem*"]             # of these, leave alone; default none
    strength = 0.0               # [0, 1], default 0.5
    search = true                # whether --max-loss and --target-kib turn the strength; default true
    bits = 8                     # the method's own parameters: its DEFAULTS say which there are

No steps: nothing but the exact transform and lossless coding.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import CompressError, nearest
from .result import Method

# Method -> whether it runs on nothing ("nothing"), on samples ("calib") or needs gradients ("train"). Sorted.
METHODS: dict[str, str] = {
    "calibrate_int8": "calib",
    "deep_compression": "train",
    "equalise_layers": "nothing",
    "factorise_low_rank": "nothing",
    "fine_tune": "train",
    "prune_gradually": "train",
    "prune_neurons": "nothing",
    "prune_synapses": "nothing",
    "quantise_adaround": "calib",
    "quantise_admm": "nothing",
    "quantise_codebook": "nothing",
    "quantise_entropy": "train",
    "quantise_fisher": "nothing",
    "quantise_mixed": "calib",
    "quantise_round": "nothing",
    "quantise_small": "nothing",
    "tune_scales": "train",
}
NEEDS = ("nothing", "calib", "train")
SHIPPED = ("safe", "balanced", "max", "deep-compression")
_HERE = Path(__file__).parent / "recipes"
_STEP_KEYS = {"method": str, "layers": list, "skip": list, "strength": float, "search": bool}


@dataclass(frozen=True)
class Step:
    """One step of a recipe. ``params`` is complete: the method's defaults under what the recipe says."""

    method: str
    params: Mapping[str, Any]
    layers: tuple[str, ...] = ("*",)
    skip: tuple[str, ...] = ()
    strength: float = 0.5
    is_searched: bool = True


@dataclass(frozen=True)
class Recipe:
    """A checked recipe."""

    name: str
    summary: str
    steps: tuple[Step, ...]
    asks: str = "nothing"  # at least this data, although its methods could do without

    @property
    def needs(self) -> str:
        """The most that the recipe or any step needs: "nothing", "calib" or "train"."""
        return max((self.asks, *(METHODS[step.method] for step in self.steps)), key=NEEDS.index)


def load_recipe(name: str) -> Recipe:
    """Return a shipped recipe by its name, or the one in a ``.toml`` file.

    Raises: CompressError, naming the file, the step and the key.
    """
    path = _HERE / f"{name}.toml" if name in SHIPPED else Path(name)
    if not path.is_file():
        known = f"Shipped: {', '.join(SHIPPED)}; or give a .toml file."
        raise CompressError(f"--recipe {name}", f"no such recipe or file{nearest(name, list(SHIPPED))}", known)
    return parse_recipe(path.read_text(encoding="utf-8"), name)


def parse_recipe(text: str, what: str) -> Recipe:
    """Return the recipe in ``text``; ``what`` names it in messages.

    Raises: CompressError.
    """
    document = _parsed(text, what)
    for key in document:
        if key not in ("recipe", "step"):
            raise CompressError(f"recipe {what}", f"unknown table '{key}'", "Tables: [recipe] and [[step]].")
    head = document.get("recipe", {})
    unknown = sorted(set(head) - {"name", "summary", "needs"})
    if unknown:
        raise CompressError(f"recipe {what}", f"unknown key '{unknown[0]}' in [recipe]", "Keys: name, summary, needs.")
    asks = head.get("needs", "nothing")
    if asks not in NEEDS:
        raise CompressError(f"recipe {what}", f"'needs' is {asks!r}", f"Known: {', '.join(NEEDS)}.")
    steps = document.get("step", [])
    if not isinstance(steps, list):
        raise CompressError(f"recipe {what}", "'step' is one table", "Write [[step]] with two brackets.")
    checked = tuple(_step(entry, f"recipe {what}, step {number}") for number, entry in enumerate(steps, 1))
    return Recipe(str(head.get("name", what)), str(head.get("summary", "")), checked, asks)


def method_named(name: str) -> Method:
    """Return the function of a method."""
    function: Method = getattr(_module(name), name)
    return function


def _module(name: str) -> ModuleType:
    return import_module(f".{name}", __package__)


def _parsed(text: str, what: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CompressError(f"recipe {what}", f"not TOML: {error}", "Correct the line.") from None


def _step(entry: Any, where: str) -> Step:
    name = entry.get("method")
    if not isinstance(name, str) or name not in METHODS:
        found = f"method '{name}' does not exist{nearest(str(name), list(METHODS))}" if name else "no method"
        raise CompressError(where, found, f"Methods: {', '.join(METHODS)}.")
    given = {key: _typed(entry[key], kind, key, where) for key, kind in _STEP_KEYS.items() if key in entry}
    defaults = dict(_module(name).DEFAULTS)
    params = dict(defaults)
    for key, value in entry.items():
        if key in _STEP_KEYS:
            continue
        if key not in defaults:
            known = [*_STEP_KEYS, *defaults]
            raise CompressError(
                f"{where} ({name})", f"unknown key '{key}'{nearest(key, known)}", f"Keys: {', '.join(known)}."
            )
        params[key] = _typed(value, type(defaults[key]), key, f"{where} ({name})")
        _check_limits(params[key], getattr(_module(name), "LIMITS", {}).get(key), key, f"{where} ({name})")
    strength = given.get("strength", 0.5)
    if not 0 <= strength <= 1:
        raise CompressError(f"{where} ({name})", f"strength is {strength:g}", "Strengths go from 0 to 1.")
    patterns = {key: _patterns(given[key], key, where) for key in ("layers", "skip") if key in given}
    return Step(name, params, strength=strength, is_searched=given.get("search", True), **patterns)


def _check_limits(value: Any, limits: tuple[Any, ...] | None, key: str, where: str) -> None:
    """A method's LIMITS: the words that a text may be, or the smallest and the largest number."""
    if limits is None:
        return
    if isinstance(value, str):
        if value not in limits:
            raise CompressError(
                where, f"'{key}' is {value!r}{nearest(value, list(limits))}", f"Known: {', '.join(limits)}."
            )
    elif not limits[0] <= value <= limits[1]:
        raise CompressError(where, f"'{key}' is {value:g}", f"It goes from {limits[0]:g} to {limits[1]:g}.")


def _patterns(values: list[Any], key: str, where: str) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise CompressError(where, f"'{key}' holds something that is no text", f'Write {key} = ["conv*"].')
    return tuple(values)


def _typed(value: Any, kind: type, key: str, where: str) -> Any:
    """Return ``value`` as ``kind``; whole numbers are floats too, lists become tuples."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if type(value) is not kind:
        raise CompressError(
            where, f"'{key}' is {value!r}, a {type(value).__name__}", f"It must be a {_WORDS.get(kind, kind.__name__)}."
        )
    return value


_WORDS = {float: "number", int: "whole number", bool: "true or false", str: "text", tuple: "list", list: "list"}
