/* SPDX-License-Identifier: Apache-2.0 */
#include "size_line.h"

/* The last 64 jobs have two thirds of the weight. */
#define KEPT    (1 - 1.0 / 64)
/* As in service_time.c: beyond so many times what is expected a job was preempted, most likely. */
#define OUTLIER 4
/* Of n times the sum of squares: below, the sizes are as good as equal, and tell no slope. */
#define SPREAD  1e-6

static void fit(struct sl_size_line *line)
{
        double spread = line->n * line->xx - line->x * line->x;

        line->one_ns = spread > SPREAD * line->n * line->xx ? (line->n * line->xy - line->x * line->y) / spread : 0;
        if (line->one_ns < 0)
                line->one_ns = 0;
        line->fixed_ns = (line->y - line->one_ns * line->x) / line->n;
        if (line->fixed_ns >= 0)
                return;
        line->fixed_ns = 0;
        line->one_ns = line->y / line->x;
}

void sl_size_line_learn(struct sl_size_line *line, uint64_t size, uint64_t ns)
{
        double expected = (double)sl_size_line_ns(line, size), x = (double)size, y = (double)ns;

        if (expected > 0 && y > OUTLIER * expected)
                y = OUTLIER * expected;
        line->n = line->n * KEPT + 1;
        line->x = line->x * KEPT + x;
        line->y = line->y * KEPT + y;
        line->xx = line->xx * KEPT + x * x;
        line->xy = line->xy * KEPT + x * y;
        line->jobs += line->jobs < SL_SIZE_LINE_JOBS;
        fit(line);
}

uint64_t sl_size_line_sum_ns(const struct sl_size_line *line, uint64_t jobs, uint64_t size)
{
        double ns = line->fixed_ns * (double)jobs + line->one_ns * (double)size;

        if (line->jobs < SL_SIZE_LINE_JOBS || !jobs)
                return 0;
        return ns < 1 ? 1 : (uint64_t)ns;
}

uint64_t sl_size_line_ns(const struct sl_size_line *line, uint64_t size)
{
        return sl_size_line_sum_ns(line, 1, size);
}
