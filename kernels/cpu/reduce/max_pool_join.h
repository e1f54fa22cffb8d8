/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of max_pool.c that joins rows, for one type of elements: POOL_TYPE, POOL_NAME(name), POOL_GREATER(a, b), and POOL_ODD(a,
 * b), whether one of the two is what POOL_GREATER() loses. Return of all: whether there was one.
 */

/* The greatest of @n rows of @length elements, @step apart. */
SL_CPU_CLONES static int POOL_NAME(join)(
        int64_t length, int64_t n, const POOL_TYPE *restrict x, int64_t step, POOL_TYPE *restrict y)
{
        int64_t done = n % 2 ? 1 : 2;
        int odd = 0;

        for (int64_t i = 0; i < length && n % 2; i++) {
                odd |= POOL_ODD(x[i], x[i]) ? -1 : 0;
                y[i] = x[i];
        }
        for (int64_t i = 0; i < length && n % 2 == 0; i++) {
                odd |= POOL_ODD(x[i], x[step + i]) ? -1 : 0;
                y[i] = POOL_GREATER(x[i], x[step + i]);
        }
        for (; done < n; done += 2) {
                const POOL_TYPE *a = x + done * step, *b = a + step;

                for (int64_t i = 0; i < length; i++) {
                        POOL_TYPE greater = POOL_GREATER(a[i], b[i]);

                        odd |= POOL_ODD(a[i], b[i]) ? -1 : 0;
                        y[i] = POOL_GREATER(greater, y[i]);
                }
        }
        return odd;
}

/* Three rows are the usual case: one pass instead of two. */
SL_CPU_CLONES static int POOL_NAME(join_three)(int64_t length, const POOL_TYPE *restrict x, int64_t step, POOL_TYPE *restrict y)
{
        const POOL_TYPE *b = x + step, *c = b + step;
        int odd = 0;

        for (int64_t i = 0; i < length; i++) {
                POOL_TYPE greater = POOL_GREATER(x[i], b[i]);

                odd |= POOL_ODD(x[i], c[i]) | POOL_ODD(b[i], b[i]) ? -1 : 0;
                y[i] = POOL_GREATER(greater, c[i]);
        }
        return odd;
}

static int POOL_NAME(join_rows)(int64_t length, int64_t n, const POOL_TYPE *x, int64_t step, POOL_TYPE *y)
{
        return n == 3 ? POOL_NAME(join_three)(length, x, step, y) : POOL_NAME(join)(length, n, x, step, y);
}

#undef POOL_ODD
