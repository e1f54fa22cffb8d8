/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole networks of the zoo are planned for an H200 that is not there: each convolution by cuDNN, each product by cuBLASLt, and
 * what the plan keeps of cuDNN loads again with the same workspace. What cannot be planned is refused by its node. Models are made
 * of their skeletons (perf/zoo). Where there is no cuDNN the tests skip and say so.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "cuda/planning.h"
#include "cuda/record.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "plan.h"
#include "plan_map.h"
#include "seeded.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BATCH 1

static struct sl_lower_options options;

static bool has_cudnn(void)
{
        struct sl_error error = {""};
        int r;

        sl_lower_options_init(&options);
        cr_assert_eq(sl_lower_options_parse(&options, "backend=cuda", &error), 0, "%s", error.text);
        cr_assert_eq(sl_lower_options_parse(&options, "gpu=h200", &error), 0, "%s", error.text);
        options.batch_max = BATCH;
        r = sl_lower_open(&options, &error);
        if (r == -ENOENT)
                fprintf(stderr, "skipped: %s\n", error.text);
        else
                cr_assert_eq(r, 0, "%s", error.text);
        return r == 0;
}

static struct sl_graph *read_model(const char *name)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(&options);
        struct sl_graph *graph;
        struct sl_error error = {""};
        char path[512];
        void *bytes;
        size_t n;

        snprintf(path, sizeof(path), SKELETONS "/%s.onnx", name);
        cr_assert_eq(sl_seeded_model(path, 1, &bytes, &n, &error), 0, "%s", error.text);
        cr_assert_eq(sl_import_onnx_bytes_bound(bytes, n, &limits, &options.shapes, &graph, &error), 0, "%s: %s", name, error.text);
        free(bytes);
        return graph;
}

/* Return: the plan; NULL: refused, with the line. */
static struct sl_plan *make_plan(const char *name, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_graph *graph = read_model(name);
        struct sl_lowered *lowered = NULL;
        struct sl_plan *plan = NULL;
        int r = sl_lower_rewrite(graph, &options, error);

        if (r == 0)
                r = sl_lowered_new_in(graph, &options, NULL, fd, &lowered, error);
        if (r == 0) {
                cr_assert_eq(sl_lowered_write(lowered, fd, error), 0, "%s", error->text);
                sl_lowered_free(lowered);
        }
        sl_graph_free(graph);
        if (r == 0)
                cr_assert_eq(sl_plan_open(fd, &plan, error), 0, "%s: %s", name, error->text);
        return plan;
}

struct tally {
        uint32_t convolutions, products, loaded, several;
};

static void check_steps(const char *name, const struct sl_plan *plan, struct tally *tally)
{
        struct sl_step_info step;

        for (uint64_t i = 0; sl_plan_step_info(plan, BATCH, i, &step) == 0; i++) {
                bool convolves = !strcmp(step.operator_name, "Conv");
                bool multiplies = !strcmp(step.operator_name, "Gemm") || !strcmp(step.operator_name, "MatMul");

                cr_expect_str_eq(step.backend, "cuda", "%s: %s", name, step.name);
                cr_expect(!convolves || strstr(step.algorithm, "cuDNN"), "%s: %s is of %s", name, step.name, step.algorithm);
                cr_expect(!multiplies || strstr(step.algorithm, "cuBLASLt"), "%s: %s is of %s", name, step.name, step.algorithm);
                tally->convolutions += convolves;
                tally->products += multiplies;
        }
}

/* Every text of cuDNN that the plan has. */
static void load_again(const char *name, const struct sl_plan *plan, struct tally *tally)
{
        const struct sl_target target = sl_lower_options_target(&options);
        const struct sl_plan_backend *row = &plan->backends[0];
        struct sl_cudnn_planner *planner;
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_planning_open(&target, &planner, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_count(plan, SL_PLAN_SECTION_BACKENDS), 1, "%s is computed by cuda alone", name);
        for (uint64_t i = 0; i < row->n_blobs; i++) {
                const struct sl_blob blob = sl_plan_blob(plan, row, i);
                struct sl_cuda_record record;

                cr_assert_eq(sl_cuda_record_read(&blob, &record, &error), 0, "%s: %s", name, error.text);
                for (uint32_t k = 0; k < record.n && record.candidates[k].text; k++) {
                        const struct sl_cuda_candidate *c = &record.candidates[k];
                        uint64_t workspace_bytes = 1;

                        cr_assert_eq(sl_cudnn_plan_load(planner, c->text, c->text_bytes, &workspace_bytes, &error), 0, "%s: %s",
                                name, error.text);
                        cr_assert_eq(workspace_bytes, c->workspace_bytes, "%s", name);
                        tally->loaded++;
                }
                tally->several += record.n > 1;
        }
}

static void expect_planned(const char *name)
{
        struct sl_error error = {""};
        struct tally tally = {0};
        struct sl_plan *plan;

        if (!has_cudnn())
                return;
        plan = make_plan(name, &error);
        cr_assert_not_null(plan, "%s: %s", name, error.text);
        check_steps(name, plan, &tally);
        load_again(name, plan, &tally);
        cr_expect_gt(tally.convolutions + tally.products, 0);
        cr_expect(!tally.convolutions || tally.loaded, "%s has convolutions, and nothing of cuDNN", name);
        cr_expect(!tally.convolutions || tally.several, "%s has convolutions, and nothing to choose from", name);
        fprintf(stderr, "%s: %u convolutions, %u products, %u plans of cuDNN (%u nodes have several), workspace %llu bytes\n", name,
                tally.convolutions, tally.products, tally.loaded, tally.several,
                (unsigned long long)sl_plan_info(plan)->workspace_bytes[0]);
        sl_plan_free(plan);
}

static void expect_refused(const char *name, const char *words)
{
        struct sl_error error = {""};

        if (!has_cudnn())
                return;
        cr_assert_null(make_plan(name, &error), "%s has a plan", name);
        cr_expect_not_null(strstr(error.text, words), "%s: %s", name, error.text);
}

/* A suite for each, so that each is a test of ctest. */
Test(bert, is_planned_for_a_gpu)
{
        expect_planned("bert-base");
}

Test(densenet, is_planned_for_a_gpu)
{
        expect_planned("densenet121");
}

Test(efficientnet, is_planned_for_a_gpu)
{
        expect_planned("efficientnet-b0");
}

Test(googlenet, is_planned_for_a_gpu)
{
        expect_planned("googlenet");
}

Test(inception, is_planned_for_a_gpu)
{
        expect_planned("inceptionv3");
}

Test(lenet, is_planned_for_a_gpu)
{
        expect_planned("lenet");
}

Test(gru, is_planned_for_a_gpu)
{
        expect_planned("gru");
}

Test(lstm, is_planned_for_a_gpu)
{
        expect_planned("lstm");
}

Test(minilm, is_planned_for_a_gpu)
{
        expect_planned("minilm");
}

Test(mobilenet_two, is_planned_for_a_gpu)
{
        expect_planned("mobilenetv2");
}

Test(mobilenet_three, is_planned_for_a_gpu)
{
        expect_planned("mobilenetv3");
}

Test(resnet_small, is_planned_for_a_gpu)
{
        expect_planned("resnet18");
}

Test(resnet_large, is_planned_for_a_gpu)
{
        expect_planned("resnet50");
}

Test(resnext, is_planned_for_a_gpu)
{
        expect_planned("resnext50");
}

Test(shufflenet, is_planned_for_a_gpu)
{
        expect_planned("shufflenetv2");
}

Test(squeezenet, is_planned_for_a_gpu)
{
        expect_planned("squeezenet");
}

Test(transformer_tiny, is_planned_for_a_gpu)
{
        expect_planned("transformer-tiny");
}

Test(vgg, is_planned_for_a_gpu)
{
        expect_planned("vgg16");
}

Test(vit_small, is_planned_for_a_gpu)
{
        expect_planned("vit-small");
}

Test(xception, is_planned_for_a_gpu)
{
        expect_planned("xception");
}

/* In bfloat16 casts stand at the ports, and beside what a mask is made of. */
static void expect_casts(const char *name, uint32_t most)
{
        struct sl_error error = {""};
        struct sl_graph *graph;
        uint32_t n = 0;

        if (!has_cudnn())
                return;
        cr_assert_eq(sl_lower_options_parse(&options, "precision=bf16", &error), 0, "%s", error.text);
        graph = read_model(name);
        cr_assert_eq(sl_lower_rewrite(graph, &options, &error), 0, "%s: %s", name, error.text);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].op == SL_OP_CAST;
        cr_expect_leq(n, most, "%s has %u", name, n);
        cr_expect_geq(n, 2, "%s is not narrowed", name);
        sl_graph_free(graph);
}

Test(narrow, networks_stay_so_from_one_end_to_the_other)
{
        expect_casts("densenet121", 2);
        expect_casts("mobilenetv3", 2);
        expect_casts("resnet50", 2);
        expect_casts("minilm", 5);
        expect_casts("vit-small", 5);
}

/* Each skeleton has a test above, or below. */
Test(skeletons, are_all_tried)
{
        static const char *const tried[] = {"bert-base", "densenet121", "efficientnet-b0", "googlenet", "gru", "inceptionv3", "lenet",
                "lstm", "minilm", "mobilenetv2", "mobilenetv3", "resnet18", "resnet50", "resnext50", "shufflenetv2", "squeezenet",
                "ssd-mobilenet", "transformer-tiny", "vgg16", "vit-small", "xception"};
        DIR *folder = opendir(SKELETONS);
        struct dirent *entry;

        cr_assert_not_null(folder);
        while ((entry = readdir(folder))) {
                size_t n = strcspn(entry->d_name, "."), i = 0;

                while (n && i < sizeof(tried) / sizeof(tried[0]) && (strlen(tried[i]) != n || memcmp(tried[i], entry->d_name, n)))
                        i++;
                cr_expect(i < sizeof(tried) / sizeof(tried[0]), "nothing tries %s", entry->d_name);
        }
        closedir(folder);
}

Test(refused, are_networks_that_need_the_host)
{
        expect_refused("ssd-mobilenet", "NonMaxSuppression");
}
