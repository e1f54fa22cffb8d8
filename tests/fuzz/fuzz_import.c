/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: bytes -> import -> passes -> specialise -> placement, memory plan, plan file -> checked, made executable, and run when
 * it is small; then the same with all open dimensions unknown, as a plan of any size. An error is fine, a crash, a leak or a hang
 * is not; nor is a plan file of ours that the checker refuses. The limits are small so that a run is quick; the arithmetic that
 * guards them is the same.
 *
 * Half of the mutations are of bytes, half of the parsed message: those give files that are well-formed and mean something else.
 */
#include "any_size.h"
#include "backend.h"
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "lower_options.h"
#include "mutate_model.h"
#include "pass.h"
#include "plan.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t capacity, unsigned seed);

static const struct sl_graph_limits limits = {
        .file_bytes = 1 << 20,
        .constant_bytes = 1 << 22,
        .nodes = 1000,
        .values = 2000,
        .tensor_bytes = 1 << 20,
};

static void specialise(const struct sl_graph *graph, int64_t batch)
{
        struct sl_graph *special = NULL;
        struct sl_error error;

        if (sl_graph_specialise(graph, batch, &special, &error) == 0 && sl_graph_check(special, &error) < 0)
                abort();
        sl_graph_free(special);
}

#define WORKSPACE_BYTES_MAX (1u << 20)
#define DYNAMIC_BYTES_MAX   (1u << 22)
#define MULTIPLY_ADDS_MAX   (1u << 20)
#define WORK_MAX            (1u << 26)
#define PORT_BYTES          (1u << 20)

/* Numbers that are good and bad indices by turns. */
static void *port_new(const struct sl_port *port)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};
        uint8_t *data;

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = 1;
        if (sl_tensor_bytes(&tensor) > PORT_BYTES)
                return NULL;
        data = aligned_alloc(64, (sl_tensor_bytes(&tensor) + 64) & ~63ull);
        for (uint64_t i = 0; data && i < sl_tensor_bytes(&tensor); i++)
                data[i] = (uint8_t)(i % 8 ? 0 : i / 8 % 3);
        return data;
}

/* Sizes of what is open: 1 where nobody says any. */
static void open_sizes(const struct sl_plan_info *info, uint64_t seed, struct sl_port *ret_ports, struct sl_shape *ret_shapes)
{
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                ret_ports[i] = info->inputs[i];
                for (uint32_t d = 0; d < ret_ports[i].shape.rank; d++)
                        if (ret_ports[i].shape.dims[d] == SL_DIM_UNKNOWN)
                                ret_ports[i].shape.dims[d] = (int64_t)(seed >> (i + 2 * d) % 8 & 3);
                ret_shapes[i] = ret_ports[i].shape;
        }
}

static void run(const struct sl_plan *plan, uint64_t seed)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        void *inputs[SL_PLAN_PORTS_MAX] = {NULL}, *outputs[SL_PLAN_PORTS_MAX] = {NULL};
        static struct sl_open_output open[SL_PLAN_PORTS_MAX];
        static struct sl_shape shapes[SL_PLAN_PORTS_MAX];
        static struct sl_port ports[SL_PLAN_PORTS_MAX];
        struct sl_instance *instance = NULL;
        bool ready = info->multiply_adds <= MULTIPLY_ADDS_MAX && sl_instance_new(plan, 1, &instance, NULL) == 0;

        open_sizes(info, seed, ports, shapes);
        for (uint32_t i = 0; i < info->n_inputs && ready; i++)
                ready = (inputs[i] = port_new(&ports[i])) != NULL;
        for (uint32_t i = 0; i < info->n_outputs && ready; i++) {
                open[i].capacity_bytes = PORT_BYTES;
                outputs[i] = sl_port_is_open(&info->outputs[i]) ? aligned_alloc(64, PORT_BYTES) : port_new(&info->outputs[i]);
                ready = outputs[i] != NULL;
        }
        if (ready)
                sl_instance_give(instance, shapes);
        if (ready)
                (void)sl_instance_run_open(instance, 1, (const void *const *)inputs, outputs, open, NULL);
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++) {
                free(inputs[i]);
                free(outputs[i]);
        }
        sl_instance_free(instance);
}

/* All that is open has one name. */
static int name_open(struct sl_plan_info *info)
{
        uint32_t n_open = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                for (uint32_t d = 0; d < info->inputs[i].shape.rank; d++)
                        if (info->inputs[i].shape.dims[d] == SL_DIM_UNKNOWN) {
                                info->inputs[i].symbols[d] = 0;
                                n_open++;
                        }
        return n_open ? sl_plan_info_add_symbol(info, "any") : 0;
}

static struct sl_lower_options options_of(bool cpu)
{
        struct sl_lower_options options;

        sl_lower_options_init(&options);
        options.backend = !cpu;
        options.batch_max = 2;
        options.workspace_bytes_max = WORKSPACE_BYTES_MAX;
        options.dynamic_bytes_max = DYNAMIC_BYTES_MAX;
        options.work_max = WORK_MAX;
        return options;
}

/* Every fourth on `cpu`, whose kernels take long to make. */
static void lower(const struct sl_graph *graph, bool cpu, uint64_t seed)
{
        struct sl_lower_options options = options_of(cpu);
        struct sl_lowered *lowered = NULL;
        struct sl_plan *plan = NULL;
        struct sl_error error;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        if (fd >= 0 && sl_lowered_new(graph, &options, &lowered, &error) == 0 && name_open(&lowered->info) == 0 &&
                sl_lowered_write(lowered, fd, &error) == 0) {
                if (sl_plan_open(fd, &plan, &error) < 0) {
                        fprintf(stderr, "%s\n", error.text);
                        abort();
                }
                run(plan, seed);
        }
        sl_plan_free(plan);
        sl_lowered_free(lowered);
        if (fd >= 0)
                close(fd);
}

static uint64_t seed_of(const uint8_t *bytes, size_t n_bytes)
{
        uint64_t seed = n_bytes;

        for (size_t i = 0; i < n_bytes; i++)
                seed = seed * 6364136223846793005u + bytes[i];
        return seed >> 20;
}

static void try_any_size(const uint8_t *bytes, size_t n_bytes)
{
        struct sl_lower_options options = options_of(n_bytes % 4 == 0);
        struct sl_graph_limits any = limits;
        struct sl_graph *graph = NULL;
        struct sl_error error;
        int result;

        any.any_size = true;
        if (sl_import_onnx_bytes(bytes, n_bytes, &any, &graph, &error) < 0)
                return;
        result = sl_lower_rewrite(graph, &options, &error);
        if (result == -EINVAL && strstr(error.text, "after pass"))
                abort();
        if (result == 0 && sl_any_size_suits(graph, &options, &error) == 0)
                lower(graph, n_bytes % 4 == 0, seed_of(bytes, n_bytes));
        sl_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
        struct sl_graph *graph = NULL;
        struct sl_error error;

        try_any_size(bytes, n_bytes);
        if (sl_import_onnx_bytes(bytes, n_bytes, &limits, &graph, &error) < 0)
                return 0;
        if (sl_graph_check(graph, &error) < 0)
                abort();
        specialise(graph, 1);
        int result = sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error);

        /* The graph was right before; a pass that breaks it is a bug, an index out of bounds in its data is not. */
        if (result == -EINVAL && strstr(error.text, "after pass"))
                abort();
        if (result == 0)
                specialise(graph, 3);
        if (result == 0)
                lower(graph, n_bytes % 4 == 0, 0);
        sl_graph_free(graph);
        return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t capacity, unsigned seed)
{
        size_t mutated = seed % 2 ? mutate_model_bytes(seed, limits.nodes, bytes, n_bytes, capacity) : 0;

        return mutated ? mutated : LLVMFuzzerMutate(bytes, n_bytes, capacity);
}
