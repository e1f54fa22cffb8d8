/* SPDX-License-Identifier: Apache-2.0 */
#include "cold_node.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "huge_pages.h"
#include "op.h"
#include "shape/recurrent.h"
#include "team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WEIGHTS_MAX 2 /* inputs 1 and 2 */

struct sl_cold_node {
        struct sl_node_desc desc;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        struct sl_kernel *kernel;
        struct sl_split splits[SL_TEAM_SIZE_COUNT];
        const struct sl_target *target;
        const struct sl_cold_memory *memory;
        size_t weight_bytes[WEIGHTS_MAX], at; /* as they lie; where the next launch reads */
        void *others[SL_NODE_INPUTS_MAX], *outputs[SL_NODE_OUTPUTS_MAX], *scratch;
        size_t scratch_bytes; /* of one member */
};

SL_DEFINE_CLEANUP(struct sl_cold_node *, sl_cold_node_free)

int sl_cold_memory_init(struct sl_cold_memory *memory, size_t n_bytes)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("starling-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct sl_huge_pages pages = {0};
        const void *bytes;

        if (fd < 0 || ftruncate(fd, (off_t)n_bytes) < 0)
                return -ENOMEM;
        sl_huge_pages_reach(&pages, fd, n_bytes);
        sl_huge_pages_deinit(&pages);
        bytes = sl_huge_pages_map(fd, n_bytes);
        if (bytes == MAP_FAILED)
                return -ENOMEM;
        *memory = (struct sl_cold_memory){.bytes = bytes, .n_bytes = n_bytes};
        return 0;
}

void sl_cold_memory_deinit(struct sl_cold_memory *memory)
{
        if (memory->bytes)
                munmap((void *)memory->bytes, memory->n_bytes);
        memory->bytes = NULL;
}

static bool is_recurrence(const struct sl_cold_node *node)
{
        return node->desc.op == SL_OP_LSTM || node->desc.op == SL_OP_GRU || node->desc.op == SL_OP_RNN;
}

static uint32_t weights_of(const struct sl_cold_node *node)
{
        return is_recurrence(node) ? 2 : 1;
}

/* Small numbers: neither zeros nor what becomes one. */
static void *take_floats(size_t bytes)
{
        float *floats = aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes + 1, SL_LINE_BYTES));

        for (size_t i = 0; floats && i < bytes / sizeof(*floats); i++)
                floats[i] = (float)(i % 17) / 16.0f - 0.5f;
        return floats;
}

static int choose_forms(struct sl_cold_node *node)
{
        size_t sum = 0;

        for (uint32_t i = 0; i < weights_of(node); i++) {
                const struct sl_packed *packed = &node->packed[1 + i];
                int r = sl_backend_cpu.planner->pack(NULL, &node->desc, 1 + i, &node->packed[1 + i]);

                if (r < 0)
                        return r;
                node->weight_bytes[i] = packed->data_bytes ? packed->data_bytes : sl_tensor_bytes(&node->desc.inputs[1 + i]);
                sum += sl_align_up(node->weight_bytes[i], SL_LINE_BYTES);
        }
        return sum <= node->memory->n_bytes ? 0 : -E2BIG;
}

/* What it takes besides the weights. A member has scratch of its own. */
static int take_memory(struct sl_cold_node *node)
{
        bool all = true;

        for (uint32_t i = 0; i < node->desc.n_inputs; i++) {
                bool weights = i >= 1 && i < 1 + weights_of(node);

                if (weights || node->desc.inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                node->others[i] = take_floats(sl_tensor_bytes(&node->desc.inputs[i]));
                all = all && node->others[i];
        }
        for (uint32_t i = 0; i < node->desc.n_outputs; i++) {
                node->outputs[i] = take_floats(sl_tensor_bytes(&node->desc.outputs[i]));
                all = all && node->outputs[i];
        }
        node->scratch_bytes = sl_align_up(sl_backend_cpu.runner->scratch_bytes(node->kernel), SL_PAGE_BYTES);
        node->scratch = take_floats(node->scratch_bytes * SL_COLD_MEMBERS_MAX + SL_PAGE_BYTES);
        return all && node->scratch ? 0 : -ENOMEM;
}

/* The addresses of the next launch's weights, one constant behind the other. */
static void find_weights(struct sl_cold_node *node, const void *inputs[SL_NODE_INPUTS_MAX])
{
        size_t sum = 0;

        for (uint32_t i = 0; i < node->desc.n_inputs; i++)
                inputs[i] = node->others[i];
        for (uint32_t i = 0; i < weights_of(node); i++)
                sum += sl_align_up(node->weight_bytes[i], SL_LINE_BYTES);
        if (node->at + sum > node->memory->n_bytes)
                node->at = 0;
        for (uint32_t i = 0; i < weights_of(node); i++) {
                inputs[1 + i] = node->memory->bytes + node->at;
                node->at += sl_align_up(node->weight_bytes[i], SL_LINE_BYTES);
        }
}

static int compile(struct sl_cold_node *node, struct sl_error *error)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_kernel_source source = {.target = node->target, .node = &node->desc, .packed = node->packed, .constants = constants};
        struct sl_provision provision;
        int r = sl_op_infer(&node->desc, error);

        r = r < 0 ? r : choose_forms(node);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < weights_of(node); i++)
                constants[1 + i] = node->memory->bytes;
        r = sl_backend_cpu.planner->provide(&source, &provision, error);
        if (r < 0)
                return r;
        memcpy(node->splits, provision.splits, sizeof(node->splits));
        return sl_backend_cpu.runner->compile(NULL, &source, &node->kernel, error);
}

int sl_cold_node_new(const struct sl_node_desc *desc, const struct sl_target *target, const struct sl_cold_memory *memory,
        struct sl_cold_node **ret_node, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_cold_node_free) struct sl_cold_node *node = calloc(1, sizeof(*node));
        int r;

        if (!node)
                return -ENOMEM;
        node->desc = *desc;
        node->target = target;
        node->memory = memory;
        r = compile(node, error);
        r = r < 0 ? r : take_memory(node);
        if (r == 0)
                *ret_node = sl_take(node);
        return r;
}

struct sl_cold_node *sl_cold_node_free(struct sl_cold_node *node)
{
        if (!node)
                return NULL;
        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                free(node->others[i]);
        for (uint32_t i = 0; i < SL_NODE_OUTPUTS_MAX; i++)
                free(node->outputs[i]);
        sl_backend_cpu.runner->kernel_free(node->kernel);
        free(node->scratch);
        free(node);
        return NULL;
}

double sl_cold_node_bytes(const struct sl_cold_node *node)
{
        double steps = is_recurrence(node) ? (double)node->desc.inputs[0].shape.dims[0] : 0;

        return (double)node->weight_bytes[0] + steps * (double)node->weight_bytes[1];
}

struct launch {
        struct sl_cold_node *node;
        const void *const *inputs;
        struct sl_split split;
        int64_t units, stage, stages;
        int results[SL_COLD_MEMBERS_MAX];
};

static void launch_part(void *context, uint32_t index, uint32_t member)
{
        struct launch *launch = context;
        struct sl_cold_node *node = launch->node;
        struct sl_part part = sl_part_of(launch->split.axis, launch->units, index, launch->split.members);
        struct sl_binding binding = {.inputs = launch->inputs,
                .outputs = node->outputs,
                .scratch = (char *)node->scratch + (launch->stages > 1 ? 0 : member * node->scratch_bytes),
                .part = &part};

        part.stage = launch->stage;
        launch->results[index] = sl_backend_cpu.runner->launch(node->kernel, &binding);
}

static int launch_parts(struct launch *launch, struct sl_team *team)
{
        for (; launch->stage < launch->stages; launch->stage++) {
                sl_team_run(team, launch->split.members, launch_part, launch);
                for (uint32_t i = 0; i < launch->split.members; i++)
                        if (launch->results[i])
                                return launch->results[i];
        }
        return 0;
}

int sl_cold_node_launch(struct sl_cold_node *node, struct sl_team *team)
{
        const void *inputs[SL_NODE_INPUTS_MAX];
        struct sl_binding whole = {.inputs = inputs, .outputs = node->outputs, .scratch = node->scratch};
        struct launch launch = {.node = node, .inputs = inputs};

        find_weights(node, inputs);
        if (team)
                launch.split = sl_split_for(node->splits, sl_team_size(team));
        if (launch.split.members < 2)
                return sl_backend_cpu.runner->launch(node->kernel, &whole);
        launch.units = sl_backend_cpu.runner->units(node->kernel, launch.split.axis);
        launch.stages = sl_backend_cpu.runner->stages(node->kernel);
        return launch_parts(&launch, team);
}
