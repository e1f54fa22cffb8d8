# SPDX-License-Identifier: Apache-2.0
"""Linear models, support vector machines, encoders and what is done to features, of ai.onnx.ml."""

import numpy as np
from case import node

DOMAIN = "ai.onnx.ml"
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def floats(random, *shape):
    return [float(value) for value in random.standard_normal(shape).ravel()]


def one(operator, inputs=("x",), outputs=("y",), **attributes):
    return node(operator, list(inputs), list(outputs), domain=DOMAIN, **attributes)


def linear(family):
    for post in POSTS:
        for targets in (1, 3):
            name = f"regressor_{targets}_{post.lower()}"
            random = family.random(name)
            model = one("LinearRegressor", coefficients=floats(random, targets, 4), intercepts=floats(random, targets),
                        targets=targets, post_transform=post)
            family.add(name, [model], {"x": random.standard_normal((7, 4), np.float32)})
        for rows, labels in ((1, [3, 9]), (2, [3, 9]), (3, [3, 9, -1])):
            name = f"classifier_{rows}_{len(labels)}_{post.lower()}"
            random = family.random(name)
            model = one("LinearClassifier", outputs=("label", "scores"), coefficients=floats(random, rows, 4),
                        intercepts=floats(random, rows), classlabels_ints=labels, post_transform=post)
            family.add(name, [model], {"x": random.standard_normal((9, 4), np.float32)}, outputs=("label", "scores"))


def svm(family):
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        name = f"svm_regressor_{kernel.lower()}"
        random = family.random(name)
        model = one("SVMRegressor", coefficients=floats(random, 6), kernel_params=[0.4, 0.3, 3.0], kernel_type=kernel, n_supports=6,
                    rho=[0.2], support_vectors=floats(random, 6, 3))
        family.add(name, [model], {"x": random.standard_normal((8, 3), np.float32)})
        for classes, vectors in ((2, [3, 2]), (4, [2, 1, 3, 2])):
            for probabilities in (False, True):
                for post in ("NONE", "LOGISTIC", "SOFTMAX"):
                    svm_classifier(family, kernel, classes, vectors, probabilities, post)
    random = family.random("svm_linear")
    model = one("SVMRegressor", coefficients=floats(random, 3), kernel_params=[0.0, 0.0, 0.0], kernel_type="LINEAR", n_supports=0, rho=[0.2])
    family.add("svm_regressor_features", [model], {"x": random.standard_normal((8, 3), np.float32)})
    model = one("SVMRegressor", coefficients=floats(random, 3), kernel_params=[0.0, 0.0, 0.0], kernel_type="LINEAR", n_supports=0, rho=[0.2], one_class=1)
    family.add("svm_one_class", [model], {"x": random.standard_normal((8, 3), np.float32)})
    model = one("SVMClassifier", outputs=("label", "scores"), coefficients=floats(random, 3, 3), kernel_params=[0.0, 0.0, 0.0], kernel_type="LINEAR", rho=[0.2],
                classlabels_ints=[1, 2, 3])
    family.add("svm_classifier_features", [model], {"x": random.standard_normal((8, 3), np.float32)}, outputs=("label", "scores"))


def svm_classifier(family, kernel, classes, vectors, probabilities, post):
    name = f"svm_classifier_{kernel.lower()}_{classes}_{'probabilities' if probabilities else 'votes'}_{post.lower()}"
    random = family.random(name)
    pairs = classes * (classes - 1) // 2
    sigmoids = dict(prob_a=[-1 - abs(a) for a in floats(random, pairs)], prob_b=floats(random, pairs)) if probabilities else {}
    model = one("SVMClassifier", outputs=("label", "scores"), classlabels_ints=list(range(3, 3 + classes)),
                coefficients=floats(random, classes - 1, sum(vectors)), kernel_params=[0.4, 0.3, 3.0], kernel_type=kernel,
                rho=floats(random, pairs), support_vectors=floats(random, sum(vectors), 3), vectors_per_class=vectors,
                post_transform=post, **sigmoids)
    family.add(name, [model], {"x": random.standard_normal((9, 3), np.float32)}, outputs=("label", "scores"))


def features(family):
    random = family.random("features")
    x = random.standard_normal((6, 4), np.float32)
    whole = random.integers(-4, 5, (6, 4))
    zeros = np.where(np.arange(6)[:, None] == 2, 0, x).astype(np.float32)
    scales = dict(offset=floats(random, 4), scale=floats(random, 4))
    for name, data in (("float", x), ("double", x.astype(np.float64)), ("int64", whole), ("int32", whole.astype(np.int32))):
        family.add(f"scaler_{name}", [one("Scaler", **scales)], {"x": data})
        for norm in ("MAX", "L1", "L2"):
            family.add(f"normalizer_{norm.lower()}_{name}", [one("Normalizer", norm=norm)], {"x": data})
    family.add("scaler_one_number", [one("Scaler", offset=[0.5], scale=[2.0])], {"x": x})
    for norm in ("MAX", "L1", "L2"):
        family.add(f"normalizer_{norm.lower()}_zeros", [one("Normalizer", norm=norm)], {"x": zeros})
    holes = np.where(random.random(x.shape) < 0.4, np.nan, x).astype(np.float32)
    family.add("imputer_nan", [one("Imputer", imputed_value_floats=floats(random, 4), replaced_value_float=float("nan"))], {"x": holes})
    family.add("imputer_number", [one("Imputer", imputed_value_floats=[9.5], replaced_value_float=0.0)], {"x": zeros})
    family.add("imputer_int64", [one("Imputer", imputed_value_int64s=[5, 6, 7, 8], replaced_value_int64=1)], {"x": whole})
    family.add("binarizer", [one("Binarizer", threshold=0.25)], {"x": x})
    family.add("vectorizer", [one("FeatureVectorizer", inputs=("x", "b"), inputdimensions=[4, 2])], {"x": x, "b": x[:, :2].copy()})
    indices = np.array([[2, 0, 2]], np.int64)
    for name, data in (("rows", x), ("vector", x[0]), ("cube", x.reshape(2, 3, 4)), ("integers", whole)):
        family.add(f"extractor_{name}", [one("ArrayFeatureExtractor", inputs=("x", "i"))], {"x": data}, {"i": indices})


def tables(family):
    random = family.random("tables")
    x = random.integers(-3, 9, (5, 4))
    real = np.where(x == 2, np.nan, x).astype(np.float32)
    keys, values = [7, -2, 3, 5], [1, 20, 300, -4]
    family.add("encoder_int_int", [one("LabelEncoder", keys_int64s=keys, values_int64s=values, default_int64=77)], {"x": x})
    family.add("encoder_int_float", [one("LabelEncoder", keys_int64s=keys, values_floats=[0.5, 1.5, 2.5, 3.5])], {"x": x})
    family.add("encoder_float_int", [one("LabelEncoder", keys_floats=[7.0, float("nan"), 3.0], values_int64s=[1, 2, 3])], {"x": real})
    family.add("encoder_float_float", [one("LabelEncoder", keys_floats=[7.0, 4.0], values_floats=[1.5, 2.5], default_float=-9.0)],
               {"x": real})
    for zeros, data in ((1, x), (0, np.array([[7, 3], [-2, 7]], np.int64))):
        family.add(f"one_hot_zeros_{zeros}", [one("OneHotEncoder", cats_int64s=[7, -2, 3, 5], zeros=zeros)], {"x": data})
    family.add("one_hot_float", [one("OneHotEncoder", cats_int64s=[7, -2, 3, 5])], {"x": x.astype(np.float32)})


def make(family):
    linear(family)
    svm(family)
    features(family)
    tables(family)
