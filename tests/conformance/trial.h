/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case of ONNX's, tried: the model is imported and evaluated on `ref`, as it is and after all passes, then compiled for
 * a backend, `cpu` or another, and run as a plan; and once more with an open leading dimension, which may be refused but must not
 * give another result. It is also exported, and what that gives is imported and evaluated on `ref`. One thread; frees what it
 * takes, whatever the outcome.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum outcome {
        OUTCOME_NONE,
        OUTCOME_PASSED,
        OUTCOME_CONSTANT, /* passes when its parameters are constants of the model, as they are in models that are exported */
        OUTCOME_REFUSED,  /* with a line that says why */
        OUTCOME_DIFFERS,
        OUTCOME_CRASHED,
        N_OUTCOMES,
};

/* The second is the one that is tried. */
enum backend { BACKEND_REF, BACKEND_CPU, N_BACKENDS };

#define VERDICT_TEXT_BYTES 240

struct verdict {
        uint32_t outcomes[N_BACKENDS]; /* enum outcome */
        uint32_t open_batch;           /* enum outcome: the same case when its leading dimension is open, as batches are */
        uint32_t any_size;             /* enum outcome: the same case when all dimensions of its inputs are open */
        uint32_t exported; /* enum outcome: the same case, written by export and read again; none where that has no way back */
        int64_t opset;
        char text[VERDICT_TEXT_BYTES]; /* of the first that did not pass */
};

struct sl_instance_ground;

/* A backend, and on what its plans run; NULL: the host. */
struct trial_backend {
        const char *name;
        const struct sl_instance_ground *ground;
};

/*
 * @folder holds model.onnx and test_data_set_0, _1, ...; @tolerance: at least, for the case's own values. What the backend refuses
 * is tried with constant parameters too.
 */
void trial_run(const char *folder, double tolerance, const struct trial_backend *backend, struct verdict *ret_verdict);

/* The opset of domain ai.onnx that the model imports; 0 without one, or with a domain beside it that cases do not import. */
int64_t trial_opset(const char *folder);
