/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU's process may find out by the clock about the plan of a model (kernels/cuda/chooser.h). Plain values. */
#pragma once

#include <stdint.h>

enum sl_gpu_tune {
        SL_GPU_TUNE_TIMED,    /* candidates are timed at the first load */
        SL_GPU_TUNE_COMPILED, /* the same; among them are engines that are compiled at run time, which takes long */
        SL_GPU_TUNE_OFF,      /* the first candidates are taken */
};

struct sl_gpu_tuning {
        uint32_t tune; /* enum sl_gpu_tune */
        uint64_t bound_ns;
};
