/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What members make of segments, held on a device that does things late and in any order: a segment of which all is there is
 * combined as the host combines it, one of which something is missing leaves member by member, and nothing stays behind.
 */
#include "arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "combine.h"
#include "cuda/own/own.h"
#include "gpu_accumulator.h"
#include "host/kernels.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS  4u
#define SAMPLES  24u
#define CLASSES  7u
#define PIECES   6u /* of a member at most */
#define SEGMENTS 5u /* at once */

static struct sl_cuda_driver driver;
static struct sl_cuda_device device;
static struct sl_gpu gpu;
static struct sl_greens greens;
static struct sl_cuda_own own;
static struct sl_gpu_accumulator *accumulator;

static void begin(uint64_t seed)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        options.seed = seed;
        options.kernels = host_kernels;
        options.n_kernels = SL_OWN_KERNEL_COUNT;
        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_init(&gpu, &device, 0, &error), 0, "%s", error.text);
        cr_assert_eq(sl_greens_init(&greens, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cuda_own_open(&driver, &own, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_accumulator_new(&gpu, &greens, &own, &accumulator, &error), 0, "%s", error.text);
        cr_expect_eq(gpu.memory.used[SL_GPU_ACCUMULATION], SL_GPU_ACCUMULATOR_BYTES);
}

static void finish(void)
{
        sl_gpu_accumulator_free(accumulator);
        sl_cuda_own_close(&own);
        cr_expect_eq(sl_gpu_memory_used(&gpu.memory), 0, "the book is not empty");
        sl_cuda_device_close(&device);
        cr_expect_eq(fake_cuda_held(), 0, "%u things of the device are left", fake_cuda_held());
}

/* One member's prediction of consecutive samples. */
struct piece {
        struct sl_held_piece held;
        enum { COMING, HERE, MADE, GONE } state;
        bool fails, stays;
        void *places[1], *there[1];
};

struct segment {
        bool busy, whole, combined;
        enum sl_rule rule;
        struct sl_held_shape shape;
        float weights[MEMBERS];
        float made[MEMBERS][SAMPLES * CLASSES], got[MEMBERS][SAMPLES * CLASSES];
        uint32_t n_pieces, n_gone;
        struct piece pieces[MEMBERS * PIECES];
};

static uint32_t below(uint64_t *random, uint32_t n)
{
        return (uint32_t)(sl_split_mix_next(random) >> 33) % n;
}

/* The others are combined on the host. */
static const enum sl_rule rules[] = {
        SL_RULE_MEAN, SL_RULE_WEIGHTED_MEAN, SL_RULE_MAJORITY_VOTE, SL_RULE_GEOMETRIC_MEAN, SL_RULE_MAXIMUM};

static uint32_t own_rule(enum sl_rule rule)
{
        return rule == SL_RULE_MEAN            ? SL_OWN_RULE_MEAN
               : rule == SL_RULE_WEIGHTED_MEAN ? SL_OWN_RULE_WEIGHTED_SUM
               : rule == SL_RULE_MAXIMUM       ? SL_OWN_RULE_MAXIMUM
               : rule == SL_RULE_MAJORITY_VOTE ? SL_OWN_RULE_MAJORITY_VOTE
                                               : SL_OWN_RULE_GEOMETRIC_MEAN;
}

static void cut_member(struct segment *s, uint32_t member, uint64_t *random)
{
        uint32_t first = 0, n = 0;

        while (first < s->shape.samples) {
                struct piece *piece = &s->pieces[s->n_pieces++];
                uint32_t left = s->shape.samples - first, samples = ++n == PIECES ? left : 1 + below(random, left);

                memset(piece, 0, sizeof(*piece));
                piece->held.member = member;
                piece->held.first = first;
                piece->held.samples = samples;
                piece->held.weight = s->weights[member];
                piece->places[0] = &s->got[member][first * CLASSES];
                piece->held.outputs = piece->places;
                first += samples;
        }
}

/* @failing: of 100 pieces. */
static void open_segment(struct segment *s, uint32_t id, uint64_t *random, uint32_t failing)
{
        s->busy = true;
        s->n_pieces = s->n_gone = 0;
        s->whole = s->combined = true;
        s->rule = rules[below(random, sizeof(rules) / sizeof(rules[0]))];
        s->shape = (struct sl_held_shape){.segment = id,
                .n_members = 2 + below(random, MEMBERS - 1),
                .samples = 1 + below(random, SAMPLES),
                .rule = own_rule(s->rule),
                .n_outputs = 1};
        s->shape.outputs[0].sample_bytes = CLASSES * sizeof(float);
        s->shape.outputs[0].classes = CLASSES;
        s->shape.outputs[0].batched = true;
        for (uint32_t m = 0; m < s->shape.n_members; m++) {
                s->weights[m] = (float)(1 + below(random, 9)) / 10;
                for (uint32_t i = 0; i < SAMPLES * CLASSES; i++)
                        s->made[m][i] = (float)(1 + below(random, 1000)) / 1000;
                memset(s->got[m], 0xff, sizeof(s->got[m]));
                cut_member(s, m, random);
        }
        for (uint32_t i = 0; i < s->n_pieces; i++)
                s->pieces[i].fails = below(random, 100) < failing;
}

static void expect_combined(const struct segment *s)
{
        float wanted[SAMPLES * CLASSES];
        const float *predictions[MEMBERS];

        for (uint32_t m = 0; m < s->shape.n_members; m++)
                predictions[m] = s->made[m];
        sl_combine(&(struct sl_combination){.rule = s->rule,
                .n_members = s->shape.n_members,
                .weights = s->weights,
                .predictions = predictions,
                .samples = s->shape.samples,
                .classes = CLASSES,
                .output = wanted});
        for (uint32_t i = 0; i < s->shape.samples * CLASSES; i++)
                if (s->rule == SL_RULE_GEOMETRIC_MEAN)
                        cr_assert_float_eq(s->got[0][i], wanted[i], 1e-6, "rule %u, element %u", s->rule, i);
                else
                        cr_assert_eq(s->got[0][i], wanted[i], "rule %u, element %u: %a, not %a", s->rule, i, (double)s->got[0][i],
                                (double)wanted[i]);
}

static void expect_own(const struct segment *s, const struct piece *piece)
{
        uint32_t first = piece->held.first * CLASSES, n = piece->held.samples * CLASSES;

        cr_assert_arr_eq(&s->got[piece->held.member][first], &s->made[piece->held.member][first], n * sizeof(float));
}

static void piece_comes(struct segment *s, struct piece *piece)
{
        piece->stays = sl_gpu_accumulator_come(accumulator, &s->shape, &piece->held, piece->there);
        piece->state = HERE;
}

/* As a worker's streams would have done it. */
static void piece_is_made(struct segment *s, struct piece *piece, uint64_t now_ns)
{
        const float *made = &s->made[piece->held.member][piece->held.first * CLASSES];
        size_t bytes = piece->held.samples * CLASSES * sizeof(float);

        piece->state = MADE;
        if (piece->stays && piece->fails)
                sl_held_failed(&piece->held);
        else if (piece->stays)
                memcpy(piece->there[0], made, bytes);
        else
                memcpy(piece->places[0], made, bytes);
        if (piece->stays && !piece->fails)
                sl_held_made(&piece->held, now_ns);
}

static void look_at_piece(struct segment *s, struct piece *piece)
{
        bool combined = piece->held.combined;

        if (piece->stays && piece->held.state != SL_HELD_SETTLED)
                return;
        if (!piece->fails && !combined)
                expect_own(s, piece);
        s->combined &= combined;
        s->whole &= !piece->fails;
        if (piece->held.segment)
                sl_gpu_accumulator_drop(accumulator, &piece->held);
        piece->state = GONE;
        if (++s->n_gone == s->n_pieces)
                s->busy = false;
}

static void move_some(struct segment *s, uint64_t *random, uint64_t now_ns)
{
        struct piece *piece = &s->pieces[below(random, s->n_pieces)];

        switch (piece->state) {
        case COMING:
                piece_comes(s, piece);
                break;
        case HERE:
                piece_is_made(s, piece, now_ns);
                break;
        case MADE:
                look_at_piece(s, piece);
                break;
        case GONE:
                break;
        }
}

/* Return: how many segments were combined on the device. */
static uint32_t run_traffic(uint64_t seed, uint32_t rounds, uint32_t failing, uint64_t step_ns)
{
        static struct segment segments[SEGMENTS];
        uint64_t random = seed, now_ns = 1;
        uint32_t n_combined = 0, id = 0;
        bool busy = true;

        memset(segments, 0, sizeof(segments));
        for (uint32_t round = 0; round < rounds || busy; round++) {
                struct segment *s = &segments[below(&random, SEGMENTS)];

                now_ns += step_ns;
                for (uint32_t i = below(&random, 3); i > 0; i--)
                        fake_cuda_step();
                sl_gpu_accumulator_go_on(accumulator, now_ns);
                if (!s->busy && round < rounds)
                        open_segment(s, id++, &random, failing);
                if (s->busy) {
                        move_some(s, &random, now_ns);
                        if (!s->busy && s->combined) {
                                cr_assert(s->whole);
                                expect_combined(s);
                                n_combined++;
                        }
                }
                busy = false;
                for (uint32_t i = 0; i < SEGMENTS; i++)
                        busy |= segments[i].busy;
        }
        cr_assert_eq(sl_gpu_accumulator_lost(accumulator, NULL), 0);
        return n_combined;
}

Test(accumulator, combines_what_is_there_as_the_host_does)
{
        for (uint64_t seed = 1; seed <= 4; seed++) {
                begin(seed);
                cr_expect_gt(run_traffic(seed, 6000, 0, 0), 50, "segments of which nothing fails and nobody is late");
                finish();
        }
}

Test(accumulator, lets_go_of_segments_whose_members_fail_or_are_late)
{
        for (uint64_t seed = 1; seed <= 4; seed++) {
                begin(seed);
                cr_expect_gt(run_traffic(seed, 6000, 2, SL_HELD_NS / 200), 5);
                finish();
        }
}

/* Each call, each time: it is refused with a line, and nothing stays. */
Test(accumulator, that_does_not_fit_leaves_nothing)
{
        static const enum fake_cuda_call calls[] = {
                FAKE_CUDA_mem_alloc, FAKE_CUDA_event_create, FAKE_CUDA_stream_create_with_priority, FAKE_CUDA_mem_get_info};

        begin(1);
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                for (uint32_t nth = 1, failed = 1; failed; nth++) {
                        struct sl_gpu_accumulator *other;
                        struct sl_error error = {""};
                        uint32_t held = fake_cuda_held();

                        fake_cuda_fail(calls[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
                        failed = sl_gpu_accumulator_new(&gpu, &greens, &own, &other, &error) < 0;
                        fake_cuda_fail(calls[i], 1u << 30, CUDA_SUCCESS);
                        cr_assert(!failed || error.text[0]);
                        if (!failed)
                                sl_gpu_accumulator_free(other);
                        cr_assert_eq(fake_cuda_held(), held, "call %zu, time %u", i, nth);
                        cr_assert_eq(gpu.memory.used[SL_GPU_ACCUMULATION], SL_GPU_ACCUMULATOR_BYTES);
                }
        finish();
}

/* ---- what is held, without a device ---- */

static struct sl_held_segments held;

static void setup(void)
{
        cr_assert_eq(sl_held_segments_init(&held, 16 * SL_PAGE_BYTES), 0);
}

static void teardown(void)
{
        cr_expect_eq(sl_arena_used(held.room), 0);
        sl_held_segments_deinit(&held);
}

TestSuite(held, .init = setup, .fini = teardown);

static struct sl_held_shape shape_of(uint32_t id, uint32_t samples, uint32_t floats)
{
        struct sl_held_shape shape = {.segment = id, .n_members = 2, .samples = samples, .n_outputs = 1};

        shape.outputs[0].sample_bytes = floats * sizeof(float);
        shape.outputs[0].classes = floats;
        shape.outputs[0].batched = true;
        return shape;
}

/* Whether the prediction stays. */
static bool come(struct sl_held_piece *piece, const struct sl_held_shape *shape, uint32_t member)
{
        *piece = (struct sl_held_piece){.member = member, .samples = shape->samples};
        return sl_held_come(&held, shape, piece);
}

Test(held, members_that_are_here_are_waited_for_and_those_that_are_not_for_a_while)
{
        const struct sl_held_shape shape = shape_of(7, 4, 10);
        struct sl_held_piece first, second;

        cr_assert(come(&first, &shape, 0));
        sl_held_made(&first, 1000);
        cr_expect(sl_held_waits(&first));
        cr_expect_not(sl_held_look(first.segment, 1000 + SL_HELD_NS));
        cr_expect(sl_held_waits(&first));
        cr_assert(come(&second, &shape, 1));
        cr_expect_not(sl_held_look(first.segment, 1000 + 1000 * SL_HELD_NS));
        cr_expect(sl_held_waits(&first), "the other one is being computed");
        sl_held_made(&second, 1000 + 1000 * SL_HELD_NS);
        cr_expect(sl_held_look(first.segment, 1000 + 1000 * SL_HELD_NS));
        sl_held_drop(&held, &first);
        sl_held_drop(&held, &second);

        cr_assert(come(&first, &shape, 0));
        sl_held_made(&first, 1000);
        cr_expect_not(sl_held_look(first.segment, 1001 + SL_HELD_NS));
        cr_expect_not(sl_held_waits(&first), "it is late");
        cr_expect_eq(first.segment->state, SL_SEGMENT_APART);
        cr_expect_not(come(&second, &shape, 1), "who comes now leaves by itself");
        sl_held_drop(&held, &first);
}

Test(held, without_room_each_leaves_by_itself)
{
        const struct sl_held_shape large = shape_of(1, 4, 1024), larger = shape_of(2, 4, 1024);
        struct sl_held_piece one, other, third;

        cr_assert(come(&one, &large, 0), "12 pages of 16");
        cr_expect_not(come(&other, &larger, 0));
        cr_expect_not(come(&third, &larger, 1), "nor does it wait for one that left");
        if (other.segment)
                sl_held_drop(&held, &other);
        if (third.segment)
                sl_held_drop(&held, &third);
        sl_held_drop(&held, &one);
        cr_assert(come(&other, &larger, 0));
        sl_held_drop(&held, &other);
}

Test(held, one_that_fails_lets_the_others_go_and_no_later_one_waits)
{
        const struct sl_held_shape shape = shape_of(3, 4, 10);
        struct sl_held_piece first, second;

        cr_assert(come(&first, &shape, 0));
        cr_assert(come(&second, &shape, 1));
        sl_held_made(&first, 5);
        sl_held_failed(&second);
        cr_expect_eq(second.state, SL_HELD_SETTLED);
        cr_expect_not(sl_held_waits(&first));
        cr_expect_eq(first.segment->state, SL_SEGMENT_APART);
        sl_held_drop(&held, &second);
        sl_held_drop(&held, &first);
}

Test(held, more_segments_than_there_are_records_are_not_held)
{
        static struct sl_held_piece pieces[SL_HELD_SEGMENTS_MAX + 1];

        for (uint32_t i = 0; i <= SL_HELD_SEGMENTS_MAX; i++) {
                const struct sl_held_shape shape = shape_of(i, 1, 1);
                bool stays = come(&pieces[i], &shape, 0);

                cr_expect(!stays || i < SL_HELD_SEGMENTS_MAX);
                cr_expect(pieces[i].segment || i == SL_HELD_SEGMENTS_MAX);
        }
        for (uint32_t i = 0; i < SL_HELD_SEGMENTS_MAX; i++)
                sl_held_drop(&held, &pieces[i]);
}
