# SPDX-License-Identifier: Apache-2.0
"""One cell of the table: a model, a batch size, a number of cores. All engines are loaded, then run in turns."""

import contextlib
import os
import statistics
import sys
import time

import numpy as np

from process import EngineError, Process

TURN_SECONDS = 0.06  # how long one engine computes before it is the next one's turn
TURNS_MIN = 5
ERROR_LIMIT = 1e-4
PEER_ERROR_LIMIT = 1e-2  # an answer that is farther off is to another question
HERE = os.path.dirname(os.path.abspath(__file__))


class Bench:
    """What all cells of a run have in common."""

    def __init__(self, program, peers, options, seconds, folder):
        self.program, self.peers, self.options, self.seconds, self.folder = program, peers, options, seconds, folder

    def starling(self, model, batch, cpus, inputs, plan=None, keep=None, flags=(), sizes=None):
        command = [self.program, "--plan" if plan else "--model", plan or model]
        command += ["--batch", str(batch), "--cpus", ",".join(map(str, cpus))]
        command += ["--keep-plan", keep] if keep else []
        command += flags
        shapes = [f"{name}={size}" for name, size in (sizes or {}).items()]
        for option in [*self.options, *(["shapes=" + ",".join(shapes)] if shapes else [])]:
            command += ["--option", option]
        for name in inputs:
            command += ["--input", f"{name}={self._path(name, 'raw')}"]
        return Process("starling", command, cpus)

    def peer(self, name, model, cpus, inputs, flags=()):
        command = [sys.executable, os.path.join(HERE, "peer.py"), name, "--model", model, "--cpus", ",".join(map(str, cpus)), *flags]
        for port in inputs:
            command += ["--input", f"{port}={self._path(port, 'npy')}"]
        process = Process(name, command, cpus, {"OMP_NUM_THREADS": str(len(cpus))})
        process.answer(60)
        return process

    def write_inputs(self, inputs):
        for name, array in inputs.items():
            np.save(self._path(name, "npy"), array)
            array.tofile(self._path(name, "raw"))

    def _path(self, name, suffix):
        return os.path.join(self.folder, f"input.{name}.{suffix}")


class Runner:
    """An engine that has loaded the model: how long that took, what it takes in memory, its answers and its times."""

    def __init__(self, process, folder):
        self.process, self.folder = process, os.path.join(folder, process.name)
        self.times, self.medians, self.error = [], [], None
        os.makedirs(self.folder, exist_ok=True)
        try:
            before = process.memory()[0]
            self.loaded = process.order("load")
            self.first = process.order("run 1")["ns"][0]
            self.memory = [bytes_now - before for bytes_now in process.memory()]
            self.answers = _answers(process.order(f"outputs {self.folder}")["outputs"])
        except EngineError as error:
            self.error = str(error)

    def turn(self, recorded=True):
        """A failure in the middle is remembered; the others go on."""
        if self.error:
            return
        count = max(1, min(2000, int(TURN_SECONDS * 1e9 / max(self.first, 1))))
        try:
            times = self.process.order(f"run {count}")["ns"]
        except EngineError as error:
            self.error = str(error)
            return
        self.first = statistics.median(times)
        if recorded:
            self.times += times
            self.medians.append(self.first)

    def milliseconds(self):
        return None if self.error or not self.times else statistics.median(self.times) / 1e6

    def row(self):
        if self.error:
            return {"error": self.error}
        return {
            "ms": self.milliseconds(),
            "best_ms": min(self.times) / 1e6,
            "runs": len(self.times),
            "load_seconds": self.loaded["seconds"],
            "resident_bytes": self.memory[0],
            "peak_bytes": self.memory[1],
        }


def _answers(outputs):
    """{sample: [(name, array)]}: of all samples under 0, or of each when they were run one by one."""
    answers = {}
    for output in outputs:
        array = np.fromfile(output["file"], np.dtype(output["dtype"])).reshape(output["shape"])
        answers.setdefault(output.get("sample", 0), []).append((output["name"], array))
    return answers


def in_turns(runners, seconds):
    for runner in runners:
        runner.turn(recorded=False)
    end, turns = time.monotonic() + seconds, 0
    while turns < TURNS_MIN or time.monotonic() < end:
        for runner in runners:
            runner.turn()
        turns += 1


def refuse_wrong_answers(peers):
    """A peer that computes something else than ONNX Runtime is no peer in this cell."""
    reference = next((r for r in peers if not r.error and r.process.name == "onnxruntime"), None)
    for peer in peers:
        if not reference or peer.error or peer is reference:
            continue
        error, text = disagreement(reference.answers[0], peer.answers[0])
        if text or error > PEER_ERROR_LIMIT:
            peer.error = "another answer than ONNX Runtime's: " + (text or f"relative error {error:.0e}")


def ratio_interval(ours, peer):
    """Where the median of the turns' ratios lies, to 93 % and more: the order statistics of a sign test."""
    ratios = sorted(theirs / own for own, theirs in zip(ours.medians, peer.medians))
    n, below, probability = len(ratios), 0, 0.5 ** len(ratios)
    outside = 2 * probability
    while below + 1 < n // 2 and outside + 2 * probability * (n - below) / (below + 1) <= 0.07:
        below += 1
        probability *= (n - below + 1) / below
        outside += 2 * probability
    return [ratios[below], ratios[n - 1 - below]]


def disagreement(ours, theirs):
    """(largest relative error over the outputs, or None; a text when the outputs cannot be compared or integers differ)."""
    theirs, worst = dict(theirs), 0.0
    for name, array in ours:
        other = theirs.get(name)
        if other is None or other.shape != array.shape:
            return None, f"output {name}: shape {list(array.shape)}, not {list(other.shape) if other is not None else 'any'}"
        if not np.issubdtype(array.dtype, np.floating):
            if not np.array_equal(array, other):
                return None, f"output {name}: {int((array != other).sum())} of {array.size} integers differ"
        elif array.size:
            if not (np.isfinite(array).all() and np.isfinite(other).all()):
                return None, f"output {name}: not finite"
            worst = max(worst, float(np.abs(array.astype(np.float64) - other).max() / max(np.abs(other).max(), 1e-30)))
    return worst, None


def one_by_one(bench, model, cpus, inputs, batch):
    """What ONNX Runtime answers to the first and to the last sample alone: {sample: [(name, array)]}."""
    answers = {}
    for sample in sorted({0, batch - 1}):
        alone = {name: array[sample : sample + 1] for name, array in inputs.items()}
        bench.write_inputs(alone)
        with bench.peer("onnxruntime", model, cpus, alone) as process:
            runner = Runner(process, bench.folder)
        if not runner.error:
            answers[sample] = runner.answers[0]
    return answers


def cached_load(bench, model, batch, cpus, inputs, plan):
    """Seconds of a second start, from the plan file that the first one kept."""
    try:
        with bench.starling(model, batch, cpus, inputs, plan=plan) as process:
            return process.order("load")["seconds"]
    except EngineError:
        return None


def measure(bench, model, batch, cpus, inputs, sizes, peak):
    """
    The row of one cell. `sizes` are those of open dimensions, `peak` is a Runner of the matrix product, which takes its turns with
    the others.
    """
    bench.write_inputs(inputs)
    plan = os.path.join(bench.folder, "kept.plan")
    with contextlib.ExitStack() as stack:
        runners = [Runner(stack.enter_context(bench.starling(model, batch, cpus, inputs, keep=plan, sizes=sizes)), bench.folder)]
        for name in bench.peers:
            runners.append(Runner(stack.enter_context(bench.peer(name, model, cpus, inputs)), bench.folder))
        peak.times = []
        refuse_wrong_answers(runners[1:])
        in_turns([peak, *runners], bench.seconds)
        row = {runner.process.name: runner.row() for runner in runners}
    if not runners[0].error:
        row["starling"]["cached_load_seconds"] = cached_load(bench, model, batch, cpus, inputs, plan)
        row["starling"]["plan_bytes"] = os.path.getsize(plan)
    row.update(_judged(runners, batch, len(cpus), peak))
    row.update(_compared(bench, model, batch, cpus, inputs, runners))
    return row


def _judged(runners, batch, n_cpus, peak):
    """What the figures of several engines say together."""
    ours, peers = runners[0], [r for r in runners[1:] if not r.error]
    judged = {"peak_gflops": 2 * 1024**3 / peak.milliseconds() / 1e6 * n_cpus}
    if ours.error:
        return judged
    loaded, faster = ours.loaded, min(peers, key=Runner.milliseconds, default=None)
    judged["gflops"] = 2 * loaded["multiply_adds"] * batch / ours.milliseconds() / 1e6
    judged["share_of_peak"] = judged["gflops"] / judged["peak_gflops"]
    judged["ratio"] = faster.milliseconds() / ours.milliseconds() if faster else None
    judged["faster_peer"] = faster.process.name if faster else None
    judged["ratio_interval"] = ratio_interval(ours, faster) if faster else None
    judged["turns"] = len(ours.medians)
    judged["ratio_of_best"] = min((min(r.times) for r in peers), default=0) / min(ours.times) if peers else None
    judged.update({k: loaded[k] for k in ("lanes", "batchable", "weights_bytes", "workspace_bytes", "compiler_peak_bytes")})
    return judged


def _compared(bench, model, batch, cpus, inputs, runners):
    """How far Starling's answers are from ONNX Runtime's."""
    ours = runners[0]
    reference = next((r for r in runners[1:] if not r.error and r.process.name == "onnxruntime"), None)
    if ours.error or not reference:
        return {}
    theirs = one_by_one(bench, model, cpus, inputs, batch) if len(ours.answers) > 1 else reference.answers
    verdicts = [disagreement(ours.answers[sample], theirs[sample]) for sample in theirs]
    disagrees = next((text for _, text in verdicts if text), None) if verdicts else "no answers to compare with"
    error = max((error for error, _ in verdicts if error is not None), default=None)
    return {"relative_error": error, "disagrees": disagrees, "agrees": disagrees is None and error <= ERROR_LIMIT}
