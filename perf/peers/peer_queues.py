# SPDX-License-Identifier: Apache-2.0
"""A plain server of Python processes and queues, as the ensemble paper describes it: X lies in shared memory, a broadcaster puts segments
into every model's queue, workers put triplets of segment, model and predictions into one queue, and an accumulator adds them up.

    client --requests--> broadcaster --one queue a model--> workers --predictions--> accumulator --one queue a client--> client

Requests that wait together become one segment. The queues are those that have no thread of their own, which are the faster ones. A single
model has two workers, one for each CPU; of an ensemble every member has one.

Sources: P. Pochelu, S. Petiton, B. Conche, "An efficient and flexible inference system for serving heterogeneous ensembles of deep neural
networks", 2021, section II.
"""

import multiprocessing
import os

import numpy as np

from clients import Client
from member import Member
from plan import plan_of
from stamps import Stamps

SEGMENT = 128  # samples at most
THE_END = None


def _broadcast(requests, queues):
    """A segment is a list of (client, samples); its number is what the accumulator knows it by."""
    number = 0
    while (request := requests.get()) is not THE_END:
        segment = [request]
        while not requests.empty() and sum(n for _, n in segment) < SEGMENT:
            if (request := requests.get()) is THE_END:
                break
            segment.append(request)
        for queue in queues:
            queue.put((number, segment))
        number += 1


def _work(folder, index, x, queue, predictions):
    run = Member(folder, index).run if plan_of(folder)["computes"] else lambda y: y
    predictions.put((None, index, None, None))  # ready
    while True:
        number, segment = queue.get()
        parts = [x[client, :n] for client, n in segment]
        y = run(parts[0] if len(parts) == 1 else np.concatenate(parts))
        predictions.put((number, index, segment, y))


def _accumulate(predictions, responses, n_models, n_workers, ready):
    for _ in range(n_workers):
        predictions.get()
    ready.put(True)
    sums = {}
    while True:
        number, _, segment, y = predictions.get()
        total, n = sums.get(number, (0, 0))
        sums[number] = (total + y / n_models, n + 1)
        if n + 1 < n_models:
            continue
        total, begin = sums.pop(number)[0], 0
        for client, n in segment:
            responses[client].put(total[begin : begin + n])
            begin += n


class Asking(Client):
    def __init__(self, server, index):
        self.x, self.requests, self.response, self.index = server.x[index], server.requests, server.responses[index], index
        self.span_ns = Stamps(os.path.join(server.folder, "stamps"), server.n_models).span_ns

    def ask(self, x):
        self.x[: len(x)] = x
        self.requests.put((self.index, len(x)))
        return self.response.get()


class Server:
    def __init__(self, folder, n_clients, samples):
        context = multiprocessing.get_context("fork")
        plan = plan_of(folder)
        self.folder, self.n_models = folder, len(plan["models"])
        shape = (n_clients, samples, *plan["shape"])
        self.memory = context.RawArray("f", int(np.prod(shape)))
        self.x = np.frombuffer(self.memory, np.float32).reshape(shape)
        self.requests, predictions, ready = context.SimpleQueue(), context.SimpleQueue(), context.SimpleQueue()
        self.responses = [context.SimpleQueue() for _ in range(n_clients)]
        queues = [context.SimpleQueue() for _ in range(self.n_models)]
        each = 2 if self.n_models == 1 else 1
        work = [(_work, (folder, i, self.x, queues[i], predictions)) for i in range(self.n_models) for _ in range(each)]
        tasks = [(_broadcast, (self.requests, queues)), *work, (_accumulate, (predictions, self.responses, self.n_models, len(work), ready))]
        self.processes = [context.Process(target=target, args=arguments, daemon=True) for target, arguments in tasks]
        for process in self.processes:
            process.start()
        ready.get()

    def connect(self, index):
        return Asking(self, index)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()


def start(folder, variant, order):
    return Server(folder, max(order["clients"]), max(order["samples"]))
