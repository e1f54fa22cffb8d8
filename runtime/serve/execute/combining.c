/* SPDX-License-Identifier: Apache-2.0 */
#include "combining.h"

#include <stdlib.h>
#include <string.h>

const char *sl_box_output_name(enum sl_box_output output)
{
        static const char *const names[SL_BOX_OUTPUT_COUNT] = {
#define X(id, name) [SL_BOX_##id] = name,
                SL_BOX_OUTPUTS(X)
#undef X
        };

        return names[output];
}

static size_t block_bytes(uint32_t n_members, uint32_t n_classes)
{
        return sizeof(struct sl_combining) + sizeof(float) * n_members * n_classes;
}

struct sl_combining *sl_combining_new(uint32_t n_members, uint32_t n_classes)
{
        struct sl_combining *combining = calloc(1, block_bytes(n_members, n_classes));

        if (!combining)
                return NULL;
        combining->holders = 1;
        combining->n_members = n_members;
        combining->n_classes = n_classes;
        return combining;
}

struct sl_combining *sl_combining_copy(const struct sl_combining *from)
{
        struct sl_combining *copy = from ? malloc(block_bytes(from->n_members, from->n_classes)) : NULL;

        if (!copy)
                return NULL;
        memcpy(copy, from, block_bytes(from->n_members, from->n_classes));
        copy->holders = 1;
        return copy;
}

struct sl_combining *sl_combining_hold(struct sl_combining *combining)
{
        if (combining)
                combining->holders++;
        return combining;
}

struct sl_combining *sl_combining_release(struct sl_combining *combining)
{
        if (combining && --combining->holders == 0)
                free(combining);
        return NULL;
}
