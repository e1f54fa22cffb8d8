/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker has of a GPU. When it has come, those of @replaced_crew leave that were there before, on a let of @replaced_percent
 * (0: on any); crew 0 is none. Plain values.
 */
#pragma once

#include <stdint.h>

struct sl_gpu_part {
        uint64_t crew; /* the workers of one model, as it was loaded */
        uint64_t replaced_crew;
        uint32_t percent; /* of its multiprocessors */
        uint32_t replaced_percent;
};
