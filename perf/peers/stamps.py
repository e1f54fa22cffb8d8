# SPDX-License-Identifier: Apache-2.0
"""When each model began and ended to compute, in a file that all processes of a peer have mapped: with one request at a time its client
knows how long the models took from the first beginning to the last end, wherever they ran. One writer for each row."""

import mmap
import os
import struct

ROW = struct.Struct("qq")  # nanoseconds of CLOCK_MONOTONIC


class Stamps:
    def __init__(self, path, n_models):
        with open(path, "ab") as file:
            file.truncate(max(os.path.getsize(path), n_models * ROW.size))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), n_models * ROW.size)
        self.n_models = n_models

    def put(self, model, begin_ns, end_ns):
        ROW.pack_into(self.map, model * ROW.size, begin_ns, end_ns)

    def span_ns(self):
        rows = [ROW.unpack_from(self.map, i * ROW.size) for i in range(self.n_models)]
        return max(end for _, end in rows) - min(begin for begin, _ in rows)
