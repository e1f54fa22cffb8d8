/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINES      128 /* bytes: a line, and the one that is fetched with it */
#define PARTS_BITS 16
#define PARTS_END  0xffffu
#define PARTS_REST 0xfffeu
#define LOOKS      32 /* at the word, for each at the clock */
#define SLEEP_MS   100

struct member {
        alignas(LINES) _Atomic uint64_t taken; /* (T) the last call whose part of this member has been begun */
        alignas(LINES) _Atomic uint64_t done;  /* (D) the last call whose part this member has computed; it writes */
        alignas(LINES) struct sl_team *team;
        uint32_t rank;
        bool has_thread;
        pthread_t thread;
};

struct sl_team {
        uint32_t size;
        uint64_t spin_ns;
        /* The owner's; members read the job. */
        uint64_t number, taken_over;
        sl_team_task *task;
        void *context;
        alignas(LINES) _Atomic uint64_t call;     /* (C) the number of the call, and its parts below PARTS_BITS; the owner writes */
        alignas(LINES) _Atomic uint32_t sleepers; /* (S) members that are going to sleep, or do */
        _Atomic uint32_t bell;                    /* they sleep on it; the owner writes */
        alignas(LINES) _Atomic uint32_t caller_sleeps;
        _Atomic uint32_t caller_bell; /* members write */
        alignas(LINES) struct member members[];
};

static uint32_t parts_of(uint64_t call)
{
        return (uint32_t)(call & ((1u << PARTS_BITS) - 1));
}

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
        const struct timespec limit = {.tv_nsec = SLEEP_MS * (long)SL_NS_PER_MS};

        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Returns the first call that is another one than @seen, or @seen when the time is over. */
static uint64_t spin_for_call(struct sl_team *team, uint64_t seen)
{
        uint64_t call = atomic_load_explicit(&team->call, memory_order_acquire), until;

        if (call != seen || !team->spin_ns || parts_of(seen) == PARTS_REST)
                return call;
        until = sl_clock_ns() + team->spin_ns;
        do {
                for (int i = 0; i < LOOKS && call == seen; i++) {
                        sl_relax();
                        call = atomic_load_explicit(&team->call, memory_order_acquire); /* C2 */
                }
        } while (call == seen && sl_clock_ns() < until);
        return call;
}

static void sleep_for_call(struct sl_team *team, uint64_t seen)
{
        uint32_t bell;

        atomic_fetch_add(&team->sleepers, 1); /* S1 */
        bell = atomic_load(&team->bell);
        if (atomic_load(&team->call) == seen) /* S2 */
                futex_wait(&team->bell, bell);
        atomic_fetch_sub(&team->sleepers, 1);
}

static uint64_t wait_for_call(struct sl_team *team, uint64_t seen)
{
        uint64_t call;

        while ((call = spin_for_call(team, seen)) == seen)
                sleep_for_call(team, seen);
        return call;
}

/* Is the part of call @number the caller's? */
static bool take_part(struct member *member, uint64_t number)
{
        uint64_t taken = atomic_load_explicit(&member->taken, memory_order_relaxed);

        return taken < number && atomic_compare_exchange_strong_explicit(
                                         &member->taken, &taken, number, memory_order_acq_rel, memory_order_relaxed); /* T */
}

static void say_done(struct sl_team *team, struct member *member, uint64_t number)
{
        atomic_store(&member->done, number); /* D1 */
        if (atomic_load(&team->caller_sleeps)) {
                atomic_fetch_add(&team->caller_bell, 1);
                futex_wake(&team->caller_bell, 1);
        }
}

static void *member_main(void *argument)
{
        struct member *member = argument;
        struct sl_team *team = member->team;
        uint64_t call = 0;

        while (parts_of(call = wait_for_call(team, call)) != PARTS_END) {
                uint64_t number = call >> PARTS_BITS;

                if (parts_of(call) == PARTS_REST || member->rank >= parts_of(call) || !take_part(member, number))
                        continue;
                team->task(team->context, member->rank, member->rank);
                say_done(team, member, number);
        }
        return NULL;
}

static void publish(struct sl_team *team, uint32_t parts)
{
        team->number++;
        atomic_store(&team->call, team->number << PARTS_BITS | parts); /* C1 */
        if (__builtin_expect(atomic_load(&team->sleepers) > 0, 0)) {   /* S3 */
                atomic_fetch_add(&team->bell, 1);
                futex_wake(&team->bell, INT32_MAX);
        }
}

static bool is_done(const struct member *member, uint64_t number)
{
        return atomic_load_explicit(&member->done, memory_order_acquire) >= number; /* D2 */
}

static void sleep_until_done(struct sl_team *team, const struct member *member)
{
        while (!is_done(member, team->number)) {
                uint32_t bell;

                atomic_store(&team->caller_sleeps, 1);
                bell = atomic_load(&team->caller_bell);
                if (atomic_load(&member->done) < team->number)
                        futex_wait(&team->caller_bell, bell);
                atomic_store(&team->caller_sleeps, 0);
        }
}

static void wait_until_done(struct sl_team *team, const struct member *member)
{
        uint64_t until;

        if (is_done(member, team->number))
                return;
        until = team->spin_ns ? sl_clock_ns() + team->spin_ns : 0;
        while (until && sl_clock_ns() < until)
                for (int i = 0; i < LOOKS; i++) {
                        sl_relax();
                        if (is_done(member, team->number))
                                return;
                }
        sleep_until_done(team, member);
}

void sl_team_run(struct sl_team *team, uint32_t parts, sl_team_task *task, void *context)
{
        bool mine[SL_TEAM_MEMBERS_MAX] = {false};

        team->task = task;
        team->context = context;
        if (parts > 1)
                publish(team, parts);
        task(context, 0, 0);
        for (uint32_t r = 1; r < parts; r++) {
                mine[r] = take_part(&team->members[r], team->number);
                if (!mine[r])
                        continue;
                task(context, r, 0);
                team->taken_over++;
        }
        for (uint32_t r = 1; r < parts; r++)
                if (!mine[r])
                        wait_until_done(team, &team->members[r]);
}

void sl_team_rest(struct sl_team *team)
{
        if (team->size > 1)
                publish(team, PARTS_REST);
}

uint32_t sl_team_size(const struct sl_team *team)
{
        return team->size;
}

uint64_t sl_team_taken_over(const struct sl_team *team)
{
        return team->taken_over;
}

/* CPUs that the members have between them. */
static uint32_t count_cpus(const struct sl_team_options *options)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        if (!options->cpus)
                return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (uint32_t)CPU_COUNT(&set);
        for (uint32_t i = 0; i < options->size; i++)
                CPU_SET(options->cpus[i], &set);
        return (uint32_t)CPU_COUNT(&set);
}

static int check_options(const struct sl_team_options *options, struct sl_error *error)
{
        if (!options->size || options->size > SL_TEAM_MEMBERS_MAX)
                return sl_error_set(error, EINVAL, "a team of %u threads, of 1 to %d", options->size, SL_TEAM_MEMBERS_MAX);
        for (uint32_t i = 0; options->cpus && i < options->size; i++)
                if (options->cpus[i] < 0 || options->cpus[i] >= CPU_SETSIZE)
                        return sl_error_set(error, EINVAL, "a team on CPU %d, of 0 to %d", options->cpus[i], CPU_SETSIZE - 1);
        return 0;
}

/* Signals are other threads' business. */
static int start_member(struct member *member, const int *cpu)
{
        pthread_attr_t attributes;
        sigset_t all, before;
        cpu_set_t set;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        CPU_ZERO(&set);
        if (cpu) {
                CPU_SET(*cpu, &set);
                r = pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
        }
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (!r)
                r = pthread_create(&member->thread, &attributes, member_main, member);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        member->has_thread = !r;
        if (!r)
                pthread_setname_np(member->thread, "sl-team");
        return -r;
}

static struct sl_team *team_alloc(const struct sl_team_options *options)
{
        size_t bytes = sizeof(struct sl_team) + options->size * sizeof(struct member);
        struct sl_team *team = aligned_alloc(alignof(struct sl_team), bytes);

        if (!team)
                return NULL;
        memset(team, 0, bytes);
        team->size = options->size;
        team->spin_ns = count_cpus(options) < options->size ? 0 : options->spin_ns;
        for (uint32_t i = 0; i < team->size; i++) {
                team->members[i].team = team;
                team->members[i].rank = i;
        }
        return team;
}

int sl_team_new(const struct sl_team_options *options, struct sl_team **ret_team, struct sl_error *error)
{
        struct sl_team *team;
        int r = check_options(options, error);

        if (r < 0)
                return r;
        team = team_alloc(options);
        if (!team)
                return sl_error_set(error, ENOMEM, "no memory for a team of %u threads", options->size);
        for (uint32_t i = 1; i < team->size && r == 0; i++)
                r = start_member(&team->members[i], options->cpus ? &options->cpus[i] : NULL);
        if (r < 0) {
                sl_team_free(team);
                return sl_error_set(error, -r, "a team of %u threads: %s", options->size, strerror(-r));
        }
        *ret_team = team;
        return 0;
}

struct sl_team *sl_team_free(struct sl_team *team)
{
        if (!team)
                return NULL;
        publish(team, PARTS_END);
        for (uint32_t i = 1; i < team->size; i++)
                if (team->members[i].has_thread)
                        pthread_join(team->members[i].thread, NULL);
        free(team);
        return NULL;
}
