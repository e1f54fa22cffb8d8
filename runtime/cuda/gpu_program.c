/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_program.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph_ports.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>

struct sl_gpu_program {
        struct sl_gpu_program_options options;
        uint32_t holders;
        const char *name;
        uint64_t weights_bytes; /* in the book */
        struct sl_residence *constants;
        struct sl_pool *pool;
        uint64_t pool_bytes; /* the same */
};

SL_DEFINE_CLEANUP(struct sl_gpu_program *, sl_gpu_program_free)

uint64_t sl_gpu_port_bytes(const struct sl_port *port, uint32_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        if (sl_port_is_open(port))
                return UINT64_MAX;
        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        return sl_tensor_bytes(&tensor);
}

uint64_t sl_gpu_ports_room(const struct sl_port *ports, uint32_t n, uint32_t batch)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++)
                bytes += sl_align_up(sl_gpu_port_bytes(&ports[i], batch), SL_GPU_PORT_ALIGNMENT);
        return bytes;
}

uint64_t sl_gpu_results_bytes(const struct sl_plan_info *info, uint32_t batch)
{
        return sl_gpu_ports_room(info->outputs, info->n_outputs, batch) + SL_GPU_PORT_ALIGNMENT;
}

uint64_t sl_gpu_ports_bytes(const struct sl_plan_info *info, uint32_t batch, uint32_t n_slots)
{
        return sl_gpu_ports_room(info->inputs, info->n_inputs, batch) + sl_gpu_results_bytes(info, batch) * (n_slots + 1ull);
}

static int place_weights(struct sl_gpu_program *program, struct sl_error *error)
{
        const struct sl_gpu_program_options *o = &program->options;
        uint64_t bytes = sl_plan_info(o->plan)->weights_bytes;
        int r;

        if (sl_plan_base(o->plan) && !o->base)
                bytes += sl_plan_info(sl_plan_base(o->plan))->weights_bytes;
        r = sl_gpu_promise(o->gpu, SL_GPU_WEIGHTS, bytes, program->name, error);
        if (r < 0)
                return r;
        program->weights_bytes = bytes;
        r = sl_residence_new(o->plan, &o->gpu->common, o->base ? o->base->constants : NULL, &program->constants, error);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\"", program->name) : 0;
}

/* What the pool takes is known when it is there: of the device it is no longer to be asked for. */
int sl_gpu_program_need_pool(struct sl_gpu_program *program, uint32_t n_slots, uint64_t bytes_max, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(program->options.plan);
        uint64_t slot_bytes[SL_PLAN_PORTS_MAX];
        const struct sl_pool_options options = {.device = program->options.gpu->device,
                .slot_bytes = slot_bytes,
                .n_inputs = info->n_inputs,
                .n_slots = n_slots,
                .bytes_max = bytes_max};
        int r;

        if (program->pool)
                return 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                slot_bytes[i] = sl_gpu_port_bytes(&info->inputs[i], 1);
        r = sl_pool_new(&options, &program->pool, error);
        if (r < 0)
                return sl_error_prefix(error, r, "model \"%s\"", program->name);
        r = sl_gpu_memory_take(&program->options.gpu->memory, SL_GPU_POOLS, sl_pool_layout_of(program->pool)->total_bytes,
                UINT64_MAX, program->name, error);
        if (r < 0)
                program->pool = sl_pool_free(program->pool);
        else
                program->pool_bytes = sl_pool_layout_of(program->pool)->total_bytes;
        return r;
}

static int check_plan(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(plan);

        if (sl_plan_is_dynamic(plan))
                return sl_error_set(
                        error, ENOTSUP, "model \"%s\": a step of it depends on the data, which a GPU cannot run", info->name);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (sl_port_is_open(&info->outputs[i]))
                        return sl_error_set(error, ENOTSUP,
                                "model \"%s\": output \"%s\" says only afterwards how large it is, which a GPU cannot give",
                                info->name, info->outputs[i].name);
        if (info->n_inputs > SL_GRAPH_PORTS_MAX || info->n_outputs >= SL_GRAPH_PORTS_MAX)
                return sl_error_set(error, ENOTSUP,
                        "model \"%s\" has %u inputs and %u outputs, a GPU takes at most %u and gives %u", info->name,
                        info->n_inputs, info->n_outputs, SL_GRAPH_PORTS_MAX, SL_GRAPH_PORTS_MAX - 1);
        if (!info->n_inputs || !info->n_outputs || !info->n_batches)
                return sl_error_set(error, ENOTSUP, "model \"%s\": a GPU runs models with inputs, outputs and sizes", info->name);
        return 0;
}

int sl_gpu_program_new(const struct sl_gpu_program_options *options, struct sl_gpu_program **ret_program, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_gpu_program_free) struct sl_gpu_program *program = NULL;
        int r = check_plan(options->plan, error);

        if (r < 0)
                return r;
        program = calloc(1, sizeof(*program));
        if (!program)
                return sl_error_set(error, ENOMEM, "no memory for a program");
        program->options = *options;
        program->holders = 1;
        program->name = sl_plan_info(options->plan)->name;
        sl_gpu_program_hold(options->base);
        r = place_weights(program, error);
        if (r == 0)
                *ret_program = sl_take(program);
        return r;
}

struct sl_gpu_program *sl_gpu_program_hold(struct sl_gpu_program *program)
{
        if (program)
                program->holders++;
        return program;
}

struct sl_gpu_program *sl_gpu_program_free(struct sl_gpu_program *program)
{
        if (!program || --program->holders)
                return NULL;
        sl_pool_free(program->pool);
        sl_gpu_memory_give_back(&program->options.gpu->memory, SL_GPU_POOLS, program->pool_bytes);
        sl_residence_free(program->constants);
        sl_gpu_memory_give_back(&program->options.gpu->memory, SL_GPU_WEIGHTS, program->weights_bytes);
        sl_gpu_program_free(program->options.base);
        free(program);
        return NULL;
}

struct sl_gpu *sl_gpu_program_gpu(const struct sl_gpu_program *program)
{
        return program->options.gpu;
}

const struct sl_plan *sl_gpu_program_plan(const struct sl_gpu_program *program)
{
        return program->options.plan;
}

const struct sl_residence *sl_gpu_program_constants(const struct sl_gpu_program *program)
{
        return program->constants;
}

struct sl_pool *sl_gpu_program_pool(const struct sl_gpu_program *program)
{
        return program->pool;
}

/*
 * What products and convolutions make, each apart from the others. What is made of that element by element is not counted, as if
 * all of it were fused or in place.
 */
static int intermediate_bytes(const struct sl_plan *plan, uint32_t batch, uint64_t *ret_bytes)
{
        uint64_t n = sl_plan_steps(plan, batch), bytes = 0;
        struct sl_step_info step;
        int r = n ? 0 : -EINVAL;

        for (uint64_t i = 0; i < n && r == 0; i++) {
                r = sl_plan_step_info(plan, batch, i, &step);
                bytes += r == 0 && step.multiply_adds ? sl_tensor_bytes(&step.out) : 0;
        }
        *ret_bytes = bytes;
        return r;
}

int sl_gpu_footprint(const struct sl_plan *plan, const uint32_t *batches, uint32_t n_workers, uint32_t n_slots,
        struct sl_gpu_footprint *ret_footprint)
{
        uint64_t weights_bytes = sl_plan_info(plan)->weights_bytes + sl_plan_info(plan)->shared_bytes, bytes;
        struct sl_gpu_footprint footprint = {.shared_bytes = weights_bytes};
        int r = 0;

        for (uint32_t i = 0; i < n_workers && r == 0; i++) {
                r = intermediate_bytes(plan, batches[i], &bytes);
                footprint.shared_bytes +=
                        sl_plan_workspace_bytes(plan, batches[i]) + sl_gpu_ports_bytes(sl_plan_info(plan), batches[i], n_slots);
                footprint.duplicated_bytes += weights_bytes + bytes;
        }
        *ret_footprint = footprint;
        return r;
}
