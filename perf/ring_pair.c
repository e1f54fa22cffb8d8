/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_pair.h"

#include "base/bytes.h"
#include "pair.h"
#include "ticks.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#define SLOTS   256u /* as many as the queue pair of `bench noop` has */
#define WORDS   7
#define THE_END UINT64_MAX

struct entry {
        alignas(64) _Atomic uint32_t seq; /* index + 1 once the entry is whole */
        uint32_t spare;
        uint64_t words[WORDS];
};
static_assert(sizeof(struct entry) == SL_LINE_BYTES, "an entry is one line");

struct rings {
        alignas(128) struct entry there[SLOTS];
        alignas(128) struct entry back[SLOTS];
};

static inline void put(struct entry *ring, uint32_t index, const uint64_t words[WORDS])
{
        struct entry *entry = &ring[index % SLOTS];

        for (int i = 0; i < WORDS; i++)
                entry->words[i] = words[i];
        atomic_store_explicit(&entry->seq, index + 1, memory_order_release);
}

static inline void await(struct entry *ring, uint32_t index, uint64_t ret_words[WORDS])
{
        struct entry *entry = &ring[index % SLOTS];

        while (atomic_load_explicit(&entry->seq, memory_order_acquire) != index + 1)
                sl_relax();
        for (int i = 0; i < WORDS; i++)
                ret_words[i] = entry->words[i];
}

static int echo(void *memory, void *argument)
{
        struct rings *rings = memory;
        uint64_t words[WORDS] = {0};

        (void)argument;
        for (uint32_t index = 0; words[0] != THE_END; index++) {
                await(rings->there, index, words);
                put(rings->back, index, words);
        }
        return 0;
}

static void play(struct rings *rings, uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples)
{
        uint64_t words[WORDS] = {0};
        uint32_t index;

        for (index = 0; index < warm_up + rounds; index++) {
                uint64_t start = sl_ticks();

                put(rings->there, index, words);
                await(rings->back, index, words);
                if (index >= warm_up)
                        sl_latencies_add(samples, sl_ticks() - start);
        }
        words[0] = THE_END;
        put(rings->there, index, words);
}

int sl_ring_pair_measure(const int cpus[2], uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples)
{
        struct sl_pair pair;
        int r = sl_pair_start(&pair, cpus, sizeof(struct rings), echo, NULL);

        if (r < 0)
                return r;
        play(pair.memory, warm_up, rounds, samples);
        return sl_pair_end(&pair);
}
