/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four ways to build a ring of 64-byte entries between two processes, timed side by side so that the choice made in shm/layout.h
 * stays reproducible:
 *
 *     shared    both indices in one line, each read anew every time
 *     padded    each index in lines of its own
 *     cached    padded, and each side keeps a copy of the other's index, looked up only when the copy says full or empty
 *     sequence  a sequence number in every slot says that the slot is whole; the reader's index is published for the writer
 *
 * A round trip goes through two rings of the same kind, one entry each way. Throughput is one way, entries published 32 at a time
 * (one store of the index for the batch; `sequence` has one store per slot by its nature) and one by one. The reader copies every
 * entry out, and gives slots back once per pass, as a dispatcher does.
 *
 * The functions below take the scheme as a constant and are inlined into one set of functions per scheme.
 */
#include "base/bytes.h"
#include "bench.h"
#include "cores.h"
#include "floor.h"
#include "latencies.h"
#include "pair.h"
#include "report.h"
#include "ticks.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SLOTS       256u
#define PASS        32u /* entries that a reader takes before it gives slots back */
#define BLOCKS      2000u
#define BLOCK       100u /* rounds */
#define WARM_UP     200u /* blocks */
#define MESSAGES    (4u << 20)
#define THE_END     UINT64_MAX
#define SCHEME_CODE static inline __attribute__((always_inline))

#define SCHEMES(X) X(SHARED, shared) X(PADDED, padded) X(CACHED, cached) X(SEQUENCE, sequence)

enum scheme {
#define X(id, name) id,
        SCHEMES(X)
#undef X
                SCHEME_COUNT,
};

struct entry {
        alignas(64) _Atomic uint32_t seq;
        uint32_t spare;
        uint64_t payload[7];
};
static_assert(sizeof(struct entry) == SL_LINE_BYTES, "an entry is one line");

struct ring {
        struct {
                alignas(128) _Atomic uint32_t tail;
                _Atomic uint32_t head;
        } near; /* SHARED */
        alignas(128) _Atomic uint32_t tail;
        alignas(128) _Atomic uint32_t head;
        alignas(128) struct entry slots[SLOTS];
};

/* One side of one ring; private. */
struct end {
        uint32_t index;  /* entries written, or read */
        uint32_t remote; /* copy of the other side's index */
};

struct course {
        struct ring there, back;
        alignas(128) _Atomic uint64_t received; /* of a one-way course, set at its end */
        alignas(128) uint64_t sum;              /* keeps the reader's copies alive */
};

SCHEME_CODE _Atomic uint32_t *tail_of(struct ring *ring, enum scheme scheme)
{
        return scheme == SHARED ? &ring->near.tail : &ring->tail;
}

SCHEME_CODE _Atomic uint32_t *head_of(struct ring *ring, enum scheme scheme)
{
        return scheme == SHARED ? &ring->near.head : &ring->head;
}

/* Spins until @n slots are free. */
SCHEME_CODE void await_room(struct ring *ring, struct end *writer, uint32_t n, enum scheme scheme)
{
        if ((scheme == CACHED || scheme == SEQUENCE) && SLOTS - (writer->index - writer->remote) >= n)
                return;
        for (;;) {
                writer->remote = atomic_load_explicit(head_of(ring, scheme), memory_order_acquire);
                if (SLOTS - (writer->index - writer->remote) >= n)
                        return;
                sl_relax();
        }
}

/* Writes @n entries and publishes them. */
SCHEME_CODE void put(struct ring *ring, struct end *writer, uint64_t value, uint32_t n, enum scheme scheme)
{
        await_room(ring, writer, n, scheme);
        for (uint32_t i = 0; i < n; i++) {
                struct entry *slot = &ring->slots[writer->index & (SLOTS - 1)];

                for (int word = 0; word < 7; word++)
                        slot->payload[word] = value + i;
                writer->index++;
                if (scheme == SEQUENCE)
                        atomic_store_explicit(&slot->seq, writer->index, memory_order_release);
        }
        if (scheme != SEQUENCE)
                atomic_store_explicit(tail_of(ring, scheme), writer->index, memory_order_release);
}

SCHEME_CODE bool ready(struct ring *ring, struct end *reader, enum scheme scheme)
{
        if (scheme == SEQUENCE)
                return atomic_load_explicit(&ring->slots[reader->index & (SLOTS - 1)].seq, memory_order_acquire) ==
                       reader->index + 1;
        if (scheme == CACHED && reader->remote != reader->index)
                return true;
        reader->remote = atomic_load_explicit(tail_of(ring, scheme), memory_order_acquire);
        return reader->remote != reader->index;
}

/* Takes at most @max entries, gives their slots back; returns how many, with the sum of what they said and the last value. */
SCHEME_CODE uint32_t take(struct ring *ring, struct end *reader, uint32_t max, uint64_t *sum, uint64_t *last, enum scheme scheme)
{
        uint32_t n = 0;

        while (n < max && ready(ring, reader, scheme)) {
                const struct entry *slot = &ring->slots[reader->index & (SLOTS - 1)];
                uint64_t copy[7];

                memcpy(copy, slot->payload, sizeof(copy));
                for (int word = 0; word < 7; word++)
                        *sum += copy[word];
                *last = copy[0];
                reader->index++;
                n++;
        }
        if (n)
                atomic_store_explicit(head_of(ring, scheme), reader->index, memory_order_release);
        return n;
}

SCHEME_CODE uint64_t await_one(struct ring *ring, struct end *reader, uint64_t *sum, enum scheme scheme)
{
        uint64_t value;

        while (!take(ring, reader, 1, sum, &value, scheme))
                sl_relax();
        return value;
}

/* Child: answers every entry with its value until THE_END. */
SCHEME_CODE int echo(struct course *course, enum scheme scheme)
{
        struct end reader = {0}, writer = {0};
        uint64_t sum = 0, value;

        while ((value = await_one(&course->there, &reader, &sum, scheme)) != THE_END)
                put(&course->back, &writer, value, 1, scheme);
        course->sum = sum;
        return 0;
}

/* Child: reads until THE_END, then says how many. */
SCHEME_CODE int drain(struct course *course, enum scheme scheme)
{
        struct end reader = {0};
        uint64_t sum = 0, last = 0, received = 0;

        while (last != THE_END) {
                uint32_t n = take(&course->there, &reader, PASS, &sum, &last, scheme);

                received += n;
                if (n == 0)
                        sl_relax();
        }
        course->sum = sum;
        atomic_store_explicit(&course->received, received, memory_order_release);
        return 0;
}

SCHEME_CODE void ping(struct course *course, struct sl_latencies *blocks, enum scheme scheme)
{
        struct end reader = {0}, writer = {0};
        uint64_t sum = 0;

        for (uint32_t block = 0; block < WARM_UP + BLOCKS; block++) {
                uint64_t start = sl_ticks();

                for (uint32_t i = 0; i < BLOCK; i++) {
                        put(&course->there, &writer, i, 1, scheme);
                        await_one(&course->back, &reader, &sum, scheme);
                }
                if (block >= WARM_UP)
                        sl_latencies_add(blocks, sl_ticks() - start);
        }
        put(&course->there, &writer, THE_END, 1, scheme);
}

SCHEME_CODE void push(struct course *course, uint32_t batch, enum scheme scheme)
{
        struct end writer = {0};

        for (uint64_t sent = 0; sent < MESSAGES; sent += batch)
                put(&course->there, &writer, sent, batch, scheme);
        put(&course->there, &writer, THE_END, 1, scheme);
        while (!atomic_load_explicit(&course->received, memory_order_acquire))
                sl_relax();
}

#define X(id, name)                                                                                                                \
        static int name##_echo(void *memory, void *argument)                                                                       \
        {                                                                                                                          \
                (void)argument;                                                                                                    \
                return echo(memory, id);                                                                                           \
        }                                                                                                                          \
        static int name##_drain(void *memory, void *argument)                                                                      \
        {                                                                                                                          \
                (void)argument;                                                                                                    \
                return drain(memory, id);                                                                                          \
        }                                                                                                                          \
        static void name##_ping(struct course *course, struct sl_latencies *blocks)                                                \
        {                                                                                                                          \
                ping(course, blocks, id);                                                                                          \
        }                                                                                                                          \
        static void name##_push(struct course *course, uint32_t batch)                                                             \
        {                                                                                                                          \
                push(course, batch, id);                                                                                           \
        }
SCHEMES(X)
#undef X

static const struct scheme_functions {
        const char *round_trip_key, *batched_key, *single_key;
        sl_pair_fn echo, drain;
        void (*ping)(struct course *course, struct sl_latencies *blocks);
        void (*push)(struct course *course, uint32_t batch);
} schemes[SCHEME_COUNT] = {
#define X(id, name)                                                                                                                \
        [id] = {#name "_rtt_ns", #name "_per_second_batches_of_32", #name "_per_second_one_by_one", name##_echo, name##_drain,     \
                name##_ping, name##_push},
        SCHEMES(X)
#undef X
};

static int round_trip(const struct scheme_functions *scheme, const int cpus[2], double *ret_ns)
{
        struct sl_latencies blocks;
        struct sl_pair pair;
        int r = sl_latencies_init(&blocks);

        if (r == 0)
                r = sl_pair_start(&pair, cpus, sizeof(struct course), scheme->echo, NULL);
        if (r == 0) {
                scheme->ping(pair.memory, &blocks);
                r = sl_pair_end(&pair);
        }
        if (r == 0) {
                *ret_ns = sl_latencies_at(&blocks, 0.5) / BLOCK * sl_ticks_scale();
        }
        sl_latencies_deinit(&blocks);
        return r;
}

/* The best of three: what the ring can do when nobody else is in the way. */
static int throughput(const struct scheme_functions *scheme, const int cpus[2], uint32_t batch, double *ret_per_second)
{
        double best = 0;

        for (int i = 0; i < 3; i++) {
                struct sl_pair pair;
                int r = sl_pair_start(&pair, cpus, sizeof(struct course), scheme->drain, NULL);

                if (r < 0)
                        return r;
                uint64_t start_ns = sl_clock_ns();

                scheme->push(pair.memory, batch);
                best = fmax(best, MESSAGES / ((double)(sl_clock_ns() - start_ns) / (double)SL_NS_PER_SECOND));
                r = sl_pair_end(&pair);
                if (r < 0)
                        return r;
        }
        *ret_per_second = best;
        return 0;
}

static int measure(struct sl_report *report, const int cpus[2], double *ret_floor_ns)
{
        double value, one_by_one = 0, batched = 0;
        int r = sl_floor_measure(cpus, ret_floor_ns);

        if (r == 0)
                sl_report_number(report, "floor_ns", SL_UNIT_NS, *ret_floor_ns, NULL, 0);
        if (r == 0)
                r = sl_floor_measure_two_lines(cpus, &value);
        if (r == 0)
                sl_report_number(report, "floor_two_lines_ns", SL_UNIT_NS, value, NULL, 0);
        for (int i = 0; r == 0 && i < SCHEME_COUNT; i++) {
                r = round_trip(&schemes[i], cpus, &value);
                if (r == 0)
                        sl_report_number(report, schemes[i].round_trip_key, SL_UNIT_NS, value, NULL, 0);
        }
        for (int i = 0; r == 0 && i < SCHEME_COUNT; i++) {
                r = throughput(&schemes[i], cpus, PASS, &batched);
                if (r == 0)
                        r = throughput(&schemes[i], cpus, 1, &one_by_one);
                if (r == 0) {
                        sl_report_number(report, schemes[i].batched_key, SL_UNIT_PER_SECOND, batched, NULL, 0);
                        sl_report_number(report, schemes[i].single_key, SL_UNIT_PER_SECOND, one_by_one, NULL, 0);
                }
                if (r == 0 && i == CACHED)
                        sl_report_number(
                                report, "completions_batched_over_one_by_one", SL_UNIT_TIMES, batched / one_by_one, NULL, 0);
                if (sl_bench_interrupted())
                        r = -EINTR;
        }
        if (r == 0)
                r = sl_floor_measure(cpus, &value);
        if (r == 0)
                sl_report_number(report, "floor_after_ns", SL_UNIT_NS, value, NULL, 0);
        return r;
}

int sl_bench_rings(int argc, char **argv)
{
        struct sl_report report;
        int cpus[2] = {-1, -1};
        double floor_ns = 0;
        bool json = false;
        int code = sl_bench_options(argc, argv, cpus, &json);

        if (code)
                return code;
        sl_report_init(&report, "rings", argc, argv);
        int r = cpus[0] < 0 ? sl_cores_pick(cpus) : 0;
        if (r == 0)
                r = measure(&report, cpus, &floor_ns);
        if (r < 0) {
                fprintf(stderr, "starling bench rings: %s\n",
                        r == -ENOTSUP ? "it needs two CPUs, this process may run on one" : strerror(-r));
                return 1;
        }
        sl_report_print(&report, json, floor_ns);
        return 0;
}
