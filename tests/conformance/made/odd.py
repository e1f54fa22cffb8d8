# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities, zeros of both signs and subnormals, in operators of which ONNX Runtime and ONNX's reference make the same (the
reference has no SVM and no region of one). Where they differ, kernels/README.md says what is right (Edges of float)."""

import numpy as np
from case import node

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-39, 2e-38], np.float32)
FUNCTIONS = "Relu LeakyRelu HardSigmoid HardSwish Sigmoid Tanh Gelu Erf Exp Log Sqrt Reciprocal Neg Abs Floor Ceil Round Sign Sin \
Cos Mish Softplus ThresholdedRelu Softsign Shrink Elu Selu Celu IsNaN IsInf Softmax LogSoftmax"
PAIRS = "Add Sub Mul Div Pow Min Max Sum Mean Equal Greater GreaterOrEqual Less LessOrEqual"
SUMS = "ReduceMean ReduceSum ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
EMPTY = np.zeros(0, np.float32)


def mixed(random, *shape, share=0.2, kinds=len(ODD)):
    x = random.uniform(-2, 2, shape).astype(np.float32)
    odd = random.random(shape) < share
    x[odd] = random.choice(ODD[:kinds], odd.sum())
    return x


def zeros(random, *shape):
    return np.where(random.random(shape) < 0.5, 0.0, -0.0).astype(np.float32)


def plain(operator, inputs, output="y", **attributes):
    return node(operator, inputs, [output], "", **attributes)


def add_elements(family):
    for operator in FUNCTIONS.split():
        x = mixed(family.random(operator), 12, 9)
        family.add(operator.lower(), [plain(operator, ["x"])], {"x": x}, opset=20)
    for operator in PAIRS.split():
        random = family.random(operator)
        inputs = {"x": mixed(random, 12, 9, share=0.3), "z": mixed(random, 12, 9, share=0.3)}
        family.add(operator.lower(), [plain(operator, ["x", "z"])], inputs, opset=20)
    for operator in SUMS.split():
        x = mixed(family.random(operator), 40, 6, share=0.05)
        family.add(operator.lower(), [plain(operator, ["x", "axes"])], {"x": x}, {"axes": np.array([1])}, opset=20)


def add_products(family):
    random = family.random("products")
    few = {"share": 0.04, "kinds": 5}
    x, z, c = mixed(random, 8, 9, **few), mixed(random, 9, 8, **few), mixed(random, 8, **few)
    family.add("matmul", [plain("MatMul", ["x", "z"])], {"x": x, "z": z})
    family.add("gemm", [plain("Gemm", ["x", "z", "c"], alpha=0.5, beta=0.25)], {"x": x, "z": z, "c": c})
    image = mixed(random, 1, 3, 7, 6, **few)
    weights = random.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
    family.add("conv", [plain("Conv", ["x", "w"], pads=[1, 1, 1, 1])], {"x": image}, {"w": weights})
    family.add("convtranspose", [plain("ConvTranspose", ["x", "w"], strides=[2, 2])], {"x": image}, {"w": weights[:3]})


def add_images(family):
    """An infinity at the edge meets weights of both signs, and 0 where places outside are left out."""
    for name, scales in (("2", [1, 1, 2, 2]), ("half", [1, 1, 0.5, 0.7]), ("third", [1, 1, 1.5, 1.3])):
        for excluded in (0, 1):
            for i, (kind, place) in enumerate(((np.nan, (2, 3)), (np.inf, (0, 0)), (-np.inf, (4, 5)))):
                x = mixed(family.random("resize"), 1, 2, 5, 6, share=0)
                x[0, 0][place] = kind
                one = plain("Resize", ["x", "roi", "scales"], mode="cubic", exclude_outside=excluded)
                constants = {"roi": EMPTY, "scales": np.array(scales, np.float32)}
                family.add(f"resize_{name}_{excluded}_{i}", [one], {"x": x}, constants, opset=18)
    x = mixed(family.random("regions"), 1, 2, 5, 5, share=0)
    x[0, 0, 1, 1], x[0, 1, 2, 3] = np.inf, -np.inf
    regions = np.array([[0, 0, 4, 4], [1, 1.5, 3, 4]], np.float32)
    align = plain("RoiAlign", ["x", "r", "b"], mode="max", output_height=3, output_width=2, sampling_ratio=2)
    family.add("roialign_max", [align], {"x": x, "r": regions, "b": np.zeros(2, np.int64)})
    numbered = np.concatenate((np.zeros((2, 1), np.float32), regions), axis=1)
    family.add("maxroipool", [plain("MaxRoiPool", ["x", "r"], pooled_shape=[3, 2])], {"x": x, "r": numbered})


def add_recurrence(family, operator, gates, given, **attributes):
    """Of zeros, with few products, which may all be -0; the reciprocals say which sign the zeros of the state have."""
    case = "_".join([operator.lower(), "".join(given), *attributes]).rstrip("_")
    random, hidden, batch = family.random(case), 2, 16
    shapes = {"B": (1, 2 * gates * hidden), "h": (1, batch, hidden), "c": (1, batch, hidden), "P": (1, 3 * hidden)}
    inputs = {"X": zeros(random, 3, batch, 1)}
    for name in given:
        inputs[name] = zeros(random, *shapes[name])
    weights = {"W": (1, gates * hidden, 1), "R": (1, gates * hidden, hidden)}
    constants = {name: random.uniform(-1, 1, shape).astype(np.float32) for name, shape in weights.items()}
    order = ["X", "W", "R", "B", "", "h"] + (["c", "P"] if operator == "LSTM" else [])
    names = [name if name in inputs or name in constants else "" for name in order]
    states = ["Y", "Yh", "Yc"][: 3 if operator == "LSTM" else 2]
    nodes = [node(operator, names, states, "", hidden_size=hidden, **attributes)]
    nodes += [plain("Reciprocal", [state], f"of_{state}") for state in states]
    family.add(case, nodes, inputs, constants, [f"of_{state}" for state in states])


def add_recurrences(family):
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for given in ("", "B", "Bhc", "BhcP"):
            if operator == "LSTM":
                add_recurrence(family, operator, gates, given)
            elif "c" not in given:
                add_recurrence(family, operator, gates, given + "h" * (given == "B"))
        add_recurrence(family, operator, gates, "B", clip=0.5)
    add_recurrence(family, "GRU", 3, "Bh", linear_before_reset=1)


def add_machine(family):
    """Nothing is known of the classes of a row with a NaN: their probabilities are equal."""
    random = family.random("machine")
    lists = {"support_vectors": (6, 3), "coefficients": (12,), "rho": (3,), "prob_a": (3,), "prob_b": (3,)}
    given = {name: random.uniform(-1, 1, shape).ravel().tolist() for name, shape in lists.items()}
    given.update(vectors_per_class=[2, 2, 2], classlabels_ints=[0, 1, 2], kernel_type="RBF", kernel_params=[0.5, 0.1, 3.0])
    x = mixed(random, 12, 3, kinds=1)
    family.add("svm", [node("SVMClassifier", ["x"], ["label", "y"], "ai.onnx.ml", **given)], {"x": x}, outputs=("label", "y"))


def make(family):
    add_elements(family)
    add_products(family)
    add_images(family)
    add_recurrences(family)
    add_machine(family)
