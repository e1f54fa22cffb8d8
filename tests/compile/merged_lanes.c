/* SPDX-License-Identifier: Apache-2.0 */
#include "merged_lanes.h"

#include "base/error.h"
#include "lower.h"
#include "merge/merge.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sl_plan *plan_of(const struct sl_graph *graph, uint32_t lanes)
{
        struct sl_lower_options options;
        struct sl_error error = {0};
        struct sl_lowered *lowered;
        struct sl_plan *plan;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = MERGED_BATCH_MAX;
        cr_assert_eq(sl_lowered_new(graph, &options, &lowered, &error), 0, "%s", error.text);
        lowered->info.n_lanes = lanes;
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static void build_lane(struct network *net, uint64_t seed, void (*build)(struct network *net))
{
        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        build(net);
        network_finish(net);
}

void merged_lanes_init(struct merged_lanes *merged, void (*build)(struct network *net))
{
        const struct sl_graph *graphs[MERGED_LANES];
        struct sl_merge_report report;
        struct sl_error error = {0};
        struct sl_graph *graph;

        for (uint32_t i = 0; i < MERGED_LANES; i++) {
                build_lane(&merged->nets[i], i, build);
                graphs[i] = merged->nets[i].graph;
                merged->singles[i] = plan_of(graphs[i], 0);
        }
        cr_assert_eq(sl_graph_new(&graph), 0);
        cr_assert_eq(sl_merge(graphs, MERGED_LANES, &(struct sl_merge_options){0}, graph, &report, &error), 1, "%s", error.text);
        merged->plan = plan_of(graph, MERGED_LANES);
        sl_graph_free(graph);
}

void merged_lanes_deinit(struct merged_lanes *merged)
{
        for (uint32_t i = 0; i < MERGED_LANES; i++) {
                sl_plan_free(merged->singles[i]);
                network_deinit(&merged->nets[i]);
        }
        sl_plan_free(merged->plan);
}
