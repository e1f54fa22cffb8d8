/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/elementwise/short_rows.h"

#include <string.h>

bool sl_rows_are_short(const struct sl_walk *walk)
{
        int64_t n = sl_walk_row_length(walk);

        return walk->rank > 1 && n <= SL_SHORT_ROW && sl_walk_row_stride(walk, 0) == 1 && walk->strides[0][walk->rank - 2] == n;
}

int64_t sl_short_rows_of_piece(const struct sl_walk *walk)
{
        return SL_PIECE_BYTES / (int64_t)sizeof(int64_t) / sl_walk_row_length(walk);
}

/* Loops over a row of so few elements are none. */
#define DEFINE_LAY(name, type)                                                                                                     \
        static inline __attribute__((always_inline)) void lay_rows_##name(                                                         \
                int64_t n, int64_t length, type *restrict to, const type *restrict from, int64_t row, int64_t step)                \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        for (int64_t j = 0; j < length; j++)                                                                       \
                                to[i * length + j] = from[i * row + j * step];                                                     \
        }                                                                                                                          \
                                                                                                                                   \
        static void lay_##name(int64_t n, int64_t length, void *to, const void *from, int64_t row, int64_t step)                   \
        {                                                                                                                          \
                switch (length) {                                                                                                  \
                case 2:                                                                                                            \
                        return lay_rows_##name(n, 2, to, from, row, step);                                                         \
                case 3:                                                                                                            \
                        return lay_rows_##name(n, 3, to, from, row, step);                                                         \
                case 4:                                                                                                            \
                        return lay_rows_##name(n, 4, to, from, row, step);                                                         \
                default:                                                                                                           \
                        if (step == 0)                                                                                             \
                                return lay_rows_##name(n, length, to, from, row, 0);                                               \
                        return lay_rows_##name(n, length, to, from, row, step);                                                    \
                }                                                                                                                  \
        }

DEFINE_LAY(8, uint8_t)
DEFINE_LAY(16, uint16_t)
DEFINE_LAY(32, uint32_t)
DEFINE_LAY(64, uint64_t)

static void lay(int64_t bytes, int64_t n, int64_t length, void *to, const void *from, int64_t row, int64_t step)
{
        switch (bytes) {
        case 1:
                return lay_8(n, length, to, from, row, step);
        case 2:
                return lay_16(n, length, to, from, row, step);
        case 4:
                return lay_32(n, length, to, from, row, step);
        default:
                return lay_64(n, length, to, from, row, step);
        }
}

void sl_short_rows_lay(struct sl_short_rows *s, const char *rows, int64_t first, int64_t n)
{
        int64_t row = s->walk->strides[s->tensor][s->walk->rank - 2], step = sl_walk_row_stride(s->walk, s->tensor);
        int64_t length = sl_walk_row_length(s->walk);
        bool is_one = !row && !step;

        s->step = !is_one;
        s->data = rows + first * row * s->bytes;
        if (is_one || (step == 1 && row == length))
                return;
        /* Rows that are one and the same are there from the first piece on. */
        if (row || !first)
                lay(s->bytes, n, length, s->room, s->data, row, step);
        s->data = s->room;
}
