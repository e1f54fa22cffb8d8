/* SPDX-License-Identifier: Apache-2.0 */
#include "allocation_file.h"
#include "base/error.h"
#include "costs.h"
#include "costs_file.h"
#include "fleet.h"
#include "problem.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A path with @text behind it; the caller unlinks it. */
static void text_put(const char *text, char *path)
{
        strcpy(path, "/tmp/sl-planner-XXXXXX");
        int fd = mkstemp(path);

        cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static int costs_read(const char *text, struct sl_costs **ret_costs, struct sl_error *error)
{
        char path[32];

        text_put(text, path);
        int r = sl_costs_file_read(path, ret_costs, error);
        unlink(path);
        return r;
}

#define N60  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define N295 N60 N60 N60 N60 N55
#define N55  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define HEAD                                                                                                                       \
        "batches: [8, 16]\n"                                                                                                       \
        "classes:\n"                                                                                                               \
        "  - {name: V100, kind: gpu, units: 80, copy_engines: 2}\n"                                                                \
        "  - {name: core, kind: cpu, beside: 1.5}\n"
#define DEVICES                                                                                                                    \
        "devices:\n"                                                                                                               \
        "  - {name: gpu, class: V100, memory: 16GiB, count: 2}\n"                                                                  \
        "  - {name: cpu, class: core, memory: 64GiB}\n"                                                                            \
        "  - {name: let, class: core, memory_of: cpu}\n"
#define MODELS                                                                                                                     \
        "models:\n"                                                                                                                \
        "  - {name: resnet50, weights: 98MiB}\n"                                                                                   \
        "  - {name: vgg19, weights: 548MiB}\n"
#define COSTS                                                                                                                      \
        "costs:\n"                                                                                                                 \
        "  - {model: vgg19, class: V100, source: published, latency_ns: [100, 0], workspace: [1MiB, 2MiB]}\n"                      \
        "  - {model: resnet50, class: core, source: measured, latency_ns: [7, 8], transfer_ns: [1, 2]}\n"                          \
        "pairs:\n"                                                                                                                 \
        "  - {model: vgg19, beside: resnet50, class: V100, slowdown: 1.7}\n"

Test(costs_file, is_read_as_it_is_written)
{
        struct sl_error error = {""};
        struct sl_costs *costs;

        cr_assert_eq(costs_read(HEAD DEVICES MODELS COSTS, &costs, &error), 0, "%s", error.text);
        cr_expect_eq(costs->n_devices, 4);
        cr_expect_str_eq(costs->devices[1].name, "gpu2");
        cr_expect_eq(costs->devices[1].memory_bytes, 16ull << 30);
        cr_expect_eq(costs->devices[3].memory_of, 2);
        cr_expect_eq(costs->classes[0].copy_engines, 2);
        cr_expect_float_eq(costs->classes[1].pair_default, 1.5, 1e-12);
        cr_expect_eq(sl_costs_worker(costs, 0, 1, 8)->latency_ns, 100);
        cr_expect_eq(sl_costs_worker(costs, 0, 1, 8)->source, SL_COST_PUBLISHED);
        cr_expect_eq(sl_costs_worker(costs, 0, 1, 8)->workspace_bytes, 1u << 20);
        cr_expect_null(sl_costs_worker(costs, 0, 1, 16));
        cr_expect_null(sl_costs_worker(costs, 0, 0, 8));
        cr_expect_eq(sl_costs_worker(costs, 2, 0, 16)->transfer_ns, 2);
        cr_expect_float_eq(*sl_costs_pair(costs, 0, 1, 0), 1.7, 1e-12);
        sl_costs_free(costs);
}

static void expect_refused(const char *text, const char *wanted)
{
        struct sl_error error = {""};
        struct sl_costs *costs = NULL;

        cr_expect_lt(costs_read(text, &costs, &error), 0);
        cr_expect(strstr(error.text, wanted), "\"%s\" has no \"%s\"", error.text, wanted);
        cr_expect_null(costs);
        cr_expect_null(strchr(error.text, '\n'));
}

Test(costs_file, hostile_ones_end_in_one_error_with_the_line)
{
        expect_refused("", "no device classes");
        expect_refused(HEAD MODELS, "no devices");
        expect_refused(HEAD "devices:\n  - {name: gpu, class: V100, memory: 1GiB, count: 1000000}\n" MODELS,
                ":6: devices.0.count: \"1000000\" is not a number from 1 to 4096");
        expect_refused(HEAD
                "devices:\n  - {name: a, class: V100, memory: 1GiB, count: 4096}\n  - {name: b, class: V100, memory: 1, "
                "count: 4096}\n" MODELS,
                "8192 devices, at most 4096");
        expect_refused("batches: [8, 99999999999999999999]\n", "no device classes");
        expect_refused("batches: [8, 99999999999999999999]\nclasses: [{name: a, kind: cpu}]\ndevices: [{name: a, class: a, memory: "
                       "1}]\nmodels: [{name: a}]\n",
                ":1: batches.1: \"99999999999999999999\" is not a number from 1 to 65536");
        expect_refused(HEAD "devices:\n  - {name: gpu, class: V100, memory: 99999999TiB}\n" MODELS, ":6: devices.0.memory: ");
        expect_refused(HEAD "devices:\n  - {name: " N295 N295 N295 N295 ", class: V100, memory: 1GiB, count: 2}\n" MODELS,
                ":6: devices.0.name: a name of 1 to 1173 bytes, as a number follows");
        expect_refused(HEAD "devices:\n  - {name: " N295 N295 N295 N295 "nnnn, class: V100, memory: 1GiB}\n" MODELS,
                ":6: devices.0.name: a name of 1 to 1183 bytes");
        expect_refused(HEAD "devices:\n  - {name: gpu, class: V101, memory: 1GiB}\n" MODELS,
                ":6: devices.0.class: nothing of this file is called \"V101\"");
        expect_refused(HEAD "devices:\n  - {name: a, class: core, memory_of: b}\n  - {name: b, class: core, memory_of: a}\n" MODELS,
                "which has none of its own");
        expect_refused(HEAD DEVICES MODELS "costs:\n  - {model: vgg19, class: V100, source: guessed, latency_ns: [1, 2]}\n",
                ":13: costs.0.source: \"guessed\" is ");
        expect_refused(HEAD DEVICES MODELS "costs:\n  - {model: vgg19, class: V100, source: derived}\n",
                ":13: costs.0.latency_ns: is missing");
        expect_refused(HEAD DEVICES MODELS COSTS "  - {model: vgg19, beside: resnet50, class: V100}\n", ".slowdown: is missing");
        expect_refused(HEAD DEVICES MODELS "costs:\n  - {model: vgg19, class: V100, source: derived, latency_ns: [1]}\n",
                ":13: costs.0.latency_ns: 1 entries for 2 batch sizes");
        expect_refused(HEAD DEVICES MODELS "costs:\n  - {model: vgg19, class: V100, source: derived, latency_ns: [1, "
                                           "18446744073709551615]}\n",
                ":13: costs.0.latency_ns: \"18446744073709551615\" is not a number from 0 to 3600000000000");
        expect_refused(HEAD DEVICES MODELS COSTS "  - {model: vgg19, beside: resnet50, class: V100, slowdown: nan}\n", "slowdown");
        expect_refused(HEAD DEVICES MODELS "colour: red\n", "colour: unknown key");
}

Test(costs_file, a_cost_given_twice_is_refused)
{
        expect_refused(HEAD DEVICES MODELS "costs:\n  - {model: vgg19, class: V100, source: derived, latency_ns: [1, 2]}\n"
                                           "  - {model: vgg19, class: V100, source: derived, latency_ns: [1, 2]}\n",
                ":14: costs.1.model: \"vgg19\" on \"V100\" is given twice");
}

static int matrix_read(const char *text, const struct sl_costs *costs, struct sl_matrix **ret_matrix, struct sl_error *error)
{
        struct sl_allocation *allocation = NULL;
        struct sl_costs *rows = NULL;
        char path[32];

        text_put(text, path);
        int r = sl_allocation_read(path, &allocation, error);
        r = r < 0 ? r : sl_allocation_bind(allocation, costs, &rows, ret_matrix, error);
        sl_allocation_free(allocation);
        sl_costs_free(rows);
        unlink(path);
        return r;
}

static void matrix_refused(const char *text, const char *wanted)
{
        struct sl_costs *costs = plain_fleet(2, 3);
        struct sl_matrix *matrix = NULL;
        struct sl_error error = {""};

        cr_expect_lt(matrix_read(text, costs, &matrix, &error), 0);
        cr_expect(strstr(error.text, wanted), "\"%s\" has no \"%s\"", error.text, wanted);
        sl_costs_free(costs);
}

Test(allocation_file, says_what_is_wrong_with_it)
{
        matrix_refused("", "models: there are none");
        matrix_refused("models: [m0]\n", "rows: there are none");
        matrix_refused("models: [m0, m1]\nrows:\n  - {device: cpu, batches: [8]}\n", ":3: rows.0: 1 batches for 2 models");
        matrix_refused("models: [m0]\nrows:\n  - {device: cpu, batches: [4294967304]}\n",
                ":3: rows.0: \"m0\" on \"cpu\": \"4294967304\" is");
        matrix_refused("models: [m0]\nrows:\n  - {device: cpu, batches: [8]}\n  - {device: cpu, batches: [8]}\n",
                ":4: rows.1: \"cpu\" is given twice");
        matrix_refused("models: [m0, m0]\nrows:\n  - {device: cpu, batches: [8, 8]}\n", "\"m0\" is given twice");
        matrix_refused("models: [m0]\nrows:\n  - {device: cpu, batches: [8+0]}\n", ":3: rows.0: \"m0\" on \"cpu\": \"8+0\" is");
        matrix_refused("models: [m0]\nrows:\n  - {device: cpu, batches: [8+]}\n", "\"8+\" is");
        matrix_refused("models: [m0]\nrows:\n  - {device: tpu, batches: [8]}\n", "no device \"tpu\" among the costs");
        matrix_refused("models: [m9]\nrows:\n  - {device: cpu, batches: [8]}\n", "no model \"m9\" among the costs");
}

/* In any order of rows and columns, with names that YAML would read otherwise. */
Test(allocation_file, what_is_written_is_read_as_it_was_in_thousands_of_fleets)
{
        for (uint64_t seed = 1; seed <= SL_ROUNDS(2000); seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 6, 6);
                struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models), *back = NULL;
                struct sl_error error = {""};
                char text[8192] = "";
                FILE *stream_of_text = fmemopen(text, sizeof(text), "w");

                strcpy(costs->models[0].name, "it's: a #name, {odd}");
                for (uint32_t i = 0; i < costs->n_devices * costs->n_models; i++)
                        matrix->entries[i] = draw(&stream, 2) ? draw(&stream, SL_COST_BATCH_MAX) : 0;
                matrix->entries[0] = 8;
                struct sl_allocation *allocation = NULL;
                cr_assert_eq(sl_allocation_of(costs, matrix, &allocation), 0);
                cr_assert_eq(sl_allocation_write(stream_of_text, allocation), 0);
                fclose(stream_of_text);
                sl_allocation_free(allocation);
                cr_assert_eq(matrix_read(text, costs, &back, &error), 0, "seed %lu: %s in\n%s", seed, error.text, text);
                cr_expect(sl_matrix_equal(matrix, back), "seed %lu", seed);
                sl_matrix_free(back);
                sl_matrix_free(matrix);
                sl_costs_free(costs);
        }
}

Test(allocation_file, a_cell_may_have_several_workers)
{
        static const char text[] = "models: ['m0', 'm1']\nrows:\n  - {device: 'gpu0', batches: [0, 8+8+32]}\n"
                                   "  - {device: 'cpu', batches: [8, 0]}\n";
        struct sl_costs *costs = plain_fleet(1, 2), *rows;
        struct sl_allocation *allocation;
        struct sl_matrix *matrix;
        struct sl_error error = {""};
        char path[32], back[256] = "";
        FILE *stream = fmemopen(back, sizeof(back), "w");

        text_put(text, path);
        cr_assert_eq(sl_allocation_read(path, &allocation, &error), 0, "%s", error.text);
        unlink(path);
        cr_expect_eq(allocation->n_workers, 4);
        cr_expect_eq(sl_allocation_depth(allocation), 3);
        cr_expect_eq(sl_allocation_write(stream, allocation), 0);
        fclose(stream);
        cr_expect_str_eq(back, text);
        cr_assert_eq(sl_allocation_bind(allocation, costs, &rows, &matrix, &error), 0, "%s", error.text);
        const struct sl_problem problem = {.costs = rows};
        uint32_t gpu = sl_costs_find_device(costs, "gpu0");
        uint64_t one = sl_costs_worker(costs, gpu, 1, 8)->workspace_bytes,
                 large = sl_costs_worker(costs, gpu, 1, 32)->workspace_bytes;
        cr_expect_eq(sl_matrix_workers(matrix), 4);
        cr_expect_eq(sl_matrix_memory(&problem, matrix, gpu), costs->models[1].weights_bytes + 2 * one + large);
        sl_matrix_free(matrix);
        sl_costs_free(rows);
        sl_costs_free(costs);
        sl_allocation_free(allocation);
}

Test(allocation_file, a_table_has_a_row_for_each_device)
{
        struct sl_allocation_worker workers[] = {{0, 1, 128}, {0, 1, 2}, {1, 0, 8}};
        struct sl_allocation allocation = {2, 2, 3, (char *[]){"gpu0", "cpu"}, (char *[]){"m0", "a-long-name"}, workers};
        char text[256] = "";
        FILE *stream = fmemopen(text, sizeof(text), "w");

        sl_allocation_print(stream, &allocation);
        fclose(stream);
        cr_expect_str_eq(text, "          m0  a-long-name\n"
                               "gpu0       -        128+2\n"
                               "cpu        8            -\n");
}

/* What is written reads back as it was. */
Test(files, costs_that_are_written_read_back)
{
        struct sl_error error = {""};
        struct sl_costs *costs, *again;
        char path[] = "/tmp/sl-planner-XXXXXX";
        FILE *stream = fdopen(mkstemp(path), "w");

        cr_assert_eq(costs_read("batches: [8, 16]\n"
                                "classes: [{name: V100, kind: gpu, units: 80, copy_engines: 2}, {name: \"o'core\", kind: cpu, "
                                "beside: 1.5}]\n"
                                "devices: [{name: gpu, class: V100, memory: 16GiB, count: 2}, {name: cpu, class: \"o'core\", "
                                "memory: 1GiB},\n"
                                "          {name: let, class: \"o'core\", memory_of: cpu}]\n"
                                "models: [{name: a, weights: 98MiB}, {name: \"b c\", weights: 3}]\n"
                                "costs:\n"
                                "  - {model: a, class: V100, source: published, latency_ns: [9, 0], transfer_ns: [1, 2], "
                                "workspace: [5, 6]}\n"
                                "  - {model: \"b c\", class: \"o'core\", source: measured, latency_ns: [7, 8]}\n"
                                "pairs: [{model: a, beside: \"b c\", class: V100, slowdown: 1.625}]\n",
                             &costs, &error),
                0, "%s", error.text);
        cr_assert_eq(sl_costs_file_write(stream, costs), 0);
        fclose(stream);
        cr_assert_eq(sl_costs_file_read(path, &again, &error), 0, "%s", error.text);
        unlink(path);
        cr_assert(again->n_devices == 4 && again->n_models == 2 && again->n_classes == 2 && again->n_batches == 2);
        cr_expect_arr_eq(again->classes, costs->classes, 2 * sizeof(*costs->classes));
        cr_expect_arr_eq(again->devices, costs->devices, 4 * sizeof(*costs->devices));
        cr_expect_arr_eq(again->models, costs->models, 2 * sizeof(*costs->models));
        for (uint32_t class = 0; class < 2; class ++)
                for (uint32_t model = 0; model < 2; model++) {
                        cr_expect_eq(*sl_costs_pair(again, class, model, 1), *sl_costs_pair(costs, class, model, 1));
                        for (uint32_t batch = 0; batch < 2; batch++) {
                                const struct sl_cost_cell *a = sl_costs_cell(again, class, model, batch),
                                                          *b = sl_costs_cell(costs, class, model, batch);

                                cr_expect(a->latency_ns == b->latency_ns && a->transfer_ns == b->transfer_ns &&
                                                  a->workspace_bytes == b->workspace_bytes && a->source == b->source,
                                        "class %u, model %u, batch %u", class, model, batch);
                        }
                }
        sl_costs_free(costs);
        sl_costs_free(again);
}

Test(costs_file, sizes_of_lets_and_what_they_use_read_back_and_files_without_them_are_whole_devices)
{
        struct sl_error error = {""};
        struct sl_costs *costs, *again;
        struct sl_cost_let let;
        char path[] = "/tmp/sl-planner-XXXXXX";
        FILE *stream = fdopen(mkstemp(path), "w");

        cr_assert_eq(
                costs_read("batches: [8, 16]\n"
                           "classes: [{name: T4, kind: gpu, units: 40, sizes: [8, 16], interference: [0.1, 0.2, 0.3, -0.4, 0.9]},\n"
                           "          {name: core, kind: cpu, units: 4}]\n"
                           "devices: [{name: gpu, class: T4, memory: 1GiB}, {name: cpu, class: core, memory: 1GiB}]\n"
                           "models: [{name: a, weights: 1}]\n"
                           "costs:\n"
                           "  - {model: a, class: T4, size: 40, source: published, latency_ns: [100, 200]}\n"
                           "  - {model: a, class: T4, size: 16, source: derived, latency_ns: [300, 0]}\n"
                           "  - {model: a, class: core, source: measured, latency_ns: [7, 8]}\n"
                           "uses: [{model: a, class: T4, l2: [0.25, 0.5], memory: [0.125, 1]}]\n",
                        &costs, &error),
                0, "%s", error.text);
        cr_assert_eq(sl_costs_file_write(stream, costs), 0);
        fclose(stream);
        cr_assert_eq(sl_costs_file_read(path, &again, &error), 0, "%s", error.text);
        unlink(path);
        cr_expect_arr_eq(again->classes, costs->classes, 2 * sizeof(*costs->classes));
        cr_expect_eq(sl_costs_size_cell(again, 0, 1, 0, 0)->latency_ns, 300);
        cr_expect_eq(sl_costs_size_cell(again, 0, 1, 0, 0)->source, SL_COST_DERIVED);
        cr_expect_eq(sl_costs_size_cell(again, 0, 0, 0, 0)->latency_ns, 0, "nobody knows it");
        cr_expect_eq(sl_costs_cell(again, 0, 0, 0)->latency_ns, 100);
        cr_expect_float_eq(sl_costs_cell(again, 0, 0, 1)->l2_use, 0.5, 1e-12);
        cr_expect_float_eq(sl_costs_cell(again, 0, 0, 1)->memory_use, 1, 1e-12);
        cr_expect(sl_costs_let(again, 1, 4, 0, 8, &let) && let.latency_ns == 7.0);
        cr_expect_not(sl_costs_let(again, 1, 2, 0, 8, &let), "of this class only the whole is known");
        sl_costs_free(costs);
        sl_costs_free(again);
}

/* What stands in a place of an otherwise good file, and what the error says. */
Test(costs_file, sizes_that_do_not_exist_are_named)
{
        static const char *const rows[][2] = {
                {"classes: [{name: c, kind: gpu, units: 8, sizes: [2, 9]}]\ndevices: [{name: d, class: c, memory: 1}]\n", "size 9"},
                {"classes: [{name: c, kind: gpu, units: 8, sizes: [x]}]\ndevices: [{name: d, class: c, memory: 1}]\n", "sizes"},
                {"classes: [{name: c, kind: gpu, units: 8, interference: [1]}]\ndevices: [{name: d, class: c, memory: 1}]\n",
                        "1 coefficients, 5 are wanted"},
                {"classes: [{name: c, kind: gpu, units: 8, sizes: [2]}]\ndevices: [{name: d, class: c, memory: 1}]\n"
                 "costs: [{model: a, class: c, size: 3, source: derived, latency_ns: [1]}]\n",
                        "3 is no size of class \"c\""},
                {"classes: [{name: c, kind: gpu, units: 8, sizes: [2]}]\ndevices: [{name: d, class: c, memory: 1}]\n"
                 "costs: [{model: a, class: c, size: 2, source: derived, latency_ns: [1]},\n"
                 "        {model: a, class: c, size: 2, source: derived, latency_ns: [1]}]\n",
                        "given twice"},
                {"classes: [{name: c, kind: gpu, units: 8}]\ndevices: [{name: d, class: c, memory: 1}]\n"
                 "uses: [{model: a, class: c, l2: [2]}]\n",
                        "l2"},
                {"classes: [{name: c, kind: gpu, units: 8}]\ndevices: [{name: d, class: c, memory: 1}]\n"
                 "uses: [{model: a, class: c, l2: [0.5, 0.5]}]\n",
                        "2 entries for 1 batch sizes"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct sl_error error = {""};
                struct sl_costs *costs;
                char text[1024];

                snprintf(text, sizeof(text), "batches: [8]\nmodels: [{name: a, weights: 1}]\n%s", rows[i][0]);
                cr_expect_eq(costs_read(text, &costs, &error), -EINVAL, "row %zu", i);
                cr_expect(strstr(error.text, rows[i][1]), "row %zu: %s", i, error.text);
        }
        struct sl_error error = {""};
        struct sl_costs *costs;
        char many[256] = "batches: [8]\nmodels: [{name: a, weights: 1}]\nclasses: [{name: c, kind: gpu, units: 99, sizes: [1";
        for (int i = 2; i <= 17; i++)
                snprintf(many + strlen(many), sizeof(many) - strlen(many), ", %d", i);
        strcat(many, "]}]\ndevices: [{name: d, class: c, memory: 1}]\n");
        cr_expect_eq(costs_read(many, &costs, &error), -E2BIG);
        cr_expect(strstr(error.text, "sizes of a class"), "%s", error.text);
}

/* Of three models it has one; of "gpu0" there is a second one, which the costs have once, with memory of its own. */
Test(allocation_file, may_have_fewer_models_than_the_costs_and_more_devices_alike)
{
        struct sl_costs *costs = plain_fleet(2, 3), *rows;
        struct sl_allocation *allocation;
        struct sl_matrix *matrix;
        struct sl_error error = {""};
        char path[32];

        text_put("models: [m2]\nrows:\n  - {device: gpu0.3, batches: [32]}\n  - {device: gpu0, batches: [8]}\n", path);
        cr_assert_eq(sl_allocation_read(path, &allocation, &error), 0, "%s", error.text);
        unlink(path);
        cr_assert_eq(sl_allocation_bind(allocation, costs, &rows, &matrix, &error), 0, "%s", error.text);
        const struct sl_problem problem = {.costs = rows};
        cr_expect_eq(sl_matrix_check(&problem, matrix, &error), 0, "%s", error.text);
        uint32_t first = sl_costs_find_device(rows, "gpu0"), third = sl_costs_find_device(rows, "gpu0.3");
        cr_assert(first != SL_COST_NONE && third != SL_COST_NONE);
        cr_expect_str_eq(rows->models[0].name, "m2");
        cr_expect_eq(rows->n_models, 1);
        cr_expect_eq(sl_matrix_batch(matrix, first, 0), 8);
        cr_expect_eq(sl_matrix_batch(matrix, third, 0), 32);
        cr_expect_eq(sl_matrix_memory(&problem, matrix, third), 100 + 320);
        cr_expect_eq(sl_problem_room(&problem, third), 1000);
        sl_matrix_free(matrix);
        sl_costs_free(rows);
        sl_costs_free(costs);
        sl_allocation_free(allocation);
        matrix_refused("models: [m0]\nrows:\n  - {device: gpu9.2, batches: [8]}\n", "no device \"gpu9.2\" among the costs");
        matrix_refused("models: [m0]\nrows:\n  - {device: gpu0.1, batches: [8]}\n", "no device \"gpu0.1\" among the costs");
        matrix_refused("models: [m0]\nrows:\n  - {device: gpu0.99999, batches: [8]}\n", "no device \"gpu0.99999\" among the costs");
        matrix_refused("models: [m0]\nrows:\n  - {device: gpu0.4096, batches: [8]}\n  - {device: gpu1.2, batches: [8]}\n",
                "more than 4096 devices");
}
