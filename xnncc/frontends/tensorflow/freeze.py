"""SavedModel folders and Keras files -> a frozen GraphDef, by TensorFlow itself (the extra ``xnncc[tf]``).

Outputs get the names that the signature, or Keras, gives them. Loops stay functions (no lowered control flow), which
``convert.py`` can unroll. SavedModels that TensorFlow 2 cannot load any more, because they hold the slots of an old
optimiser, are loaded as TensorFlow 1 did: only the graph and its variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import BadModel, UnsupportedModel
from .reference import has_tensorflow

INSTALL = "pip install 'xnncc[tf]'"
SIGNATURE = "serving_default"


def frozen(path: Path) -> bytes:
    """Return the model in ``path`` as the bytes of a frozen GraphDef.

    Raises:
        UnsupportedModel: TensorFlow is not installed, or the model has no such signature.
        BadModel: TensorFlow cannot load it.
    """
    what = "a SavedModel" if path.is_dir() else "a Keras model"
    if not has_tensorflow():
        why = f"{what} is frozen by TensorFlow, which is not installed"
        raise UnsupportedModel(f"{path}", why, f"Type: {INSTALL}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the import: its start-up talk is no result
    try:
        return _frozen_folder(path) if path.is_dir() else _frozen_keras(path)
    except BadModel:
        raise
    except Exception as error:  # TensorFlow and Keras raise whatever they like about files they cannot read
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BadModel(f"{path}", f"TensorFlow cannot load or freeze it ({first})", "Save the model again.") from error


def _frozen_folder(path: Path) -> bytes:
    import tensorflow as tf  # type: ignore[import-untyped]

    tf.get_logger().setLevel("ERROR")  # it advises authors of training code
    try:
        loaded = tf.saved_model.load(str(path))  # kept: a signature does not own its variables
    except (AttributeError, ValueError, TypeError, KeyError):
        return _frozen_as_version_1(path)
    signatures = loaded.signatures
    if SIGNATURE not in signatures:
        found = ", ".join(f"'{name}'" for name in signatures) or "none"
        why = f"it has no signature '{SIGNATURE}'; signatures: {found}"
        raise UnsupportedModel(f"{path}", why, "Export it with model.export(FOLDER).")
    function = signatures[SIGNATURE]
    return _frozen_function(function, _named(function.structured_outputs))


def _frozen_keras(path: Path) -> bytes:
    import keras  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import tensorflow as tf  # type: ignore[import-untyped]

    tf.get_logger().setLevel("ERROR")
    model = keras.models.load_model(str(path), compile=False)
    specs = [tf.TensorSpec([*x.shape], x.dtype, name=x.name.split(":")[0]) for x in model.inputs]

    def run(*inputs: Any) -> Any:
        return model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)

    function = tf.function(run, input_signature=specs).get_concrete_function()
    outputs = tf.nest.flatten(function.structured_outputs)
    names = list(getattr(model, "output_names", [])) or [f"output_{i}" for i in range(len(outputs))]
    return _frozen_function(function, dict(zip(names, range(len(outputs)), strict=True)))


def _named(outputs: Mapping[str, Any]) -> dict[str, int]:
    """Return the position of each output of a signature; TensorFlow flattens them sorted by name."""
    return {name: position for position, name in enumerate(sorted(outputs))}


def _frozen_function(function: Any, names: Mapping[str, int]) -> bytes:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # type: ignore[import-untyped]

    constant = convert_variables_to_constants_v2(function, lower_control_flow=False)
    graph = constant.graph.as_graph_def()
    found = {name: constant.outputs[position] for name, position in names.items()}
    return _with_names(graph, {name: (t.name, t.dtype.as_datatype_enum) for name, t in found.items()})


def _with_names(graph: Any, outputs: Mapping[str, tuple[str, int]]) -> bytes:
    """Return what ``outputs`` (name -> tensor, DataType) need, with an Identity of each name where that is free."""
    from tensorflow.python.framework.graph_util_impl import extract_sub_graph  # type: ignore[import-untyped]

    nodes = {node.name: node for node in graph.node}
    kept = set()
    for name, (tensor, dtype) in outputs.items():
        if name not in nodes:
            extra = graph.node.add(name=name, op="Identity", input=[tensor])
            extra.attr["T"].type = dtype
            kept.add(name)
    wanted = [name if name in kept else tensor.split(":")[0] for name, (tensor, _) in outputs.items()]
    return extract_sub_graph(graph, sorted(set(wanted))).SerializeToString(deterministic=True)


def _frozen_as_version_1(path: Path) -> bytes:
    """Freeze through a session, then let Grappler put functions in place of their calls."""
    import tensorflow as tf  # type: ignore[import-untyped]
    from tensorflow.core.protobuf import config_pb2  # type: ignore[import-untyped]
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_from_session_graph  # type: ignore[import-untyped]
    from tensorflow.python.grappler import tf_optimizer  # type: ignore[import-untyped]

    v1 = tf.compat.v1
    with v1.Session(graph=tf.Graph()) as session:
        meta = v1.saved_model.load(session, [v1.saved_model.tag_constants.SERVING], str(path))
        if SIGNATURE not in meta.signature_def:
            raise UnsupportedModel(f"{path}", f"it has no signature '{SIGNATURE}'", "Export it for serving.")
        infos = sorted(meta.signature_def[SIGNATURE].outputs.items())
        outputs = {name: (info.name, info.dtype) for name, info in infos}
        nodes = sorted({tensor.split(":")[0] for tensor, _ in outputs.values()})
        graph = session.graph.as_graph_def(add_shapes=True)
        constant = convert_variables_to_constants_from_session_graph(session, graph, nodes)
        imported = tf.Graph()
        with imported.as_default():
            tf.import_graph_def(constant, name="")
        described = v1.train.export_meta_graph(graph_def=constant, graph=imported)
        for node in nodes:
            described.collection_def["train_op"].node_list.value.append(node)
        config = config_pb2.ConfigProto()
        rewrite = config.graph_options.rewrite_options
        rewrite.optimizers.extend(["function", "constfold", "dependency", "constfold"])
        rewrite.min_graph_nodes = -1
        return _with_names(tf_optimizer.OptimizeGraph(config, described), outputs)
