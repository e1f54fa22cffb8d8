# SPDX-License-Identifier: Apache-2.0
"""served.py STARLING CASES [EXCEPTIONS] [--peer]: ONNX's cases of operators where a user stands: all of them are models of a runtime
in its default configuration, and the Python client asks each for its values.

Prints what became of them, by opset. A case that is refused has to be in EXCEPTIONS with its reason, and a wrong value is never an
exception. What is there and is right by now is said. --peer: ONNX Runtime computes the same cases, for a column of its own."""

import collections
import contextlib
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

LEAST_SHARE = 98.4  # in percent of the cases that are not excluded; raise it as coverage grows
BATCH = 64  # models of one runtime, each of which is promised memory
CHARACTERS = ("Equal", "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch")  # they compute on strings


def why_excluded(model):
    """Training, pictures and what computes on strings are no part of what Starling serves; random numbers have no right values."""
    if any(node.domain == "ai.onnx.preview.training" for node in model.graph.node):
        return "training"
    if any(node.op_type == "ImageDecoder" for node in model.graph.node):
        return "pictures"
    if model.graph.node[0].op_type == "Bernoulli" or any(node.op_type == "RandomUniformLike" for node in model.graph.node):
        return "their results are what another generator drew"
    ports = [*model.graph.input, *model.graph.output]
    texts = any(port.type.tensor_type.elem_type == onnx.TensorProto.STRING for port in ports)
    return "strings" if texts and any(node.op_type in CHARACTERS for node in model.graph.node) else ""


def opset_of(model):
    return max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=0)


def elements_of(name, kind, content):
    """Of a sequence each tensor by the name that Starling has for it; of an optional what it holds."""
    if kind == "tensor_type":
        yield name, numpy_helper.to_array(onnx.load_tensor_from_string(content))
    elif kind == "sequence_type":
        for i, array in enumerate(numpy_helper.to_list(onnx.SequenceProto.FromString(content))):
            yield f"{name}[{i}]", array
    else:
        value = numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name} is an optional of {type(value).__name__}")
        yield name, value


class Case:
    def __init__(self, folder):
        self.name, self.folder = folder.name, folder
        self.model = onnx.load(folder / "model.onnx")
        self.opset = opset_of(self.model)
        self.excluded = "training" if self.name.startswith("test_training_") else why_excluded(self.model)

    def values(self, data_set, kind, ports):
        for i, port in enumerate(ports):
            content = (data_set / f"{kind}_{i}.pb").read_bytes()
            yield from elements_of(port.name, port.type.WhichOneof("value"), content)

    def tolerance(self):
        return map(float, (self.folder / "tolerance").read_text().split())

    def differs(self, wanted, got):
        """What is wrong with the values, or ""."""
        relative, absolute = self.tolerance()
        for (name, want), have in zip(wanted, got):
            have = np.asarray(have)
            if have.dtype != want.dtype or have.shape != want.shape:
                return f"output {name} is {have.dtype}{list(have.shape)}, wants {want.dtype}{list(want.shape)}"
            if want.dtype.kind not in "fc":
                loose = max(relative, 2**-6) if want.dtype.name == "bfloat16" else relative
                have, want = have.astype(np.float64), want.astype(np.float64)
            else:
                loose = relative
            # A sum near 0 is as exact as what was summed.
            near = max(absolute, 1e-6 * np.max(np.abs(want), initial=0, where=np.isfinite(want)))
            if want.size and not np.allclose(have, want, rtol=loose, atol=near, equal_nan=True):
                return f"output {name} has other values"
        return ""

    def run(self, infer):
        """("right" or "wrong", why); what `infer` raises is a refusal."""
        for data_set in sorted(self.folder.glob("test_data_set_*")):
            inputs = dict(self.values(data_set, "input", self.model.graph.input))
            wanted = list(self.values(data_set, "output", self.model.graph.output))
            text = self.differs(wanted, infer(self, inputs, [name for name, _ in wanted]))
            if text:
                return "wrong", text
        return "right", ""


def tried(case, infer):
    try:
        return case.run(infer)
    except Exception as error:  # of the client, of the peer, of a port that is no tensor
        return "refused", " ".join(str(error).split())


@contextlib.contextmanager
def runtime(starling, cases, cache):
    """A client of a runtime that has loaded all of the cases, or refused them. What is measured of a core stays in the folder @cache."""
    import starling as client

    with tempfile.TemporaryDirectory(prefix="starling-served-") as folder:
        os.environ["STARLING_SOCKET_DIR"] = folder
        os.environ["XDG_CACHE_HOME"] = cache
        os.mkdir(folder + "/models")
        for case in cases:
            pathlib.Path(f"{folder}/models/{case.name}.onnx").write_bytes((case.folder / "model.onnx").read_bytes())
        name = f"served-{os.getpid()}"
        with open(folder + "/log", "w+") as log:
            process = subprocess.Popen(
                [starling, "serve", "--name", name, folder + "/models"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                wait_for_models(starling, name, process, log)
                with client.Client(name) as connected:
                    yield connected
            finally:
                process.terminate()
                process.wait()


def wait_for_models(starling, name, process, log):
    while True:
        told = subprocess.run([starling, "models", "--name", name], capture_output=True, text=True)
        if told.returncode == 0 and " loading " not in told.stdout:
            return
        if process.poll() is not None:
            log.seek(0)
            sys.exit("the runtime ended: " + log.read()[-2000:])
        time.sleep(0.2)


def serve(starling, cases):
    results = {}
    with tempfile.TemporaryDirectory(prefix="starling-served-") as cache:
        for first in range(0, len(cases), BATCH):
            some = cases[first : first + BATCH]
            with runtime(starling, some, cache) as client:

                def infer(case, inputs, names):
                    result = client.infer(case.name, inputs, timeout=60)
                    return [result[name] for name in names] if isinstance(result, dict) else [result]

                results.update({case.name: tried(case, infer) for case in some})
    return results


def compute_with_peer(cases):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)

    def infer(case, inputs, names):
        session = onnxruntime.InferenceSession(case.folder / "model.onnx", providers=["CPUExecutionProvider"])
        return session.run(None, inputs)

    return {case.name: tried(case, infer) for case in cases}


def print_table(cases, results, peer):
    tally = collections.defaultdict(collections.Counter)
    for case in cases:
        for key in case.opset, "all":
            tally[key]["cases"] += 1
            tally[key][results[case.name][0]] += 1
            if peer:
                tally[key]["peer " + peer[case.name][0]] += 1
    print("opset  cases  right  refused  wrong" + ("  ONNX Runtime: right  refused  wrong" if peer else ""))
    for key in [*sorted(k for k in tally if k != "all"), "all"]:
        t = tally[key]
        line = f"{key:>5}  {t['cases']:>5}  {t['right']:>5}  {t['refused']:>7}  {t['wrong']:>5}"
        if peer:
            line += f"  {t['peer right']:>19}  {t['peer refused']:>7}  {t['peer wrong']:>5}"
        print(line)
    return 100 * tally["all"]["right"] / tally["all"]["cases"]


def read_exceptions(path):
    """Lines of a pattern and a reason."""
    lines = [line.split(None, 1) for line in pathlib.Path(path).read_text().splitlines() if line and not line.startswith("#")]
    return [(pattern, reason) for pattern, reason in lines]


def check(cases, results, exceptions):
    """Complaints: what fails without a reason, and reasons for no case. A reason that has gone is only told."""
    used, complaints = set(), []
    for case in cases:
        outcome, text = results[case.name]
        rows = [pattern for pattern, _ in exceptions if fnmatch.fnmatchcase(case.name, pattern)]
        used.update(rows)
        if outcome == "wrong" or (outcome == "refused" and not rows):
            complaints.append(f"{outcome.upper()}: {case.name}: {text[-300:]}")
        if outcome == "right" and rows:
            print(f"right by now, and still an exception: {case.name}")
    return complaints + [f"an exception of no case: {pattern}" for pattern, _ in exceptions if pattern not in used]


def main():
    warnings.simplefilter("ignore")
    arguments = [argument for argument in sys.argv[1:] if argument != "--peer"]
    cases = [Case(folder) for folder in sorted(pathlib.Path(arguments[1]).glob("test_*"))]
    for reason, n in collections.Counter(case.excluded for case in cases if case.excluded).items():
        print(f"excluded: {n} cases: {reason}")
    cases = [case for case in cases if not case.excluded]
    results = serve(arguments[0], cases)
    share = print_table(cases, results, compute_with_peer(cases) if "--peer" in sys.argv else {})
    exceptions = read_exceptions(arguments[2]) if len(arguments) > 2 else []
    for reason, n in collections.Counter(reason for _, reason in exceptions).items():
        print(f"exceptions: {n} patterns: {reason}")
    complaints = check(cases, results, exceptions)
    print("\n".join(complaints))
    print(f"{share:.1f} % are right, at least {LEAST_SHARE} % have to be")
    sys.exit(bool(complaints) or share < LEAST_SHARE)


main()
