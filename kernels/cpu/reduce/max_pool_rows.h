/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of max_pool.c for one type of elements, which includes it once for each: POOL_TYPE, POOL_NAME(name), POOL_GREATER(a, b),
 * and POOL_FEW, how many fill a vector. POOL_DOWN joins rows of the input, if it is not the join of pixels.
 */
#define POOL_ODD(a, b) 0
#include "cpu/reduce/max_pool_join.h"

#ifndef POOL_DOWN
#define POOL_DOWN POOL_NAME(join_rows)
#endif

/* The rows of the input under a row of the output, joined. Return: whether one has what joining lost. */
static int POOL_NAME(join_down)(
        const struct max_pool *p, const struct place *at, const POOL_TYPE *x, POOL_TYPE *slices, POOL_TYPE *joined)
{
        int64_t length = p->in[WIDTH] * p->channels;
        struct taps deep = taps_of(p, DEPTH, at->depth), down = taps_of(p, HEIGHT, at->row);
        const POOL_TYPE *image = x + at->image * p->in[DEPTH] * p->in[HEIGHT] * length;
        int odd = 0;

        for (int64_t z = 0; z < deep.n; z++)
                odd |= POOL_DOWN(length, down.n,
                        image + ((deep.first + z * p->dilation[DEPTH]) * p->in[HEIGHT] + down.first) * length,
                        p->dilation[HEIGHT] * length, deep.n > 1 ? slices + z * length : joined);
        if (deep.n > 1 && !odd)
                POOL_NAME(join_rows)(length, deep.n, slices, length, joined);
        return odd;
}

/* Of one channel: every step-th window. */
SL_CPU_CLONES static void POOL_NAME(pick)(int64_t n, int64_t step, const POOL_TYPE *restrict all, POOL_TYPE *restrict y)
{
        for (int64_t i = 0; i < n && step == 2; i++)
                y[i] = all[2 * i];
        for (int64_t i = 0; i < n && step != 2; i++)
                y[i] = all[step * i];
}

/* Channels that fill no vector: whole vectors of them, where what follows in @y is written later. */
static void POOL_NAME(pick_few)(const struct max_pool *p, const POOL_TYPE *all, POOL_TYPE *y)
{
        int64_t c = p->channels, step = p->stride[WIDTH] * c, n = p->out[WIDTH];

        if (c == 1 || step == c) {
                if (step == c)
                        memcpy(y, all, (size_t)(n * c) * sizeof(*y));
                else
                        POOL_NAME(pick)(n, step, all, y);
                return;
        }
        for (int64_t column = 0; column < n; column++)
                memcpy(y + column * c, all + column * step, (size_t)(column * c + POOL_FEW <= n * c ? POOL_FEW : c) * sizeof(*y));
}

/* The windows of joined lines. */
static void POOL_NAME(join_across)(const struct max_pool *p, int64_t n, const POOL_TYPE *joined, POOL_TYPE *all, POOL_TYPE *y)
{
        int64_t c = p->channels, line = p->line * c, step = p->stride[WIDTH] * c, across = p->out[WIDTH];

        if (is_few(p)) {
                POOL_NAME(join_rows)
                ((n - 1) * line + (across - 1) * step + c, p->kernel[WIDTH], joined, p->dilation[WIDTH] * c, all);
                for (int64_t i = 0; i < n; i++)
                        POOL_NAME(pick_few)(p, all + i * line, y + i * across * c);
                return;
        }
        for (int64_t column = 0; column < across; column++) {
                struct taps taps = taps_of(p, WIDTH, column);

                POOL_NAME(join_rows)(c, taps.n, joined + taps.first * c, p->dilation[WIDTH] * c, y + column * c);
        }
}

/* Rows of the output from @first on, at most p->block. Return: whether they are to be done again, since a NaN was lost. */
static int POOL_NAME(pool)(const struct max_pool *p, const struct sl_binding *binding, int64_t first, int64_t n)
{
        int64_t line = p->line * p->channels, left = is_few(p) ? p->pad[WIDTH] * p->channels : 0;
        POOL_TYPE *joined = binding->scratch, *all = joined + p->block * line, *slices = all + p->block * line + POOL_FEW;
        struct place at = place_of(p, first);
        int odd = 0;

        for (int64_t i = 0; i < n; i++, next_place(p, &at))
                odd |= POOL_NAME(join_down)(p, &at, binding->inputs[0], slices, joined + i * line + left);
        if (!odd)
                POOL_NAME(join_across)(p, n, joined, all, (POOL_TYPE *)binding->outputs[0] + first * p->out[WIDTH] * p->channels);
        return odd;
}

#undef POOL_TYPE
#undef POOL_NAME
#undef POOL_GREATER
#undef POOL_FEW
#undef POOL_DOWN
