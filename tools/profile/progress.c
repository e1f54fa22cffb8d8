/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <unistd.h>

#define BAR "####################"

void progress_begin(struct progress *progress, uint32_t n_tasks, double seconds)
{
        *progress = (struct progress){
                .n_tasks = n_tasks, .seconds = seconds, .start_ns = sl_clock_ns(), .terminal = isatty(STDERR_FILENO)};
}

static double seconds_left(const struct progress *progress)
{
        double each = progress->seconds;

        if (progress->n_done)
                each = (double)(sl_clock_ns() - progress->start_ns) / 1e9 / progress->n_done;
        return each * (progress->n_tasks - progress->n_done);
}

void progress_task(const struct progress *progress, const char *text)
{
        const int width = (int)sizeof(BAR) - 1;
        char shown[61];

        if (progress->terminal)
                fprintf(stderr, "\r\033[K[%-*.*s] %u/%u, %.0f s left: %s", width,
                        width * (int)progress->n_done / (int)progress->n_tasks, BAR, progress->n_done, progress->n_tasks,
                        seconds_left(progress), sl_utf8_fit(text, shown, sizeof(shown)));
}

void progress_done(struct progress *progress, const char *text)
{
        progress->n_done++;
        fprintf(stderr, "%s%u/%u %s; %.0f s left\n", progress->terminal ? "\r\033[K" : "", progress->n_done, progress->n_tasks,
                text, seconds_left(progress));
}
