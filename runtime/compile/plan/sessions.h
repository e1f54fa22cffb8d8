/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of an instance with the backends of its plan (kernels/runner.h), and what of them has not ended yet. One thread,
 * that of the instance.
 *
 * Invariant: at most one session has launches in flight. A step of another backend, and whoever reads on the host, waits before.
 */
#pragma once

#include "format.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_device;
struct sl_error;
struct sl_plan;
struct sl_residence;

struct sl_plan_session {
        const struct sl_backend *backend;
        struct sl_session *session; /* NULL: its kernels share nothing */
};

struct sl_sessions {
        uint32_t n;
        struct sl_plan_session list[SL_PLAN_BACKENDS_MAX]; /* as in the plan's BACKENDS */
        const struct sl_plan_session *in_flight;           /* NULL: all that was launched has ended */
        const struct sl_residence *constants;              /* where the plan's lie for the resident session */
};

/*
 * One for each backend of the plan, which gets its blobs; @device is for the one that has memory of its own. Return: 0; what the
 * backends say; -ENOTSUP one is not in this program, or would have to share memory that the host does not see.
 */
int sl_sessions_open(struct sl_sessions *sessions, const struct sl_plan *plan, struct sl_device *device, struct sl_error *error);

/* The session in whose memory the plan runs; NULL: it runs in the host's. */
struct sl_plan_session *sl_sessions_resident(struct sl_sessions *sessions);

/* Their kernels are freed, nothing is in flight. */
void sl_sessions_close(struct sl_sessions *sessions);

/* Until nothing is in flight; @sleeps: else it only looks. Return: 0; -EINPROGRESS; what a launch has failed with. */
int sl_sessions_settle(struct sl_sessions *sessions, bool sleeps);
