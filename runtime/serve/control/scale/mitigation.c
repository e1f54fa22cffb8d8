/* SPDX-License-Identifier: Apache-2.0 */
#include "mitigation.h"

#include "account.h"
#include "base/clock.h"
#include "base/fields.h"
#include "condition.h"
#include "cores.h"
#include "crew.h"
#include "lets.h"
#include "model.h"
#include "names.h"
#include "registry_state.h"
#include "staffing.h"
#include "stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOOK_NS       SL_NS_PER_SECOND
#define WAIT_FIRST_NS SL_NS_PER_SECOND
#define WAIT_LAST_NS  (64 * SL_NS_PER_SECOND)
#define NONE          UINT32_MAX

struct sl_mitigation {
        struct sl_registry *registry;
        bool is_slowed;
        uint64_t due_ns;
        struct pause {
                uint64_t wait_ns, until_ns; /* after a worker of that name has moved */
        } pauses[SL_CATALOGUE_MODELS];
};

int sl_mitigation_new(struct sl_registry *r, struct sl_mitigation **ret_mitigation)
{
        *ret_mitigation = calloc(1, sizeof(**ret_mitigation));
        if (!*ret_mitigation)
                return -ENOMEM;
        (*ret_mitigation)->registry = r;
        return 0;
}

struct sl_mitigation *sl_mitigation_free(struct sl_mitigation *mitigation)
{
        free(mitigation);
        return NULL;
}

void sl_mitigation_hear(struct sl_mitigation *mitigation)
{
        mitigation->is_slowed = true;
}

static bool is_slowed(const struct sl_crew_worker *worker)
{
        return worker->state == SL_CREW_SERVING && worker->seat &&
               sl_counter_read(&worker->seat->condition) == SL_CONDITION_INTERFERED;
}

/* The first that is interfered with; NONE. */
static uint32_t find_slowed(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (is_slowed(&crew->workers[i]))
                        return i;
        return NONE;
}

/* The first of those that would find another core; NONE. */
static uint32_t find_movable(const struct sl_registry *r, const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (is_slowed(&crew->workers[i]) && sl_lets_have_idle(r->lets, crew->workers[i].let))
                        return i;
        return NONE;
}

/* What has not moved for longer than the longest pause starts anew. */
static void pause_longer(struct pause *pause, uint64_t now_ns)
{
        bool is_new = !pause->wait_ns || now_ns > pause->until_ns + WAIT_LAST_NS;

        pause->wait_ns = is_new ? WAIT_FIRST_NS : 2 * pause->wait_ns < WAIT_LAST_NS ? 2 * pause->wait_ns : WAIT_LAST_NS;
        pause->until_ns = now_ns + pause->wait_ns;
}

static bool may_change(const struct sl_registry *r, const struct sl_served *served)
{
        return !r->group && sl_served_is_ready(served) && served->want.number && served->want.number == served->serves &&
               !served->load && !sl_served_is_changing(served) && !served->model->bundle;
}

static void report(const struct sl_registry *r, const struct sl_served *served, const struct sl_crew_worker *worker)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", served->name);
        sl_fields_add_number(&fields, "core", sl_first_core(&worker->let->cpus));
        sl_fields_add(&fields, "cause", "it is interfered with there");
        sl_account_log(r->options.accounts, NULL, 2, "worker-moves", fields.text);
}

/* Return: whether a worker of it is interfered with. */
static bool look_at_name(struct sl_mitigation *m, struct sl_served *served, uint64_t now_ns)
{
        struct sl_crew *crew = served->used && served->model ? served->model->crew : NULL;
        struct pause *pause;
        uint32_t i;

        if (!crew || find_slowed(crew) == NONE)
                return false;
        pause = &m->pauses[served->index];
        i = may_change(m->registry, served) && now_ns >= pause->until_ns ? find_movable(m->registry, crew) : NONE;
        if (i == NONE)
                return true;
        report(m->registry, served, &crew->workers[i]);
        sl_crew_move(crew, i);
        sl_staffing_again(served);
        pause_longer(pause, now_ns);
        return true;
}

uint64_t sl_mitigation_look(struct sl_mitigation *m)
{
        uint64_t now_ns;

        if (!m->is_slowed)
                return UINT64_MAX;
        now_ns = sl_clock_ns();
        if (now_ns < m->due_ns)
                return m->due_ns;
        m->is_slowed = false;
        for (uint32_t i = 0; i < m->registry->n_awake; i++)
                m->is_slowed |= look_at_name(m, sl_awake_at(m->registry, i), now_ns);
        m->due_ns = now_ns + LOOK_NS;
        return m->is_slowed ? m->due_ns : UINT64_MAX;
}
