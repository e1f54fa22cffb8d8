/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "lower.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sl_runner {
        struct sl_plan *plan;
        struct sl_instance *instance;
        void *outputs[SL_PLAN_PORTS_MAX];
        uint64_t output_bytes[SL_PLAN_PORTS_MAX];
};

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)
SL_DEFINE_CLEANUP(struct sl_runner *, sl_runner_free)

static int write_plan(const struct sl_graph *graph, const struct sl_lower_options *options, int fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *copy = NULL;
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        struct sl_lower_options single = *options;
        int r = sl_graph_copy(graph, &copy);

        single.batch_max = 1;
        if (r < 0)
                return sl_error_set(error, -r, "no memory for a copy of the graph");
        r = sl_lower_rewrite(copy, &single, error);
        r = r < 0 ? r : sl_lowered_new(copy, &single, &lowered, error);
        return r < 0 ? r : sl_lowered_write(lowered, fd, error);
}

static uint64_t bytes_of_sample(const struct sl_port *port)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};

        for (uint32_t i = 0; i < tensor.shape.rank; i++)
                tensor.shape.dims[i] = tensor.shape.dims[i] == SL_DIM_BATCH ? 1 : tensor.shape.dims[i];
        return sl_tensor_bytes(&tensor);
}

static int allocate_outputs(struct sl_runner *runner)
{
        const struct sl_plan_info *info = sl_plan_info(runner->plan);

        for (uint32_t i = 0; i < info->n_outputs; i++) {
                runner->output_bytes[i] = bytes_of_sample(&info->outputs[i]);
                runner->outputs[i] = aligned_alloc(SL_LINE_BYTES, sl_align_up(runner->output_bytes[i] + 1, SL_LINE_BYTES));
                if (!runner->outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

static int open_plan(struct sl_runner *runner, const struct sl_graph *graph, const struct sl_lower_options *options, int fd,
        struct sl_error *error)
{
        int r = write_plan(graph, options, fd, error);

        r = r < 0 ? r : sl_plan_open(fd, &runner->plan, error);
        r = r < 0 ? r : sl_instance_new(runner->plan, 1, &runner->instance, error);
        if (r == 0 && allocate_outputs(runner) < 0)
                r = sl_error_set(error, ENOMEM, "no memory for the outputs");
        return r;
}

int sl_runner_new(
        const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_runner **ret_runner, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_runner_free) struct sl_runner *runner = calloc(1, sizeof(*runner));
        int fd = memfd_create("starling-quantize", MFD_CLOEXEC), r;

        if (!runner || fd < 0) {
                if (fd >= 0)
                        close(fd);
                return sl_error_set(error, ENOMEM, "no memory for a plan");
        }
        r = open_plan(runner, graph, options, fd, error);
        close(fd);
        if (r < 0)
                return r;
        *ret_runner = sl_take(runner);
        return 0;
}

struct sl_runner *sl_runner_free(struct sl_runner *runner)
{
        if (!runner)
                return NULL;
        sl_instance_free(runner->instance);
        sl_plan_free(runner->plan);
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++)
                free(runner->outputs[i]);
        free(runner);
        return NULL;
}

uint64_t sl_runner_floats(const struct sl_runner *runner)
{
        const struct sl_plan_info *info = sl_plan_info(runner->plan);
        uint64_t floats = 0;

        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (info->outputs[i].dtype == SL_DTYPE_F32)
                        floats += runner->output_bytes[i] / sizeof(float);
        return floats;
}

uint64_t sl_runner_classes(const struct sl_runner *runner)
{
        const struct sl_port *port = &sl_plan_info(runner->plan)->outputs[0];

        return port->dtype == SL_DTYPE_F32 && port->shape.rank == 2 ? runner->output_bytes[0] / sizeof(float) : 0;
}

const char *sl_runner_output_of(const struct sl_runner *runner, uint64_t index)
{
        const struct sl_plan_info *info = sl_plan_info(runner->plan);

        for (uint32_t i = 0; i < info->n_outputs; i++) {
                uint64_t floats = info->outputs[i].dtype == SL_DTYPE_F32 ? runner->output_bytes[i] / sizeof(float) : 0;

                if (index < floats)
                        return info->outputs[i].name;
                index -= floats;
        }
        return "";
}

static int explain(const struct sl_runner *runner, int status, struct sl_error *error)
{
        struct sl_error reason = {""};

        sl_instance_explain(runner->instance, status, &reason);
        return sl_error_set(error, -status, "%s", reason.text[0] ? reason.text : strerrordesc_np(-status));
}

int sl_runner_run(struct sl_runner *runner, const void *const *inputs, float *ret_floats, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(runner->plan);
        int r = sl_instance_run(runner->instance, info->batches[0], inputs, runner->outputs);

        if (r < 0)
                return explain(runner, r, error);
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (info->outputs[i].dtype != SL_DTYPE_F32)
                        continue;
                memcpy(ret_floats, runner->outputs[i], runner->output_bytes[i]);
                ret_floats += runner->output_bytes[i] / sizeof(float);
        }
        return 0;
}
