/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of rows at a time; the sums of blocks wait at levels as the digits of a binary counter do, each for another one of as
 * many rows. What waits lies on the stack, so wide rows are treated in parts.
 */
#include "cpu/reduce/columns.h"

#include "cpu/base/operator.h"

#include <string.h>

#define LANES  16
#define STRIP  (4 * LANES) /* columns whose sums stay in registers */
#define PART   256         /* columns */
#define BLOCK  64          /* rows */
#define LEVELS 40          /* rows: at most BLOCK << LEVELS */

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t bits __attribute__((vector_size(LANES * sizeof(float))));

/*
 * sum_NAME(): the columns of a block. Four vectors of columns at once; where there are no four, four rows of one, so that no sum
 * waits for another.
 */
#define DEFINE_KIND(name, value)                                                                                                   \
        static inline __attribute__((always_inline)) void strip_##name(const float *const *rows, int64_t n, int64_t at, float *y)  \
        {                                                                                                                          \
                vector s[4] = {0}, v = {0};                                                                                        \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        for (int k = 0; k < 4; k++) {                                                                              \
                                memcpy(&v, rows[i] + at + k * LANES, sizeof(v));                                                   \
                                s[k] += value;                                                                                     \
                        }                                                                                                          \
                memcpy(y + at, s, sizeof(s));                                                                                      \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) void pair_##name(const float *const *rows, int64_t n, int64_t at, float *y)   \
        {                                                                                                                          \
                vector s[4] = {0}, v = {0};                                                                                        \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (; i + 2 <= n; i += 2)                                                                                         \
                        for (int k = 0; k < 2; k++) {                                                                              \
                                memcpy(&v, rows[i] + at + k * LANES, sizeof(v));                                                   \
                                s[k] += value;                                                                                     \
                                memcpy(&v, rows[i + 1] + at + k * LANES, sizeof(v));                                               \
                                s[2 + k] += value;                                                                                 \
                        }                                                                                                          \
                for (int k = 0; k < 2 && i < n; k++) {                                                                             \
                        memcpy(&v, rows[i] + at + k * LANES, sizeof(v));                                                           \
                        s[k] += value;                                                                                             \
                }                                                                                                                  \
                s[0] += s[2];                                                                                                      \
                s[1] += s[3];                                                                                                      \
                memcpy(y + at, s, 2 * sizeof(v));                                                                                  \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) void lanes_##name(                                                            \
                const float *const *rows, int64_t n, int64_t at, int64_t lanes, float *y)                                          \
        {                                                                                                                          \
                vector s[4] = {0}, v = {0};                                                                                        \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (; i + 4 <= n; i += 4)                                                                                         \
                        for (int k = 0; k < 4; k++) {                                                                              \
                                memcpy(&v, rows[i + k] + at, (size_t)lanes * sizeof(*y));                                          \
                                s[k] += value;                                                                                     \
                        }                                                                                                          \
                for (; i < n; i++) {                                                                                               \
                        memcpy(&v, rows[i] + at, (size_t)lanes * sizeof(*y));                                                      \
                        s[0] += value;                                                                                             \
                }                                                                                                                  \
                s[0] = (s[0] + s[1]) + (s[2] + s[3]);                                                                              \
                memcpy(y + at, s, (size_t)lanes * sizeof(*y));                                                                     \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static void sum_##name(const float *const *rows, int64_t n, int64_t width, float *y)                         \
        {                                                                                                                          \
                int64_t at = 0;                                                                                                    \
                                                                                                                                   \
                for (; at + STRIP <= width; at += STRIP)                                                                           \
                        strip_##name(rows, n, at, y);                                                                              \
                for (; at + 2 * LANES <= width; at += 2 * LANES)                                                                   \
                        pair_##name(rows, n, at, y);                                                                               \
                for (; at + LANES <= width; at += LANES)                                                                           \
                        lanes_##name(rows, n, at, LANES, y);                                                                       \
                if (at < width)                                                                                                    \
                        lanes_##name(rows, n, at, width - at, y);                                                                  \
        }

DEFINE_KIND(values, v)
DEFINE_KIND(magnitudes, (vector)((bits)v &INT32_MAX))
DEFINE_KIND(squares, v *v)

typedef void sum_of_block(const float *const *rows, int64_t n, int64_t width, float *y);

static sum_of_block *const kinds[] = {
        [SL_COLUMN_VALUES] = sum_values, [SL_COLUMN_MAGNITUDES] = sum_magnitudes, [SL_COLUMN_SQUARES] = sum_squares};

SL_CPU_CLONES static void add(int64_t n, float *restrict y, const float *restrict x)
{
        for (int64_t i = 0; i < n; i++)
                y[i] += x[i];
}

/* The rows that come next. */
struct cursor {
        const struct sl_columns *columns;
        const float *line;
        int64_t lines, row; /* lines that are left; the place in this one */
};

/* At most BLOCK rows; how many. */
static int64_t next_rows(struct cursor *cursor, const float *rows[BLOCK])
{
        const struct sl_columns *c = cursor->columns;
        int64_t n = 0;

        while (n < BLOCK && cursor->lines) {
                int64_t left = c->length - cursor->row, take = left < BLOCK - n ? left : BLOCK - n;
                const float *row = cursor->line + cursor->row * c->row;

                for (int64_t i = 0; i < take; i++)
                        rows[n + i] = row + i * c->row;
                n += take;
                cursor->row += take;
                if (take < left)
                        continue;
                cursor->row = 0;
                cursor->line += c->line;
                cursor->lines--;
        }
        return n;
}

static void sum_part(const struct sl_columns *columns, sum_of_block *sum_of, const float *x, int64_t width, float *y)
{
        struct cursor cursor = {columns, x, columns->length ? columns->lines : 0, 0};
        float waiting[LEVELS][PART];
        const float *rows[BLOCK];
        uint64_t blocks = 0;

        for (int64_t n = next_rows(&cursor, rows); n; n = next_rows(&cursor, rows), blocks++) {
                uint32_t level = 0;

                sum_of(rows, n, width, y);
                for (; blocks & 1ull << level; level++)
                        add(width, y, waiting[level]);
                if (cursor.lines || blocks)
                        memcpy(waiting[level], y, (size_t)width * sizeof(*y));
        }
        if (blocks == 1)
                return;
        memset(y, 0, (size_t)width * sizeof(*y));
        for (uint32_t level = 0; level < LEVELS; level++)
                if (blocks & 1ull << level)
                        add(width, y, waiting[level]);
}

void sl_column_sums(const struct sl_columns *columns, enum sl_column_kind kind, const float *x, float *y)
{
        for (int64_t from = 0; from < columns->width; from += PART) {
                int64_t width = columns->width - from < PART ? columns->width - from : PART;

                sum_part(columns, kinds[kind], x + from, width, y + from);
        }
}
