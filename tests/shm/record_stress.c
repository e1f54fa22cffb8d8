/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder between two threads over one mapping, for ThreadSanitizer: it must find nothing here, and must find a race in
 * the mutants, in which the order of one kind of access is weakened: -DSL_MUTANT_RELEASE   Q1 publishes without release
 *   -DSL_MUTANT_ACQUIRE   Q2 looks without acquire
 * Words of a record are atomic, so the race is one on a plain table, of which an entry is written before its request has a record:
 * whoever sees a record sees all that was done before it. Exit code 1 when a record that was called whole was none.
 */
#include "stats.h"

#ifdef SL_MUTANT_RELEASE
#define memory_order_release memory_order_relaxed
#endif
#ifdef SL_MUTANT_ACQUIRE
#define memory_order_acquire memory_order_relaxed
#endif
#include "../../shm/recorder.c"
#undef memory_order_release
#undef memory_order_acquire

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define N       60000u
#define RECORDS 16u
#define TRACED  8u

struct stage {
        struct sl_recorder recorder;
        struct sl_flight_record records[RECORDS], traced[TRACED];
        uint32_t free[RECORDS];
        uint64_t marks[N + 1]; /* by number of the request; plain */
        _Atomic bool done;
};

static uint64_t mark(uint64_t number)
{
        return number * 0x9e3779b97f4a7c15ull;
}

/* The dispatcher: a request after the other, with every stage at a time of its own. */
static void *record_all(void *context)
{
        struct stage *stage = context;

        for (uint64_t number = 1; number <= N; number++) {
                uint64_t taken_ns = number * 10;

                stage->marks[number] = mark(number);
                struct sl_flight_record *record =
                        sl_recorder_take(&stage->recorder, &(struct sl_flight_record){.client = mark(number),
                                                                   .stage = SL_FLIGHT_QUEUED,
                                                                   .samples = (uint32_t)number,
                                                                   .taken_ns = taken_ns,
                                                                   .since_ns = taken_ns});

                sl_record_broadcast(record, (uint32_t)number, taken_ns + 1);
                sl_record_given(record, 1, taken_ns + 2);
                sl_record_answered(record, 1, taken_ns + 3, taken_ns + 4, taken_ns + 5);
                sl_recorder_end(&stage->recorder, record, -(int32_t)number, taken_ns + 6);
                if (number % 64 == 0)
                        sched_yield();
        }
        atomic_store(&stage->done, true);
        return NULL;
}

/* What each stage has left, and what it has not. */
static bool is_whole(const struct sl_flight_record *r, uint64_t number)
{
        uint64_t t = number * 10;
        const uint64_t since[] = {
                [SL_FLIGHT_QUEUED] = t, [SL_FLIGHT_BROADCAST] = t + 1, [SL_FLIGHT_GIVEN] = t + 2, [SL_FLIGHT_ENDED] = t + 6};
        bool given = r->stage >= SL_FLIGHT_GIVEN, ended = r->stage == SL_FLIGHT_ENDED;

        return r->client == mark(number) && r->samples == (uint32_t)number && r->taken_ns == t &&
               r->stage < SL_FLIGHT_STAGE_LIMIT && r->since_ns == since[r->stage] && r->assigned_ns == (given ? t + 2 : 0) &&
               r->status == (ended ? -(int32_t)number : 0) &&
               (r->answered ? r->combined_ns == t + 5 && r->staged_ns == t + 4 : !ended && r->combined_ns == 0) &&
               r->broadcast == (r->stage >= SL_FLIGHT_BROADCAST ? r->samples : 0);
}

/* Return: 1 a whole one; 0 torn, or unused; -1 called whole, and is none. */
static int look(const struct stage *stage, const struct sl_flight_record *shared, bool traced)
{
        struct sl_flight_record copy = {0};
        const size_t skip = offsetof(struct sl_stats_slot, used);
        uint64_t words[sizeof(copy) / 8];
        uint64_t number;

        if (sl_seqlock_try(&shared->slot.seq, words, &shared->slot.used, sizeof(copy) - skip) < 0)
                return 0;
        memcpy((char *)&copy + skip, words, sizeof(copy) - skip);
        number = traced ? copy.number : copy.slot.used;
        if (copy.slot.used == 0)
                return 0;
        if (number > N || stage->marks[number] != mark(number) || (traced && copy.stage != SL_FLIGHT_ENDED))
                return -1;
        return is_whole(&copy, number) ? 1 : -1;
}

static uint32_t read_all(const struct stage *stage, uint32_t *ret_whole)
{
        uint32_t wrong = 0;
        bool done;

        *ret_whole = 0;
        do {
                done = atomic_load_explicit(&stage->done, memory_order_relaxed);
                for (uint32_t i = 0; i < RECORDS + TRACED; i++) {
                        int r = i < RECORDS ? look(stage, &stage->records[i], false)
                                            : look(stage, &stage->traced[i - RECORDS], true);

                        *ret_whole += r > 0;
                        wrong += r < 0;
                }
        } while (!done);
        return wrong;
}

int main(void)
{
        static struct stage stage;
        uint32_t wrong, whole;
        pthread_t thread;

        stage.recorder = (struct sl_recorder){.records = stage.records,
                .free = stage.free,
                .n_records = RECORDS,
                .given_back = RECORDS,
                .traced = stage.traced,
                .n_traced = TRACED,
                .sampling = UINT32_MAX / 2,
                .random = 1};
        for (uint32_t i = 0; i < RECORDS; i++)
                stage.free[i] = i;
        if (pthread_create(&thread, NULL, record_all, &stage))
                return 2;
        wrong = read_all(&stage, &whole);
        pthread_join(thread, NULL);
        printf("%u whole, %u wrong\n", whole, wrong);
        return wrong > 0 || whole == 0;
}
