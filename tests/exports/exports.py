# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, XGBoost and LightGBM, exported as their users do it, served by `starling serve`, and compared with what the library
itself predicts, from Python. Started by exports.sh.

    exports.py [NAME ...]       all, or those whose names begin so
"""

import sys
import warnings

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as FloatType
from skl2onnx import to_onnx
from sklearn import datasets, ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm, tree
from sklearn.impute import SimpleImputer


import starling
from world import RealRuntime

OPSET = {"": 18, "ai.onnx.ml": 3}
ROWS = (1, 7, 60)
PLAIN = {"zipmap": False}


def iris():
    return datasets.load_iris(return_X_y=True)


def cancer():
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return preprocessing.StandardScaler().fit_transform(x), y


def digits():
    return datasets.load_digits(return_X_y=True)


def diabetes():
    return datasets.load_diabetes(return_X_y=True)


def holes(data):
    """A fifth of the numbers missing."""
    x, y = data
    x = x.copy()
    x[np.random.default_rng(3).random(x.shape) < 0.2] = np.nan
    return x, y


def sklearn_cases():
    forest = dict(n_estimators=20, random_state=1)
    yield "sklearn-logistic-2", linear_model.LogisticRegression(), cancer(), PLAIN
    yield "sklearn-logistic-3", linear_model.LogisticRegression(max_iter=1000), iris(), PLAIN
    yield "sklearn-logistic-zipmap", linear_model.LogisticRegression(max_iter=1000), iris(), None
    yield "sklearn-linear", linear_model.LinearRegression(), diabetes(), None
    yield "sklearn-tree", tree.DecisionTreeClassifier(random_state=1), iris(), PLAIN
    yield "sklearn-tree-regressor", tree.DecisionTreeRegressor(random_state=1), diabetes(), None
    yield "sklearn-forest-2", ensemble.RandomForestClassifier(**forest), cancer(), PLAIN
    yield "sklearn-forest-10", ensemble.RandomForestClassifier(**forest), digits(), PLAIN
    yield "sklearn-forest-zipmap", ensemble.RandomForestClassifier(**forest), digits(), None
    yield "sklearn-forest-regressor", ensemble.RandomForestRegressor(**forest), diabetes(), None
    yield "sklearn-extra-trees", ensemble.ExtraTreesClassifier(**forest), digits(), PLAIN
    yield "sklearn-boosting-2", ensemble.GradientBoostingClassifier(**forest), cancer(), PLAIN
    yield "sklearn-boosting-3", ensemble.GradientBoostingClassifier(**forest), iris(), PLAIN
    yield "sklearn-boosting-regressor", ensemble.GradientBoostingRegressor(**forest), diabetes(), None
    yield "sklearn-hist-boosting", ensemble.HistGradientBoostingClassifier(max_iter=20), holes(cancer()), PLAIN
    yield "sklearn-hist-boosting-regressor", ensemble.HistGradientBoostingRegressor(max_iter=20), holes(diabetes()), None
    yield "sklearn-ada", ensemble.AdaBoostClassifier(n_estimators=10, random_state=1), iris(), PLAIN
    yield "sklearn-svc", svm.SVC(), digits(), PLAIN
    yield "sklearn-svc-probability", svm.SVC(probability=True, random_state=1), iris(), PLAIN
    yield "sklearn-svc-poly", svm.SVC(kernel="poly", probability=True, random_state=1), cancer(), PLAIN
    yield "sklearn-svr", svm.SVR(), diabetes(), None
    yield "sklearn-one-class", svm.OneClassSVM(), iris(), None
    yield "sklearn-linear-svc", svm.LinearSVC(), iris(), None
    yield "sklearn-bayes", naive_bayes.GaussianNB(), iris(), PLAIN
    yield "sklearn-mlp", neural_network.MLPClassifier(max_iter=50, random_state=1), digits(), PLAIN
    steps = (SimpleImputer(), preprocessing.StandardScaler(), preprocessing.Normalizer(), linear_model.LogisticRegression())
    yield "sklearn-pipeline", pipeline.make_pipeline(*steps), holes(cancer()), PLAIN
    steps = (preprocessing.MinMaxScaler(), preprocessing.Binarizer(threshold=0.5), ensemble.RandomForestClassifier(**forest))
    yield "sklearn-pipeline-binary", pipeline.make_pipeline(*steps), digits(), PLAIN


def xgboost_cases():
    options = dict(n_estimators=30, max_depth=5, n_jobs=1, random_state=1)
    yield "xgboost-2", xgboost.XGBClassifier(**options), holes(cancer())
    yield "xgboost-3", xgboost.XGBClassifier(**options), iris()
    yield "xgboost-10", xgboost.XGBClassifier(**options), digits()
    yield "xgboost-regressor", xgboost.XGBRegressor(**options), holes(diabetes())


def lightgbm_cases():
    options = dict(n_estimators=30, n_jobs=1, verbose=-1, random_state=1)
    yield "lightgbm-2", lightgbm.LGBMClassifier(**options), holes(cancer())
    yield "lightgbm-3", lightgbm.LGBMClassifier(**options), iris()
    yield "lightgbm-10", lightgbm.LGBMClassifier(**options), digits()
    yield "lightgbm-regressor", lightgbm.LGBMRegressor(**options), diabetes()


def fitted(model, data):
    """The model on what float32 has of the data, which is what it will be asked."""
    x, y = data
    return model.fit(x.astype(np.float32), y), x.astype(np.float32)


def export(name, model, x, options):
    kind = [("x", FloatType([None, x.shape[1]]))]
    if name.startswith("sklearn"):
        return to_onnx(model, x[:1], options={id(model): options} if options else None, target_opset=OPSET)
    if name.startswith("xgboost"):
        return onnxmltools.convert_xgboost(model, initial_types=kind, target_opset=15)
    return onnxmltools.convert_lightgbm(model, initial_types=kind, target_opset=15, zipmap=False)


def make_models(wanted):
    """name: (the ONNX file, the model, its rows). A model that its own exporter does not write is none, and is named."""
    made = {}
    for name, model, data, *options in [*sklearn_cases(), *xgboost_cases(), *lightgbm_cases()]:
        if not wanted(name):
            continue
        model, x = fitted(model, data)
        try:
            made[name] = export(name, model, x, options[0] if options else None), model, x
        except Exception as error:  # whatever an exporter throws
            print(f"{name}: its exporter fails: {type(error).__name__}: {str(error)[:100]}")
    return made


def margin(answer):
    """How far a row's label is from another one."""
    ordered = np.sort(answer, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def compare(name, model, x, answers):
    """What is wrong; "" for nothing. A label may differ only where the two best classes are as good as equal."""
    answers = list(answers.values()) if isinstance(answers, dict) else [answers]
    labels = answers[0].reshape(len(x))
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(x)
        error = np.abs(answers[1] - expected).max()
        if error > 1e-4:
            return f"probabilities differ by {error:.2e}"
        doubtful = margin(expected) < 1e-4
    elif isinstance(model, svm.OneClassSVM):
        doubtful = np.abs(model.decision_function(x)) < 1e-4
    else:
        doubtful = np.zeros(len(x), bool)
    expected = model.predict(x).reshape(len(x))
    if np.issubdtype(expected.dtype, np.integer):
        return "" if (doubtful | (labels == expected)).all() else f"{(labels != expected).sum()} labels of {len(x)} differ"
    error = np.abs(labels - expected).max() / max(1, np.abs(expected).max())
    return "" if error < 1e-5 else f"predictions differ by {error:.2e}"


def check(client, name, model, x):
    for rows in ROWS:
        begin = (7 * rows) % (len(x) - rows)
        text = compare(name, model, x[begin : begin + rows], client.infer(name, np.ascontiguousarray(x[begin : begin + rows])))
        if text:
            return f"{rows} rows: {text}"
    return ""


def main():
    warnings.simplefilter("ignore")
    names = tuple(sys.argv[1:])
    made = make_models(lambda name: not names or name.startswith(names))
    runtime = RealRuntime({name: file.SerializeToString() for name, (file, _, _) in made.items()})
    failed = 0
    try:
        with runtime.connect() as client:
            for name, (_, model, x) in made.items():
                try:
                    text = check(client, name, model, x)
                except starling.Error as error:
                    text = str(error)
                failed += bool(text)
                print(f"{name}: {text or 'agrees'}", flush=True)
    finally:
        runtime.stop()
    print(f"{len(made) - failed} of {len(made)} models agree with the library that trained them")
    return 1 if failed else 0


sys.exit(main())
