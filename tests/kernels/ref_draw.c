/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the ref kernels: their distributions by tests with fixed keys, so that each gives the same answer in each run,
 * and what they depend on. Bounds are those of one chance in a million or less.
 */
#include "draw.h"
#include "node_bench.h"
#include "ref/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_DRAWS 20000

/* Of sqrt(n) times the largest distance of the distributions. */
#define KOLMOGOROV_MAX 2.7

static const uint64_t key_of_request[] = {77, 0};

static struct sl_node_desc like(enum sl_op op, enum sl_dtype dtype, int64_t samples, int64_t n)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, dtype, SHAPE(samples, n));
        bench_input(&node, SL_DTYPE_U64, SHAPE(samples, 2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_STREAM, 11);
        return node;
}

static struct sl_node_desc real(struct sl_node_desc node, uint32_t id, double value)
{
        sl_attrs_set_float(&node.attrs, id, value);
        return node;
}

/* What it draws as numbers of double; the caller's. */
static double *draw(struct sl_node_desc node, const void *in, const uint64_t *keys)
{
        struct sl_error error = {""};
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        uint64_t n = sl_shape_elements(&node.outputs[0].shape);
        double *drawn = malloc((n + 1) * sizeof(*drawn));
        void *out = malloc(n * 8 + 1);

        cr_assert_eq(bench_run(&node, node.n_inputs == 1 ? INPUTS(keys) : INPUTS(in, keys), (void *const[]){out}), 0);
        for (uint64_t i = 0; i < n; i++)
                switch (node.outputs[0].dtype) {
                case SL_DTYPE_F32:
                        drawn[i] = ((float *)out)[i];
                        break;
                case SL_DTYPE_F64:
                        drawn[i] = ((double *)out)[i];
                        break;
                case SL_DTYPE_I32:
                        drawn[i] = ((int32_t *)out)[i];
                        break;
                case SL_DTYPE_I64:
                        drawn[i] = (double)((int64_t *)out)[i];
                        break;
                case SL_DTYPE_BOOL:
                        drawn[i] = ((uint8_t *)out)[i];
                        break;
                case SL_DTYPE_BF16: {
                        uint32_t bits = (uint32_t)((uint16_t *)out)[i] << 16;
                        float value;

                        memcpy(&value, &bits, sizeof(value));
                        drawn[i] = value;
                        break;
                }
                default: {
                        uint16_t half = ((uint16_t *)out)[i];
                        int exponent = half >> 10 & 31, fraction = half & 1023;
                        double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

                        drawn[i] = half >> 15 ? -value : value;
                }
                }
        free(out);
        return drawn;
}

static double normal_share(double x)
{
        return 0.5 * erfc(-x / sqrt(2));
}

static double uniform_share(double x)
{
        return x < 0 ? 0 : x > 1 ? 1 : x;
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/* Sources: A. Kolmogorov, "Sulla determinazione empirica di una legge di distribuzione", 1933. */
static double kolmogorov(const double *drawn, size_t n, double (*share)(double x))
{
        double *sorted = memcpy(malloc(n * sizeof(*sorted)), drawn, n * sizeof(*sorted)), most = 0;

        qsort(sorted, n, sizeof(*sorted), by_size);
        for (size_t i = 0; i < n; i++) {
                double here = share(sorted[i]);

                most = fmax(most, fmax(here - (double)i / (double)n, (double)(i + 1) / (double)n - here));
        }
        free(sorted);
        return most * sqrt((double)n);
}

/* The mean of the @power-th power. */
static double moment(const double *drawn, size_t n, int power)
{
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += pow(drawn[i], power);
        return sum / (double)n;
}

static double correlation(const double *a, const double *b, size_t n)
{
        double sum = 0, of_a = 0, of_b = 0, mean_a = moment(a, n, 1), mean_b = moment(b, n, 1);

        for (size_t i = 0; i < n; i++) {
                sum += (a[i] - mean_a) * (b[i] - mean_b);
                of_a += (a[i] - mean_a) * (a[i] - mean_a);
                of_b += (b[i] - mean_b) * (b[i] - mean_b);
        }
        return sum / sqrt(of_a * of_b);
}

static void expect_apart(const double *a, const double *b, size_t n, const char *what)
{
        double found = correlation(a, b, n);

        cr_expect_lt(fabs(found), 5 / sqrt((double)n), "%s: correlation %g", what, found);
}

/* The vectors that the authors of Random123 publish. */
Test(philox, gives_the_published_numbers)
{
        static const struct {
                uint64_t key, low, high;
                uint32_t want[4];
        } cases[] = {
                {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct sl_philox made = sl_philox_of(cases[i].key, cases[i].low, cases[i].high);

                for (int k = 0; k < 4; k++)
                        cr_expect_eq(made.words[k], cases[i].want[k], "case %zu, word %d: %08x", i, k, made.words[k]);
        }
}

Test(draw, normal_numbers_have_their_moments_and_their_distribution_in_every_type)
{
        static const enum sl_dtype types[] = {SL_DTYPE_F32, SL_DTYPE_F64, SL_DTYPE_F16, SL_DTYPE_BF16};

        for (size_t i = 0; i < 4; i++) {
                double rounding = types[i] == SL_DTYPE_BF16 ? 0.002 * sqrt(N_DRAWS) : 0;
                double *drawn = draw(like(SL_OP_RANDOM_NORMAL_LIKE, types[i], 1, N_DRAWS), NULL, key_of_request);

                cr_expect_lt(fabs(moment(drawn, N_DRAWS, 1)), 5 / sqrt(N_DRAWS));
                cr_expect_lt(fabs(moment(drawn, N_DRAWS, 2) - 1), 5 * sqrt(2.0 / N_DRAWS));
                cr_expect_lt(fabs(moment(drawn, N_DRAWS, 3)), 5 * sqrt(15.0 / N_DRAWS));
                cr_expect_lt(fabs(moment(drawn, N_DRAWS, 4) - 3), 5 * sqrt(96.0 / N_DRAWS));
                cr_expect_lt(kolmogorov(drawn, N_DRAWS, normal_share), KOLMOGOROV_MAX + rounding);
                expect_apart(drawn, drawn + 1, N_DRAWS - 1, "neighbours");
                expect_apart(drawn, drawn + 2, N_DRAWS - 2, "every other one");
                free(drawn);
        }
}

Test(draw, uniform_numbers_are_spread_evenly_in_every_type)
{
        static const enum sl_dtype types[] = {SL_DTYPE_F32, SL_DTYPE_F64, SL_DTYPE_F16, SL_DTYPE_BF16};

        for (size_t i = 0; i < 4; i++) {
                double rounding = types[i] == SL_DTYPE_BF16 ? 0.002 * sqrt(N_DRAWS) : 0;
                double *drawn = draw(like(SL_OP_RANDOM_UNIFORM_LIKE, types[i], 1, N_DRAWS), NULL, key_of_request);

                cr_expect_lt(kolmogorov(drawn, N_DRAWS, uniform_share), KOLMOGOROV_MAX + rounding);
                for (int k = 0; k < N_DRAWS; k++)
                        cr_assert(drawn[k] >= 0 && drawn[k] <= 1);
                expect_apart(drawn, drawn + 1, N_DRAWS - 1, "neighbours");
                free(drawn);
        }
}

Test(draw, mean_and_scale_and_the_bounds_are_the_nodes)
{
        double *plain = draw(like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_F64, 1, 100), NULL, key_of_request);
        double *moved = draw(real(real(like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_F64, 1, 100), SL_ATTR_MEAN, 3), SL_ATTR_SCALE, 2),
                NULL, key_of_request);
        double *even = draw(like(SL_OP_RANDOM_UNIFORM_LIKE, SL_DTYPE_F64, 1, 100), NULL, key_of_request);
        double *wide = draw(real(real(like(SL_OP_RANDOM_UNIFORM_LIKE, SL_DTYPE_F64, 1, 100), SL_ATTR_LOW, -4), SL_ATTR_HIGH, 6),
                NULL, key_of_request);

        for (int i = 0; i < 100; i++) {
                cr_expect_float_eq(moved[i], 3 + 2 * plain[i], 1e-12);
                cr_expect_float_eq(wide[i], -4 + 10 * even[i], 1e-12);
        }
        free(plain);
        free(moved);
        free(even);
        free(wide);
}

Test(draw, a_samples_numbers_depend_on_no_other_sample_and_on_no_place)
{
        static const enum sl_op ops[] = {SL_OP_RANDOM_NORMAL_LIKE, SL_OP_RANDOM_UNIFORM_LIKE, SL_OP_BERNOULLI, SL_OP_MULTINOMIAL};
        static const uint64_t keys[] = {5, 0, 5, 1, 9, 0, 1, 1ull << 32};
        float in[4 * 7];

        for (int i = 0; i < 4 * 7; i++)
                in[i] = 0.5f;
        for (size_t k = 0; k < 4; k++) {
                struct sl_node_desc node = like(ops[k], SL_DTYPE_F32, 4, 7);

                if (ops[k] == SL_OP_MULTINOMIAL)
                        sl_attrs_set_int(&node.attrs, SL_ATTR_SAMPLE_SIZE, 7);
                double *together = draw(node, in, keys);
                node.inputs[0].shape.dims[0] = node.inputs[1].shape.dims[0] = 1;
                for (int s = 0; s < 4; s++) {
                        double *alone = draw(node, in, keys + 2 * s);

                        cr_expect_arr_eq(alone, together + 7 * s, 7 * sizeof(double), "%s: sample %d", sl_op_name(ops[k]), s);
                        cr_expect(s == 0 || memcmp(together, together + 7 * s, 7 * sizeof(double)), "%s: sample %d is as the first",
                                sl_op_name(ops[k]), s);
                        free(alone);
                }
                free(together);
        }
}

Test(draw, samples_requests_nodes_and_rounds_are_not_correlated)
{
        static const uint64_t others[][2] = {{77, 1}, {78, 0}, {77, 1ull << 32}};
        struct sl_node_desc node = like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_F32, 1, N_DRAWS);
        double *first = draw(node, NULL, key_of_request), *other;

        for (size_t i = 0; i < 3; i++) {
                other = draw(node, NULL, others[i]);
                expect_apart(first, other, N_DRAWS, i == 0 ? "samples" : i == 1 ? "requests" : "rounds");
                free(other);
        }
        sl_attrs_set_int(&node.attrs, SL_ATTR_STREAM, 12);
        other = draw(node, NULL, key_of_request);
        expect_apart(first, other, N_DRAWS, "nodes");
        free(other);
        free(first);
}

static bool draw_alike(struct sl_node_desc a, const uint64_t *keys_a, struct sl_node_desc b, const uint64_t *keys_b)
{
        double *of_a = draw(a, NULL, keys_a), *of_b = draw(b, NULL, keys_b);
        bool alike = !memcmp(of_a, of_b, 100 * sizeof(double));

        free(of_a);
        free(of_b);
        return alike;
}

Test(draw, a_nodes_seed_goes_before_the_models_and_that_before_the_request)
{
        static const uint64_t another[] = {78, 0}, second[] = {78, 1};
        struct sl_node_desc none = like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_F32, 1, 100), model = none, seeded, twin, two;

        sl_attrs_set_int(&model.attrs, SL_ATTR_RANDOM_SEED, 5);
        seeded = real(model, SL_ATTR_SEED, 5);
        twin = seeded;
        sl_attrs_set_int(&twin.attrs, SL_ATTR_STREAM, 12);
        two = model;
        sl_attrs_set_int(&two.attrs, SL_ATTR_STREAM, 12);
        cr_expect(!draw_alike(none, key_of_request, none, another), "without a seed each request draws anew");
        cr_expect(draw_alike(model, key_of_request, model, another), "with the model's all requests draw the same");
        cr_expect(!draw_alike(model, another, model, second), "but not all samples");
        cr_expect(!draw_alike(model, another, two, another), "nor all nodes");
        cr_expect(draw_alike(seeded, key_of_request, seeded, another), "with the node's all requests draw the same");
        cr_expect(!draw_alike(seeded, another, seeded, second), "but not all samples");
        cr_expect(draw_alike(seeded, another, twin, another), "nodes of one seed draw the same");
        cr_expect(!draw_alike(seeded, another, model, another), "the node's seed is another than the model's");
        cr_expect(!draw_alike(seeded, another, real(seeded, SL_ATTR_SEED, 6), another), "another seed, other numbers");
}

Test(draw, bernoulli_is_true_as_often_as_its_probability_says)
{
        static const double wanted[] = {0, 0.001, 0.25, 0.5, 0.9, 1, -1, 2, NAN};
        double *in = malloc(N_DRAWS * sizeof(*in));
        struct sl_node_desc node = like(SL_OP_BERNOULLI, SL_DTYPE_F64, 1, N_DRAWS);

        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_BOOL);
        for (size_t k = 0; k < sizeof(wanted) / sizeof(*wanted); k++) {
                double p = wanted[k] > 0 ? fmin(wanted[k], 1) : 0;

                for (int i = 0; i < N_DRAWS; i++)
                        in[i] = wanted[k];
                double *drawn = draw(node, in, key_of_request);
                cr_expect_leq(fabs(moment(drawn, N_DRAWS, 1) - p), 5 * sqrt(p * (1 - p) / N_DRAWS), "probability %g", wanted[k]);
                free(drawn);
        }
        free(in);
}

/* Pearson's chi-square of six classes, two of them without a share: three degrees of freedom. */
Test(draw, multinomial_takes_classes_by_their_shares)
{
        static const double shares[] = {0.1, 0, 0.2, 0.3, 0, 0.4};
        double in[6], counts[6] = {0}, chi = 0;
        struct sl_node_desc node = like(SL_OP_MULTINOMIAL, SL_DTYPE_F64, 1, 6);

        for (int i = 0; i < 6; i++)
                in[i] = log(shares[i]) + 700; /* not normalised, and minus infinity for none */
        sl_attrs_set_int(&node.attrs, SL_ATTR_SAMPLE_SIZE, N_DRAWS);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_I64);
        double *drawn = draw(node, in, key_of_request);
        for (int i = 0; i < N_DRAWS; i++)
                counts[(int)drawn[i]]++;
        for (int i = 0; i < 6; i++)
                chi += shares[i] > 0 ? pow(counts[i] - shares[i] * N_DRAWS, 2) / (shares[i] * N_DRAWS) : counts[i] * 1e9;
        cr_expect_lt(chi, 30, "chi-square %g", chi);
        free(drawn);
}

Test(draw, multinomial_without_any_share_stays_within_the_classes)
{
        double in[] = {NAN, -INFINITY, INFINITY};
        struct sl_node_desc node = like(SL_OP_MULTINOMIAL, SL_DTYPE_F64, 1, 3);
        double *drawn = draw(node, in, key_of_request);

        cr_expect(drawn[0] >= 0 && drawn[0] < 3);
        free(drawn);
}

static void launch_keys(struct sl_kernel *kernel, struct sl_draws *draws, uint64_t *ret_keys)
{
        struct sl_binding binding = {.inputs = INPUTS(""), .outputs = (void *const[]){ret_keys}, .draws = draws};

        cr_assert_eq(sl_backend_ref.runner->launch(kernel, &binding), 0);
}

Test(sample_keys, are_those_of_the_run_and_count_its_launches)
{
        static const struct sl_draw_key keys[] = {{70, 3}, {80, 0}};
        const void *constants[1] = {NULL};
        struct sl_node_desc node = bench_node(SL_OP_SAMPLE_KEYS);
        struct sl_draws draws = {.keys = keys};
        struct sl_kernel *kernel;
        uint64_t made[4];

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 5));
        bench_expect_shape(&node, 0, SHAPE(2, 2));
        cr_assert_eq(sl_backend_ref.runner->compile(
                             NULL, &(struct sl_kernel_source){.node = &node, .constants = constants}, &kernel, NULL),
                0);
        launch_keys(kernel, &draws, made);
        cr_expect(made[0] == 70 && made[1] == 3 && made[2] == 80 && made[3] == 0);
        launch_keys(kernel, &draws, made);
        cr_expect(made[0] == 70 && made[1] == (3 | 1ull << 32) && made[2] == 80 && made[3] == 1ull << 32);
        launch_keys(kernel, NULL, made);
        cr_expect(made[0] == 0 && made[1] == 0 && made[2] == 0 && made[3] == 1, "nobody's samples");
        sl_backend_ref.runner->kernel_free(kernel);
}

Test(rules, of_nodes_that_draw_say_what_is_wrong)
{
        struct sl_node_desc node = like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_F32, N, 4);

        bench_expect_shape(&node, 0, SHAPE(N, 4));
        node.inputs[1].shape = SHAPE(3, 3);
        bench_expect_error(&node, EINVAL, "input 1, the keys, is uint64 [3,3], wants uint64 [samples,2]");
        node = like(SL_OP_RANDOM_NORMAL_LIKE, SL_DTYPE_I32, 2, 4);
        bench_expect_error(&node, EINVAL, "attribute dtype is int32, wants floats");
        node = like(SL_OP_BERNOULLI, SL_DTYPE_I32, 2, 4);
        bench_expect_error(&node, EINVAL, "input 0 is int32, wants probabilities");
        node = like(SL_OP_MULTINOMIAL, SL_DTYPE_F32, 2, 0);
        bench_expect_error(&node, EINVAL, "input 0 has no classes");
        node.inputs[0].shape = SHAPE(2, 1ll << 31);
        bench_expect_error(&node, EINVAL, "input 0 has 2147483648 classes, at most 2147483647");
        node.inputs[0].shape = SHAPE(2, 3);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_F32);
        bench_expect_error(&node, EINVAL, "attribute dtype is 1, wants int32 or int64");
        node = bench_node(SL_OP_RANDOM_UNIFORM);
        bench_input(&node, SL_DTYPE_U64, SHAPE(1, 2));
        bench_expect_error(&node, EINVAL, "attribute shape is missing");
        BENCH_INTS(&node, SL_ATTR_SHAPE, 2, -1);
        bench_expect_error(&node, EINVAL, "attribute shape has the element -1");
}
