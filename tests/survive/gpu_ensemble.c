/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ensembles whose members are on one GPU are combined there, with the host's results, and whatever fails or is late ends each
 * request once. On the fake driver with the module itself; on the machine's own GPU where STARLING_TRY_GPU says so.
 */
#include "base/clock.h"
#include "digits.h"
#include "fake_counts.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef STARLING_FAKE_GPU

#define MEMBERS 3u
#define SAMPLES 20u
#define VALUES  (SAMPLES * DIGITS_OUT)
#define FLYING  10u
#define BACK_NS WORLD_PATIENCE_NS

static const char *const rules[] = {"mean", "weighted_mean", "maximum", "majority_vote", "geometric_mean"};
static const float weights[MEMBERS] = {0.5f, 0.3f, 0.2f};

typedef float predictions[VALUES];

static struct world world;
static struct digits_data data;
static struct starling_client *client;
static struct starling_queue *queue;
static struct fake_counts *counts; /* NULL: nobody counts */

#ifdef FAKE_NVIDIA
static void count(void)
{
        char path[512];
        int fd;

        snprintf(path, sizeof(path), "%s/counts", world.folder);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        cr_assert(fd >= 0 && ftruncate(fd, sizeof(*counts)) == 0);
        counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq(counts, MAP_FAILED);
        close(fd);
        setenv("FAKE_CUDA_COUNTS", path, 1);
}
#endif

static void use_module(void)
{
        if (getenv("STARLING_TRY_GPU"))
                return;
#ifdef FAKE_NVIDIA
        setenv("LD_LIBRARY_PATH", FAKE_NVIDIA, 1);
        count();
#else
        cr_skip("the own kernels are not built for the host");
#endif
}

static uint64_t combinations(void)
{
        return counts ? atomic_load_explicit(&counts->combinations, memory_order_relaxed) : 0;
}

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "");
        cr_assert(digits_read(&data, "lenet"));
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(gpu_ensemble, .init = set_up, .fini = tear_down, .timeout = 120);

static void add_ensemble(const char *name, const char *members, const char *rule)
{
        char yaml[256];

        snprintf(yaml, sizeof(yaml), "ensemble:\n  members: [%s]\n  rule: %s\n%s", members, rule,
                strcmp(rule, "weighted_mean") == 0 ? "  weights: [0.5, 0.3, 0.2]\n" : "");
        world_add_model_config(&world, name, yaml);
}

static void add_members(const char *device_of_last)
{
        char yaml[64];

        snprintf(yaml, sizeof(yaml), "device: %s\nbatch_max: 4\n", device_of_last);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\n");
        world_copy_model(&world, "mlp", "b", "device: gpu:0/50%\nbatch_max: 4\n");
        world_copy_model(&world, "mlp", "c", device_of_last[0] == 'c' ? "batch_max: 4\n" : yaml);
}

static void enter(void)
{
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
}

static void leave(void)
{
        starling_close(client);
        world_stop(&world);
}

static struct starling_tensor make_tensor(uint32_t rank, const uint32_t *dims)
{
        struct starling_tensor tensor;

        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, rank, dims, &tensor), 0);
        return tensor;
}

static void ask(const char *name, uint32_t n_outputs, predictions *ret_outputs)
{
        struct starling_tensor input = make_tensor(4, (uint32_t[]){SAMPLES, 1, 8, 8}), outputs[MEMBERS];
        struct starling_completion done;
        struct starling_model *model;
        char text[512];

        cr_assert_eq(starling_model_open(client, name, &model, NULL), 0, "%s\n%s", name, world_log(&world));
        memcpy(input.data, data.images, SAMPLES * DIGITS_INPUTS * sizeof(float));
        for (uint32_t i = 0; i < n_outputs; i++)
                outputs[i] = make_tensor(2, (uint32_t[]){SAMPLES, DIGITS_OUT});
        struct starling_request request = {
                .model = model, .inputs = &input, .n_inputs = 1, .outputs = outputs, .n_outputs = n_outputs};

        cr_assert_eq(starling_infer(queue, &request, &done), 0, "%s: %s\n%s", name, starling_reason_text(&done, text, sizeof(text)),
                world_log(&world));
        for (uint32_t i = 0; i < n_outputs; i++) {
                memcpy(ret_outputs[i], outputs[i].data, sizeof(predictions));
                starling_free(client, outputs[i].data);
        }
        starling_free(client, input.data);
        starling_model_close(model);
}

static uint32_t best_of(const float *sample)
{
        uint32_t best = 0;

        for (uint32_t i = 1; i < DIGITS_OUT; i++)
                if (sample[i] > sample[best])
                        best = i;
        return best;
}

/* As runtime/serve/execute/combine.c has it, but for a geometric mean, which is not normalised. */
static float combine_value(const char *rule, const predictions *members, uint32_t sample, uint32_t class)
{
        uint32_t i = sample * DIGITS_OUT + class;
        float result = !strcmp(rule, "geometric_mean") ? 1 : !strcmp(rule, "maximum") ? members[0][i] : 0;

        for (uint32_t m = 0; m < MEMBERS; m++) {
                if (!strcmp(rule, "mean"))
                        result = m ? result + members[m][i] : members[0][i];
                else if (!strcmp(rule, "weighted_mean"))
                        result += (float)((double)weights[m] / ((double)weights[0] + (double)weights[1] + (double)weights[2])) *
                                  members[m][i];
                else if (!strcmp(rule, "maximum"))
                        result = fmaxf(result, members[m][i]);
                else if (!strcmp(rule, "majority_vote"))
                        result += best_of(&members[m][sample * DIGITS_OUT]) == class ? 1.0f / MEMBERS : 0;
                else
                        result *= powf(members[m][i], 1.0f / MEMBERS);
        }
        return !strcmp(rule, "mean") ? result / MEMBERS : result;
}

/* To the bit where that is the host's arithmetic, and members say the same in batches of any size: a real device's need not. */
static void expect_rule(const char *rule, const predictions *members, const float *got)
{
        bool is_geometric = !strcmp(rule, "geometric_mean");
        float tolerance = !counts ? 1e-4f : is_geometric ? 1e-5f : 0;

        for (uint32_t sample = 0; sample < SAMPLES; sample++) {
                float wanted[DIGITS_OUT], sum = 0;

                for (uint32_t class = 0; class < DIGITS_OUT; class ++)
                        sum += wanted[class] = combine_value(rule, members, sample, class);
                for (uint32_t class = 0; class < DIGITS_OUT; class ++) {
                        float value = got[sample * DIGITS_OUT + class], want = is_geometric ? wanted[class] / sum : wanted[class];

                        cr_assert(fabsf(value - want) <= tolerance, "rule %s, sample %u, class %u: %a, not %a", rule, sample, class,
                                (double)value, (double)want);
                }
        }
}

Test(gpu_ensemble, is_combined_on_its_gpu_as_the_host_does_it)
{
        predictions members[MEMBERS], got;

        use_module();
        add_members("gpu:0");
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
                add_ensemble(rules[i], "a, b, c", rules[i]);
        add_ensemble("none", "a, b, c", "none");
        enter();
        ask("none", MEMBERS, members);
        cr_expect_eq(combinations(), 0, "side by side nothing is combined");
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                uint64_t before = combinations();

                for (uint32_t round = 0; round < 10; round++) {
                        ask(rules[i], 1, &got);
                        expect_rule(rules[i], members, got);
                }
                WORLD_AWAIT((ask(rules[i], 1, &got), !counts || combinations() > before));
                cr_expect(!counts || combinations() > before, "rule %s was never combined there", rules[i]);
        }
        leave();
}

Test(gpu_ensemble, with_a_member_elsewhere_is_combined_on_the_host)
{
        predictions members[MEMBERS], got;

        use_module();
        add_members("cpu");
        add_ensemble("mean", "a, b, c", "mean");
        add_ensemble("none", "a, b, c", "none");
        enter();
        ask("none", MEMBERS, members);
        ask("mean", 1, &got);
        for (uint32_t i = 0; i < VALUES; i++)
                cr_assert_float_eq(got[i], combine_value("mean", members, i / DIGITS_OUT, i % DIGITS_OUT), 1e-6);
        cr_expect_eq(combinations(), 0);
        leave();
}

/* Nobody knows before which GPU computes which part of a segment. */
Test(gpu_ensemble, with_a_member_on_several_gpus_is_combined_on_the_host)
{
        predictions members[MEMBERS], got;

        use_module();
        if (!counts)
                cr_skip("there may be one GPU");
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        add_members("[gpu:0, gpu:1]");
        add_ensemble("mean", "a, b, c", "mean");
        add_ensemble("none", "a, b, c", "none");
        add_ensemble("two", "a, b", "mean");
        enter();
        ask("none", MEMBERS, members);
        for (uint32_t round = 0; round < 5; round++) {
                ask("mean", 1, &got);
                for (uint32_t i = 0; i < VALUES; i++)
                        cr_assert_float_eq(got[i], combine_value("mean", members, i / DIGITS_OUT, i % DIGITS_OUT), 1e-6);
        }
        cr_expect_eq(combinations(), 0);
        WORLD_AWAIT((ask("two", 1, &got), combinations() > 0));
        cr_expect_gt(combinations(), 0, "that of the members on one GPU is combined there");
        leave();
        unsetenv("FAKE_CUDA_DEVICES");
}

/* ---- many at once ---- */

static struct digits_job jobs[FLYING];
static bool flying[FLYING];
static uint64_t ids[FLYING];
static uint32_t n_flying;

/* What all members agree about is what one of them says. */
static void add_copies(const char *more)
{
        char yaml[128];

        for (char name[] = "a"; name[0] <= 'c'; name[0]++) {
                snprintf(yaml, sizeof(yaml), "device: gpu:0\nbatch_max: %u\n%s", name[0] == 'b' ? 2 : 8, more);
                world_copy_model(&world, "lenet", name, yaml);
        }
        add_ensemble("all", "a, b, c", "maximum");
        add_ensemble("two", "c, a", "maximum");
}

static void submit(struct starling_model *model, uint32_t i, uint32_t *seed, uint64_t deadline_ns, int32_t priority)
{
        struct starling_request request = digits_ask(&jobs[i], model, digits_random(seed, 400), 1 + digits_random(seed, 20));

        request.user_data = i;
        request.deadline_ns = deadline_ns;
        request.priority = (uint8_t)priority;
        cr_assert_eq(starling_submit(queue, &request, &ids[i]), 0);
        flying[i] = true;
        n_flying++;
}

/* Each of those that fly, once. Return: how many were done. */
static uint32_t reap(bool may_fail)
{
        struct starling_completion done[FLYING];
        uint32_t n_done = 0;
        char text[512];
        int n = starling_wait(queue, done, FLYING, BACK_NS);

        cr_assert_gt(n, 0, "%u requests have no answer\n%s", n_flying, world_log(&world));
        for (int i = 0; i < n; i++) {
                cr_assert(flying[done[i].user_data], "request %u was completed twice", (uint32_t)done[i].user_data);
                flying[done[i].user_data] = false;
                n_flying--;
                n_done += done[i].status == 0;
                if (done[i].status == 0)
                        cr_assert(digits_right(&jobs[done[i].user_data], &data, text, sizeof(text)), "%s", text);
                else
                        cr_assert(may_fail, "%s\n%s", starling_reason_text(&done[i], text, sizeof(text)), world_log(&world));
        }
        return n_done;
}

static void begin_flying(struct starling_model **ret_models, const char *const *names, uint32_t n)
{
        for (uint32_t i = 0; i < FLYING; i++)
                cr_assert_eq(digits_job_alloc(&jobs[i], &data, client), 0);
        for (uint32_t i = 0; i < n; i++)
                cr_assert_eq(starling_model_open(client, names[i], &ret_models[i], NULL), 0, "%s", world_log(&world));
}

static void end_flying(struct starling_model **models, uint32_t n)
{
        for (uint32_t i = 0; i < FLYING; i++)
                digits_job_free(&jobs[i], client);
        for (uint32_t i = 0; i < n; i++)
                starling_model_close(models[i]);
}

/* Members of several ensembles, asked by themselves as well, in all classes of priority. */
Test(gpu_ensemble, shares_its_members_with_others_and_nobody_waits_for_ever)
{
        static const char *const names[] = {"all", "two", "a", "b"};
        struct starling_model *models[4];
        uint32_t seed = 5, n_done = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", 150);

        use_module();
        add_copies("");
        enter();
        begin_flying(models, names, 4);
        while (n_done < rounds || n_flying) {
                for (uint32_t i = 0; i < FLYING && n_done + n_flying < rounds; i++)
                        if (!flying[i])
                                submit(models[digits_random(&seed, 4)], i, &seed, 0, (int32_t)digits_random(&seed, 3));
                n_done += reap(false);
        }
        cr_expect(!counts || combinations(), "nothing was combined there");
        end_flying(models, 4);
        leave();
}

Test(gpu_ensemble, whose_requests_are_late_or_cancelled_leaves_nothing_behind)
{
        static const char *const names[] = {"all", "two", "a"};
        struct starling_model *models[3];
        uint32_t seed = 7, n = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", 150);

        use_module();
        add_copies("");
        enter();
        begin_flying(models, names, 3);
        while (n < rounds || n_flying) {
                for (uint32_t i = 0; i < FLYING && n < rounds; i++) {
                        uint64_t in_ns = digits_random(&seed, 2) ? 0 : sl_clock_ns() + digits_random(&seed, 40) * 100000ull;

                        if (flying[i])
                                continue;
                        submit(models[digits_random(&seed, 3)], i, &seed, in_ns, 0);
                        n++;
                }
                if (digits_random(&seed, 3) == 0)
                        for (uint32_t i = 0; i < FLYING; i += 3)
                                if (flying[i])
                                        (void)starling_cancel(queue, ids[i]);
                (void)reap(true);
        }
        for (uint32_t i = 0; i < 20; i++) {
                submit(models[0], 0, &seed, 0, 0);
                cr_assert_eq(reap(false), 1);
        }
        cr_expect(!counts || combinations() > 0, "nothing was combined there");
        end_flying(models, 3);
        leave();
}

static pid_t gpu_process(void)
{
        struct world_child child;

        return world_find_children(&world, "gpu", &child, 1) ? child.pid : 0;
}

static void try_kills(const char *on_crash)
{
        static const char *const names[] = {"all", "two"};
        struct starling_model *models[2];
        uint32_t seed = 9;

        use_module();
        add_copies(on_crash);
        enter();
        begin_flying(models, names, 2);
        for (uint32_t round = 0; round < 3; round++) {
                uint64_t end_ns = sl_clock_ns() + BACK_NS;
                uint32_t n_done = 0;

                for (uint32_t i = 0; i < FLYING; i++)
                        submit(models[i % 2], i, &seed, 0, 0);
                world_pause_us(digits_random(&seed, 3000));
                pid_t pid = gpu_process();

                cr_assert_gt(pid, 0);
                cr_assert_eq(kill(pid, SIGKILL), 0);
                while (n_flying)
                        (void)reap(true);
                while (n_done < 3) { /* it is back */
                        cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                        submit(models[0], 0, &seed, 0, 0);
                        n_done += reap(true);
                        world_pause_us(n_done ? 0 : 20000);
                }
        }
        end_flying(models, 2);
        leave();
}

Test(gpu_ensemble, whose_process_is_killed_answers_each_request_once)
{
        try_kills("");
}

Test(gpu_ensemble, that_may_run_again_answers_each_request_once)
{
        try_kills("on_crash: rerun\n");
}

#endif
