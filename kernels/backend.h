/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend runs nodes on one kind of device. There are two at the start: `ref` (plain C, the oracle: any operator, any type
 * that ONNX allows, PLAIN layout only) and `cpu` (oneDNN and own loops, PLAIN or CHANNELS_LAST).
 *
 * It has two halves, each a table of functions: the planner (planner.h) decides in the compiler's process, which opens no device;
 * the runner (runner.h) computes in the process that serves. What one says to the other goes through the plan file: the forms of
 * packed constants, and blobs.
 *
 * Life of a kernel. In the compiler's process: supports() -> pack() turns constant inputs into the form that the kernel wants, once
 * per model -> provide() says what it needs besides. In the process that serves: open() a session for each instance -> compile()
 * builds an executable kernel for one batch size, over constants and blobs that lie in the mapped plan file and are shared by all
 * batch sizes and threads -> launch().
 */
#pragma once

#include "planner.h"
#include "runner.h"

#define SL_BACKEND_NAME_BYTES 16

/* Of the text that tells for whom a plan was made, its terminator included. */
#define SL_BACKEND_KEY_BYTES 240

struct sl_backend {
        const char *name; /* "ref", "cpu": as in the config; shorter than SL_BACKEND_NAME_BYTES */

        /*
         * What one elementary step (op.h) counts here. The unit is a multiply-add among those that a core does at once: with two
         * units of 16 lanes 32 of them take as long as one that is done alone, in double, as `ref` does them all.
         */
        uint32_t step_weight;

        /*
         * What a plan of this backend depends on beside the plan file's format, as one line for people: versions of libraries, the
         * device, what was measured of it where forms, scratch or blobs follow from that. Who has another line does not understand
         * the plan. @target: what is planned for; NULL: what is here. NULL: on nothing. Any thread. Return: 0; -ENODEV nothing is
         * here: plans can be looked at, but not run.
         */
        int (*key)(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES]);

        const struct sl_planner *planner;
        const struct sl_runner *runner;
};

extern const struct sl_backend sl_backend_ref;
extern const struct sl_backend sl_backend_cpu;
extern const struct sl_backend sl_backend_cuda; /* of all programs: the module's, when it is there (cuda_front/module.h) */
extern const struct sl_backend sl_cuda_backend; /* the module's own */

/* By name; NULL if there is none. */
const struct sl_backend *sl_backend_find(const char *name);

/* The backends of this build, in order; NULL behind the last. */
const struct sl_backend *sl_backend_at(uint32_t index);
