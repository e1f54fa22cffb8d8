/* SPDX-License-Identifier: Apache-2.0 */
#include "residence.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan.h"
#include "sessions.h"

#include <errno.h>
#include <stdlib.h>

struct sl_residence {
        const struct sl_plan *plan;
        struct sl_plan_session session;
        void *memory; /* the plan's DATA */
        void *base;   /* that of its base; NULL: there is none */
        bool owns_base;
};

SL_DEFINE_CLEANUP(struct sl_residence *, sl_residence_free)

/* All of a plan's constants. The mapping stays until they have arrived. */
static int upload_data(struct sl_residence *residence, const struct sl_plan *plan, void **ret_memory, struct sl_error *error)
{
        const struct sl_runner *runner = residence->session.backend->runner;
        struct sl_session *session = residence->session.session;
        uint64_t bytes = sl_plan_count(plan, SL_PLAN_SECTION_DATA);
        int r = runner->memory->allocate(session, bytes, ret_memory, error);

        if (r < 0)
                return sl_error_prefix(error, r, "%llu bytes of weights", (unsigned long long)bytes);
        r = runner->memory->upload(session, *ret_memory, plan->data, bytes);
        while (r == -EINPROGRESS)
                r = runner->wait(session, sl_clock_ns() + SL_NS_PER_SECOND);
        return r < 0 ? sl_error_set(error, -r, "%llu bytes of weights cannot be copied", (unsigned long long)bytes) : 0;
}

int sl_residence_new(const struct sl_plan *plan, struct sl_device *device, const struct sl_residence *base,
        struct sl_residence **ret_residence, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_residence_free) struct sl_residence *residence = calloc(1, sizeof(*residence));
        const struct sl_backend *backend = sl_backend_find(plan->info->backend);
        int r;

        if (!residence)
                return sl_error_set(error, ENOMEM, "no memory for %zu bytes", sizeof(*residence));
        if (!backend || !backend->runner || !backend->runner->memory)
                return sl_error_set(error, ENOTSUP, "backend \"%s\" has no memory of its own in this program", plan->info->backend);
        if (plan->n_members)
                return sl_error_set(error, ENOTSUP,
                        "a merged plan that has constants of %u members' plans stays in the host's memory", plan->n_members);
        residence->plan = plan;
        residence->session.backend = backend;
        residence->base = base ? base->memory : NULL;
        r = backend->runner->open(device, NULL, 0, &residence->session.session, error);
        if (r == 0)
                r = upload_data(residence, plan, &residence->memory, error);
        if (r == 0 && plan->base && !base) {
                residence->owns_base = true;
                r = upload_data(residence, plan->base, &residence->base, error);
        }
        if (r < 0)
                return sl_error_prefix(error, r, "backend \"%s\"", backend->name);
        *ret_residence = sl_take(residence);
        return 0;
}

struct sl_residence *sl_residence_free(struct sl_residence *residence)
{
        const struct sl_runner *runner;

        if (residence && residence->session.session) {
                runner = residence->session.backend->runner;
                runner->memory->release(residence->session.session, residence->memory);
                if (residence->owns_base)
                        runner->memory->release(residence->session.session, residence->base);
                runner->close(residence->session.session);
        }
        free(residence);
        return NULL;
}

void *sl_residence_constant(const struct sl_residence *residence, const struct sl_plan_constant *constant)
{
        const struct sl_plan *plan = residence->plan;

        if (constant->in_base == SL_PLAN_OWN)
                return (uint8_t *)residence->memory + constant->offset;
        return (uint8_t *)residence->base + plan->base->constants[constant->base_index].offset + constant->base_offset;
}
