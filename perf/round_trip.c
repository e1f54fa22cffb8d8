/* SPDX-License-Identifier: Apache-2.0 */
#include "round_trip.h"

#include "starling.h"
#include "ticks.h"

#include <errno.h>
#include <unistd.h>

#define BATCH         32u
#define PATIENCE      (1u << 16) /* polls between two looks at the clock */
#define ANSWER_WAIT   (5 * SL_NS_PER_SECOND)
#define CLOCK_ROUNDS  1024u
#define CLOCK_BATCHES 64u

static const struct starling_request noop = {.flags = STARLING_NOOP};

/* Polls until at least one has completed. Return: how many; -ETIMEDOUT, -errno. */
static int poll_some(struct starling_queue *queue, struct starling_completion *completions, uint32_t max)
{
        uint64_t until_ns = 0;

        for (uint32_t polls = 1;; polls++) {
                int n = starling_poll(queue, completions, max);

                if (n)
                        return n;
                if (polls % PATIENCE)
                        continue;
                if (until_ns == 0)
                        until_ns = sl_clock_ns() + ANSWER_WAIT;
                else if (sl_clock_ns() > until_ns)
                        return -ETIMEDOUT;
        }
}

static int spin_once(struct starling_queue *queue, const struct starling_request *request)
{
        struct starling_completion completion;
        int r = starling_submit(queue, request, NULL);

        if (r < 0)
                return r;
        r = poll_some(queue, &completion, 1);
        return r < 0 ? r : completion.status;
}

static int spin_many(struct starling_queue *queue, const struct starling_request *request, uint32_t rounds, uint64_t limit_ns,
        struct sl_latencies *samples)
{
        uint64_t until_ns = limit_ns ? sl_clock_ns() + limit_ns : UINT64_MAX;
        int r = 0;

        for (uint32_t i = 0; i < rounds && r == 0; i++) {
                uint64_t start = sl_ticks();

                r = spin_once(queue, request);
                sl_latencies_add(samples, sl_ticks() - start);
                if (i % CLOCK_ROUNDS == 0 && limit_ns && sl_clock_ns() > until_ns)
                        break;
        }
        return r;
}

static int warm_up_with(struct starling_queue *queue, const struct starling_request *request, uint32_t rounds)
{
        int r = 0;

        for (uint32_t i = 0; i < rounds && r == 0; i++)
                r = spin_once(queue, request);
        return r;
}

int sl_round_trip_spin(
        struct starling_queue *queue, uint32_t warm_up, uint32_t rounds, uint64_t limit_ns, struct sl_latencies *samples)
{
        int r = warm_up_with(queue, &noop, warm_up);

        return r < 0 ? r : spin_many(queue, &noop, rounds, limit_ns, samples);
}

int sl_round_trip_request(struct starling_queue *queue, const struct starling_request *request, uint32_t warm_up, uint32_t rounds,
        struct sl_latencies *samples)
{
        int r = warm_up_with(queue, request, warm_up);

        return r < 0 ? r : spin_many(queue, request, rounds, 0, samples);
}

int sl_round_trip_infer(
        struct starling_queue *queue, const struct starling_request *request, uint32_t rounds, struct sl_latencies *samples)
{
        int r = 0;

        for (uint32_t i = 0; i < rounds && r == 0; i++) {
                uint64_t start = sl_ticks();

                r = starling_infer(queue, request, NULL);
                sl_latencies_add(samples, sl_ticks() - start);
        }
        return r;
}

int sl_round_trip_sleep(struct starling_queue *queue, uint32_t rounds, uint32_t pause_us, struct sl_latencies *samples)
{
        for (uint32_t i = 0; i < rounds; i++) {
                struct starling_completion completion;

                usleep(pause_us);

                uint64_t start_ns = sl_clock_ns();
                int r = starling_submit(queue, &noop, NULL);

                if (r == 0)
                        r = starling_wait(queue, &completion, 1, ANSWER_WAIT);
                if (r < 0)
                        return r;
                if (completion.status < 0)
                        return completion.status;
                sl_latencies_add(samples, sl_clock_ns() - start_ns);
        }
        return 0;
}

/* One turn: publishes a batch when there is room, takes what has completed. Return: completed; -errno. */
static int turn(struct starling_queue *queue, const struct starling_request *requests, uint32_t depth, uint32_t *in_flight)
{
        struct starling_completion completions[2 * BATCH];
        int n;

        if (*in_flight + BATCH <= depth) {
                n = starling_submit_many(queue, requests, BATCH, NULL);
                if (n < 0)
                        return n;
                *in_flight += (uint32_t)n;
        }
        n = *in_flight + BATCH <= depth ? starling_poll(queue, completions, 2 * BATCH) : poll_some(queue, completions, 2 * BATCH);
        if (n < 0)
                return n;
        for (int i = 0; i < n; i++)
                if (completions[i].status < 0)
                        return completions[i].status;
        *in_flight -= (uint32_t)n;
        return n;
}

int sl_round_trip_throughput(struct starling_queue *queue, uint32_t depth, uint64_t duration_ns, double *ret_per_second)
{
        struct starling_request requests[BATCH];
        uint64_t start_ns = sl_clock_ns(), now_ns = start_ns, completed = 0;
        uint32_t in_flight = 0;
        int n = 0;

        for (uint32_t i = 0; i < BATCH; i++)
                requests[i] = noop;
        while (now_ns - start_ns < duration_ns) {
                for (uint32_t i = 0; i < CLOCK_BATCHES; i++) {
                        n = turn(queue, requests, depth, &in_flight);
                        if (n < 0)
                                return n;
                        completed += (uint64_t)n;
                }
                now_ns = sl_clock_ns();
        }
        *ret_per_second = (double)completed * (double)SL_NS_PER_SECOND / (double)(now_ns - start_ns);
        while (in_flight) {
                struct starling_completion completions[2 * BATCH];

                n = poll_some(queue, completions, 2 * BATCH);
                if (n < 0)
                        return n;
                in_flight -= (uint32_t)n;
        }
        return 0;
}
