/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_accumulator.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cuda/own/arguments.h"
#include "cuda/own/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Runs of copies that are on their way, each behind an event. */
#define TICKETS 32u

/* Plans of combinations that are kept: one for each rule and size that is asked for. */
#define PLANS 16u

struct combination_plan {
        enum sl_own_rule rule;
        uint32_t n_members, samples, classes;
        float weights[SL_OWN_MEMBERS_MAX];
        struct sl_own_plan plan;
        bool there;
};

struct sl_gpu_accumulator {
        struct sl_gpu *gpu;
        const struct sl_cuda_driver *driver;
        const struct sl_greens *greens;
        const struct sl_cuda_own *own;
        CUstream stream;
        CUdeviceptr room;
        struct sl_held_segments held;
        CUevent events[TICKETS]; /* of ticket t: t % TICKETS */
        uint64_t queued, ended;  /* tickets, ever */
        struct combination_plan plans[PLANS];
        uint32_t next_plan; /* the one that makes room */
        CUresult lost;
};

SL_DEFINE_CLEANUP(struct sl_gpu_accumulator *, sl_gpu_accumulator_free)

/* ---- what it is made of ---- */

static int accumulator_init(struct sl_gpu_accumulator *a, struct sl_error *error)
{
        CUresult result = CUDA_SUCCESS;
        int r = sl_held_segments_init(&a->held, SL_GPU_ACCUMULATOR_BYTES);

        if (r < 0)
                return sl_error_set(error, -r, "no memory for an accumulator");
        r = sl_gpu_allocate(a->gpu, SL_GPU_ACCUMULATION, SL_GPU_ACCUMULATOR_BYTES, "ensembles", &a->room, error);
        if (r == 0)
                r = sl_green_stream(a->greens, NULL, 0, &a->stream, error);
        for (uint32_t i = 0; i < TICKETS && r == 0 && result == CUDA_SUCCESS; i++)
                result = a->driver->event_create(&a->events[i], CU_EVENT_DISABLE_TIMING);
        return r < 0 ? r : sl_cuda_check(a->driver, result, error, "the events of an accumulator");
}

int sl_gpu_accumulator_new(struct sl_gpu *gpu, const struct sl_greens *greens, const struct sl_cuda_own *own,
        struct sl_gpu_accumulator **ret_accumulator, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_gpu_accumulator_free) struct sl_gpu_accumulator *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return sl_error_set(error, ENOMEM, "no memory for an accumulator");
        a->gpu = gpu;
        a->driver = gpu->device->driver;
        a->greens = greens;
        a->own = own;
        r = accumulator_init(a, error);
        if (r == 0)
                *ret_accumulator = sl_take(a);
        return r;
}

struct sl_gpu_accumulator *sl_gpu_accumulator_free(struct sl_gpu_accumulator *a)
{
        if (!a)
                return NULL;
        if (a->stream)
                a->driver->stream_synchronize(a->stream);
        for (uint32_t i = 0; i < TICKETS; i++)
                if (a->events[i])
                        a->driver->event_destroy(a->events[i]);
        for (uint32_t i = 0; i < PLANS; i++)
                if (a->plans[i].there)
                        sl_cuda_own_plan_deinit(&a->plans[i].plan);
        sl_green_end_stream(a->greens, NULL, a->stream);
        if (a->room)
                sl_gpu_release(a->gpu, SL_GPU_ACCUMULATION, SL_GPU_ACCUMULATOR_BYTES, a->room);
        sl_held_segments_deinit(&a->held);
        free(a);
        return NULL;
}

/* ---- combinations ---- */

static struct sl_own_combination combination_of(const struct sl_held_shape *shape, uint32_t output, const float *weights)
{
        uint64_t elements = sl_held_bytes(shape, output, shape->samples) / sizeof(float);
        uint32_t classes = shape->outputs[output].classes;

        return (struct sl_own_combination){.rule = shape->rule,
                .n_members = shape->n_members,
                .weights = weights,
                .samples = (uint32_t)(elements / classes),
                .classes = classes};
}

static bool is_same(const struct combination_plan *made, const struct sl_own_combination *wanted)
{
        return made->there && made->rule == wanted->rule && made->n_members == wanted->n_members &&
               made->samples == wanted->samples && made->classes == wanted->classes &&
               !memcmp(made->weights, wanted->weights, wanted->n_members * sizeof(float));
}

/* NULL: there can be none. Only what has not been asked for lately takes memory of the host. */
static const struct sl_own_plan *plan_of(struct sl_gpu_accumulator *a, const struct sl_own_combination *wanted)
{
        struct combination_plan *made = &a->plans[a->next_plan];
        struct sl_own_plan plan;

        for (uint32_t i = 0; i < PLANS; i++)
                if (is_same(&a->plans[i], wanted))
                        return &a->plans[i].plan;
        if (sl_cuda_own_plan_combine(wanted, &plan) < 0)
                return NULL;
        if (made->there)
                sl_cuda_own_plan_deinit(&made->plan);
        *made = (struct combination_plan){.rule = wanted->rule,
                .n_members = wanted->n_members,
                .samples = wanted->samples,
                .classes = wanted->classes,
                .plan = plan,
                .there = true};
        memcpy(made->weights, wanted->weights, wanted->n_members * sizeof(float));
        a->next_plan = (a->next_plan + 1) % PLANS;
        return &made->plan;
}

_Static_assert(PLANS >= SL_HELD_OUTPUTS_MAX, "those of one segment are there together");

static bool find_plans(struct sl_gpu_accumulator *a, const struct sl_held_segment *segment,
        const struct sl_own_plan *ret_plans[SL_HELD_OUTPUTS_MAX])
{
        float weights[SL_OWN_MEMBERS_MAX] = {0};

        for (const struct sl_held_piece *piece = segment->pieces; piece; piece = piece->next)
                weights[piece->member] = piece->weight;
        for (uint32_t i = 0; i < segment->shape.n_outputs; i++) {
                const struct sl_own_combination wanted = combination_of(&segment->shape, i, weights);

                ret_plans[i] = plan_of(a, &wanted);
                if (!ret_plans[i])
                        return false;
        }
        return true;
}

static CUresult combine(struct sl_gpu_accumulator *a, const struct sl_held_segment *segment,
        const struct sl_own_plan *const plans[SL_HELD_OUTPUTS_MAX])
{
        uint32_t n_members = segment->shape.n_members;
        CUdeviceptr predictions[SL_OWN_MEMBERS_MAX];
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < segment->shape.n_outputs && result == CUDA_SUCCESS; i++) {
                for (uint32_t m = 0; m < n_members; m++)
                        predictions[m] = a->room + sl_held_place(segment, m, i);
                result = sl_cuda_own_combine(
                        a->own, plans[i], predictions, a->room + sl_held_place(segment, n_members, i), a->stream);
        }
        return result;
}

/* ---- what leaves ---- */

/* The samples of the piece, of that member's outputs, or of the result. */
static CUresult copy_out(struct sl_gpu_accumulator *a, const struct sl_held_piece *piece, uint32_t member)
{
        const struct sl_held_shape *shape = &piece->segment->shape;
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < shape->n_outputs && result == CUDA_SUCCESS; i++)
                result = a->driver->memcpy_dtoh_async(piece->outputs[i],
                        a->room + sl_held_place(piece->segment, member, i) + sl_held_skip(shape, i, piece->first),
                        sl_held_bytes(shape, i, piece->samples), a->stream);
        return result;
}

/* What failed half way leaves the stream in a state that nobody knows. */
static void end_ticket(struct sl_gpu_accumulator *a, CUresult result)
{
        if (result == CUDA_SUCCESS)
                result = a->driver->event_record(a->events[a->queued % TICKETS], a->stream);
        if (result != CUDA_SUCCESS)
                a->lost = result;
        a->queued++;
}

static void leave_as_one(struct sl_gpu_accumulator *a, struct sl_held_segment *segment)
{
        const struct sl_own_plan *plans[SL_HELD_OUTPUTS_MAX];
        CUresult result;

        if (!find_plans(a, segment, plans)) {
                sl_held_let_go(segment);
                return;
        }
        segment->state = SL_SEGMENT_WHOLE;
        result = combine(a, segment, plans);
        for (struct sl_held_piece *piece = segment->pieces; piece; piece = piece->next) {
                if (piece->member == 0 && result == CUDA_SUCCESS)
                        result = copy_out(a, piece, segment->shape.n_members);
                piece->state = SL_HELD_LEAVING;
                piece->ticket = a->queued;
        }
        end_ticket(a, result);
}

static void leave_apart(struct sl_gpu_accumulator *a, struct sl_held_segment *segment)
{
        CUresult result = CUDA_SUCCESS;
        bool any = false;

        for (struct sl_held_piece *piece = segment->pieces; piece; piece = piece->next) {
                if (piece->state != SL_HELD_THERE)
                        continue;
                if (result == CUDA_SUCCESS)
                        result = copy_out(a, piece, piece->member);
                piece->state = SL_HELD_LEAVING;
                piece->ticket = a->queued;
                any = true;
        }
        if (any)
                end_ticket(a, result);
}

static bool has_ticket(const struct sl_gpu_accumulator *a)
{
        return a->queued - a->ended < TICKETS;
}

static void look_at_tickets(struct sl_gpu_accumulator *a)
{
        while (a->ended != a->queued && !a->lost) {
                CUresult result = a->driver->event_query(a->events[a->ended % TICKETS]);

                if (result == CUDA_ERROR_NOT_READY)
                        return;
                if (result != CUDA_SUCCESS)
                        a->lost = result;
                else
                        a->ended++;
        }
}

static bool settle(const struct sl_gpu_accumulator *a, struct sl_held_segment *segment)
{
        bool any = false;

        for (struct sl_held_piece *piece = segment->pieces; piece; piece = piece->next) {
                if (piece->state != SL_HELD_LEAVING || piece->ticket >= a->ended)
                        continue;
                piece->state = SL_HELD_SETTLED;
                piece->combined = segment->state == SL_SEGMENT_WHOLE;
                any = true;
        }
        return any;
}

bool sl_gpu_accumulator_go_on(struct sl_gpu_accumulator *a, uint64_t now_ns)
{
        uint64_t queued = a->queued;
        bool any = false;

        look_at_tickets(a);
        for (uint32_t i = 0; i < a->held.n_used && !a->lost; i++) {
                struct sl_held_segment *segment = &a->held.at[i];

                if (!segment->pieces)
                        continue;
                any |= settle(a, segment);
                if (!has_ticket(a))
                        continue;
                if (sl_held_look(segment, now_ns))
                        leave_as_one(a, segment);
                else if (segment->state == SL_SEGMENT_APART)
                        leave_apart(a, segment);
        }
        return any || a->queued != queued;
}

/* ---- pieces that come and go ---- */

bool sl_gpu_accumulator_come(
        struct sl_gpu_accumulator *a, const struct sl_held_shape *shape, struct sl_held_piece *piece, void **ret_outputs)
{
        if (!sl_held_come(&a->held, shape, piece))
                return false;
        for (uint32_t i = 0; i < shape->n_outputs; i++)
                ret_outputs[i] =
                        (void *)(a->room + sl_held_place(piece->segment, piece->member, i) + sl_held_skip(shape, i, piece->first));
        return true;
}

void sl_gpu_accumulator_drop(struct sl_gpu_accumulator *a, struct sl_held_piece *piece)
{
        if (piece->state == SL_HELD_LEAVING && !a->lost)
                a->driver->stream_synchronize(a->stream);
        sl_held_drop(&a->held, piece);
}

int sl_gpu_accumulator_lost(const struct sl_gpu_accumulator *a, struct sl_error *error)
{
        if (!a->lost)
                return 0;
        (void)sl_cuda_check(a->driver, a->lost, error, "%s is lost", a->gpu->memory.device);
        return -EIO;
}
