/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker has of a GPU. When it has come, those of @replaced_crew leave that were there before, on the lets of
 * @replaced_percents (none: on any); crew 0 is none. Plain values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_gpu_percents { /* a set of numbers from 1 to 100 */
        uint64_t bits[2];
};

struct sl_gpu_part {
        uint64_t crew; /* the workers of one model, as it was loaded */
        uint64_t replaced_crew;
        struct sl_gpu_percents replaced_percents;
        uint32_t percent; /* of its multiprocessors */
};

static inline void sl_gpu_percents_add(struct sl_gpu_percents *percents, uint32_t percent)
{
        percents->bits[percent / 64 % 2] |= 1ull << percent % 64;
}

/* Do the workers of @crew on a let of @percent leave when @part has come? */
static inline bool sl_gpu_part_replaces(const struct sl_gpu_part *part, uint64_t crew, uint32_t percent)
{
        const struct sl_gpu_percents *percents = &part->replaced_percents;

        return part->replaced_crew && part->replaced_crew == crew &&
               ((!percents->bits[0] && !percents->bits[1]) || percents->bits[percent / 64 % 2] >> percent % 64 & 1);
}
