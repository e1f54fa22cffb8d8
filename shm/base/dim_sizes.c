/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dim_sizes.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t sl_dim_sizes_find(const struct sl_dim_sizes *sizes, const char *name)
{
        for (uint32_t i = 0; sizes && i < sizes->n; i++)
                if (strcmp(sl_dim_sizes_name(sizes, i), name) == 0)
                        return sizes->sizes[i];
        return SL_DIM_SIZE_NONE;
}

int sl_dim_sizes_add(struct sl_dim_sizes *sizes, const char *name, size_t n_name, int64_t size)
{
        char *end = sizes->text + sizes->text_bytes;

        if (!n_name || n_name >= SL_SYMBOL_BYTES || size < 0 || size > SL_DIM_SIZE_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < sizes->n; i++)
                if (strlen(sl_dim_sizes_name(sizes, i)) == n_name && !memcmp(sl_dim_sizes_name(sizes, i), name, n_name))
                        return -EEXIST;
        if (sizes->n == SL_SYMBOLS_MAX)
                return -E2BIG;
        if (n_name >= sizeof(sizes->text) - sizes->text_bytes)
                return -ENOSPC;
        memcpy(end, name, n_name);
        sizes->names[sizes->n] = (uint16_t)sizes->text_bytes;
        sizes->sizes[sizes->n++] = size;
        sizes->text_bytes += (uint32_t)n_name + 1;
        return 0;
}

/* One "NAME=SIZE" of @n characters. */
static int parse_part(const char *part, size_t n, struct sl_dim_sizes *sizes, struct sl_error *error)
{
        const char *equals = memchr(part, '=', n);
        char *end = NULL;
        long long size;
        int r;

        errno = 0;
        size = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || errno || end == equals + 1 || end != part + n)
                return sl_error_set(error, EINVAL, "\"%.*s\" is no size of a dimension: NAME=SIZE is wanted", (int)n, part);
        r = sl_dim_sizes_add(sizes, part, (size_t)(equals - part), size);
        if (r == -EEXIST)
                return sl_error_set(error, EINVAL, "\"%.*s\": that dimension has a size already", (int)n, part);
        if (r == -E2BIG)
                return sl_error_set(error, E2BIG, "\"%.*s\": at most %d dimensions have sizes", (int)n, part, SL_SYMBOLS_MAX);
        if (r == -ENOSPC)
                return sl_error_set(error, ENOSPC,
                        "\"%.*s\": the names of dimensions that have sizes take at most %d bytes together", (int)n, part,
                        SL_DIM_NAMES_BYTES);
        if (r < 0)
                return sl_error_set(error, EINVAL, "\"%.*s\": a name has 1 to %d bytes, a size is 0 to %lld", (int)n, part,
                        SL_SYMBOL_BYTES - 1, SL_DIM_SIZE_MAX);
        return 0;
}

int sl_dim_sizes_parse(const char *text, struct sl_dim_sizes *ret_sizes, struct sl_error *error)
{
        struct sl_dim_sizes sizes = {0};
        int r = 0;

        while (*text && r == 0) {
                size_t n = strcspn(text, ",");

                r = parse_part(text, n, &sizes, error);
                text += n + (text[n] == ',');
        }
        if (r == 0)
                *ret_sizes = sizes;
        return r;
}

const char *sl_dim_sizes_print(const struct sl_dim_sizes *sizes, char *text)
{
        size_t used = 0;

        text[0] = 0;
        for (uint32_t i = 0; i < sizes->n; i++)
                used += (size_t)snprintf(text + used, SL_DIM_SIZES_TEXT_MAX - used, "%s%s=%" PRId64, i ? "," : "",
                        sl_dim_sizes_name(sizes, i), sizes->sizes[i]);
        return text;
}

const char *sl_symbol_name(const char *parameter, const char *input, uint32_t axis, char name[SL_SYMBOL_BYTES])
{
        if (parameter && *parameter)
                snprintf(name, SL_SYMBOL_BYTES, "%s", parameter);
        else
                snprintf(name, SL_SYMBOL_BYTES, "%s:%u", input, axis);
        return name;
}
