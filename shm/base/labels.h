/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels: what the numbers of a tensor stand for. In plans and in the catalogue those of a port are one text, in which each label
 * ends with SL_LABEL_END.
 */
#pragma once

#include <stdint.h>

#define SL_LABEL_END        '\x1f' /* which no label has */
#define SL_LABELS_MAX       65536u
#define SL_LABELS_BYTES_MAX (256u << 10) /* of all labels of a port, each with its end */

/* How many there are; NULL: none. */
static inline uint32_t sl_labels_count(const char *labels)
{
        uint32_t n = 0;

        for (; labels && *labels; labels++)
                n += *labels == SL_LABEL_END;
        return n;
}
