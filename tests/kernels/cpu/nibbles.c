/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by matrices of 4 bits an element against `ref`: rows that fill a tile, or not, depths that end inside of a group, of a
 * block and of what is widened at once, columns beside a panel; in float32 and by bytes, with and without zero points, packed
 * and not.
 */
#include "case.h"

#include "cpu/base/isa.h"
#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LINE_BYTES   256

static const int rows[] = {1, 2, 3, 4, 6, 7, 14, 15, 85};
static const struct shape {
        int depth, columns, block;
} shapes[] = {{5, 3, 8}, {16, 32, 16}, {40, 33, 16}, {64, 130, 32}, {131, 64, 64}, {300, 40, 256}, {300, 31, 304}, {96, 160, 32}};

static void write_line(char line[LINE_BYTES], int n, const struct shape *s, int mode, bool zeros, const char *how)
{
        int blocks = (s->depth - 1) / s->block + 1;

        snprintf(line, LINE_BYTES, "NibbleMatMul %dx%d %dx%dx%d:uint8 %dx%d %s block_size=%d mode=%d below:256 %s", n, s->depth,
                s->columns, blocks, s->block / 2, s->columns, blocks, zeros ? "" : "_", s->block, mode, how);
        if (zeros)
                snprintf(line, LINE_BYTES, "NibbleMatMul %dx%d %dx%dx%d:uint8 %dx%d %dx%d:uint8 block_size=%d mode=%d below:256 %s",
                        n, s->depth, s->columns, blocks, s->block / 2, s->columns, blocks, s->columns, blocks, s->block, mode, how);
}

static void check_all(int mode, const char *how)
{
        char line[LINE_BYTES];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(rows) * COUNT(shapes) * 2 && sl_cpu_has_avx2(); i++) {
                write_line(line, rows[i / 2 / COUNT(shapes)], &shapes[i / 2 % COUNT(shapes)], mode, i % 2, how);
                case_check(line);
        }
}

Test(cpu_nibbles, rows_of_floats_give_what_the_reference_gives)
{
        check_all(0, "packed");
}

Test(cpu_nibbles, rows_of_bytes_give_what_the_reference_gives)
{
        check_all(1, "packed");
}

Test(cpu_nibbles, a_matrix_that_is_no_constant_is_packed_at_each_launch)
{
        static const struct shape shape = {300, 72, 32};
        char line[LINE_BYTES];

        sl_cpu_use_one_thread();
        for (int i = 0; i < 4 && sl_cpu_has_avx2(); i++) {
                write_line(line, 5, &shape, i / 2, i % 2, "");
                case_check(line);
        }
}

/* A block with a NaN or an infinity makes its row NaN where rows go by bytes, and no other. */
Test(cpu_nibbles, numbers_at_the_edges_of_float_go_through_as_in_the_reference)
{
        static const struct shape shape = {70, 36, 32};
        const uint32_t kinds = 1u << ODD_NAN | 1u << ODD_INFINITE | 1u << ODD_MINUS_INFINITE | 1u << ODD_TINY | 1u << ODD_ZEROS;
        char line[LINE_BYTES];

        sl_cpu_use_one_thread();
        for (int i = 0; i < 12 && sl_cpu_has_avx2(); i++) {
                write_line(line, (const int[]){1, 3, 16}[i / 4], &shape, i / 2 % 2, i % 2, "packed");
                case_check_odd(line, kinds, 4);
        }
}
