/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One part of the equation of an Einsum: a label for each dimension, letters, and 1 to 8 for those of an ellipsis. Plain values.
 */
#pragma once

#include "tensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SL_TERM_LABELS_MAX SL_RANK_MAX

struct sl_term {
        uint8_t labels[SL_TERM_LABELS_MAX];
        uint32_t count;
};

static inline bool sl_term_has(const struct sl_term *term, uint8_t label)
{
        return memchr(term->labels, label, term->count) != NULL;
}

/* Where the label is, which the term has. */
static inline uint32_t sl_term_at(const struct sl_term *term, uint8_t label)
{
        return (uint32_t)((const uint8_t *)memchr(term->labels, label, term->count) - term->labels);
}

static inline void sl_term_append(struct sl_term *term, uint8_t label)
{
        term->labels[term->count++] = label;
}
