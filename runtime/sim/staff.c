/* SPDX-License-Identifier: Apache-2.0 */
#include "staff.h"

static bool is_here(const struct sl_sim_staffer *s)
{
        return s->state == SL_SIM_STAFF_WORKS || s->state == SL_SIM_STAFF_DEAD;
}

uint32_t sl_sim_staff_count(const struct sl_sim_staff *staff)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                n += staff->staffers[i].state != SL_SIM_STAFF_NONE;
        return n;
}

uint32_t sl_sim_staff_works(const struct sl_sim_staff *staff, bool with_dead)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                n += with_dead ? is_here(&staff->staffers[i]) : staff->staffers[i].state == SL_SIM_STAFF_WORKS;
        return n;
}

uint32_t sl_sim_staff_old(const struct sl_sim_staff *staff)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                n += is_here(&staff->staffers[i]) && !staff->staffers[i].is_new;
        return n;
}

uint32_t sl_sim_staff_of_kind(const struct sl_sim_staff *staff, uint32_t kind, bool ready)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                const struct sl_sim_staffer *s = &staff->staffers[i];

                n += s->kind == kind && (is_here(s) || (!ready && s->state == SL_SIM_STAFF_STARTS));
        }
        return n;
}

bool sl_sim_staff_starts(const struct sl_sim_staff *staff)
{
        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                if (staff->staffers[i].state == SL_SIM_STAFF_STARTS)
                        return true;
        return false;
}

static struct sl_sim_staffer *add(struct sl_sim_staff *staff, uint32_t kind)
{
        uint32_t at = 0;

        while (staff->staffers[at].state != SL_SIM_STAFF_NONE)
                at++;
        staff->staffers[at] = (struct sl_sim_staffer){.kind = kind};
        return &staff->staffers[at];
}

int sl_sim_staff_open(struct sl_sim_staff *staff, struct sl_sim_set set, struct sl_sim_ledger *ledger)
{
        int r = sl_sim_ledger_take(ledger, set.n * SL_SIM_WORKER_BYTES);

        if (r < 0)
                return r;
        *staff = (struct sl_sim_staff){.has = set, .wants = set};
        for (uint32_t i = 0; i < set.n; i++)
                add(staff, set.kind)->state = SL_SIM_STAFF_WORKS;
        return 0;
}

void sl_sim_staff_close(struct sl_sim_staff *staff, struct sl_sim_ledger *ledger)
{
        sl_sim_ledger_give(ledger, sl_sim_staff_count(staff) * SL_SIM_WORKER_BYTES);
        *staff = (struct sl_sim_staff){0};
}

static void leave(struct sl_sim_staffer *s, uint64_t now_ns, uint64_t takes_ns)
{
        s->state = SL_SIM_STAFF_LEAVES;
        s->due_ns = now_ns + takes_ns;
}

/* Of one that only started nothing is in flight. */
static void drop_starting(struct sl_sim_staff *staff, uint32_t but_kind, uint32_t keep, struct sl_sim_ledger *ledger)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                struct sl_sim_staffer *s = &staff->staffers[i];

                if (s->state != SL_SIM_STAFF_STARTS || (s->kind == but_kind && kept++ < keep))
                        continue;
                *s = (struct sl_sim_staffer){0};
                sl_sim_ledger_give(ledger, SL_SIM_WORKER_BYTES);
        }
}

int sl_sim_staff_change(struct sl_sim_staff *staff, struct sl_sim_set set, uint64_t now_ns, uint32_t fails_in,
        struct sl_sim_dice *dice, struct sl_sim_ledger *ledger)
{
        uint32_t ready = sl_sim_staff_of_kind(staff, set.kind, true), there = sl_sim_staff_of_kind(staff, set.kind, false);
        uint32_t more = set.n > there ? set.n - there : 0;
        int r = sl_sim_ledger_take(ledger, more * SL_SIM_WORKER_BYTES);

        if (r < 0)
                return r;
        if (sl_sim_staff_count(staff) + more > SL_SIM_STAFF_MAX) {
                sl_sim_ledger_give(ledger, more * SL_SIM_WORKER_BYTES);
                return -E2BIG;
        }
        for (; more; more--) {
                struct sl_sim_staffer *s = add(staff, set.kind);

                s->state = SL_SIM_STAFF_STARTS;
                s->is_new = true;
                s->due_ns = now_ns + 1 + sl_sim_roll(dice, (uint32_t)SL_SIM_START_NS);
                s->fails = fails_in && sl_sim_one_in(dice, fails_in);
        }
        drop_starting(staff, set.kind, set.n > ready ? set.n - ready : 0, ledger);
        staff->wants = set;
        staff->changes = true;
        return 0;
}

/* Return: -EIO: one cannot start. */
static int hear_each(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_ledger *ledger)
{
        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                struct sl_sim_staffer *s = &staff->staffers[i];

                if (s->state == SL_SIM_STAFF_NONE || !s->due_ns || s->due_ns > now_ns)
                        continue;
                s->due_ns = 0;
                if (s->state == SL_SIM_STAFF_LEAVES || s->fails)
                        sl_sim_ledger_give(ledger, SL_SIM_WORKER_BYTES);
                if (s->fails) {
                        *s = (struct sl_sim_staffer){0};
                        return -EIO;
                }
                s->state = s->state == SL_SIM_STAFF_LEAVES ? SL_SIM_STAFF_NONE : SL_SIM_STAFF_WORKS;
        }
        return 0;
}

/* Others of the wanted kind stay. */
static void let_leave(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_dice *dice)
{
        uint32_t stay = 0;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                struct sl_sim_staffer *s = &staff->staffers[i];

                s->is_new = false;
                if (!is_here(s) || (s->kind == staff->wants.kind && stay++ < staff->wants.n))
                        continue;
                leave(s, now_ns, 1 + sl_sim_roll(dice, (uint32_t)SL_SIM_LEAVE_NS));
        }
        staff->has = staff->wants;
}

static bool leaves(const struct sl_sim_staff *staff)
{
        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                if (staff->staffers[i].state == SL_SIM_STAFF_LEAVES)
                        return true;
        return false;
}

int sl_sim_staff_hear(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_dice *dice, struct sl_sim_ledger *ledger)
{
        int r = hear_each(staff, now_ns, ledger);

        if (r < 0)
                return r;
        if (!staff->changes)
                return 0;
        if (staff->holds || sl_sim_staff_starts(staff))
                return 1;
        let_leave(staff, now_ns, dice);
        staff->changes = leaves(staff);
        return staff->changes;
}

void sl_sim_staff_undo(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_ledger *ledger)
{
        drop_starting(staff, 0, 0, ledger);
        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++)
                if (is_here(&staff->staffers[i]) && staff->staffers[i].is_new)
                        leave(&staff->staffers[i], now_ns, SL_SIM_LEAVE_NS / 2);
        staff->wants = staff->has;
        staff->changes = staff->holds = false;
}

void sl_sim_staff_kill(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_dice *dice)
{
        uint32_t first = sl_sim_roll(dice, SL_SIM_STAFF_MAX);

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                struct sl_sim_staffer *s = &staff->staffers[(first + i) % SL_SIM_STAFF_MAX];

                if (s->state != SL_SIM_STAFF_WORKS)
                        continue;
                s->state = SL_SIM_STAFF_DEAD;
                s->due_ns = now_ns + 1 + sl_sim_roll(dice, (uint32_t)SL_SIM_START_NS);
                return;
        }
}

uint64_t sl_sim_staff_due_ns(const struct sl_sim_staff *staff)
{
        uint64_t due_ns = UINT64_MAX;

        for (uint32_t i = 0; i < SL_SIM_STAFF_MAX; i++) {
                const struct sl_sim_staffer *s = &staff->staffers[i];

                if (s->state != SL_SIM_STAFF_NONE && s->due_ns && s->due_ns < due_ns)
                        due_ns = s->due_ns;
        }
        return due_ns;
}
