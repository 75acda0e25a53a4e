"""Building an ONNX graph: operators as Python calls, constants stored once, loops over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# Every runtime of the last years reads this set: onnxruntime since 1.6. It has all that is needed.
OPSET = 13
IR_VERSION = 7
# The numbers of element types in ONNX.
FLOAT32, INT64, FLOAT64 = 1, 7, 11
# Larger constants are not compared with each other.
_SMALL = 1024


class Graph:
    """Nodes in the order in which they are computed, and the constants that they read.

    A value is known by its name. Names are numbered, so the same calls give the same graph.
    ``onnx`` is the package. ``outer`` is the graph around this one, which is then the body of a
    loop: it may read the values of the outer graph, and its constants are stored there.
    """

    def __init__(self, onnx: Any, outer: Graph | None = None) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[object, Any] = {} if outer is None else outer._constants
        self._count: list[int] = [0] if outer is None else outer._count

    def _name(self, kind: str) -> str:
        self._count[0] += 1
        return f"{kind}_{self._count[0]}"

    # -- values -------------------------------------------------------------------------------

    def constant(self, array: np.ndarray, kind: str = "constant") -> str:
        """The name of a constant; small ones that are equal are stored once."""
        name = self._name(kind)
        small = array.size <= _SMALL
        key = (array.dtype.str, array.shape, array.tobytes()) if small else name
        if key not in self._constants:
            whole = np.array(array, order="C")
            self._constants[key] = self._onnx.numpy_helper.from_array(whole, name)
        return str(self._constants[key].name)

    def integers(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.constant(np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output and return its name."""
        return self.add_many(operator, *inputs, outputs=1, **attributes)[0]

    def add_many(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Append a node with several outputs and return their names."""
        names = [self._name(operator) for _ in range(outputs)]
        self._nodes.append(
            self._onnx.helper.make_node(operator, inputs, names, names[0], **attributes)
        )
        return names

    # -- often needed -------------------------------------------------------------------------

    def slice(self, value: str, axis: int, first: int, end: int | None) -> str:
        """``value[first:end]`` along an axis; None is the end of the axis."""
        last = np.iinfo(np.int64).max if end is None else end
        bounds = self.integers(first), self.integers(last), self.integers(axis)
        return self.add("Slice", value, *bounds)

    def as_column(self, value: str) -> str:
        """A vector (n,) as (n, 1)."""
        return self.add("Unsqueeze", value, self.integers(1))

    def size(self, value: str) -> str:
        """The length of the first axis, as (1,) int64."""
        return self.slice(self.add("Shape", value), 0, 0, 1)

    def zeros(self, rows: str, columns: int, value: float = 0.0) -> str:
        """(rows, columns) float32, all ``value``; ``rows`` is (1,) int64."""
        shape = self.add("Concat", rows, self.integers(columns), axis=0)
        filled = self._onnx.numpy_helper.from_array(np.array([value], np.float32))
        return self.add("ConstantOfShape", shape, value=filled)

    def scan(
        self,
        states: Sequence[str],
        rows: Sequence[str],
        step: Callable[[Graph, list[str], list[str]], list[str]],
    ) -> list[str]:
        """The last states of a loop over the first axis of ``rows``.

        ``states`` are the first states, each (n, k) float32; ``rows`` are (T, n) int64 each.
        ``step`` appends to a body the nodes that compute the next states from the states and from
        one row (n,) of each of ``rows``; it returns their names.
        """
        body = Graph(self._onnx, self)
        before = [body._name("state") for _ in states]
        items = [body._name("row") for _ in rows]
        after = step(body, before, items)

        def declared(names: list[str], kind: int) -> list[Any]:
            return [self._onnx.helper.make_tensor_value_info(name, kind, None) for name in names]

        inputs = declared(before, FLOAT32) + declared(items, INT64)
        graph = self._onnx.helper.make_graph(
            body._nodes, body._name("step"), inputs, declared(after, FLOAT32)
        )
        return self.add_many(
            "Scan", *states, *rows, outputs=len(states), body=graph, num_scan_inputs=len(rows)
        )

    # -- the whole ----------------------------------------------------------------------------

    def model(
        self,
        name: str,
        inputs: Mapping[str, tuple[int, Sequence[str]]],
        output: tuple[str, str, Sequence[str | int]],
        metadata: dict[str, str],
        producer: tuple[str, str],
    ) -> Any:
        """The graph as a checked `onnx.ModelProto`.

        ``inputs`` are element type and shape by name; a size that may vary is a text. ``output``
        has the name of the only output, the value, float32, and its shape. ``metadata`` describe
        the file; ``producer`` is name and version of the program.
        """
        helper = self._onnx.helper
        given, value, shape = output
        self._nodes.append(helper.make_node("Identity", [value], [given], given))
        graph = helper.make_graph(
            self._nodes,
            name,
            [
                helper.make_tensor_value_info(input_name, *inputs[input_name])
                for input_name in inputs
            ],
            [helper.make_tensor_value_info(given, FLOAT32, shape)],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name=producer[0],
            producer_version=producer[1],
        )
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model, full_check=True)
        return model
