/* SPDX-License-Identifier: Apache-2.0 */
#include "load_shape.h"

#include "load_client.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name may have "=" in it, sizes have none. Return: 0, -EINVAL. */
static int parse_shape(const char *text, struct sl_load_shape *ret_shape)
{
        const char *sizes = strrchr(text, '='), *next = sizes ? sizes + 1 : text;

        *ret_shape = (struct sl_load_shape){.input = text, .name_bytes = sizes ? (size_t)(sizes - text) : 0};
        while (sizes && ret_shape->rank < sizeof(ret_shape->dims) / sizeof(ret_shape->dims[0])) {
                char *end;
                unsigned long size = strtoul(next, &end, 10);

                if (end == next || size < 1 || size > INT32_MAX)
                        return -EINVAL;
                ret_shape->dims[ret_shape->rank++] = (uint32_t)size;
                if (!*end)
                        return 0;
                if (*end != 'x')
                        return -EINVAL;
                next = end + 1;
        }
        return -EINVAL;
}

int sl_load_add_shape(const char *benchmark, const char *text, struct sl_load_client_options *to)
{
        struct sl_load_shape shape;

        if (to->n_shapes < SL_LOAD_SHAPES_MAX && parse_shape(text, &shape) == 0) {
                to->shapes[to->n_shapes++] = shape;
                return 0;
        }
        fprintf(stderr, "starling bench %s: --shape wants INPUT=2x3x4, for at most %u inputs, got \"%s\"\n", benchmark,
                SL_LOAD_SHAPES_MAX, text);
        return -EINVAL;
}
