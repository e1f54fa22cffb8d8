/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a lowered model into a plan file. Large packed constants lie at the front of DATA already; the others and the tables, which
 * are built in memory, follow in the order of the file, zeros between them, whatever it was before: its pages stay. The header
 * comes last, then the checksum of the whole, if it is wanted.
 */
#include "lower.h"

#include "backend_table.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base_plan.h"
#include "constants.h"
#include "format.h"
#include "graph.h"
#include "huge_pages.h"
#include "name_table.h"
#include "pack.h"
#include "placed.h"
#include "placement.h"
#include "plan_sum.h"
#include "program_work.h"
#include "schedule.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

struct tables {
        struct sl_plan_description description;
        struct sl_plan_port *ports;
        uint64_t n_ports;
        struct sl_name_table names;
        struct sl_plan_program *programs;
        struct sl_plan_step *steps;
        struct sl_plan_operand *operands;
        struct sl_attr *attrs;
        uint64_t n_programs, n_steps, n_operands, n_attrs;
        uint64_t next_body; /* where the next program of a body goes */
        struct sl_constants constants;
        struct sl_backend_table backends;
};

#define GATHERED_BYTES (256u << 10) /* written at a time: small constants are many */

struct writer {
        int fd;
        struct sl_plan_header header;
        uint64_t end;      /* of what follows each other in the file */
        uint8_t *gathered; /* GATHERED_BYTES before there, of which so many are not written yet */
        size_t n_gathered;
};

static void tables_deinit(struct tables *tables)
{
        free(tables->ports);
        sl_name_table_deinit(&tables->names);
        free(tables->programs);
        free(tables->steps);
        free(tables->operands);
        free(tables->attrs);
        sl_constants_deinit(&tables->constants);
        sl_backend_table_deinit(&tables->backends);
}

static void count_program(const struct sl_program *program, struct tables *tables)
{
        const struct sl_graph *graph = program->placement->graph;

        for (uint32_t s = 0; s < program->schedule->n_steps; s++) {
                const struct sl_step *step = &program->schedule->steps[s];
                const struct sl_node *node = step->node == SL_VALUE_NONE ? NULL : &graph->nodes[step->node];

                tables->n_steps++;
                tables->n_operands += node ? node->n_inputs + node->n_outputs : 2;
                tables->n_attrs += node ? node->attrs.count : 0;
        }
        for (uint32_t b = 0; b < program->n_bodies; b++) {
                tables->n_programs++;
                tables->n_operands += program->bodies[b].graph->n_inputs + program->bodies[b].graph->n_outputs;
                count_program(&program->bodies[b], tables);
        }
}

static bool has_open_inputs(const struct sl_program *program)
{
        const struct sl_graph *graph = program->placement->graph;

        for (uint32_t i = 0; i < graph->n_inputs; i++)
                if (!sl_shape_is_static(&graph->values[graph->inputs[i]].tensor.shape))
                        return true;
        return false;
}

/* Counts first, so that the tables never move; the counts then start again from 0 as the tables fill. */
static int allocate_tables(const struct sl_lowered *lowered, struct tables *tables)
{
        tables->n_programs = lowered->info.n_batches;
        for (uint32_t i = 0; i < lowered->info.n_batches; i++) {
                count_program(&lowered->programs[i], tables);
                tables->n_operands += has_open_inputs(&lowered->programs[i]) ? lowered->info.n_inputs : 0;
        }
        tables->programs = calloc(tables->n_programs + 1, sizeof(*tables->programs));
        tables->steps = calloc(tables->n_steps + 1, sizeof(*tables->steps));
        tables->operands = calloc(tables->n_operands + 1, sizeof(*tables->operands));
        tables->attrs = calloc(tables->n_attrs + 1, sizeof(*tables->attrs));
        tables->n_steps = tables->n_operands = tables->n_attrs = 0;
        tables->next_body = lowered->info.n_batches;
        tables->constants.data_bytes = sl_packing_placed_bytes(lowered->packing);
        tables->constants.base = lowered->base;
        return tables->programs && tables->steps && tables->operands && tables->attrs ? 0 : -ENOMEM;
}

/* Field by field: dimensions behind the rank stay zero, whatever the graph left there. */
static void put_tensor(struct sl_plan_operand *operand, const struct sl_tensor *tensor)
{
        operand->tensor.dtype = tensor->dtype;
        operand->tensor.layout = tensor->layout;
        operand->tensor.shape.rank = tensor->shape.rank;
        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                operand->tensor.shape.dims[i] = tensor->shape.dims[i];
}

static int put_constant(const struct sl_lowered *lowered, const struct sl_program *program, uint32_t value, uint32_t origin,
        uint32_t input, struct tables *tables, struct sl_plan_operand *operand)
{
        const struct sl_value *plain = &program->placement->graph->values[value];
        struct sl_packed_constant packed;

        if (origin != SL_VALUE_NONE && sl_packing_find(lowered->packing, program->first_node + origin, input, &packed))
                return sl_constants_add_packed(&tables->constants, &packed, &operand->index);
        return sl_constants_add(&tables->constants, plain->data, plain->data_bytes, &operand->index);
}

static int put_operand(const struct sl_lowered *lowered, const struct sl_program *program, uint32_t value, uint32_t origin,
        uint32_t input, uint32_t step, struct tables *tables)
{
        struct sl_plan_operand *operand = &tables->operands[tables->n_operands++];
        const struct sl_storage *storage;

        if (value == SL_VALUE_NONE)
                return 0;
        storage = &program->schedule->storages[value];
        put_tensor(operand, &program->placement->graph->values[value].tensor);
        operand->place = storage->place;
        if (storage->place == SL_PLACE_CONSTANT)
                return put_constant(lowered, program, storage->index, origin, input, tables, operand);
        if (storage->place == SL_PLACE_WORKSPACE)
                operand->offset = program->schedule->blocks[storage->index].offset;
        else
                operand->index = storage->index;
        if (storage->place == SL_PLACE_SLOT)
                operand->offset = program->schedule->slot_ends[storage->index] == step;
        return 0;
}

static int put_copy(const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step,
        struct sl_plan_step *target, struct tables *tables)
{
        struct sl_plan_operand *output;
        int r = put_operand(lowered, program, step->copy_value, SL_VALUE_NONE, 0, SL_VALUE_NONE, tables);

        target->op = SL_OP_IDENTITY;
        target->n_inputs = target->n_outputs = 1;
        output = &tables->operands[tables->n_operands++];
        put_tensor(output, &program->placement->graph->values[step->copy_value].tensor);
        output->place = SL_PLACE_OUTPUT;
        output->index = step->copy_output;
        return r;
}

static void put_attrs(const struct sl_attrs *attrs, struct sl_plan_step *target, struct tables *tables)
{
        target->n_attrs = attrs->count;
        for (uint32_t i = 0; i < attrs->count; i++)
                tables->attrs[tables->n_attrs++] = attrs->items[i];
}

static int put_node(const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step,
        struct sl_plan_step *target, struct tables *tables)
{
        const struct sl_node *node = &program->placement->graph->nodes[step->node];
        uint32_t origin = step->dynamic ? SL_VALUE_NONE : program->placement->origins[step->node];
        uint32_t number = (uint32_t)(step - program->schedule->steps);
        int r = sl_name_table_add(&tables->names, node->name, &target->name);

        if (origin != SL_VALUE_NONE)
                target->choice = lowered->choices[program->first_node + origin];
        target->op = node->op;
        target->n_inputs = node->n_inputs;
        target->n_outputs = node->n_outputs;
        target->epilogue = node->epilogue;
        put_attrs(&node->attrs, target, tables);
        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = put_operand(lowered, program, node->inputs[i], origin, i, number, tables);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                r = put_operand(lowered, program, node->outputs[i], SL_VALUE_NONE, 0, SL_VALUE_NONE, tables);
        return r;
}

static int put_backend(
        const struct sl_program *program, const struct sl_step *step, struct sl_plan_step *target, struct tables *tables)
{
        int r = sl_backend_table_find(&tables->backends, step->backend, &program->placement->target, &target->backend);

        return r < 0 || !step->blob.data ? r
                                         : sl_backend_table_keep(&tables->backends, target->backend, &step->blob, &target->blob);
}

static int put_step(
        const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step, struct tables *tables)
{
        struct sl_plan_step *target = &tables->steps[tables->n_steps++];

        int r;

        target->blob = SL_PLAN_NO_BLOB;
        r = step->dynamic ? 0 : put_backend(program, step, target, tables);
        if (r < 0)
                return r;
        target->first_operand = tables->n_operands;
        target->first_attr = tables->n_attrs;
        target->dynamic = step->dynamic;
        target->scratch_bytes = step->scratch_bytes;
        memcpy(target->splits, step->splits, sizeof(target->splits));
        if (step->scratch_block != SL_VALUE_NONE)
                target->scratch_offset = program->schedule->blocks[step->scratch_block].offset;
        if (step->node == SL_VALUE_NONE)
                return put_copy(lowered, program, step, target, tables);
        return put_node(lowered, program, step, target, tables);
}

/* A port of a body, as its step sees it: input or output @port, or the slot of what has an open shape. */
static void put_port(const struct sl_program *body, uint32_t value, enum sl_place place, uint32_t port, struct tables *tables)
{
        struct sl_plan_operand *operand = &tables->operands[tables->n_operands++];
        const struct sl_storage *storage = &body->schedule->storages[value];
        bool open = storage->place == SL_PLACE_SLOT;

        put_tensor(operand, &body->placement->graph->values[value].tensor);
        operand->place = open ? SL_PLACE_SLOT : place;
        operand->index = open ? storage->index : port;
}

/* Where a program of any size finds its inputs; its outputs are the model's. */
static void put_inputs(const struct sl_program *program, struct sl_plan_program *target, struct tables *tables)
{
        const struct sl_graph *graph = program->placement->graph;

        target->n_inputs = graph->n_inputs;
        target->first_operand = tables->n_operands;
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                put_port(program, graph->inputs[i], SL_PLACE_INPUT, i, tables);
}

static void put_ports(const struct sl_program *body, struct sl_plan_program *target, struct tables *tables)
{
        const struct sl_graph *graph = body->placement->graph;

        target->n_inputs = graph->n_inputs;
        target->n_outputs = graph->n_outputs;
        target->first_operand = tables->n_operands;
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                put_port(body, graph->inputs[i], SL_PLACE_INPUT, i, tables);
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                put_port(body, graph->outputs[i], SL_PLACE_OUTPUT, i, tables);
}

/* Steps first, in one run of the table; then what their bodies are. */
static int put_program(const struct sl_lowered *lowered, const struct sl_program *program, uint64_t number, struct tables *tables)
{
        struct sl_plan_program *target = &tables->programs[number];
        uint64_t first_body = tables->next_body;
        int r = 0;

        target->batch = program->batch;
        target->first_step = tables->n_steps;
        target->n_steps = program->schedule->n_steps;
        target->workspace_bytes = program->schedule->workspace_bytes;
        target->n_slots = program->schedule->n_slots;
        for (uint32_t s = 0; s < program->schedule->n_steps && r == 0; s++) {
                const struct sl_step *step = &program->schedule->steps[s];

                tables->steps[tables->n_steps].first_body = step->n_bodies ? first_body + step->first_body : 0;
                tables->steps[tables->n_steps].n_bodies = step->n_bodies;
                r = put_step(lowered, program, step, tables);
        }
        tables->next_body += program->n_bodies;
        for (uint32_t b = 0; b < program->n_bodies && r == 0; b++) {
                put_ports(&program->bodies[b], &tables->programs[first_body + b], tables);
                r = put_program(lowered, &program->bodies[b], first_body + b, tables);
        }
        return r;
}

/* What inputs are that a request leaves out. */
static int put_fallbacks(struct sl_lowered *lowered, struct tables *tables)
{
        const struct sl_graph *graph = lowered->info.n_batches ? lowered->programs[0].placement->graph : NULL;
        int r = 0;

        for (uint32_t i = 0; graph && i < lowered->info.n_inputs && r == 0; i++) {
                const struct sl_value *value = &graph->values[graph->inputs[i]];
                uint32_t constant;

                if (!lowered->info.inputs[i].fallback)
                        continue;
                r = sl_constants_add(&tables->constants, value->data, value->data_bytes, &constant);
                lowered->info.inputs[i].fallback = 1 + constant;
        }
        return r;
}

/* The outputs lie behind the inputs, as in memory. The first text is empty, for symbols that there are not. */
static int fill_info(const struct sl_plan_info *info, struct tables *tables)
{
        struct sl_plan_description *to = &tables->description;
        uint32_t name = 0;
        int r;

        tables->n_ports = sl_plan_info_ports(info);
        tables->ports = calloc(tables->n_ports + 1, sizeof(*tables->ports));
        if (!tables->ports)
                return -ENOMEM;
        memcpy(&to->info, info, sizeof(*info));
        to->info.name = NULL;
        to->info.inputs = to->info.outputs = NULL;
        memset(to->info.symbols, 0, sizeof(to->info.symbols));
        r = sl_name_table_add(&tables->names, info->name, &to->name);
        for (uint32_t i = 0; i < tables->n_ports && r == 0; i++) {
                memcpy(&tables->ports[i].port, &info->inputs[i], sizeof(info->inputs[i]));
                tables->ports[i].port.name = tables->ports[i].port.labels = NULL;
                r = sl_name_table_add(&tables->names, info->inputs[i].name, &name);
                tables->ports[i].name = name;
                if (r == 0 && info->inputs[i].labels)
                        r = sl_name_table_add(&tables->names, info->inputs[i].labels, &name);
                tables->ports[i].labels = info->inputs[i].labels ? name : 0;
        }
        for (uint32_t i = 0; i < info->n_symbols && r == 0; i++)
                r = sl_name_table_add(&tables->names, info->symbols[i], &to->symbols[i]);
        return r;
}

static int fill_tables(struct sl_lowered *lowered, struct tables *tables)
{
        int r = allocate_tables(lowered, tables);

        for (uint32_t i = 0; i < lowered->info.n_batches && r == 0; i++) {
                struct sl_plan_program *target = &tables->programs[i];

                r = put_program(lowered, &lowered->programs[i], i, tables);
                if (has_open_inputs(&lowered->programs[i]))
                        put_inputs(&lowered->programs[i], target, tables);
                target->dynamic_bytes = lowered->options.dynamic_bytes_max;
                target->dynamic_steps = lowered->options.dynamic_steps_max;
                target->work = sl_program_work_on_ref(&lowered->options);
        }
        if (r == 0)
                r = put_fallbacks(lowered, tables);
        sl_constants_settle(&tables->constants);
        return r < 0 ? r : sl_backend_table_settle(&tables->backends);
}

static int write_at(const struct writer *writer, const void *bytes, uint64_t n_bytes, uint64_t at)
{
        const uint8_t *next = bytes;

        while (n_bytes) {
                ssize_t n = pwrite(writer->fd, next, n_bytes, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                next += n;
                n_bytes -= (uint64_t)n;
                at += (uint64_t)n;
        }
        return 0;
}

/* DATA has its fixed place; the others follow it. */
static void plan_sections(struct writer *writer, const uint64_t counts[SL_PLAN_SECTION_COUNT])
{
        uint64_t at = SL_PLACED_START + counts[SL_PLAN_SECTION_DATA];

        for (uint32_t id = 0; id < SL_PLAN_SECTION_DATA; id++) {
                writer->header.sections[id] = (struct sl_plan_section){.offset = at, .count = counts[id]};
                at += sl_align_up(counts[id] * sl_plan_section_bytes(id), SL_LINE_BYTES);
        }
        writer->header.sections[SL_PLAN_SECTION_DATA] =
                (struct sl_plan_section){.offset = SL_PLACED_START, .count = counts[SL_PLAN_SECTION_DATA]};
        writer->header.file_bytes = at;
}

static void fill_header(struct writer *writer, const struct sl_lower_options *options, const struct sl_base_plan *base)
{
        memcpy(writer->header.magic, SL_PLAN_MAGIC, sizeof(writer->header.magic));
        writer->header.version = SL_PLAN_VERSION;
        writer->header.header_bytes = sizeof(writer->header);
        writer->header.key = sl_plan_key_here();
        writer->header.target = sl_lower_options_target(options);
        if (base)
                writer->header.base = sl_base_plan_identity(base);
}

static int write_gathered(struct writer *writer)
{
        int r = write_at(writer, writer->gathered, writer->n_gathered, writer->end - writer->n_gathered);

        writer->n_gathered = 0;
        return r;
}

static int follow(struct writer *writer, const void *bytes, uint64_t n_bytes)
{
        int r = 0;

        if (writer->n_gathered + n_bytes > GATHERED_BYTES)
                r = write_gathered(writer);
        if (r < 0 || !n_bytes)
                return r;
        if (n_bytes > GATHERED_BYTES)
                r = write_at(writer, bytes, n_bytes, writer->end);
        else
                memcpy(writer->gathered + writer->n_gathered, bytes, n_bytes);
        writer->n_gathered += n_bytes > GATHERED_BYTES ? 0 : n_bytes;
        writer->end += n_bytes;
        return r;
}

/* @at does not lie before the end of what follows each other; up to there come zeros. */
static int follow_at(struct writer *writer, const void *bytes, uint64_t n_bytes, uint64_t at)
{
        static const uint8_t zeros[SL_PAGE_BYTES];
        int r = 0;

        while (r == 0 && writer->end < at)
                r = follow(writer, zeros, at - writer->end < sizeof(zeros) ? at - writer->end : sizeof(zeros));
        return r < 0 ? r : follow(writer, bytes, n_bytes);
}

/* As sl_constants_settle() has placed them: in two rounds. */
static int write_data(struct writer *writer, const struct sl_constants *constants, bool whole_pages)
{
        int r = 0;

        for (uint32_t i = 0; i < constants->n && r == 0; i++) {
                const struct sl_plan_constant *entry = &constants->entries[i];

                if (!entry->in_base && SL_PLACED_START + entry->offset >= writer->end &&
                        (entry->bytes % SL_PAGE_BYTES == 0) == whole_pages)
                        r = follow_at(writer, constants->data[i], entry->bytes, SL_PLACED_START + entry->offset);
        }
        return r;
}

static int write_blobs(struct writer *writer, const struct sl_backend_table *backends)
{
        uint64_t start = writer->header.sections[SL_PLAN_SECTION_BLOB_DATA].offset;
        int r = 0;

        for (uint64_t i = 0; i < backends->n_blobs && r == 0; i++)
                r = follow_at(writer, backends->data[i], backends->places[i].bytes, start + backends->places[i].offset);
        return r;
}

/* All that lies before DATA. */
static int write_front(const struct writer *writer)
{
        uint8_t front[SL_PLACED_START] = {0};

        static_assert(sizeof(writer->header) <= sizeof(front), "the header lies before DATA");
        memcpy(front, &writer->header, sizeof(writer->header));
        return write_at(writer, front, sizeof(front), 0);
}

static int write_tables(struct writer *writer, const struct tables *tables)
{
        const void *sections[SL_PLAN_SECTION_COUNT] = {
                [SL_PLAN_SECTION_INFO] = &tables->description,
                [SL_PLAN_SECTION_PORTS] = tables->ports,
                [SL_PLAN_SECTION_NAMES] = tables->names.bytes,
                [SL_PLAN_SECTION_BACKENDS] = tables->backends.rows,
                [SL_PLAN_SECTION_PROGRAMS] = tables->programs,
                [SL_PLAN_SECTION_STEPS] = tables->steps,
                [SL_PLAN_SECTION_OPERANDS] = tables->operands,
                [SL_PLAN_SECTION_ATTRS] = tables->attrs,
                [SL_PLAN_SECTION_CONSTANTS] = tables->constants.entries,
                [SL_PLAN_SECTION_FORMS] = tables->constants.forms,
                [SL_PLAN_SECTION_BLOBS] = tables->backends.places,
        };
        int r = 0;

        for (uint32_t id = 0; id < SL_PLAN_SECTION_DATA && r == 0; id++) {
                const struct sl_plan_section *section = &writer->header.sections[id];

                if (sections[id])
                        r = follow_at(writer, sections[id], section->count * sl_plan_section_bytes(id), section->offset);
        }
        return r < 0 ? r : write_blobs(writer, &tables->backends);
}

static int write_all(struct writer *writer, const struct tables *tables)
{
        int r = write_data(writer, &tables->constants, true);

        if (r == 0)
                r = write_data(writer, &tables->constants, false);
        if (r == 0)
                r = write_tables(writer, tables);
        if (r == 0)
                r = follow_at(writer, NULL, 0, writer->header.file_bytes);
        if (r == 0)
                r = write_gathered(writer);
        if (r == 0)
                r = write_front(writer);
        if (r == 0 && ftruncate(writer->fd, (off_t)writer->header.file_bytes) < 0)
                r = -errno;
        return r;
}

/* Large constants are in their places. */
static int write_sections(struct writer *writer, const struct sl_lowered *lowered, const struct tables *tables)
{
        int r;

        writer->end = SL_PLACED_START + sl_packing_placed_bytes(lowered->packing);
        writer->gathered = malloc(GATHERED_BYTES);
        r = writer->gathered ? write_all(writer, tables) : -ENOMEM;
        free(writer->gathered);
        return r;
}

static void count_weights(struct sl_lowered *lowered, const struct sl_constants *constants)
{
        lowered->info.weights_bytes = constants->data_bytes;
        lowered->info.shared_bytes = constants->shared_bytes;
}

static int write_file(const struct sl_lowered *lowered, const struct tables *tables, int fd, struct sl_error *error)
{
        const uint64_t counts[SL_PLAN_SECTION_COUNT] = {
                [SL_PLAN_SECTION_INFO] = 1,
                [SL_PLAN_SECTION_PORTS] = tables->n_ports,
                [SL_PLAN_SECTION_NAMES] = tables->names.used,
                [SL_PLAN_SECTION_BACKENDS] = tables->backends.n_backends,
                [SL_PLAN_SECTION_PROGRAMS] = tables->n_programs,
                [SL_PLAN_SECTION_STEPS] = tables->n_steps,
                [SL_PLAN_SECTION_OPERANDS] = tables->n_operands,
                [SL_PLAN_SECTION_ATTRS] = tables->n_attrs,
                [SL_PLAN_SECTION_CONSTANTS] = tables->constants.n,
                [SL_PLAN_SECTION_FORMS] = tables->constants.forms_bytes,
                [SL_PLAN_SECTION_BLOBS] = tables->backends.n_blobs,
                [SL_PLAN_SECTION_BLOB_DATA] = tables->backends.data_bytes,
                [SL_PLAN_SECTION_DATA] = tables->constants.data_bytes,
        };
        struct writer writer = {.fd = fd};
        int r = 0;

        fill_header(&writer, &lowered->options, lowered->base);
        plan_sections(&writer, counts);
        if (writer.header.file_bytes > lowered->options.plan_bytes_max)
                r = sl_error_set(error, E2BIG, "a plan file of %llu bytes, plan_bytes_max is %llu",
                        (unsigned long long)writer.header.file_bytes, (unsigned long long)lowered->options.plan_bytes_max);
        else if ((r = write_sections(&writer, lowered, tables)) < 0)
                sl_error_set(error, -r, "plan file: %s", strerror(-r));
        return r;
}

int sl_lowered_measure(struct sl_lowered *lowered, struct sl_error *error)
{
        struct tables tables = {0};
        int r = fill_tables(lowered, &tables);

        count_weights(lowered, &tables.constants);
        tables_deinit(&tables);
        return r < 0 ? sl_error_set(error, -r, "constants: %s", strerror(-r)) : 0;
}

int sl_lowered_write_unsummed(struct sl_lowered *lowered, int fd, struct sl_error *error)
{
        struct tables tables = {0};
        int r = fill_tables(lowered, &tables);

        count_weights(lowered, &tables.constants);
        if (r == 0)
                r = fill_info(&lowered->info, &tables);
        if (r < 0)
                sl_error_set(error, -r, "plan file: %s", strerror(-r));
        else
                r = write_file(lowered, &tables, fd, error);
        tables_deinit(&tables);
        return r;
}

int sl_lowered_write(struct sl_lowered *lowered, int fd, struct sl_error *error)
{
        int r = sl_lowered_write_unsummed(lowered, fd, error);

        if (r < 0)
                return r;
        r = sl_plan_sum_write(fd);
        return r < 0 ? sl_error_set(error, -r, "checksum of the plan file: %s", strerror(-r)) : 0;
}
