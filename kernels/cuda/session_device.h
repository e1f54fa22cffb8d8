/* SPDX-License-Identifier: Apache-2.0 */
/* On what a session of the CUDA backend is opened (kernels/runner.h). Plain values; all that it names outlives its sessions. */
#pragma once

#include "cuda/driver/device.h"

struct sl_cuda_chooser;
struct sl_error;

struct sl_device {
        const struct sl_cuda_device *cuda; /* its context is the current one of the thread that has the session */

        /*
         * Where everything of its sessions goes, in its order; its owner may capture what is launched there into a graph, and then
         * waits for it himself: launch() does nothing to it but launches, copies and sets. NULL: each session makes a stream of its
         * own.
         */
        CUstream stream;

        /*
         * A word of four bytes on the device to which kernels write when an index in the data is out of bounds. Its owner clears
         * it and looks at it, in the order of the stream; poll() and wait() say nothing of it. 0: each session has one of its own.
         */
        CUdeviceptr finding;

        int n_processors; /* of the let that the stream is on; 0: the whole device */

        /* Where it is told in words why a library or the driver launched nothing; NULL: nowhere. Its owner's. */
        struct sl_error *said;

        /* Who knows, or finds out, by which of several candidates kernels are made (chooser.h). NULL: by the first. */
        struct sl_cuda_chooser *chooser;
};
