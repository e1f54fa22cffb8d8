/* SPDX-License-Identifier: Apache-2.0 */
#include "sessions.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan.h"
#include "plan_map.h"

#include <errno.h>
#include <stdlib.h>

static int open_session(struct sl_plan_session *session, const struct sl_plan *plan, const struct sl_plan_backend *row,
        struct sl_device *device, struct sl_error *error)
{
        const struct sl_runner *runner = session->backend->runner;
        struct sl_blob *blobs;
        int r;

        if (!runner->open)
                return 0;
        blobs = calloc(row->n_blobs + 1, sizeof(*blobs));
        if (!blobs)
                return sl_error_set(error, ENOMEM, "no memory for %llu blobs", (unsigned long long)row->n_blobs);
        for (uint64_t i = 0; i < row->n_blobs; i++)
                blobs[i] = sl_plan_blob(plan, row, i);
        r = runner->open(runner->memory ? device : NULL, blobs, row->n_blobs, &session->session, error);
        free(blobs);
        return r < 0 ? sl_error_prefix(error, r, "backend \"%s\"", row->name) : 0;
}

struct sl_plan_session *sl_sessions_resident(struct sl_sessions *sessions)
{
        for (uint32_t i = 0; i < sessions->n; i++)
                if (sessions->list[i].backend->runner->memory)
                        return &sessions->list[i];
        return NULL;
}

/* What one backend makes no other one reads, and the interpreter reads nothing. */
static int check_memory(struct sl_sessions *sessions, const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_session *resident = sl_sessions_resident(sessions);

        if (!resident || (sessions->n == 1 && !sl_plan_is_dynamic(plan)))
                return 0;
        return sl_error_set(error, ENOTSUP,
                "backend \"%s\" has memory of its own, and the plan has steps of another one or of data-dependent shape",
                resident->backend->name);
}

int sl_sessions_open(struct sl_sessions *sessions, const struct sl_plan *plan, struct sl_device *device, struct sl_error *error)
{
        uint64_t n = sl_plan_count(plan, SL_PLAN_SECTION_BACKENDS);
        int r = 0;

        while (sessions->n < n && r == 0) {
                const struct sl_plan_backend *row = &plan->backends[sessions->n];
                struct sl_plan_session *session = &sessions->list[sessions->n];

                session->backend = sl_backend_find(row->name);
                if (!session->backend || !session->backend->runner)
                        return sl_error_set(error, ENOTSUP, "this program runs no backend \"%s\"", row->name);
                sessions->n++;
                r = open_session(session, plan, row, device, error);
        }
        return r == 0 ? check_memory(sessions, plan, error) : r;
}

void sl_sessions_close(struct sl_sessions *sessions)
{
        for (uint32_t i = 0; i < sessions->n; i++)
                if (sessions->list[i].session)
                        sessions->list[i].backend->runner->close(sessions->list[i].session);
        sessions->n = 0;
}

int sl_sessions_settle(struct sl_sessions *sessions, bool sleeps)
{
        const struct sl_plan_session *session = sessions->in_flight;
        int r = 0;

        if (!session)
                return 0;
        do
                r = sleeps ? session->backend->runner->wait(session->session, sl_clock_ns() + SL_NS_PER_SECOND)
                           : session->backend->runner->poll(session->session);
        while (sleeps && r == -EINPROGRESS);
        if (r != -EINPROGRESS)
                sessions->in_flight = NULL;
        return r;
}
