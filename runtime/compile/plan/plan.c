/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the mapping and a descriptor of the file. A plan that exists has been checked whole.
 */
#include "plan.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "gather.h"
#include "huge_pages.h"
#include "packed_store.h"
#include "plan_map.h"
#include "plan_sum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)

/* As sl_compile_finish() hands it over. */
static bool is_sealed(int fd)
{
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & all) == all;
}

static int map_file(struct sl_plan *plan, int fd, struct sl_error *error)
{
        off_t end = lseek(fd, 0, SEEK_END); /* which the compiler's sandbox allows, other than fstat() */
        const void *bytes;

        if (end < 0)
                return sl_error_set(error, EBADMSG, "plan file: it cannot be examined, error %d", errno);
        if (end < (off_t)sizeof(struct sl_plan_header))
                return sl_error_set(error, EBADMSG, "plan file: %lld bytes, the header alone takes %zu", (long long)end,
                        sizeof(struct sl_plan_header));
        /* All of it is read at once: by the checksum, or by the first run. */
        bytes = sl_huge_pages_map(fd, (size_t)end);
        if (bytes == MAP_FAILED)
                return sl_error_set(error, ENOMEM, "plan file: %lld bytes cannot be mapped, error %d", (long long)end, errno);
        plan->bytes = bytes;
        plan->n_bytes = (uint64_t)end;
        plan->intact = plan->intact || is_sealed(fd);
        plan->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return plan->fd < 0 ? sl_error_set(error, ENOMEM, "plan file: no descriptor for it, error %d", errno) : 0;
}

int sl_plan_open(int fd, struct sl_plan **ret_plan, struct sl_error *error)
{
        return sl_plan_open_on(fd, NULL, ret_plan, error);
}

static bool stands_alone(const struct sl_plan *plan)
{
        return !plan->header->base.checksum && !plan->header->base.bytes;
}

/* What another plan may be found in. */
struct beside {
        struct sl_plan *base; /* NULL: none */
        struct sl_plan *const *members;
        uint32_t n_members;
        bool intact;
};

static int hold_members(struct sl_plan *plan, const struct beside *beside, struct sl_error *error)
{
        plan->members = calloc(beside->n_members + 1u, sizeof(struct sl_plan *));
        if (!plan->members)
                return sl_error_set(error, ENOMEM, "plan: no memory for %u members", beside->n_members);
        for (; plan->n_members < beside->n_members; plan->n_members++) {
                struct sl_plan *member = beside->members[plan->n_members];

                if (member->base || member->n_members)
                        return sl_error_set(error, EINVAL, "plan: a member of a merged plan stands alone");
                plan->members[plan->n_members] = sl_plan_hold(member);
        }
        return 0;
}

static void release_members(struct sl_plan *plan)
{
        while (plan->n_members)
                sl_plan_free(plan->members[--plan->n_members]);
        free(plan->members);
        plan->members = NULL;
}

/* Half of what a run may take is the most that is packed, for all that run it. */
static int make_packed(struct sl_plan *plan, struct sl_error *error)
{
        if (!plan->info->n_batches || !plan->programs[0].n_inputs)
                return 0;
        if (sl_packed_store_new(plan->base, plan->programs[0].dynamic_bytes / 2, &plan->packed) < 0)
                return sl_error_set(error, ENOMEM, "plan: no memory for its packed weights");
        return 0;
}

static int open_plan(int fd, const struct beside *beside, struct sl_plan **ret_plan, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return sl_error_set(error, ENOMEM, "plan: no memory for %zu bytes", sizeof(*plan));
        if (beside->base && (beside->base->base || beside->base->n_members))
                return sl_error_set(error, EINVAL, "plan: a derived or merged plan cannot be a base");
        atomic_init(&plan->holders, 1);
        plan->fd = -1;
        plan->intact = beside->intact;
        plan->base = sl_plan_hold(beside->base);
        r = hold_members(plan, beside, error);
        if (r == 0)
                r = map_file(plan, fd, error);
        if (r == 0)
                r = sl_plan_check(plan, error);
        if (r == 0)
                r = sl_plan_gather(plan, error);
        if (r < 0)
                return r;
        if (stands_alone(plan))
                plan->base = sl_plan_free(plan->base);
        if (!sl_plan_count(plan, SL_PLAN_SECTION_MEMBERS))
                release_members(plan);
        r = make_packed(plan, error);
        if (r < 0)
                return r;
        *ret_plan = sl_take(plan);
        return 0;
}

int sl_plan_open_on(int fd, struct sl_plan *base, struct sl_plan **ret_plan, struct sl_error *error)
{
        return open_plan(fd, &(struct beside){.base = base}, ret_plan, error);
}

int sl_plan_open_intact(int fd, struct sl_plan *base, struct sl_plan **ret_plan, struct sl_error *error)
{
        return open_plan(fd, &(struct beside){.base = base, .intact = true}, ret_plan, error);
}

int sl_plan_open_merged(
        int fd, struct sl_plan *const *members, uint32_t n_members, bool intact, struct sl_plan **ret_plan, struct sl_error *error)
{
        return open_plan(fd, &(struct beside){.members = members, .n_members = n_members, .intact = intact}, ret_plan, error);
}

int sl_plan_read_info(int fd, struct sl_plan_info *ret_info, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return sl_error_set(error, ENOMEM, "plan: no memory for %zu bytes", sizeof(*plan));
        atomic_init(&plan->holders, 1);
        plan->fd = -1;
        plan->is_for_people = true;
        r = map_file(plan, fd, error);
        if (r == 0)
                r = sl_plan_check(plan, error);
        if (r == 0)
                r = sl_plan_info_copy(plan->info, ret_info);
        return r;
}

struct sl_plan *sl_plan_hold(struct sl_plan *plan)
{
        if (plan)
                atomic_fetch_add(&plan->holders, 1);
        return plan;
}

struct sl_plan *sl_plan_free(struct sl_plan *plan)
{
        if (!plan || atomic_fetch_sub(&plan->holders, 1) > 1)
                return NULL;
        sl_packed_store_free(plan->packed);
        if (plan->ended)
                plan->ended(plan->ended_context, plan);
        free(plan->info);
        if (plan->bytes)
                munmap((void *)plan->bytes, plan->n_bytes);
        if (plan->fd >= 0)
                close(plan->fd);
        sl_plan_gather_undo(plan);
        release_members(plan);
        sl_plan_free(plan->base);
        free(plan);
        return NULL;
}

void sl_plan_lend_packed(struct sl_plan *plan, const struct sl_packed_lender *lender)
{
        if (plan->packed)
                sl_packed_store_lend(plan->packed, lender);
}

uint64_t sl_plan_packed_bytes(const struct sl_plan *plan)
{
        return plan->packed ? sl_packed_store_bytes(plan->packed) : 0;
}

uint64_t sl_plan_packed_bytes_max(const struct sl_plan *plan)
{
        return plan->packed ? sl_packed_store_bytes_max(plan->packed) : 0;
}

bool sl_plan_is_dynamic(const struct sl_plan *plan)
{
        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_STEPS); i++)
                if (plan->steps[i].dynamic)
                        return true;
        return false;
}

const struct sl_plan_info *sl_plan_info(const struct sl_plan *plan)
{
        return plan->info;
}

/* No data hang on it: two threads at once compute the same. */
static uint64_t checksum_of(const struct sl_plan *plan)
{
        uint64_t sum = plan->header->checksum;

        if (sum == SL_PLAN_NOT_SUMMED)
                sum = atomic_load_explicit(&plan->sum, memory_order_relaxed);
        if (sum == SL_PLAN_NOT_SUMMED) {
                sum = sl_plan_sum(plan->bytes, plan->n_bytes);
                atomic_store_explicit(&((struct sl_plan *)plan)->sum, sum, memory_order_relaxed);
        }
        return sum;
}

void sl_plan_know_sum(struct sl_plan *plan, uint64_t sum)
{
        atomic_store_explicit(&plan->sum, sum, memory_order_relaxed);
}

struct sl_plan_identity sl_plan_identity(const struct sl_plan *plan)
{
        return (struct sl_plan_identity){.checksum = checksum_of(plan), .bytes = plan->n_bytes};
}

uint64_t sl_plan_bytes(const struct sl_plan *plan)
{
        return plan->n_bytes;
}

void sl_plan_watch_end(struct sl_plan *plan, void (*ended)(void *context, const struct sl_plan *plan), void *context)
{
        plan->ended = ended;
        plan->ended_context = context;
}

bool sl_plan_is_watched(const struct sl_plan *plan)
{
        return plan->ended != NULL;
}

struct sl_plan *sl_plan_base(const struct sl_plan *plan)
{
        return plan->base;
}

int sl_plan_fd(const struct sl_plan *plan)
{
        return plan->fd;
}
