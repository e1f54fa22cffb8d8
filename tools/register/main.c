/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling register`: variants of models made, measured and written as a task: a program of its own, so that no runtime has SQLite
 * in it. One thread, and the processes that read models and measure.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "dominated.h"
#include "measuring.h"
#include "register_wish.h"
#include "registration_record.h"
#include "task_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_folder(const char *path, struct sl_error *error)
{
        return mkdir(path, 0777) < 0 && errno != EEXIST ? sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno)) : 0;
}

/* *ret_lock holds the repository until it is closed, however the process ends. */
static int lock(const char *into, struct registration *registration, int *ret_lock, struct sl_error *error)
{
        char folder[PATH_MAX];
        int r = make_folder(into, error);

        if (r == 0 && !realpath(into, registration->repository))
                r = sl_error_set(error, errno, "\"%s\": %s", into, strerror(errno));
        if (r == 0 && strlen(registration->repository) + strlen(registration->task) > PATH_MAX - 400)
                r = sl_error_set(error, ENAMETOOLONG, "\"%s\": a path of more than %d bytes", into, PATH_MAX - 400);
        if (r < 0)
                return r;
        (void)snprintf(folder, sizeof(folder), "%.3800s/.register", registration->repository);
        (void)snprintf(registration->work, sizeof(registration->work), "%.3800s/%.255s", folder, registration->task);
        r = make_folder(folder, error);
        r = r < 0 ? r : make_folder(registration->work, error);
        if (r < 0)
                return r;
        *ret_lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (*ret_lock < 0)
                return sl_error_set(error, errno, "\"%s\": %s", folder, strerror(errno));
        if (flock(*ret_lock, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                               ? sl_error_set(error, EBUSY, "another `starling register` works on \"%s\"", registration->repository)
                               : sl_error_set(error, errno, "\"%s\": %s", folder, strerror(errno));
        return 0;
}

static void print_candidate(const struct registered *candidate)
{
        const struct registered_point *one = registered_point_of(candidate, 1, 1), *best = one;

        for (uint32_t i = 0; i < candidate->n_points; i++)
                if (!best || candidate->points[i].samples_per_second > best->samples_per_second)
                        best = &candidate->points[i];
        printf("%-24s", candidate->name);
        if (candidate->state == REGISTERED_MADE)
                printf(" %.4f (%.4f to %.4f) %-9s", candidate->accuracy, candidate->low, candidate->high, candidate->origin);
        if (one && one->latency_ns > 0)
                printf(" %8.1f us a sample", one->latency_ns / 1e3);
        if (best && best->samples_per_second > 0)
                printf(", %.0f/s in batches of %" PRIu32, best->samples_per_second, best->batch);
        if (candidate->adapter[0])
                printf(", behind %s", candidate->adapter);
        if (candidate->reason[0])
                printf("  left out: %s", candidate->reason);
        putchar('\n');
}

static int run(const struct register_wish *wish, struct registration *registration, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int held = -1;
        char record[PATH_MAX];
        int r = lock(wish->into, registration, &held, error);

        r = r < 0 ? r : task_folder_check(registration, error);
        r = r < 0 ? r : registration_measure(wish, registration, error);
        if (r < 0)
                return r;
        registered_leave_out(registration->candidates, registration->n);
        (void)snprintf(record, sizeof(record), "%.4000s/record.json", registration->work);
        r = registration_record_write(record, registration, error);
        r = r < 0 ? r : task_folder_write(registration, error);
        for (uint32_t i = 0; i < registration->n && r == 0; i++)
                print_candidate(&registration->candidates[i]);
        if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
                r = sl_error_set(error, EIO, "stdout: %s", strerror(errno));
        return r;
}

static int end(int status, const char *text)
{
        if (text[0])
                fprintf(stderr, "starling register: %s\n", text);
        return status;
}

int main(int argc, char **argv)
{
        struct register_wish *wish = malloc(sizeof(*wish));
        struct registration registration;
        struct sl_error error = {""};
        int r, status = STATUS_OK;

        if (!wish)
                return end(STATUS_FAILED, strerror(ENOMEM));
        signal(SIGXFSZ, SIG_IGN); /* a full disk is told by write() */
        if (register_wish_parse(argc, argv, wish, &error) < 0) {
                free(wish);
                return end(STATUS_USAGE, error.text);
        }
        r = registration_init(wish, &registration, &error);
        r = r < 0 ? r : run(wish, &registration, &error);
        if (r < 0)
                status = end(STATUS_FAILED, error.text[0] ? error.text : strerror(-r));
        registration_deinit(&registration);
        free(wish);
        return status;
}
