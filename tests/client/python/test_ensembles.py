# SPDX-License-Identifier: Apache-2.0
"""Ensembles and their rules, against NumPy: members give what the request says that they predict. Skipped where `starling` is not
built."""

import json
import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32, I64 = 1, 7
MEMBERS, CLASSES, PLACES = 3, 5, 12


def constant(name, *numbers):
    return onnx.constant(name, I64, np.array(numbers, np.int64))


def says(member, classes=CLASSES):
    """x [N, members, classes] -> y [N, classes], that of the member."""
    return onnx.model(
        [onnx.node("Gather", ["x", "member"], ["row"], axis=1), onnx.node("Squeeze", ["row", "one"], ["y"])],
        [onnx.port("x", F32, ("N", MEMBERS, classes))],
        [onnx.port("y", F32, ("N", classes))],
        [constant("member", member), constant("one", 1)],
    )


def detects(member, places, all_places=PLACES, prefix="", label_type=F32, count=True):
    """x [N, members, places, 6] and n [N, members] -> boxes, scores, labels and count of the member, which has so many places."""
    nodes = [
        onnx.node("Gather", ["x", "member"], ["all"], axis=1),
        onnx.node("Slice", ["all", "zero", "places", "two"], ["some"]),
        onnx.node("Squeeze", ["some", "one"], ["mine"]),
        onnx.node("Slice", ["mine", "zero", "four", "two"], [prefix + "boxes"]),
        onnx.node("Slice", ["mine", "four", "five", "two"], ["score"]),
        onnx.node("Squeeze", ["score", "two"], [prefix + "scores"]),
        onnx.node("Slice", ["mine", "five", "six", "two"], ["label"]),
        onnx.node("Squeeze", ["label", "two"], ["float_label"]),
        onnx.node("Cast", ["float_label"], [prefix + "labels"], to=label_type),
        onnx.node("Gather", ["n", "member"], [prefix + "count"], axis=1),
    ]
    outputs = [
        onnx.port(prefix + "boxes", F32, ("N", places, 4)),
        onnx.port(prefix + "scores", F32, ("N", places)),
        onnx.port(prefix + "labels", label_type, ("N", places)),
        onnx.port(prefix + "count", F32, ("N", 1)),
    ]
    return onnx.model(
        nodes if count else nodes[:-1],
        [onnx.port("x", F32, ("N", MEMBERS, all_places, 6)), onnx.port("n", F32, ("N", MEMBERS))],
        outputs if count else outputs[:-1],
        [
            constant("member", member),
            constant("places", places),
            *(constant(name, n) for n, name in enumerate(["zero", "one", "two"])),
            *(constant(name, n) for n, name in enumerate(["four", "five", "six"], 4)),
        ],
    )


def overlap(a, b):
    size = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    both = np.prod(np.maximum(size, 0))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def valid_boxes(x, counts, places, weights):
    """Of one sample: (score, order, label, corners), the best first."""
    found, order = [], 0
    for m, own in enumerate(places):
        for p in range(own):
            *corners, score, label = np.float64(x[m, p])
            corners = np.array(corners)
            order += 1
            if p < counts[m] and np.isfinite(corners).all() and (corners[2:] > corners[:2]).all() and np.isfinite(score) and score > 0:
                found.append((-score * weights[m], order, label, corners))
    return [(-score, order, label, corners) for score, order, label, corners in sorted(found, key=lambda f: f[:2])]


def fused(found, limit, n_members):
    clusters = []
    for score, order, label, corners in found:
        overlaps = [overlap(c["box"], corners) if c["label"] == label else 0 for c in clusters]
        at = int(np.argmax(overlaps)) if overlaps and max(overlaps) > limit else None
        if at is None:
            clusters.append({"label": label, "order": order, "scores": [], "boxes": []})
            at = -1
        c = clusters[at]
        c["scores"].append(score)
        c["boxes"].append(corners)
        c["box"] = np.average(c["boxes"], axis=0, weights=c["scores"])
    rows = [(np.mean(c["scores"]) * min(len(c["scores"]), n_members) / n_members, c["order"], c["label"], c["box"]) for c in clusters]
    return sorted(rows, key=lambda r: (-r[0], r[1]))


def suppressed(found, limit):
    kept = []
    for row in found:
        if not any(k[2] == row[2] and overlap(k[3], row[3]) > limit for k in kept):
            kept.append(row)
    return kept


def softly(found, sigma, least):
    left, kept = list(found), []
    while left:
        best = min(left, key=lambda r: (-r[0], r[1]))
        left = [r for r in left if r is not best]
        if best[0] < least:
            break
        kept.append(best)
        left = [
            (r[0] * np.exp(-(overlap(best[3], r[3]) ** 2) / sigma) if r[2] == best[2] else r[0], *r[1:]) for r in left
        ]
    return kept


def random_boxes(random, rows):
    """Clusters of boxes, among them some that no detector should give."""
    x = np.zeros((rows, MEMBERS, PLACES, 6), np.float32)
    centres = random.random((rows, 1, 4, 2)).repeat(MEMBERS, 1)[:, :, random.integers(0, 4, PLACES)]
    sizes = 0.2 + 0.1 * random.random((rows, MEMBERS, PLACES, 2))
    centres = centres + 0.05 * random.random((rows, MEMBERS, PLACES, 2))
    x[..., :2], x[..., 2:4] = centres - sizes / 2, centres + sizes / 2
    x[..., 4] = random.random(x.shape[:-1])
    x[..., 5] = random.integers(0, 2, x.shape[:-1])
    odd = random.random(x.shape[:-1])
    x[..., 4][odd < 0.04] = np.nan
    x[..., 4][(odd >= 0.04) & (odd < 0.08)] = 0
    x[..., 2][(odd >= 0.08) & (odd < 0.12)] = -1
    x[..., 3][(odd >= 0.12) & (odd < 0.16)] = np.inf
    return x, random.integers(0, PLACES + 1, (rows, MEMBERS)).astype(np.float32)


def ensemble(members, *lines):
    return {"config.yaml": "\n  ".join(["ensemble:", f"members: [{', '.join(members)}]", *lines, ""]).encode()}


@unittest.skipUnless("STARLING_COMMAND" in os.environ, "no starling command")
class EnsemblesCase(unittest.TestCase):
    def serve(self, models, *arguments):
        runtime = RealRuntime(models, *arguments)
        self.addCleanup(runtime.stop)
        self.runtime = runtime
        client = runtime.connect()
        self.addCleanup(client.close)
        return client

    def expect_refused(self, client, name, *words):
        with self.assertRaises((starling.StarlingError, ValueError)) as caught:
            client.model(name)
        for word in words:
            self.assertIn(word, str(caught.exception))


class TestClassWeights(EnsemblesCase):
    def test_each_class_has_the_mean_by_its_own_weights(self):
        random = np.random.default_rng(7)
        weights = random.integers(0, 4, (2, MEMBERS, CLASSES)) + np.eye(MEMBERS, CLASSES, dtype=int)
        weights[:, 0] += weights.sum(1) == 0
        models = {f"m{m}": says(m) for m in range(MEMBERS)}
        rows = [[", ".join(map(str, row)) for row in of] for of in weights]
        for i, of in enumerate(rows):
            models[f"e{i}"] = ensemble(["m0", "m1", "m2"], "rule: weighted_mean", f"weights: {list(of)}")
        models["narrow"] = ensemble(["m0", "m1", "m2"], "rule: weighted_mean", "weights: ['1,2', '1,2', '1,2']")
        client = self.serve(models)
        for i in range(2):
            for samples in (1, 300):
                x = random.random((samples, MEMBERS, CLASSES), np.float32)
                wanted = (x * weights[i]).sum(1) / weights[i].sum(0)
                np.testing.assert_allclose(client.infer(f"e{i}", x), wanted, rtol=1e-5)
        self.expect_refused(client, "narrow", "narrow", "2 classes", '"y"', "5")


class TestBoxes(EnsemblesCase):
    def test_boxes_of_detectors_are_fused_as_numpy_fuses_them(self):
        random = np.random.default_rng(11)
        own = (PLACES, 7, 9)  # a member may have its own number of places
        models = {f"m{m}": detects(m, own[m]) for m in range(MEMBERS)}
        names = ["m0", "m1", "m2"]
        models["wbf"] = ensemble(names, "rule: weighted_boxes_fusion", "weights: [1, 2, 0.5]", "detection: {overlap: 0.4}")
        models["nms"] = ensemble(names, "rule: nms")
        models["soft"] = ensemble(names, "rule: soft_nms", "detection: {sigma: 0.3, score_min: 0.1}")
        client = self.serve(models)
        x, n = random_boxes(random, 40)
        weights = np.array([1, 2, 0.5])
        for name, by, make in (
            ("wbf", weights * 3 / weights.sum(), lambda found: fused(found, 0.4, MEMBERS)),
            ("nms", np.ones(3), lambda found: suppressed(found, 0.5)),
            ("soft", np.ones(3), lambda found: softly([f for f in found if f[0] >= 0.1], 0.3, 0.1)),
        ):
            got = client.infer(name, {"x": x, "n": n})
            again = client.infer(name, {"x": x, "n": n})
            for port in ("boxes", "scores", "labels", "count"):
                np.testing.assert_array_equal(got[port], again[port], name)
            for sample in range(len(x)):
                rows = make(valid_boxes(x[sample], n[sample], own, by))[:PLACES]
                self.assertEqual(got["count"][sample], len(rows), (name, sample))
                for p in range(PLACES):
                    score, _, label, corners = rows[p] if p < len(rows) else (0, 0, 0, np.zeros(4))
                    where = f"{name}, sample {sample}, place {p}"
                    np.testing.assert_allclose(got["scores"][sample, p], score, rtol=1e-4, atol=1e-7, err_msg=where)
                    np.testing.assert_allclose(got["boxes"][sample, p], corners, rtol=1e-4, atol=1e-5, err_msg=where)
                    self.assertEqual(got["labels"][sample, p], label, where)

    def test_outputs_have_names_and_labels_may_be_integers(self):
        models = {f"m{m}": detects(m, PLACES, prefix="detection_", label_type=I64, count=False) for m in range(2)}
        models["wbf"] = ensemble(
            ["m0", "m1"],
            "rule: weighted_boxes_fusion",
            "detection: {boxes: detection_boxes, scores: detection_scores, labels: detection_labels}",
        )
        models["lost"] = ensemble(["m0", "m1"], "rule: nms")
        models["mixed"] = ensemble(["m0", "other"], "rule: nms", "detection: {boxes: detection_boxes, scores: detection_scores,"
                                   " labels: detection_labels}")
        models["other"] = detects(2, PLACES, prefix="detection_", label_type=F32, count=False)
        client = self.serve(models)
        x, n = np.zeros((1, MEMBERS, PLACES, 6), np.float32), np.zeros((1, MEMBERS), np.float32)
        x[0, :2, 0] = [[0, 0, 2, 2, 0.5, 9], [0, 0, 2, 2, 1, 9]]
        got = client.infer("wbf", {"x": x, "n": n})
        self.assertEqual(got["detection_labels"].dtype, np.int64)
        self.assertEqual(got["detection_labels"][0, 0], 9)
        np.testing.assert_allclose(got["detection_scores"][0], [0.75] + [0] * (PLACES - 1))
        self.expect_refused(client, "lost", "lost", '"boxes"', "ensemble.detection.boxes")
        self.expect_refused(client, "mixed", "mixed", "detection_labels", "other", "float32")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def part_of(rule, weights, rows):
    """What the rule makes of these rows [members, classes], which may be a part of all."""
    if rule == "weighted_mean":
        return np.average(rows, axis=0, weights=weights[: len(rows)])
    if rule == "majority_vote":
        return np.bincount(rows.argmax(-1), minlength=rows.shape[-1]) / len(rows)
    if rule == "geometric_mean":
        g = np.exp(np.log(np.maximum(rows, 1.17549435e-38)).mean(0))
        return g / g.sum()
    return rows.max(0) if rule == "maximum" else rows.mean(0)


def cascade(rule, weights, rows, agree=None, margin=None):
    """Of one sample: the members that are asked, and the result."""
    rows = rows.astype(np.float64)
    asked = agree or 1
    while asked < len(rows):
        votes = [row.argmax() for row in rows[:asked] if not np.isnan(row).any()]
        if agree and votes and np.bincount(votes).max() >= agree:
            break
        result = np.sort(part_of(rule, weights, rows[:asked]))
        if margin and result[-1] - result[-2] >= margin:
            break
        asked += 1
    return asked, part_of(rule, weights, rows[:asked])


class TestUntil(EnsemblesCase):
    members = 7

    def test_members_are_asked_until_a_sample_is_settled(self):
        global MEMBERS
        self.addCleanup(globals().__setitem__, "MEMBERS", MEMBERS)
        MEMBERS, names = self.members, [f"m{m}" for m in range(self.members)]
        random = np.random.default_rng(3)
        weights = random.integers(1, 9, self.members)
        cases = [
            ("mean", {"agree": 3}),
            ("mean", {"margin": 0.25}),
            ("weighted_mean", {"margin": 0.3}),
            ("weighted_mean", {"agree": 2}),
            ("geometric_mean", {"margin": 0.2}),
            ("maximum", {"margin": 0.3}),
            ("majority_vote", {"agree": 4}),
        ]
        models = {name: says(m) for m, name in enumerate(names)}
        for i, (rule, until) in enumerate(cases):
            key, value = next(iter(until.items()))
            lines = [f"rule: {rule}", f"until: {{{key}: {value}}}"]
            models[f"e{i}"] = ensemble(names, *lines, *([f"weights: {list(weights)}"] if rule == "weighted_mean" else []))
        client = self.serve(models)
        skipped = dict.fromkeys(models, 0)
        for samples in (1, 2, 300, 1):
            x = softmax(3 * random.random((samples, self.members, CLASSES))).astype(np.float32)
            x[::5] = x[::5, :1]  # all say the same
            for i, (rule, until) in enumerate(cases):
                future = client.submit(f"e{i}", x)
                got = future.result(60)
                asked = [cascade(rule, weights, rows, **until) for rows in x]
                np.testing.assert_allclose(got, [result for _, result in asked], rtol=1e-4, atol=1e-6, err_msg=f"{rule} {until}")
                most, least = max(a for a, _ in asked), min(a for a, _ in asked)
                self.assertEqual(future.members, (tuple(range(most)), tuple(range(least))), f"{rule} {until}")
                skipped[f"e{i}"] += sum(self.members - a for a, _ in asked)
        stats = {m["name"]: m["skipped"] for m in json.loads(self.runtime.stats("--json"))["models"]}
        self.assertEqual({
name: n for name, n in stats.items() if name in models}, skipped)
        self.assertGreater(min(skipped[f"e{i}"] for i in range(len(cases))), 0)

    def test_what_is_no_number_settles_nothing(self):
        names = ["m0", "m1", "m2"]
        models = {name: says(m) for m, name in enumerate(names)}
        models["agree"] = ensemble(names, "until: {agree: 2}")
        models["margin"] = ensemble(names, "until: {margin: 0.1}")
        client = self.serve(models)
        x = np.zeros((2, MEMBERS, CLASSES), np.float32)
        x[:, :, 2] = 1
        x[0, :, 3] = np.nan
        for name, least in (("agree", 2), ("margin", 1)):
            future = client.submit(name, x)
            got = future.result(60)
            self.assertTrue(np.isnan(got[0, 3]), got)
            np.testing.assert_allclose(got[1], x[1, 0])
            self.assertEqual(future.members, ((0, 1, 2), tuple(range(least))), name)

    def test_what_cannot_be_is_refused(self):
        models = {"m0": says(0), "m1": says(1), "one": says(2, 1), "two": says(1, 1)}
        models["none"] = ensemble(["m0", "m1"], "rule: none", "until: {agree: 2}")
        models["many"] = ensemble(["m0", "m1"], "until: {agree: 3}")
        models["wide"] = ensemble(["m0", "m1"], "until: {margin: 1.5}")
        models["single"] = ensemble(["one", "two"], "until: {margin: 0.5}")
        models["lots"] = ensemble(["m0", "m1"], "quorum: 3")
        client = self.serve(models)
        self.expect_refused(client, "none", "ensemble.until", "the rule is none")
        self.expect_refused(client, "many", "ensemble.until.agree", "3 members", "has 2")
        self.expect_refused(client, "wide", "ensemble.until.margin", '"1.5"')
        self.expect_refused(client, "single", "single", "2 or more classes", '"y"')
        self.expect_refused(client, "lots", "ensemble.quorum", '"3"', "from 1 to 2")


def blends(weights, members=None, classes=CLASSES):
    """Stacked predictions times weights [all, 4], without negative numbers: of one row, or of an input for each member."""
    inputs = [onnx.port("row", F32, ("N", len(weights)))]
    nodes = [onnx.node("MatMul", ["row", "weights"], ["sum"]), onnx.node("Relu", ["sum"], ["blend"])]
    if members:
        inputs = [onnx.port(f"p{m}", F32, ("N", classes)) for m in range(members)]
        nodes.insert(0, onnx.node("Concat", [f"p{m}" for m in range(members)], ["row"], axis=1))
    return onnx.model(nodes, inputs, [onnx.port("blend", F32, ("N", 4))], [onnx.constant("weights", F32, weights)])


class TestStacking(EnsemblesCase):
    def test_a_combiner_computes_what_all_have_predicted(self):
        random = np.random.default_rng(5)
        weights = random.standard_normal((MEMBERS * CLASSES, 4)).astype(np.float32)
        models = {f"m{m}": says(m) for m in range(MEMBERS)}
        models |= {"row": blends(weights), "each": blends(weights, MEMBERS)}
        for combiner in ("row", "each"):
            models["by-" + combiner] = ensemble(["m0", "m1", "m2"], "rule: stacking", f"combiner: {combiner}")
        client = self.serve(models)
        self.assertEqual([port.name for port in client.model("by-row").outputs], ["blend"])
        for name in ("by-row", "by-each"):
            for samples in (1, 3, 300):
                x = random.random((samples, MEMBERS, CLASSES), np.float32)
                wanted = np.maximum(x.reshape(samples, -1) @ weights, 0)
                future = client.submit(name, x)
                np.testing.assert_allclose(future.result(60), wanted, rtol=1e-4, atol=1e-5, err_msg=name)
                self.assertEqual(future.members, ((0, 1, 2), (0, 1, 2)))
            futures = [(x, client.submit(name, x)) for x in random.random((20, 7, MEMBERS, CLASSES), np.float32)]
            for x, future in futures:
                np.testing.assert_allclose(future.result(60), np.maximum(x.reshape(7, -1) @ weights, 0), rtol=1e-4, atol=1e-5)

    def test_what_does_not_fit_is_refused(self):
        models = {f"m{m}": says(m) for m in range(MEMBERS)}
        models["narrow"] = blends(np.zeros((7, 4), np.float32))
        models["pair"] = blends(np.zeros((2 * CLASSES, 4), np.float32), 2)
        models["apart"] = {"1/model.onnx": blends(np.zeros((15, 4), np.float32)), "config.yaml": b"isolation: process\n"}
        members = ["m0", "m1", "m2"]
        for combiner in ("narrow", "pair", "apart", "nobody"):
            models["by-" + combiner] = ensemble(members, "rule: stacking", f"combiner: {combiner}")
        models["without"] = ensemble(members, "rule: stacking")
        models["other"] = ensemble(members, "combiner: narrow")
        client = self.serve(models)
        self.expect_refused(client, "by-narrow", '"narrow"', '"row"', "7", "15 elements")
        self.expect_refused(client, "by-pair", '"pair"', "2 inputs", "or 3")
        self.expect_refused(client, "by-apart", 'combiner "apart"', "isolation: none")
        self.expect_refused(client, "by-nobody", 'combiner "nobody"', "not served")
        self.expect_refused(client, "without", "ensemble.combiner", "missing")
        self.expect_refused(client, "other", "ensemble.combiner", "the rule is mean")


def lingers(member):
    """As says(), of one sample; but computes as many rounds as its first class says."""
    body = onnx.graph(
        [onnx.node("Identity", ["go"], ["go_on"]), onnx.node("Sin", ["v"], ["w"])],
        [onnx.port("i", I64, ()), onnx.port("go", 9, ()), onnx.port("v", F32, (1,))],
        [onnx.port("go_on", 9, ()), onnx.port("w", F32, (1,))],
    )
    return onnx.model(
        [
            onnx.node("Gather", ["x", "member"], ["row"], axis=1),
            onnx.node("Squeeze", ["row", "one"], ["mine"]),
            onnx.node("Slice", ["mine", "zero", "one", "one"], ["first"]),
            onnx.node("Squeeze", ["first"], ["rounds_float"]),
            onnx.node("Cast", ["rounds_float"], ["rounds"], to=I64),
            onnx.node("Loop", ["rounds", "", "start"], ["v"], body=body),
            onnx.node("Mul", ["v", "nothing"], ["n"]),
            onnx.node("Add", ["mine", "n"], ["y"]),
        ],
        [onnx.port("x", F32, (1, MEMBERS, CLASSES))],
        [onnx.port("y", F32, (1, CLASSES))],
        [
            constant("member", member),
            constant("zero", 0),
            constant("one", 1),
            onnx.constant("start", F32, np.array([1], np.float32)),
            onnx.constant("nothing", F32, np.array([0], np.float32)),
        ],
    )


class TestQuorum(EnsemblesCase):
    def serve_members(self, models, options):
        files = {"1/model.onnx": None, "config.yaml": options.encode()}
        return self.serve({**{f"m{m}": {**files, "1/model.onnx": lingers(m)} for m in range(MEMBERS)}, **models})

    def test_at_the_deadline_those_answer_who_have(self):
        models = {
            "two": ensemble(["m0", "m1", "m2"], "rule: weighted_mean", "weights: [1, 2, 3]", "quorum: 2"),
            "all": ensemble(["m0", "m1", "m2"]),
        }
        client = self.serve_members(models, "work_max: 1e18\ndynamic_steps_max: 4000000000\n")
        x = np.ones((1, MEMBERS, CLASSES), np.float32)
        x[0, :, 1] = [3, 6, 9]
        future = client.submit("two", x, timeout=60)
        np.testing.assert_allclose(future.result(60)[0, 1], 7)
        self.assertEqual(future.members, ((0, 1, 2), (0, 1, 2)))
        x[0, 1, 0] = 1e12
        future = client.submit("two", x, timeout=3)
        np.testing.assert_allclose(future.result(60)[0, 1], (3 + 27) / 4)
        self.assertEqual(future.members, ((0, 2), (0, 2)))
        x[0, 2, 0] = 1e12
        for name in ("two", "all"):
            with self.assertRaises(starling.Expired):
                client.infer(name, x, timeout=1)
        x[0, :, 0] = 1
        np.testing.assert_allclose(client.infer("two", x, timeout=60)[0, 1], 7)  # workers are free again
        stats = {m["name"]: m["missed"] for m in json.loads(self.runtime.stats("--json"))["models"]}
        self.assertEqual((stats["two"], stats["all"]), (3, 0))

    def test_a_member_that_fails_is_missing_and_too_many_fail_the_request(self):
        client = self.serve_members({"two": ensemble(["m0", "m1", "m2"], "quorum: 2")}, "dynamic_steps_max: 10000\n")
        x = np.ones((1, MEMBERS, CLASSES), np.float32)
        x[0, :, 1] = [3, 6, 9]
        for failing in range(MEMBERS):
            x[0, :, 0] = 1
            x[0, failing, 0] = 1e12
            future = client.submit("two", x)
            left = tuple(m for m in range(MEMBERS) if m != failing)
            np.testing.assert_allclose(future.result(60)[0, 1], x[0, left, 1].mean())
            self.assertEqual(future.members, (left, left))
        x[0, 1:, 0] = 1e12
        with self.assertRaisesRegex(starling.ModelFailed, "Loop"):
            client.infer("two", x)
        x[0, :, 0] = 1
        np.testing.assert_allclose(client.infer("two", x)[0, 1], 6)


if __name__ == "__main__":
    unittest.main()
