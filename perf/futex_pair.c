/* SPDX-License-Identifier: Apache-2.0 */
#include "futex_pair.h"

#include "latencies.h"
#include "pair.h"
#include "ticks.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THE_END UINT32_MAX

struct words {
        alignas(128) _Atomic uint32_t ping;
        alignas(128) _Atomic uint32_t pong;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
        struct timespec limit = {.tv_sec = 1};

        syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
        atomic_store(word, value);
        futex_wake(word);
}

/* Waits until the word is no longer @seen; whoever waits always sleeps, as nothing spins here. */
static uint32_t next_of(_Atomic uint32_t *word, uint32_t seen)
{
        uint32_t value;

        while ((value = atomic_load(word)) == seen)
                futex_wait(word, seen);
        return value;
}

static int answer(void *memory, void *argument)
{
        struct words *words = memory;
        uint32_t seen = 0;

        (void)argument;
        while ((seen = next_of(&words->ping, seen)) != THE_END)
                set(&words->pong, seen);
        return 0;
}

static void play(struct words *words, uint32_t rounds, uint32_t pause_us, struct sl_latencies *samples)
{
        for (uint32_t i = 1; i <= rounds; i++) {
                if (pause_us)
                        usleep(pause_us);

                uint64_t start_ns = sl_clock_ns();

                set(&words->ping, i);
                while (next_of(&words->pong, i - 1) != i)
                        ;
                sl_latencies_add(samples, sl_clock_ns() - start_ns);
        }
        set(&words->ping, THE_END);
}

int sl_futex_pair_measure(const int cpus[2], uint32_t rounds, uint32_t pause_us, double *ret_p50_ns)
{
        struct sl_latencies samples;
        struct sl_pair pair;
        int r = sl_latencies_init(&samples);

        if (r == 0)
                r = sl_pair_start(&pair, cpus, sizeof(struct words), answer, NULL);
        if (r == 0) {
                play(pair.memory, rounds, pause_us, &samples);
                r = sl_pair_end(&pair);
        }
        if (r == 0) {
                *ret_p50_ns = sl_latencies_at(&samples, 0.5);
        }
        sl_latencies_deinit(&samples);
        return r;
}
