/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of max_pool.c for one type of elements, which includes it once for each: POOL_TYPE, POOL_NAME(name), POOL_GREATER(a, b),
 * and POOL_FEW, how many fill a vector.
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
                        y[i] = POOL_GREATER(x[i], x[step + i]);
        for (; done < n; done += 2) {
                const POOL_TYPE *a = x + done * step, *b = a + step;

                for (int64_t i = 0; i < length; i++) {
                        POOL_TYPE greater = POOL_GREATER(a[i], b[i]);

                        y[i] = POOL_GREATER(greater, y[i]);
                }
        }
}

/* Three rows are the usual case: one pass instead of two. */
SL_CPU_CLONES static void POOL_NAME(join_three)(int64_t length, const POOL_TYPE *restrict x, int64_t step, POOL_TYPE *restrict y)
{
        const POOL_TYPE *b = x + step, *c = b + step;

        for (int64_t i = 0; i < length; i++) {
                POOL_TYPE greater = POOL_GREATER(x[i], b[i]);

                y[i] = POOL_GREATER(greater, c[i]);
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
        struct taps across = taps_of(p, WIDTH, column);

        POOL_NAME(join_rows)
        (p->channels, across.n, joined + across.first * p->channels, p->dilation[WIDTH] * p->channels, y + column * p->channels);
}

/* Of one channel, from @column on as far as there are windows. Return: the last of them. */
static int64_t POOL_NAME(pick)(const struct max_pool *p, const POOL_TYPE *all, int64_t windows, int64_t column, POOL_TYPE *y)
{
        int64_t step = p->stride[WIDTH], left = column * step - p->pad[WIDTH], n = (windows - 1 - left) / step + 1;

        n = n < p->out[WIDTH] - column ? n : p->out[WIDTH] - column;
        for (int64_t i = 0; i < n && step != 1; i++)
                y[column + i] = all[left + i * step];
        if (step == 1)
                memcpy(y + column, all + left, (size_t)n * sizeof(*y));
        return column + n - 1;
}

/*
 * Channels that fill no vector: the windows at all pixels of the row at once, of which those that count are taken; whole vectors of
 * them, where what follows in @y is written later.
 */
static void POOL_NAME(pool_few)(const struct max_pool *p, const POOL_TYPE *joined, POOL_TYPE *all, POOL_TYPE *y)
{
        int64_t windows = p->width - (p->kernel[WIDTH] - 1) * p->dilation[WIDTH], c = p->channels;

        if (windows > 0)
                POOL_NAME(join_rows)(windows * c, p->kernel[WIDTH], joined, p->dilation[WIDTH] * c, all);
        for (int64_t column = 0; column < p->out[WIDTH]; column++) {
                int64_t left = column * p->stride[WIDTH] - p->pad[WIDTH];

                if (left < 0 || left >= windows)
                        POOL_NAME(pool_pixel)(p, joined, column, y);
                else if (c == 1)
                        column = POOL_NAME(pick)(p, all, windows, column, y);
                else if (column * c + POOL_FEW <= p->out[WIDTH] * c)
                        memcpy(y + column * c, all + left * c, POOL_FEW * sizeof(*y));
                else
                        memcpy(y + column * c, all + left * c, (size_t)c * sizeof(*y));
        }
}

static void POOL_NAME(pool_row)(const struct max_pool *p, const POOL_TYPE *image, int64_t row, POOL_TYPE *joined, POOL_TYPE *y)
{
        int64_t length = p->width * p->channels;
        struct taps deep = taps_of(p, DEPTH, row / p->out[HEIGHT]), down = taps_of(p, HEIGHT, row % p->out[HEIGHT]);
        POOL_TYPE *slices = deep.n > 1 ? joined + 2 * length + POOL_FEW : joined;

        for (int64_t z = 0; z < deep.n; z++)
                POOL_NAME(join_rows)
                (length, down.n, image + ((deep.first + z * p->dilation[DEPTH]) * p->in[HEIGHT] + down.first) * length,
                        p->dilation[HEIGHT] * length, slices + z * length);
        if (deep.n > 1)
                POOL_NAME(join_rows)(length, deep.n, slices, length, joined);
        if (p->channels < POOL_FEW) {
                POOL_NAME(pool_few)(p, joined, joined + length, y);
                return;
        }
        for (int64_t column = 0; column < p->out[WIDTH]; column++)
                POOL_NAME(pool_pixel)(p, joined, column, y);
}

static void POOL_NAME(pool)(const struct max_pool *p, const struct sl_binding *binding, int64_t i)
{
        const POOL_TYPE *image =
                (const POOL_TYPE *)binding->inputs[0] + i / p->rows * p->in[DEPTH] * p->in[HEIGHT] * p->width * p->channels;

        POOL_NAME(pool_row)
        (p, image, i % p->rows, binding->scratch, (POOL_TYPE *)binding->outputs[0] + i * p->out[WIDTH] * p->channels);
}

#undef POOL_TYPE
#undef POOL_NAME
#undef POOL_GREATER
#undef POOL_FEW
