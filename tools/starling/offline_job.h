/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An offline job: a folder of the user's own, $XDG_STATE_HOME/starling/offline/NUMBER, which outlives the process that runs it.
 *
 *     job        what is to be done, a line for each key; with it the job is there
 *     progress   which ranges of samples are in the output, mapped; one writer, the process that has the lock
 *     lock       held (flock) by the process that runs it, and given up with that
 *     wish       what the user wants of it now: run, pause, cancel
 *     log        what that process says
 *
 *     RUNNING <--> WAITING (for a runtime)        a process has the lock, or has died: "stopped"
 *        |  \--> PAUSED --resume--> RUNNING
 *        +--> DONE, FAILED, CANCELLED             of the output, a file beside it becomes the output, stays, is gone
 *
 *   (D1) who runs it:  a range's samples are written, then store-release its byte.
 *   (D2) who goes on:  load-acquire the byte: what is set is not computed again.                 pairs with D1
 */
#pragma once

#include "base/error.h"
#include "starling.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#define OFFLINE_WISH_BYTES 512u

enum offline_state {
        OFFLINE_RUNNING,
        OFFLINE_WAITING,
        OFFLINE_PAUSED,
        OFFLINE_DONE,
        OFFLINE_FAILED,
        OFFLINE_CANCELLED,
        OFFLINE_STATES
};

struct offline_description {
        char runtime[PATH_MAX]; /* "": the default */
        char model[STARLING_NAME_BYTES];
        char needs[OFFLINE_WISH_BYTES]; /* of a task, as people write them; "": none */
        bool is_task;
        char rule[16];
        char input[PATH_MAX], output[PATH_MAX]; /* absolute */
        bool replaces;                          /* an output that is there */
        uint64_t samples, stamp;                /* of the input: offline_data.h */
        uint32_t range_samples, rank;           /* rank: of the model's input */
};

struct offline_progress {
        char magic[8];
        uint64_t samples, n_ranges;
        _Atomic uint32_t state; /* enum offline_state */
        _Atomic uint32_t rate;  /* samples a second, lately */
        _Atomic uint64_t done_samples;
        _Atomic uint64_t process; /* that runs it, or did last */
        char text[480];           /* why it has failed, or waits */
        _Atomic uint8_t done[];   /* D1 */
};

struct offline_job {
        uint32_t number;
        char folder[PATH_MAX];
        struct offline_description description;
        struct offline_progress *progress; /* mapped */
        uint64_t progress_bytes;
        int lock_fd; /* -1: not held here */
};

/* Where jobs are; made if it is missing. */
int offline_root(char ret_path[PATH_MAX], struct sl_error *error);

/* A new one, with the next number. Return: 0; -ENOSPC, -errno. */
int offline_job_new(
        const char *root, const struct offline_description *description, struct offline_job *ret_job, struct sl_error *error);

/* Return: 0; -ENOENT no such job; -EBADMSG damaged; -errno. */
int offline_job_open(const char *root, uint32_t number, struct offline_job *ret_job, struct sl_error *error);
void offline_job_close(struct offline_job *job);

/* Its folder goes. The lock is held. */
void offline_job_remove(struct offline_job *job);

/* Return: 0; -EWOULDBLOCK another process runs it; -errno. */
int offline_job_lock(struct offline_job *job);
bool offline_job_is_held(const struct offline_job *job);

/* Somebody has removed its folder. The lock is held here. */
bool offline_job_is_gone(const struct offline_job *job);

/* "run", "pause" or "cancel". */
int offline_job_set_wish(const struct offline_job *job, const char *wish, struct sl_error *error);
void offline_job_wish(const struct offline_job *job, char ret_wish[16]);

void offline_job_say(struct offline_job *job, enum offline_state state, const char *text);

/* "running", or "stopped" where it should run and no process does. */
const char *offline_job_state_name(const struct offline_job *job);

/* The file beside the output that becomes it. */
void offline_job_part(const struct offline_job *job, char ret_path[PATH_MAX + 32]);

/* Numbers of all jobs, ascending, on the heap. Return: how many; -errno. */
int offline_job_list(const char *root, uint32_t **ret_numbers);
