"""A classifier as an ONNX model, for onnxruntime and its kin.

Every feature that matters is an input of its own under the name of its column, of shape (n, 1):
numbers as doubles (NaN is missing), categories as text (the empty text is missing). Outputs are
``label``, the class to predict as text, and ``probabilities``, doubles (n, n_classes) in the
order of the classes. Where a value is asked for and missing, probabilities are NaN
(:mod:`marginbn.export.score_model`); the model's ``doc_string`` says so.

A number becomes its code by counting the cuts below it, a category by a label encoder; the cell of
a table is a sum of products of codes, and the rest is gathering, adding and a softmax, in doubles.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.export.score_model import ScoreModel, Term

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""What onnxruntime 1.14 (2023) and everything later reads."""


def to_onnx(model: ScoreModel) -> bytes:
    """The bytes of the model file."""
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        message = 'onnx is not installed: pip install "marginbn[onnx]"'
        raise MissingDependencyError(message) from error
    return _Graph(onnx, model).build()


class _Graph:
    """Nodes and constants as they are added; values are known by their names."""

    def __init__(self, onnx: Any, model: ScoreModel) -> None:
        self.onnx = onnx
        self.model = model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        names = {model.features[i].name for i in model.used}
        if "" in names or names & {"label", "probabilities"}:
            raise InputError(
                "ONNX names inputs after columns, which must not be called '', 'label' or "
                "'probabilities'; rename the column before fitting"
            )
        if not names:
            raise InputError("no feature has any influence, so there is no input for ONNX")

    def build(self) -> bytes:
        """The whole graph, checked by the package itself."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        codes = {i: self._code(i) for i in self.model.used}
        total = self._probabilities(codes)
        self._add("Identity", [total], "probabilities")
        best = self._add("ArgMax", [total], axis=1, keepdims=0)
        labels = np.array([str(label) for label in self.model.classes], dtype=object)
        self._add("Gather", [self._constant(labels), best], "label", axis=0)
        describe = helper.make_tensor_value_info
        inputs = []
        for i in self.model.used:
            coding = self.model.features[i].coding
            kind = kinds.DOUBLE if coding.kind == "numeric" else kinds.STRING
            inputs.append(describe(coding.name, kind, ["n", 1]))
        outputs = [
            describe("label", kinds.STRING, ["n"]),
            describe("probabilities", kinds.DOUBLE, ["n", self.model.n_classes]),
        ]
        graph = helper.make_graph(self.nodes, "marginbn", inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        made = helper.make_model(graph, opset_imports=versions, producer_name="marginbn")
        made.ir_version = IR_VERSION
        made.doc_string = "\n".join(self.model.notes)
        self.onnx.checker.check_model(made)
        content: bytes = made.SerializeToString()
        return content

    def _add(self, operator: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or f"marginbn/{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, inputs, [output], **attributes)
        self.nodes.append(node)
        return output

    def _constant(self, values: NDArray[Any]) -> str:
        name = f"marginbn/constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def _number(self, value: int) -> str:
        return self._constant(np.array(value, dtype=np.int64))

    def _code(self, i: int) -> str:
        """Codes (n, 1); one after the last stands for a value that is asked for."""
        feature = self.model.features[i]
        refused = feature.n_codes
        missing = refused if feature.missing_code is None else feature.missing_code
        if feature.coding.kind == "numeric":
            cuts = np.array(feature.coding.cuts, dtype=np.float64)
            above = self._add("Greater", [feature.name, self._constant(cuts)])
            counted = self._add("Cast", [above], to=self.onnx.TensorProto.INT64)
            axis = self._constant(np.array([1], dtype=np.int64))
            code = self._add("ReduceSum", [counted, axis], keepdims=1)
            unknown = self._add("IsNaN", [feature.name])
            return self._add("Where", [unknown, self._number(missing), code])
        unseen = refused if feature.unseen_code is None else feature.unseen_code
        known = {str(c): code for c, code in feature.category_codes.items()}
        known.setdefault("", missing)
        return self._add(
            "LabelEncoder",
            [feature.name],
            domain="ai.onnx.ml",
            keys_strings=list(known),
            values_int64s=list(known.values()),
            default_int64=unseen,
        )

    def _probabilities(self, codes: dict[int, str]) -> str:
        """Softmax of the sums, (n, n_classes)."""
        first = codes[self.model.used[0]]
        zeros = self._add("Mul", [first, self._number(0)])
        zeros = self._add("Cast", [zeros], to=self.onnx.TensorProto.DOUBLE)
        total = self._add(
            "Add", [zeros, self._constant(np.append(0.0, self.model.bias)[np.newaxis])]
        )
        for term in self.model.terms:
            total = self._add("Add", [total, self._entries(term, codes)])
        return self._add("Softmax", [total], axis=1)

    def _entries(self, term: Term, codes: dict[int, str]) -> str:
        """Entries (n, n_classes) of the cells, 0 for the first class and NaN where refused."""
        padded = np.pad(term.table, [*[(0, 1)] * len(term.members), (1, 0)])
        for axis in range(len(term.members)):
            np.moveaxis(padded, axis, 0)[-1] = np.nan
        cell = ""
        for axis, i in enumerate(term.members):
            stride = int(np.prod(padded.shape[axis + 1 : -1], dtype=np.int64))
            rows = np.append(term.groups[axis], padded.shape[axis] - 1) * stride
            row = self._add("Gather", [self._constant(rows.astype(np.int64)), codes[i]], axis=0)
            cell = self._add("Add", [cell, row]) if cell else row
        flat = self._constant(padded.reshape(-1, padded.shape[-1]))
        cell = self._add("Squeeze", [cell, self._constant(np.array([1], dtype=np.int64))])
        return self._add("Gather", [flat, cell], axis=0)
