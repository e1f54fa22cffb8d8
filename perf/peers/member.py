# SPDX-License-Identifier: Apache-2.0
"""A model in ONNX Runtime, for every peer that computes with it: one thread unless told otherwise, and stamps of when it computed."""

import os
import time

import onnxruntime

from plan import plan_of
from stamps import Stamps


class Member:
    def __init__(self, folder, index, threads=1):
        plan = plan_of(folder)
        model = plan["models"][index]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model["path"], options, providers=["CPUExecutionProvider"])
        self.index, self.input, self.outputs = index, model["input"], [model["output"]]
        self.stamps = Stamps(os.path.join(folder, "stamps"), len(plan["models"]))

    def run(self, x):
        begin = time.monotonic_ns()
        y = self.session.run(self.outputs, {self.input: x})[0]
        self.stamps.put(self.index, begin, time.monotonic_ns())
        return y


class Ensemble:
    """All models of a workload in one process, one after the other; of one model its answer, of several their mean."""

    def __init__(self, folder, threads=1):
        self.members = [Member(folder, i, threads) for i in range(len(plan_of(folder)["models"]))]

    def run(self, x):
        total = self.members[0].run(x)
        if len(self.members) == 1:
            return total
        for member in self.members[1:]:
            total = total + member.run(x)
        return total / len(self.members)


def answer_of(folder):
    """A function of a request's array: what all models of the workload together answer, or for no-ops the array itself."""
    return Ensemble(folder).run if plan_of(folder)["computes"] else lambda x: x
