"""A GraphDef as plain Python: operations in the order they can run, attributes decoded, inputs and outputs found.

Tensors are named as TensorFlow does, without the index of a first output: ``conv1``, ``split:1``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..refused import Refused
from .tensors import dtype_name

# Nodes that nobody reads and that are still no output of the network.
_SILENT = frozenset({"NoOp", "Const", "Assert", "Placeholder", "SaveV2", "RestoreV2", "MergeSummary"})
CONTROL_FLOW = frozenset({"While", "StatelessWhile", "If", "StatelessIf"})  # they call functions of the library
# Operators whose outputs have several names: within functions a tensor is called ``node:name:number``.
_OUTPUT_NAMES = {
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV2": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV3": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"),
    "TopKV2": ("values", "indices"),
    "TopK": ("values", "indices"),
}
# What an attribute must be, wherever it stands; others may be anything.
_ATTRIBUTE_TYPES: dict[str, type] = {
    **dict.fromkeys(("strides", "ksize", "dilations", "explicit_paddings", "squeeze_dims", "_output_shapes"), list),
    **dict.fromkeys(("padding", "data_format", "mode", "dtype", "DstT", "output_type", "out_type", "equation", "f",
                     "cond", "body", "then_branch", "else_branch"), str),
    **dict.fromkeys(("keep_dims", "transpose_a", "transpose_b", "adj_x", "adj_y", "exclusive", "reverse",
                     "align_corners", "half_pixel_centers", "is_training", "narrow_range"), bool),
    **dict.fromkeys(("axis", "num_split", "block_size", "num_bits", "batch_dims", "begin_mask", "end_mask",
                     "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), int),
    **dict.fromkeys(("epsilon", "alpha", "min", "max"), float),
}  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """One node: ``kind`` is TensorFlow's operator; ``inputs`` are tensors, control inputs left out."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The node for a message: ``node 'conv1' (Conv2D)``."""
        return f"node '{self.name}' ({self.kind})"

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute or ``default``."""
        return self.attributes.get(name, default)

    def output(self, index: int) -> str:
        """Return the name of output ``index``."""
        return self.name if index == 0 else f"{self.name}:{index}"


@dataclass(frozen=True)
class Function:
    """A function of the library: parameters and results by name, results as tensors of its body."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Operation, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Operations sorted by dependence; ``outputs``: the nodes whose results nobody reads, in file order.

    Nodes that depend on no input are none: freezing leaves readers of variables behind.
    """

    operations: tuple[Operation, ...]
    outputs: tuple[str, ...]
    functions: dict[str, Function]


class BrokenGraph(Exception):
    """The file is no graph; the text says why."""


def graph_of(proto: Any) -> Graph:
    """Return the graph in a GraphDef message.

    Raises:
        BrokenGraph: two nodes of one name, an input that nobody computes, a cycle, a name that is no text.
    """
    operations = [_operation(node) for node in proto.node]
    functions = {f.signature.name: _function(f) for f in proto.library.function}
    ordered = sorted_operations(operations)
    read = Counter(node_of(name) for operation in operations for name in operation.inputs)
    varying: set[str] = set()
    for operation in ordered:
        if operation.kind == "Placeholder" or any(node_of(name) in varying for name in operation.inputs):
            varying.add(operation.name)
    outputs = [o.name for o in operations if o.name in varying and not read[o.name] and o.kind not in _SILENT]
    return Graph(tuple(ordered), tuple(outputs), functions)


def node_of(tensor: str) -> str:
    """Return the node that computes a tensor."""
    return tensor.partition(":")[0]


def _operation(node: Any) -> Operation:
    try:
        name, kind, inputs = node.name, node.op, list(node.input)
        attributes = {key: attribute_value(value) for key, value in node.attr.items()}
    except UnicodeDecodeError:
        raise BrokenGraph("a name in it is not text (UTF-8)") from None
    if not name or not kind:
        raise BrokenGraph(f"a node has no {'name' if not name else f'operator: {name!r}'}")
    return _checked(
        Operation(name, kind, tuple(_tensor(text) for text in inputs if not text.startswith("^")), attributes)
    )


def _checked(operation: Operation) -> Operation:
    """Return the operation; control characters in names and attributes of another type, from damage, are refused."""
    for name in (operation.name, operation.kind, *operation.inputs):
        if not name.isprintable():
            raise BrokenGraph(f"the name {name!r} has characters that no name has")
    for key, value in operation.attributes.items():
        wanted = _ATTRIBUTE_TYPES.get(key)
        numbers = key in ("strides", "ksize", "dilations", "explicit_paddings", "squeeze_dims")
        right = wanted is None or type(value) is wanted
        if not right or (numbers and any(type(item) is not int for item in value)):
            raise BrokenGraph(f"{operation.label}: attribute '{key}' is {value!r:.40}, of another type than it has")
    if operation.kind == "Const" and not hasattr(operation.attr("value"), "tensor_shape"):
        raise BrokenGraph(f"{operation.label} has no value")
    return operation


def _tensor(text: str) -> str:
    """Return the canonical name of ``node``, ``node:0``, ``node:2``."""
    head, colon, index = text.rpartition(":")
    if not colon:
        return text
    if not index.isdecimal():
        raise BrokenGraph(f"'{text}' is no name of a tensor")
    return head if int(index) == 0 else f"{head}:{int(index)}"


def attribute_value(value: Any) -> Any:
    """Return an AttrValue as str, int, float, bool, dtype name, shape (None: unknown rank), list, or TensorProto."""
    kind = value.WhichOneof("value")
    match kind:
        case "s":
            return value.s.decode("utf-8", "replace")
        case "type":
            return dtype_name(value.type)
        case "shape":
            return _shape(value.shape)
        case "func":
            return value.func.name
        case "list":
            return _listed(value.list)
        case None:
            return []  # an empty list is written as no field at all
    return getattr(value, kind)


def _listed(value: Any) -> list[Any]:
    shapes, names = [_shape(s) for s in value.shape], [s.decode("utf-8", "replace") for s in value.s]
    return [*names, *value.i, *value.f, *value.b, *(dtype_name(t) for t in value.type), *shapes]


def _shape(shape: Any) -> tuple[int, ...] | None:
    return None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)


def sorted_operations(operations: Iterable[Operation], given: Iterable[str] = ()) -> list[Operation]:
    """Return the operations so that each stands after what it reads, otherwise in the order given.

    ``given``: tensors that exist already, the parameters of a function.

    Raises:
        BrokenGraph: a name twice, an input that nobody computes, a cycle.
    """
    known: dict[str, Operation] = {}
    for operation in operations:
        if operation.name in known:
            raise BrokenGraph(f"two nodes are called '{operation.name}'")
        known[operation.name] = operation
    done: set[str] = {node_of(name) for name in given}
    result: list[Operation] = []
    for start in known.values():
        _visit(start, known, done, result)
    return result


def _visit(start: Operation, known: dict[str, Operation], done: set[str], result: list[Operation]) -> None:
    """Append ``start`` after all that it needs; a stack of our own, as graphs are deeper than Python's."""
    path = [(start, iter(start.inputs))] if start.name not in done else []
    open_names = {start.name}
    while path:
        operation, left = path[-1]
        needed = next(left, None)
        if needed is None:
            path.pop()
            open_names.discard(operation.name)
            if operation.name not in done:
                done.add(operation.name)
                result.append(operation)
            continue
        node = node_of(needed)
        if node in done:
            continue
        if node not in known:
            raise BrokenGraph(f"{operation.label} needs '{needed}', which no node computes")
        if node in open_names:
            raise BrokenGraph(f"{operation.label} needs itself, through '{needed}'")
        path.append((known[node], iter(known[node].inputs)))
        open_names.add(node)


def needed_for(operations: Sequence[Operation], tensors: Iterable[str]) -> list[Operation]:
    """Return those of sorted ``operations`` that ``tensors`` depend on, in order."""
    wanted = {node_of(name) for name in tensors}
    needed = []
    for operation in reversed(operations):
        if operation.name in wanted:
            needed.append(operation)
            wanted.update(node_of(name) for name in operation.inputs)
    return needed[::-1]


def _function(proto: Any) -> Function:
    """Return a function with the tensors of its body named as in a graph."""
    signature = proto.signature
    parameters = tuple(arg.name for arg in signature.input_arg)
    kinds = {node.name: node.op for node in proto.node_def}
    body = []
    for node in proto.node_def:
        inputs = tuple(_inner(text, kinds, parameters) for text in node.input if not text.startswith("^"))
        attributes = {key: attribute_value(value) for key, value in node.attr.items()}
        body.append(_checked(Operation(node.name, node.op, inputs, attributes)))
    results = tuple(_inner(proto.ret.get(arg.name, ""), kinds, parameters) for arg in signature.output_arg)
    return Function(signature.name, parameters, tuple(body), results)


def _inner(text: str, kinds: dict[str, str], parameters: tuple[str, ...]) -> str:
    """Return ``node:output:number`` of a function's body as ``node`` or ``node:index``."""
    node, *rest = text.split(":")
    if not rest or node in parameters:
        return node
    names = _OUTPUT_NAMES.get(kinds.get(node, ""))
    number = int(rest[-1]) if rest[-1].isdecimal() else 0
    index = names.index(rest[0]) if names and rest[0] in names else number
    return node if index == 0 else f"{node}:{index}"


def inlined(operation: Operation, function: Function) -> tuple[list[Operation], dict[str, str]]:
    """Return the body of a called function with its tensors named ``call/inner``, and what each result of the call is.

    Raises:
        Refused: the call does not fit the function.
    """
    if len(operation.inputs) != len(function.parameters):
        found = f"{len(operation.inputs)} arguments, function '{function.name}' takes {len(function.parameters)}"
        raise Refused(f"it has {found}", "The file is damaged; export it again.")
    names = dict(zip(function.parameters, operation.inputs, strict=True))

    def outer(tensor: str) -> str:
        return names.get(tensor, f"{operation.name}/{tensor}")

    body = [
        Operation(f"{operation.name}/{o.name}", o.kind, tuple(outer(i) for i in o.inputs), o.attributes)
        for o in function.body
    ]
    return body, {operation.output(i): outer(result) for i, result in enumerate(function.results)}
