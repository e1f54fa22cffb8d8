/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "base/thread.h"
#include "team_watch.h"

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
#define PARTS_BITS 8
#define AWAY_BITS  8
#define PARTS_END  0xffu
#define PARTS_REST 0xfeu
#define LOOKS      32 /* at the word, for each at the clock */
#define SLEEP_MS   100

struct member {
        alignas(LINES) _Atomic uint64_t taken; /* (T) the last call whose part of this member has been begun */
        alignas(LINES) _Atomic uint64_t done;  /* (D) the last call whose part this member has computed; it writes */
        _Atomic uint64_t asleep;               /* the last call behind which it went to sleep; it writes */
        alignas(LINES) struct sl_team *team;
        uint32_t rank;
        bool has_thread;
        pthread_t thread;
        _Atomic int tid; /* of the thread, which writes it once it runs; 0 before */
};

struct sl_team {
        uint32_t size;
        uint64_t spin_ns;
        /* The owner's; members read the job. */
        uint64_t number, taken_over;
        struct sl_team_watch watch;
        uint32_t told_away; /* in the last call */
        sl_team_task *task;
        void *context;
        alignas(LINES) _Atomic uint64_t call;     /* (C) its number, who is away, its parts; the owner writes */
        alignas(LINES) _Atomic uint32_t sleepers; /* (S) members that are going to sleep, or do */
        _Atomic uint32_t bell;                    /* they sleep on it; the owner writes */
        alignas(LINES) _Atomic uint32_t recalls;  /* who is away sleeps on it; the owner writes */
        alignas(LINES) _Atomic uint32_t caller_sleeps;
        _Atomic uint32_t caller_bell; /* members write */
        alignas(LINES) struct member members[];
};

static uint32_t parts_of(uint64_t call)
{
        return (uint32_t)(call & ((1u << PARTS_BITS) - 1));
}

static uint32_t away_of(uint64_t call)
{
        return (uint32_t)(call >> PARTS_BITS & ((1u << AWAY_BITS) - 1));
}

static uint64_t number_of(uint64_t call)
{
        return call >> (PARTS_BITS + AWAY_BITS);
}

/* The part of @rank, which is not the one that is away: those behind that one move up. */
static uint32_t part_of(uint32_t rank, uint32_t away)
{
        return away && rank > away ? rank - 1 : rank;
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

static void sleep_for_call(struct sl_team *team, struct member *member, uint64_t seen)
{
        uint32_t bell;

        atomic_store_explicit(&member->asleep, seen, memory_order_relaxed);
        atomic_fetch_add(&team->sleepers, 1); /* S1 */
        bell = atomic_load(&team->bell);
        if (atomic_load(&team->call) == seen) /* S2 */
                futex_wait(&team->bell, bell);
        atomic_fetch_sub(&team->sleepers, 1);
}

static uint64_t wait_for_call(struct sl_team *team, struct member *member, uint64_t seen)
{
        uint64_t call;

        while ((call = spin_for_call(team, seen)) == seen)
                sleep_for_call(team, member, seen);
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

/* Until another one is away, or the team ends. (R1) recalls, then the call (R2). The owner: C1, then recalls += 1 (R3). Either R2 sees
 * the call or the sleep does not begin. */
static void stay_away(struct sl_team *team, const struct member *member)
{
        for (;;) {
                uint32_t recalls = atomic_load(&team->recalls); /* R1 */
                uint64_t call = atomic_load(&team->call);       /* R2 */

                if (away_of(call) != member->rank || parts_of(call) == PARTS_END)
                        return;
                futex_wait(&team->recalls, recalls);
        }
}

static void *member_main(void *argument)
{
        struct member *member = argument;
        struct sl_team *team = member->team;
        uint64_t call = 0;

        atomic_store_explicit(&member->tid, gettid(), memory_order_relaxed);
        while (parts_of(call = wait_for_call(team, member, call)) != PARTS_END) {
                uint32_t part = part_of(member->rank, away_of(call));
                uint64_t number = number_of(call);

                if (member->rank == away_of(call))
                        stay_away(team, member);
                else if (parts_of(call) != PARTS_REST && part < parts_of(call) && take_part(member, number)) {
                        team->task(team->context, part, member->rank);
                        say_done(team, member, number);
                }
        }
        return NULL;
}

static void publish(struct sl_team *team, uint32_t parts)
{
        team->number++;
        atomic_store(&team->call, (team->number << AWAY_BITS | team->watch.away) << PARTS_BITS | parts); /* C1 */
        if (__builtin_expect(atomic_load(&team->sleepers) > 0, 0)) {                                     /* S3 */
                atomic_fetch_add(&team->bell, 1);
                futex_wake(&team->bell, INT32_MAX);
        }
        if (__builtin_expect(team->told_away && (team->told_away != team->watch.away || parts == PARTS_END), 0)) {
                atomic_fetch_add(&team->recalls, 1); /* R3 */
                futex_wake(&team->recalls, INT32_MAX);
        }
        team->told_away = team->watch.away;
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

/* The member of part @part. */
static struct member *member_of(struct sl_team *team, uint32_t part)
{
        uint32_t away = team->watch.away;

        return &team->members[away && part >= away ? part + 1 : part];
}

void sl_team_run(struct sl_team *team, uint32_t parts, sl_team_task *task, void *context)
{
        bool mine[SL_TEAM_MEMBERS_MAX] = {false};

        team->task = task;
        team->context = context;
        if (parts > 1)
                publish(team, parts);
        task(context, 0, 0);
        for (uint32_t p = 1; p < parts; p++) {
                mine[p] = take_part(member_of(team, p), team->number);
                if (!mine[p])
                        continue;
                task(context, p, 0);
                team->taken_over++;
        }
        for (uint32_t p = 1; p < parts; p++)
                if (!mine[p])
                        wait_until_done(team, member_of(team, p));
}

/* Of each thread but the owner's; false where the system does not say. */
static bool read_times(const struct sl_team *team, struct sl_thread_times times[SL_TEAM_MEMBERS_MAX])
{
        for (uint32_t i = 1; i < team->size; i++) {
                int tid = atomic_load_explicit(&team->members[i].tid, memory_order_relaxed);

                if (!tid || !sl_thread_times_read(tid, &times[i]))
                        return false;
        }
        return true;
}

uint32_t sl_team_gather(struct sl_team *team)
{
        struct sl_thread_times times[SL_TEAM_MEMBERS_MAX];
        uint64_t now_ns = sl_clock_ns();

        if (team->size > 1 && sl_team_watch_is_due(&team->watch, now_ns)) {
                if (read_times(team, times))
                        (void)sl_team_watch_judge(&team->watch, now_ns, times, team->size);
                else
                        team->watch.next_ns = now_ns + SL_WATCH_LOOK_NS;
        }
        return sl_team_present(team);
}

void sl_team_send_away(struct sl_team *team, uint32_t member)
{
        SL_ASSERT(member < team->size);
        team->watch = (struct sl_team_watch){.away = member, .next_ns = UINT64_MAX};
}

uint32_t sl_team_present(const struct sl_team *team)
{
        return team->size - (team->watch.away ? 1 : 0);
}

/* Who is away sleeps once it was told. Relaxed: a member that sleeps by now is woken in vain. */
static bool all_sleep(const struct sl_team *team)
{
        uint64_t call = atomic_load_explicit(&team->call, memory_order_relaxed);

        for (uint32_t i = 1; i < team->size; i++)
                if (i != away_of(call) && atomic_load_explicit(&team->members[i].asleep, memory_order_relaxed) != call)
                        return false;
        return team->watch.away == away_of(call);
}

void sl_team_rest(struct sl_team *team)
{
        if (!all_sleep(team))
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
        sigset_t all, before;
        cpu_set_t cores;
        int r;

        CPU_ZERO(&cores);
        if (cpu)
                CPU_SET(*cpu, &cores);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = sl_thread_start(&cores, "sl-team", member_main, member, &member->thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        member->has_thread = r == 0;
        return r;
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
                team->members[i].asleep = UINT64_MAX;
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
