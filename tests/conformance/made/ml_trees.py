# SPDX-License-Identifier: Apache-2.0
"""Tree ensembles of ai.onnx.ml: all modes, sums and transforms, ties, missing values, leaves with many weights, trees of one leaf."""

import numpy as np
from case import node
from onnx import numpy_helper

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
DOMAIN = "ai.onnx.ml"


class Trees:
    """Random trees as lists. Thresholds are small whole numbers, so that rows tie with them."""

    def __init__(self, random, features, modes, missing=0.3, whole=True):
        self.random, self.features, self.modes, self.missing, self.whole = random, features, modes, missing, whole
        self.rows = []
        self.leaves = []

    def add(self, depth, grow=0.85):
        self.tree = len({row["tree"] for row in self.rows})
        self.next = 0
        self._node(depth, grow)

    def _node(self, depth, grow):
        number, self.next = self.next, self.next + 1
        row = dict(tree=self.tree, number=number, feature=0, mode="LEAF", value=0.0, yes=0, no=0, missing=0)
        self.rows.append(row)
        if depth == 0 or self.random.random() > grow:
            self.leaves.append((self.tree, number))
            return number
        value = self.random.integers(-2, 3) if self.whole else self.random.standard_normal()
        row.update(
            feature=int(self.random.integers(self.features)),
            mode=str(self.random.choice(self.modes)),
            value=float(value),
            missing=int(self.random.random() < self.missing),
        )
        row["yes"] = self._node(depth - 1, grow)
        row["no"] = self._node(depth - 1, grow)
        return number

    def attributes(self, double=False):
        column = lambda name: [row[name] for row in self.rows]
        lists = dict(
            nodes_treeids=column("tree"),
            nodes_nodeids=column("number"),
            nodes_featureids=column("feature"),
            nodes_modes=column("mode"),
            nodes_truenodeids=column("yes"),
            nodes_falsenodeids=column("no"),
            nodes_missing_value_tracks_true=column("missing"),
        )
        if double:
            lists["nodes_values_as_tensor"] = numpy_helper.from_array(np.array(column("value"), np.float64), "values")
        else:
            lists["nodes_values"] = column("value")
        return lists

    def weights(self, kind, targets, each, double=False, positive=False):
        """@each: how many targets a leaf has."""
        trees, numbers, ids, weights = [], [], [], []
        for tree, number in self.leaves:
            chosen = self.random.permutation(targets)[:each] if each < targets else np.arange(targets)
            for target in np.sort(chosen):
                trees.append(tree)
                numbers.append(number)
                ids.append(int(target))
                weights.append(float(self.random.random() if positive else self.random.standard_normal()))
        lists = {f"{kind}_treeids": trees, f"{kind}_nodeids": numbers, f"{kind}_ids": ids}
        if double:
            lists[f"{kind}_weights_as_tensor"] = numpy_helper.from_array(np.array(weights, np.float64), "weights")
        else:
            lists[f"{kind}_weights"] = weights
        return lists


def rows_of(random, n, features, dtype=np.float32):
    """Whole numbers that tie, others, NaN and infinities."""
    rows = random.integers(-3, 4, (n, features)).astype(np.float64)
    rows = np.where(random.random(rows.shape) < 0.3, random.standard_normal(rows.shape), rows)
    for value in (np.nan, np.inf, -np.inf, -0.0):
        rows[random.random(rows.shape) < 0.08] = value
    return rows.astype(dtype)


def regressor(family, name, modes=("BRANCH_LEQ",), trees=4, depth=4, targets=1, each=1, n=23, double=False, whole=True, **attributes):
    random = family.random(name)
    forest = Trees(random, 5, modes, whole=whole)
    for _ in range(trees):
        forest.add(depth)
    lists = {**forest.attributes(double), **forest.weights("target", targets, each, double)}
    x = rows_of(random, n, 5, np.float64 if double else np.float32)
    one = node("TreeEnsembleRegressor", ["x"], ["y"], domain=DOMAIN, n_targets=targets, **lists, **attributes)
    family.add(f"regressor_{name}", [one], {"x": x})


def classifier(family, name, labels, ids=None, trees=4, depth=4, each=None, n=23, positive=False, post="NONE", base=None, dtype=np.float32):
    random = family.random(name)
    forest = Trees(random, 6, ["BRANCH_LEQ"])
    for _ in range(trees):
        forest.add(depth)
    weights = forest.weights("class", ids or len(labels), each or ids or len(labels), positive=positive)
    x = rows_of(random, n, 6) if dtype == np.float32 else random.integers(-3, 4, (n, 6)).astype(dtype)
    one = node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain=DOMAIN, classlabels_int64s=labels, post_transform=post,
        base_values=base, **forest.attributes(), **weights)
    family.add(f"classifier_{name}", [one], {"x": x}, outputs=("label", "scores"))


def leaf_only(family):
    lists = dict(
        nodes_treeids=[0, 1], nodes_nodeids=[0, 0], nodes_featureids=[0, 0], nodes_modes=["LEAF", "LEAF"], nodes_values=[0.0, 0.0],
        nodes_truenodeids=[0, 0], nodes_falsenodeids=[0, 0], target_treeids=[0, 1], target_nodeids=[0, 0], target_ids=[0, 0],
        target_weights=[1.5, 0.25])
    one = node("TreeEnsembleRegressor", ["x"], ["y"], domain=DOMAIN, n_targets=1, **lists)
    family.add("regressor_leaf_only", [one], {"x": np.zeros((3, 2), np.float32)})


def make(family):
    for mode in MODES:
        regressor(family, mode.lower(), modes=(mode,))
        regressor(family, mode.lower() + "_double", modes=(mode,), double=True)
    regressor(family, "all_modes", modes=MODES, trees=9, depth=6, n=64)
    regressor(family, "fractions", modes=MODES[:4], trees=9, depth=6, n=64, whole=False)
    for sum_ in ("SUM", "AVERAGE", "MIN", "MAX"):
        for targets, each in ((1, 1), (3, 1), (3, 2), (3, 3)):
            for base in (None, [0.5] * targets) if each == targets else (None,):
                name = f"{sum_.lower()}_{targets}_{each}" + ("_base" if base else "")
                regressor(family, name, targets=targets, each=each, aggregate_function=sum_, base_values=base)
    for post in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        for targets in (1, 3):
            regressor(family, f"{post.lower()}_{targets}", targets=targets, each=targets, post_transform=post)
    for n in (1, 2, 15, 16, 17, 100):
        regressor(family, f"rows_{n}", trees=37, depth=5, n=n, whole=False)
    regressor(family, "deep", trees=3, depth=14, n=40, whole=False)
    leaf_only(family)
    for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        classifier(family, f"three_{post.lower()}", [4, 7, -2], post=post)
        classifier(family, f"binary_mixed_{post.lower()}", [4, 7], ids=1, post=post)
    for post in ("NONE", "SOFTMAX"):
        classifier(family, f"binary_positive_{post.lower()}", [4, 7], ids=1, positive=True, post=post, trees=2)
    classifier(family, "ten", list(range(10)), trees=20, depth=6, n=50, positive=True)
    classifier(family, "five_sparse", list(range(5)), each=1, trees=20, base=[0.1, 0.2, 0.3, 0.4, 0.5])
    classifier(family, "one_label", [5], ids=1)
    classifier(family, "binary_base", [0, 1], ids=1, base=[0.25], post="LOGISTIC")
    classifier(family, "integers", [0, 1, 2], dtype=np.int64)
    classifier(family, "doubles", [0, 1, 2], dtype=np.float64)
