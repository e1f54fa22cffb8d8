/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work a plan may be, and how a step that is long ends: what is refused is refused before anything runs, and what is ended
 * is ended inside of a step. These steps would take hours; nothing here looks at how long they take.
 */
#include "base/error.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"
#include "stop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIDE    16
#define REGIONS 128
#define CELLS   8 /* of a region, in each direction */

/* Regions of one image of @channels; @samples of each cell in each direction, 0: as many as the region has pixels. */
static void build_regions(struct network *net, int64_t channels, int64_t samples)
{
        uint32_t image, regions, images;

        network_init(net);
        image = network_input(net, SL_DTYPE_F32, DIMS(1, channels, SIDE, SIDE));
        regions = network_input(net, SL_DTYPE_F32, DIMS(REGIONS, 4));
        images = network_input(net, SL_DTYPE_I64, DIMS(REGIONS));
        network_output(net, network_node(net, SL_OP_ROI_ALIGN, VALUES(image, regions, images),
                                    ATTRS({SL_ATTR_OUTPUT_HEIGHT, 0, {CELLS}}, {SL_ATTR_OUTPUT_WIDTH, 0, {CELLS}},
                                            {SL_ATTR_SAMPLING_RATIO, 0, {samples}})));
        network_finish(net);
}

static struct sl_instance *instance_of(struct network *net, struct sl_plan **ret_plan)
{
        int fd = network_plan_fd(net, "cpu", 1);
        struct sl_instance *instance;

        cr_assert_eq(sl_plan_open(fd, ret_plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_instance_new(*ret_plan, 1, &instance, NULL), 0);
        return instance;
}

static int run_regions(struct sl_instance *instance, float extent)
{
        static const float image[SIDE * SIDE];
        static const int64_t images[REGIONS];
        static float out[REGIONS * CELLS * CELLS];
        float regions[REGIONS * 4];

        for (int i = 0; i < REGIONS * 4; i++)
                regions[i] = i % 4 < 2 ? 0 : extent;
        return sl_instance_run(instance, 1, (const void *const[]){image, regions, images}, (void *const[]){out});
}

static int lower_with(
        struct network *net, double work_max, uint32_t batch_max, struct sl_plan_info *ret_info, struct sl_error *error)
{
        struct sl_lowered *lowered = NULL;
        struct sl_lower_options options;
        int r;

        sl_lower_options_init(&options);
        options.work_max = work_max;
        options.batch_max = batch_max;
        r = sl_lowered_new(net->graph, &options, &lowered, error);
        if (r == 0)
                *ret_info = lowered->info;
        sl_lowered_free(lowered);
        return r;
}

/* 128 regions of 64 cells of 4,096 x 4,096 samples, of 32 channels. */
Test(work, a_node_that_is_more_than_work_max_is_refused_by_name_with_its_work_and_the_limit)
{
        struct sl_error error = {""};
        struct sl_lower_options options;
        struct sl_plan_info info;
        struct network net;

        sl_lower_options_init(&options);
        build_regions(&net, 32, 4096);
        cr_assert_eq(lower_with(&net, options.work_max, 1, &info, &error), -E2BIG);
        cr_assert(strstr(error.text, "(RoiAlign) is work of 1.76e+13 elementary steps"), "%s", error.text);
        cr_assert(strstr(error.text, "work_max is 1e+13"), "%s", error.text);
        network_deinit(&net);
}

Test(work, the_ladder_ends_where_a_batch_is_more_than_work_max)
{
        struct sl_error error = {""};
        struct sl_plan_info info;
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 1000));
        network_output(&net, network_node(&net, SL_OP_MATMUL, VALUES(x, network_weights(&net, DIMS(1000, 10))), 0, NULL));
        network_finish(&net);
        cr_assert_eq(lower_with(&net, 1e5, 8, &info, &error), 0, "%s", error.text);
        cr_assert_eq(info.n_batches, 4);
        cr_assert_eq(lower_with(&net, 5e4, 8, &info, &error), 0, "%s", error.text);
        cr_assert_eq(info.n_batches, 3);
        cr_assert_eq(info.batches[2], 4);
        cr_assert_eq(info.batches[3], 0);
        cr_assert_eq(lower_with(&net, 1.1e4, 8, &info, &error), 0, "%s", error.text);
        cr_assert_eq(info.n_batches, 1);
        cr_assert_eq(lower_with(&net, 9e3, 8, &info, &error), -E2BIG);
        cr_assert(strstr(error.text, "batch 1: node"), "%s", error.text);
        network_deinit(&net);
}

/* Without a look inside of the step these 34 thousand million samples would take half a minute. */
Test(work, a_deadline_ends_a_run_inside_of_a_step)
{
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct network net;

        build_regions(&net, 1, 2048);
        instance = instance_of(&net, &plan);
        sl_instance_watch(instance, &(struct sl_stop){.deadline_ns = sl_clock_ns() + SL_NS_PER_MS});
        cr_assert_eq(run_regions(instance, SIDE), -ETIME);
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}

/* What a client makes of it is not known when the model is compiled: it is counted as it goes. */
Test(work, regions_that_are_far_larger_than_the_image_end_a_run_and_the_next_is_as_good_as_before)
{
        struct sl_lowered *lowered = NULL;
        int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_lower_options options;
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct network net;

        build_regions(&net, 1, 0);
        sl_lower_options_init(&options);
        options.work_max = 1e7;
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, NULL), 0);
        cr_assert_eq(sl_lowered_write(lowered, fd, NULL), 0);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, NULL), 0);
        cr_assert_eq(run_regions(instance, SIDE), 0);
        cr_assert_eq(run_regions(instance, 4000 * CELLS), -E2BIG);
        cr_assert_eq(run_regions(instance, SIDE), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}
