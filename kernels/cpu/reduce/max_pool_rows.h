/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of max_pool.c for one type of elements, which includes it once for each: POOL_TYPE, POOL_NAME(name), and POOL_FEW, how
 * many fill a vector.
 */

/* The greatest of @n rows of @length elements, @step apart. */
SL_CPU_CLONES static void POOL_NAME(join)(
        int64_t length, int64_t n, const POOL_TYPE *restrict x, int64_t step, POOL_TYPE *restrict y)
{
        int64_t done = n % 2 ? 1 : 2;

        if (n % 2)
                memcpy(y, x, (size_t)length * sizeof(*y));
        else
                for (int64_t i = 0; i < length; i++)
                        y[i] = x[i] > x[step + i] ? x[i] : x[step + i];
        for (; done < n; done += 2) {
                const POOL_TYPE *a = x + done * step, *b = a + step;

                for (int64_t i = 0; i < length; i++) {
                        POOL_TYPE greater = a[i] > b[i] ? a[i] : b[i];

                        y[i] = greater > y[i] ? greater : y[i];
                }
        }
}

/* Three rows are the usual case: one pass instead of two. */
SL_CPU_CLONES static void POOL_NAME(join_three)(int64_t length, const POOL_TYPE *restrict x, int64_t step, POOL_TYPE *restrict y)
{
        const POOL_TYPE *b = x + step, *c = b + step;

        for (int64_t i = 0; i < length; i++) {
                POOL_TYPE greater = x[i] > b[i] ? x[i] : b[i];

                y[i] = greater > c[i] ? greater : c[i];
        }
}

static void POOL_NAME(join_rows)(int64_t length, int64_t n, const POOL_TYPE *x, int64_t step, POOL_TYPE *y)
{
        if (n == 3)
                POOL_NAME(join_three)(length, x, step, y);
        else
                POOL_NAME(join)(length, n, x, step, y);
}

static void POOL_NAME(pool_pixel)(const struct max_pool *p, const POOL_TYPE *joined, int64_t column, POOL_TYPE *y)
{
        int64_t first, n = inside(p, 1, column, p->width, &first);

        POOL_NAME(join_rows)
        (p->channels, n, joined + (column * p->stride[1] - p->pad[1] + first * p->dilation[1]) * p->channels,
                p->dilation[1] * p->channels, y + column * p->channels);
}

/*
 * Channels that fill no vector: the windows at all pixels of the row at once, of which those that count are taken; whole vectors of
 * them, where what follows in @y is written later.
 */
static void POOL_NAME(pool_few)(const struct max_pool *p, const POOL_TYPE *joined, POOL_TYPE *all, POOL_TYPE *y)
{
        int64_t windows = p->width - (p->kernel[1] - 1) * p->dilation[1], c = p->channels;

        if (windows > 0)
                POOL_NAME(join_rows)(windows * c, p->kernel[1], joined, p->dilation[1] * c, all);
        for (int64_t column = 0; column < p->columns; column++) {
                int64_t left = column * p->stride[1] - p->pad[1];

                if (left < 0 || left >= windows)
                        POOL_NAME(pool_pixel)(p, joined, column, y);
                else if (column * c + POOL_FEW <= p->columns * c)
                        memcpy(y + column * c, all + left * c, POOL_FEW * sizeof(*y));
                else
                        memcpy(y + column * c, all + left * c, (size_t)c * sizeof(*y));
        }
}

static void POOL_NAME(pool_row)(const struct max_pool *p, const POOL_TYPE *image, int64_t row, POOL_TYPE *joined, POOL_TYPE *y)
{
        int64_t length = p->width * p->channels, first, n = inside(p, 0, row, p->height, &first);
        int64_t top = row * p->stride[0] - p->pad[0] + first * p->dilation[0];

        POOL_NAME(join_rows)(length, n, image + top * length, p->dilation[0] * length, joined);
        if (p->channels < POOL_FEW) {
                POOL_NAME(pool_few)(p, joined, joined + length, y);
                return;
        }
        for (int64_t column = 0; column < p->columns; column++)
                POOL_NAME(pool_pixel)(p, joined, column, y);
}

static void POOL_NAME(pool)(const struct max_pool *p, const struct sl_binding *binding)
{
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->batch * p->rows);

        for (int64_t i = rows.first; i < rows.end; i++)
                POOL_NAME(pool_row)
                (p, (const POOL_TYPE *)binding->inputs[0] + i / p->rows * p->height * p->width * p->channels, i % p->rows,
                        binding->scratch, (POOL_TYPE *)binding->outputs[0] + i * p->columns * p->channels);
}

#undef POOL_TYPE
#undef POOL_NAME
#undef POOL_FEW
