# SPDX-License-Identifier: Apache-2.0
"""forests.py DIR: forests as users export them, trained on random numbers with fixed seeds, as DIR/NAME.onnx.

    xgboost-100x6       100 trees of depth 6
    xgboost-500x8       500 trees of depth 8
    lightgbm-1000x31    1,000 trees of 31 leaves
    sklearn-rf-100      100 trees of any depth, 10 classes
"""

import os
import sys

import lightgbm
import numpy as np
import onnxmltools
import sklearn.ensemble
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as FloatType
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType

FEATURES = 30
ROWS = 20000
ML_OPSET = 15


def numbers(seed):
    """Features, and a target that many of them have a part in."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((ROWS, FEATURES)).astype(np.float32)
    waves = np.sin(x @ random.standard_normal((FEATURES, 12)))
    return x, waves @ random.standard_normal(12) + 0.3 * random.standard_normal(ROWS)


def xgboost_forest(trees, depth):
    x, y = numbers(depth)
    model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, n_jobs=1, random_state=1).fit(x, y)
    return onnxmltools.convert_xgboost(model, initial_types=[("x", FloatType([None, FEATURES]))], target_opset=ML_OPSET)


def lightgbm_forest(trees, leaves):
    x, y = numbers(leaves)
    model = lightgbm.LGBMRegressor(n_estimators=trees, num_leaves=leaves, n_jobs=1, verbose=-1, random_state=1).fit(x, y)
    return onnxmltools.convert_lightgbm(model, initial_types=[("x", FloatType([None, FEATURES]))], target_opset=ML_OPSET)


def sklearn_forest(trees, classes):
    x, y = numbers(classes)
    labels = np.searchsorted(np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]), y)
    model = sklearn.ensemble.RandomForestClassifier(n_estimators=trees, n_jobs=1, random_state=1).fit(x, labels)
    return to_onnx(model, initial_types=[("x", FloatTensorType([None, FEATURES]))], options={"zipmap": False}, target_opset=ML_OPSET)


FORESTS = {
    "xgboost-100x6": lambda: xgboost_forest(100, 6),
    "xgboost-500x8": lambda: xgboost_forest(500, 8),
    "lightgbm-1000x31": lambda: lightgbm_forest(1000, 31),
    "sklearn-rf-100": lambda: sklearn_forest(100, 10),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, make in FORESTS.items():
        path = f"{folder}/{name}.onnx"
        if not os.path.exists(path):
            with open(path + ".new", "wb") as file:
                file.write(make().SerializeToString())
            os.rename(path + ".new", path)
        print(path)


main()
