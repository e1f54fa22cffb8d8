/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that is going to be killed: it does everything that a client can do, as fast as it can, until the end.
 *
 *     doomed-client SOCKET SEED
 */
#include "digits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define QUEUES 3u
#define JOBS   8u

struct doomed {
        struct starling_client *client;
        struct starling_queue *queues[QUEUES];
        struct starling_model *models[2];
        struct digits_data data;
        struct digits_job jobs[QUEUES][JOBS];
        bool flying[QUEUES][JOBS];
        uint64_t ids[QUEUES][JOBS];
        uint32_t seed;
};

static int die(const char *what, int status)
{
        /* The runtime may be gone when it is its turn to be killed. */
        if (status == -EPIPE)
                pause();
        fprintf(stderr, "doomed client: %s: %s\n", what, starling_strerror(status));
        return 1;
}

static int prepare(struct doomed *doomed, const char *socket)
{
        struct starling_options options = {
                .runtime = socket, .queue_pairs = QUEUES, .arena_bytes = 2 << 20, .timeout_ns = 60000000000ull};
        int r = starling_connect(&options, &doomed->client, NULL);

        for (uint32_t q = 0; q < QUEUES && r == 0; q++)
                r = starling_queue_open(doomed->client, &doomed->queues[q], NULL);
        if (r == 0)
                r = starling_model_open(doomed->client, "digits", &doomed->models[0], NULL);
        if (r == 0)
                r = starling_model_open(doomed->client, "lenet", &doomed->models[1], NULL);
        for (uint32_t i = 0; i < QUEUES * JOBS && r == 0; i++)
                r = digits_job_alloc(&doomed->jobs[i / JOBS][i % JOBS], &doomed->data, doomed->client);
        return r;
}

static int submit_some(struct doomed *doomed, uint32_t q)
{
        for (uint32_t job = 0; job < JOBS; job++) {
                struct starling_request request;
                int r;

                if (doomed->flying[q][job])
                        continue;
                request = digits_fill(&doomed->jobs[q][job], doomed->models[digits_random(&doomed->seed, 2)], &doomed->seed);
                request.user_data = job;
                request.priority = digits_random(&doomed->seed, STARLING_PRIORITIES);
                request.deadline_ns = digits_random(&doomed->seed, 4) ? 0 : starling_clock_ns() + 3000000;
                r = starling_submit(doomed->queues[q], &request, &doomed->ids[q][job]);
                if (r < 0 && r != -EAGAIN)
                        return r;
                doomed->flying[q][job] = r == 0;
        }
        return 0;
}

static int submit_noops(struct doomed *doomed, uint32_t q)
{
        struct starling_request noops[16];

        for (uint32_t i = 0; i < 16; i++)
                noops[i] = (struct starling_request){.flags = STARLING_NOOP, .user_data = UINT64_MAX};
        int r = starling_submit_many(doomed->queues[q], noops, 16, NULL);
        return r < 0 && r != -EAGAIN ? r : 0;
}

static int reap(struct doomed *doomed, uint32_t q)
{
        struct starling_completion completions[32];
        int n = digits_random(&doomed->seed, 2) ? starling_poll(doomed->queues[q], completions, 32)
                                                : starling_wait(doomed->queues[q], completions, 32, 1000000);

        for (int i = 0; i < n; i++)
                if (completions[i].user_data < JOBS)
                        doomed->flying[q][completions[i].user_data] = false;
        return n == -EPIPE || n == -EPROTO ? n : 0;
}

/* More memory than there is in the first region, so that others come. */
static int grow(struct doomed *doomed)
{
        void *block = starling_alloc(doomed->client, (1 + digits_random(&doomed->seed, 4)) << 20);
        int r = block ? 0 : -errno;

        if (block && digits_random(&doomed->seed, 4))
                starling_free(doomed->client, block);
        return r == -EDQUOT || r == -ENOMEM ? 0 : r;
}

static int live(struct doomed *doomed)
{
        uint32_t q = digits_random(&doomed->seed, QUEUES);

        switch (digits_random(&doomed->seed, 8)) {
        case 0:
        case 1:
        case 2:
                return submit_some(doomed, q);
        case 3:
                return submit_noops(doomed, q);
        case 4:
                starling_cancel(doomed->queues[q], doomed->ids[q][digits_random(&doomed->seed, JOBS)]);
                return 0;
        case 5:
                return digits_random(&doomed->seed, 16) ? 0 : grow(doomed);
        default:
                return reap(doomed, q);
        }
}

int main(int argc, char **argv)
{
        struct doomed doomed = {.seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1};
        int r = 0;

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (argc < 3 || !digits_read(&doomed.data, "digits"))
                return 2;
        r = prepare(&doomed, argv[1]);
        if (r < 0)
                return die("prepare", r);
        while (r == 0)
                r = live(&doomed);
        return die("live", r);
}
