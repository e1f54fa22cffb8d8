/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of the digits example, as a framework wrote them, each merged with copies of itself whose weights were changed. The
 * oracle is each copy by itself.
 */
#include "base/error.h"
#include "import.h"
#include "lanes.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#define LANES 3

static const char *const names[] = {"lenet", "resnet", "densenet", "mlp", "mobilenet"};

/* Every weight of lane @lane a little larger or smaller; what is integral or a single number stays. */
static void perturb(struct network *net, uint32_t lane)
{
        for (uint32_t i = 0; i < net->graph->n_values && lane; i++) {
                struct sl_value *value = &net->graph->values[i];
                float *data;

                if (value->kind != SL_VALUE_CONSTANT || value->dead || value->tensor.dtype != SL_DTYPE_F32 || value->data_bytes < 8)
                        continue;
                data = sl_graph_alloc(net->graph, value->data_bytes);
                cr_assert_not_null(data);
                for (uint64_t k = 0; k < value->data_bytes / sizeof(float); k++)
                        data[k] = ((const float *)sl_graph_constant(net->graph, i))[k] * (1 + 0.1f * network_random(net));
                value->data = data;
        }
}

static void import_lane(struct network *net, const char *name, uint32_t lane)
{
        struct sl_error error = {0};
        char path[512];

        *net = (struct network){.state = 12345 + lane};
        snprintf(path, sizeof(path), "%s/models/%s/1/model.onnx", DIGITS, name);
        cr_assert_eq(sl_import_onnx(path, NULL, &net->graph, &error), 0, "%s", error.text);
        perturb(net, lane);
        cr_assert_eq(sl_passes_run_phase(net->graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, &error), 0, "%s", error.text);
}

Test(merge_digits, each_network_merges_as_a_whole_and_computes_what_its_copies_do)
{
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct network nets[LANES];
                struct sl_merge_report report;
                struct sl_graph *merged;

                for (uint32_t l = 0; l < LANES; l++)
                        import_lane(&nets[l], names[i], l);
                merged = lanes_merge(nets, LANES, NULL, &report);
                cr_expect_eq(report.n_breaks, 0, "%s: %s", names[i], report.breaks[0].text);
                cr_expect_eq(report.n_islands, 0, "%s: %s", names[i], report.islands[0].reason);
                lanes_expect_equal(nets, LANES, merged, 2, 1e-5);
                sl_graph_free(merged);
                for (uint32_t l = 0; l < LANES; l++)
                        network_deinit(&nets[l]);
        }
}
