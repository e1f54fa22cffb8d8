/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/relax.h"
#include "crowd.h"
#include "starling.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ARENA_BYTES (4u << 20) /* 64 requests of the small model; it grows when they are more */
#define REAP        64
#define LOOK_US     1000u

struct place {
        struct starling_tensor input, output;
        uint64_t due_ns;
};

struct member {
        const struct sl_crowd_options *options;
        struct sl_crowd_load load;
        struct sl_crowd_counts counts;
        struct starling_client *client;
        struct starling_model *model;
        struct starling_queue *queue;
        struct place *places;
        uint32_t *free_places, n_free;
        struct starling_request *batch; /* room for as many as there are places */
        uint32_t *batch_places;
        uint64_t random;
        uint32_t number;
        bool spins;
};

/* ---- set-up ---- */

/* The model has one input and one output of float32; the batch axis is one sample. */
static int make_tensor(const struct member *member, const struct starling_port *port, struct starling_tensor *ret_tensor)
{
        uint32_t dims[STARLING_RANK_MAX];

        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = port->dims[i] < 0 ? 1u : (uint32_t)port->dims[i];
        int r = starling_tensor_alloc(member->client, port->dtype, port->rank, dims, ret_tensor);
        if (r == 0)
                memset(ret_tensor->data, 0, ret_tensor->bytes);
        return r;
}

static int make_places(struct member *member)
{
        const struct starling_model_info *info = starling_model_describe(member->model);
        uint32_t n = member->options->depth;
        int r = 0;

        member->places = calloc(n, sizeof(*member->places));
        member->free_places = calloc(n, sizeof(*member->free_places));
        member->batch = calloc(n, sizeof(*member->batch));
        member->batch_places = calloc(n, sizeof(*member->batch_places));
        if (!member->places || !member->free_places || !member->batch || !member->batch_places)
                return -ENOMEM;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = make_tensor(member, &info->inputs[0], &member->places[i].input);
                if (r == 0)
                        r = make_tensor(member, &info->outputs[0], &member->places[i].output);
                member->free_places[member->n_free++] = i;
        }
        return r;
}

static int attach(struct member *member, struct starling_error *error)
{
        const struct starling_options options = {
                .runtime = member->options->runtime,
                .label = "bench-crowd",
                .queue_pairs = 1,
                .queue_depth = member->options->depth,
                .tensors_per_request = 2,
                .arena_bytes = ARENA_BYTES,
                .timeout_ns = SL_NS_PER_SECOND,
        };
        int r = starling_connect(&options, &member->client, error);

        if (r == 0)
                r = starling_model_open(member->client, member->options->model, &member->model, error);
        if (r == 0)
                r = starling_queue_open(member->client, &member->queue, error);
        return r < 0 ? r : make_places(member);
}

/* ---- counting ---- */

static bool is_measured(const struct member *member, uint64_t due_ns)
{
        return due_ns >= member->load.measured_from_ns && due_ns < member->load.until_ns;
}

static void count(struct member *member, uint64_t due_ns, enum sl_crowd_end end)
{
        if (is_measured(member, due_ns))
                member->counts.ends[end]++;
}

static enum sl_crowd_end end_of(const struct member *member, int status, uint64_t due_ns, uint64_t now_ns)
{
        switch (-status) {
        case 0:
                return member->load.deadline_ns && now_ns > due_ns + member->load.deadline_ns ? SL_CROWD_LATE : SL_CROWD_IN_TIME;
        case ETIME:
                return SL_CROWD_EXPIRED;
        case EBUSY:
                return SL_CROWD_BUSY;
        case EDQUOT:
                return SL_CROWD_QUOTA;
        default:
                return SL_CROWD_OTHER;
        }
}

static void read_usage(uint64_t *ret_cpu_ns, uint64_t *ret_sleeps)
{
        struct timespec cpu;
        struct rusage usage;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        getrusage(RUSAGE_SELF, &usage);
        *ret_cpu_ns = (uint64_t)cpu.tv_sec * SL_NS_PER_SECOND + (uint64_t)cpu.tv_nsec;
        *ret_sleeps = (uint64_t)usage.ru_nvcsw;
}

/* ---- sending and reaping ---- */

static void prepare(struct member *member, uint32_t n, uint64_t due_ns)
{
        uint32_t index = member->free_places[--member->n_free];
        struct place *place = &member->places[index];

        place->due_ns = due_ns;
        member->batch_places[n] = index;
        member->batch[n] = (struct starling_request){
                .model = member->model,
                .inputs = &place->input,
                .n_inputs = 1,
                .outputs = &place->output,
                .n_outputs = 1,
                .deadline_ns = member->load.deadline_ns ? due_ns + member->load.deadline_ns : 0,
                .user_data = index,
        };
}

static int send(struct member *member, uint32_t n)
{
        return n ? starling_submit_many(member->queue, member->batch, n, NULL) : 0;
}

/* As starling_wait(), but without a look at the advice. */
static int poll_until(struct member *member, struct starling_completion *ret_completions, uint64_t timeout_ns)
{
        uint64_t until_ns = sl_clock_ns() + timeout_ns;
        int n;

        do
                n = starling_poll(member->queue, ret_completions, REAP);
        while (n == 0 && sl_clock_ns() < until_ns);
        return n;
}

/* Return: completions taken; 0 none in time; -errno. */
static int reap(struct member *member, uint64_t timeout_ns)
{
        struct starling_completion completions[REAP];
        int n = member->spins ? poll_until(member, completions, timeout_ns)
                              : starling_wait(member->queue, completions, REAP, timeout_ns);

        if (n == -ETIMEDOUT || n == -ENODATA || n == -EINTR)
                return 0;
        uint64_t now_ns = sl_clock_ns();
        for (int i = 0; i < n; i++) {
                uint32_t index = (uint32_t)completions[i].user_data;
                uint64_t due_ns = member->places[index].due_ns;

                count(member, due_ns, end_of(member, completions[i].status, due_ns, now_ns));
                member->free_places[member->n_free++] = index;
        }
        return n;
}

/* ---- loads ---- */

static void sleep_until(uint64_t ns)
{
        const struct timespec time = {.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void wait_until(const struct member *member, uint64_t ns)
{
        if (!member->spins)
                sleep_until(ns);
        while (sl_clock_ns() < ns)
                sl_relax();
}

/* xorshift; in (0, 1]. */
static double uniform(struct member *member)
{
        member->random ^= member->random << 13;
        member->random ^= member->random >> 7;
        member->random ^= member->random << 17;
        return ((double)(member->random >> 11) + 1) / 9007199254740992.0;
}

static uint64_t next_gap_ns(struct member *member)
{
        return (uint64_t)(-log(uniform(member)) / member->load.rate * (double)SL_NS_PER_SECOND);
}

/* Sends what is due. */
static int send_due(struct member *member, uint64_t *due_ns, uint64_t now_ns)
{
        uint32_t n = 0;

        while (*due_ns <= now_ns && *due_ns < member->load.until_ns) {
                member->counts.due += is_measured(member, *due_ns);
                if (member->n_free)
                        prepare(member, n++, *due_ns);
                else
                        count(member, *due_ns, SL_CROWD_NO_ROOM);
                *due_ns += next_gap_ns(member);
        }
        return send(member, n);
}

static int open_loop(struct member *member)
{
        uint64_t due_ns = member->load.start_ns + next_gap_ns(member), tick_ns = member->load.start_ns, now_ns;
        int r = 0;

        while (r >= 0 && (now_ns = sl_clock_ns()) < member->load.until_ns) {
                if (now_ns >= tick_ns && now_ns >= due_ns) {
                        r = send_due(member, &due_ns, now_ns);
                        tick_ns = now_ns + member->load.tick_ns;
                        continue;
                }
                uint64_t next_ns = due_ns > tick_ns ? due_ns : tick_ns;

                if (next_ns > member->load.until_ns)
                        next_ns = member->load.until_ns;
                if (member->n_free < member->options->depth)
                        r = reap(member, next_ns - now_ns);
                else
                        wait_until(member, next_ns);
        }
        return r < 0 ? r : 0;
}

static int closed_loop(struct member *member)
{
        uint64_t now_ns;
        int r = 0;

        while (r >= 0 && (now_ns = sl_clock_ns()) < member->load.until_ns) {
                uint32_t n = 0;

                while (member->options->depth - member->n_free < member->load.in_flight && member->n_free)
                        prepare(member, n++, now_ns);
                r = send(member, n);
                if (r >= 0)
                        r = reap(member, member->load.until_ns - now_ns);
        }
        return r < 0 ? r : 0;
}

static int drain(struct member *member)
{
        int r = 0;

        while (r >= 0 && member->n_free < member->options->depth)
                r = reap(member, SL_NS_PER_SECOND);
        return r < 0 ? r : 0;
}

static int do_load(struct member *member, const struct sl_crowd_load *load)
{
        uint64_t cpu_ns, sleeps;

        member->load = *load;
        member->spins = member->number < load->spinners;
        member->counts = (struct sl_crowd_counts){0};
        sleep_until(load->start_ns);
        read_usage(&cpu_ns, &sleeps);
        int r = load->rate > 0 ? open_loop(member) : closed_loop(member);
        read_usage(&member->counts.cpu_ns, &member->counts.sleeps);
        member->counts.cpu_ns -= cpu_ns;
        member->counts.sleeps -= sleeps;
        return r < 0 ? r : drain(member);
}

static int do_loads(struct member *member, struct sl_crowd_board *board, struct sl_crowd_member *place)
{
        uint32_t number = 0, wanted;
        int r = 0;

        while (r == 0) {
                while ((wanted = atomic_load_explicit(&board->load_number, memory_order_acquire)) == number)
                        usleep(LOOK_US);
                if (wanted == UINT32_MAX)
                        return 0;
                number = wanted;
                r = do_load(member, &board->load);
                place->counts = member->counts;
                atomic_store_explicit(&place->done, r < 0 ? UINT32_MAX : number, memory_order_release);
        }
        return r;
}

int sl_crowd_member_run(const struct sl_crowd_options *options, struct sl_crowd_board *board, uint32_t number)
{
        struct member member = {.options = options, .number = number, .random = 0x9e3779b97f4a7c15ull * (number + 1)};
        struct sl_crowd_member *place = &board->members[number];
        struct starling_error error = {0};
        int r = attach(&member, &error);

        if (r == 0)
                r = do_loads(&member, board, place);
        if (r < 0) {
                fprintf(stderr, "starling bench: client %u: %s\n", number, error.text[0] ? error.text : starling_strerror(r));
                atomic_store_explicit(&place->done, UINT32_MAX, memory_order_release);
        }
        starling_close(member.client);
        return r < 0;
}
