/*
 * Puts a lowered model into a plan file. The tables are built in memory, then everything is written once, front to back, while the
 * checksum runs along; the header comes last.
 */
#include "lower.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "constants.h"
#include "format.h"
#include "graph.h"
#include "pack.h"
#include "placement.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <xxhash.h>

struct tables {
        struct sl_plan_program programs[SL_PLAN_BATCHES_MAX];
        struct sl_plan_step *steps;
        struct sl_plan_operand *operands;
        struct sl_attr *attrs;
        uint64_t n_programs, n_steps, n_operands, n_attrs;
        struct sl_constants constants;
};

struct writer {
        int fd;
        uint64_t at;
        XXH3_state_t *hash;
        struct sl_plan_header header;
};

static void tables_deinit(struct tables *tables)
{
        free(tables->steps);
        free(tables->operands);
        free(tables->attrs);
        sl_constants_deinit(&tables->constants);
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
}

/* Counts first, so that the tables never move; the counts then start again from 0 as the tables fill. */
static int allocate_tables(const struct sl_lowered *lowered, struct tables *tables)
{
        for (uint32_t i = 0; i < lowered->info.n_batches; i++)
                count_program(&lowered->programs[i], tables);
        tables->steps = calloc(tables->n_steps + 1, sizeof(*tables->steps));
        tables->operands = calloc(tables->n_operands + 1, sizeof(*tables->operands));
        tables->attrs = calloc(tables->n_attrs + 1, sizeof(*tables->attrs));
        tables->n_steps = tables->n_operands = tables->n_attrs = 0;
        return tables->steps && tables->operands && tables->attrs ? 0 : -ENOMEM;
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
        const struct sl_value *constant = &program->placement->graph->values[value];
        const void *data = constant->data;
        const struct sl_packed *packed = origin == SL_VALUE_NONE ? NULL : sl_packing_find(lowered->packing, origin, input, &data);

        return sl_constants_add(
                &tables->constants, data, packed ? packed->data_bytes : constant->data_bytes, packed, &operand->index);
}

static int put_operand(const struct sl_lowered *lowered, const struct sl_program *program, uint32_t value, uint32_t origin,
        uint32_t input, struct tables *tables)
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
        return 0;
}

static int put_copy(const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step,
        struct sl_plan_step *target, struct tables *tables)
{
        struct sl_plan_operand *output;
        int r = put_operand(lowered, program, step->copy_value, SL_VALUE_NONE, 0, tables);

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
        uint32_t origin = program->placement->origins[step->node];
        int r = 0;

        memcpy(target->name, node->name, strnlen(node->name, sizeof(target->name) - 1));
        if (origin != SL_VALUE_NONE)
                target->choice = lowered->choices[origin];
        target->op = node->op;
        target->n_inputs = node->n_inputs;
        target->n_outputs = node->n_outputs;
        target->epilogue = node->epilogue;
        put_attrs(&node->attrs, target, tables);
        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = put_operand(lowered, program, node->inputs[i], origin, i, tables);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                r = put_operand(lowered, program, node->outputs[i], SL_VALUE_NONE, 0, tables);
        return r;
}

static int put_step(
        const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step, struct tables *tables)
{
        struct sl_plan_step *target = &tables->steps[tables->n_steps++];

        target->backend = sl_plan_backend_number(step->backend->name);
        target->first_operand = tables->n_operands;
        target->first_attr = tables->n_attrs;
        target->scratch_bytes = step->scratch_bytes;
        if (step->scratch_block != SL_VALUE_NONE)
                target->scratch_offset = program->schedule->blocks[step->scratch_block].offset;
        if (step->node == SL_VALUE_NONE)
                return put_copy(lowered, program, step, target, tables);
        return put_node(lowered, program, step, target, tables);
}

static int fill_tables(const struct sl_lowered *lowered, struct tables *tables)
{
        int r = allocate_tables(lowered, tables);

        for (uint32_t i = 0; i < lowered->info.n_batches && r == 0; i++) {
                const struct sl_program *program = &lowered->programs[i];

                tables->programs[tables->n_programs++] = (struct sl_plan_program){.batch = program->batch,
                        .first_step = tables->n_steps,
                        .n_steps = program->schedule->n_steps,
                        .workspace_bytes = program->schedule->workspace_bytes};
                for (uint32_t s = 0; s < program->schedule->n_steps && r == 0; s++)
                        r = put_step(lowered, program, &program->schedule->steps[s], tables);
        }
        return r;
}

static int write_raw(struct writer *writer, const void *bytes, uint64_t n_bytes)
{
        const uint8_t *next = bytes;

        while (n_bytes) {
                ssize_t n = pwrite(writer->fd, next, n_bytes, (off_t)writer->at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                next += n;
                n_bytes -= (uint64_t)n;
                writer->at += (uint64_t)n;
        }
        return 0;
}

/* Behind the header everything goes through the checksum, padding to the next line of the cache included. */
static int write_padded(struct writer *writer, const void *bytes, uint64_t n_bytes)
{
        static const uint8_t zeros[SL_LINE_BYTES];
        uint64_t padding = sl_align_up(n_bytes, SL_LINE_BYTES) - n_bytes;
        int r;

        if (!n_bytes)
                return 0;
        XXH3_64bits_update(writer->hash, bytes, n_bytes);
        XXH3_64bits_update(writer->hash, zeros, padding);
        r = write_raw(writer, bytes, n_bytes);
        return r < 0 ? r : write_raw(writer, zeros, padding);
}

static void plan_sections(struct writer *writer, const uint64_t counts[SL_PLAN_SECTION_COUNT])
{
        uint64_t at = sl_align_up(sizeof(struct sl_plan_header), SL_LINE_BYTES);

        for (uint32_t id = 0; id < SL_PLAN_SECTION_COUNT; id++) {
                writer->header.sections[id] = (struct sl_plan_section){.offset = at, .count = counts[id]};
                at += sl_align_up(counts[id] * sl_plan_section_bytes(id), SL_LINE_BYTES);
        }
        writer->header.file_bytes = at;
}

static void fill_header(struct writer *writer)
{
        memcpy(writer->header.magic, SL_PLAN_MAGIC, sizeof(writer->header.magic));
        writer->header.version = SL_PLAN_VERSION;
        writer->header.header_bytes = sizeof(writer->header);
        writer->header.key = sl_plan_key_here();
}

/* The bytes between the header and the first section are part of the checksum too: zeros. */
static int begin_sections(struct writer *writer)
{
        static const uint8_t zeros[SL_LINE_BYTES];
        uint64_t padding = sl_align_up(sizeof(writer->header), SL_LINE_BYTES) - sizeof(writer->header);

        XXH3_64bits_reset(writer->hash);
        XXH3_64bits_update(
                writer->hash, (uint8_t *)&writer->header + SL_PLAN_CHECKED_FROM, sizeof(writer->header) - SL_PLAN_CHECKED_FROM);
        XXH3_64bits_update(writer->hash, zeros, padding);
        writer->at = sizeof(writer->header);
        return write_raw(writer, zeros, padding);
}

static int write_data(struct writer *writer, const struct sl_constants *constants)
{
        int r = 0;

        for (uint32_t i = 0; i < constants->n && r == 0; i++)
                r = write_padded(writer, constants->data[i], constants->entries[i].bytes);
        return r;
}

static int write_sections(struct writer *writer, const struct sl_lowered *lowered, const struct tables *tables)
{
        const void *sections[SL_PLAN_SECTION_COUNT] = {
                [SL_PLAN_SECTION_INFO] = &lowered->info,
                [SL_PLAN_SECTION_PROGRAMS] = tables->programs,
                [SL_PLAN_SECTION_STEPS] = tables->steps,
                [SL_PLAN_SECTION_OPERANDS] = tables->operands,
                [SL_PLAN_SECTION_ATTRS] = tables->attrs,
                [SL_PLAN_SECTION_CONSTANTS] = tables->constants.entries,
                [SL_PLAN_SECTION_FORMS] = tables->constants.forms,
        };
        int r = begin_sections(writer);

        for (uint32_t id = 0; id < SL_PLAN_SECTION_DATA && r == 0; id++)
                r = write_padded(writer, sections[id], writer->header.sections[id].count * sl_plan_section_bytes(id));
        if (r == 0)
                r = write_data(writer, &tables->constants);
        if (r < 0)
                return r;
        writer->header.checksum = XXH3_64bits_digest(writer->hash);
        writer->at = 0;
        return write_raw(writer, &writer->header, sizeof(writer->header));
}

static int write_file(struct sl_lowered *lowered, const struct tables *tables, int fd, struct sl_error *error)
{
        const uint64_t counts[SL_PLAN_SECTION_COUNT] = {
                [SL_PLAN_SECTION_INFO] = 1,
                [SL_PLAN_SECTION_PROGRAMS] = tables->n_programs,
                [SL_PLAN_SECTION_STEPS] = tables->n_steps,
                [SL_PLAN_SECTION_OPERANDS] = tables->n_operands,
                [SL_PLAN_SECTION_ATTRS] = tables->n_attrs,
                [SL_PLAN_SECTION_CONSTANTS] = tables->constants.n,
                [SL_PLAN_SECTION_FORMS] = tables->constants.forms_bytes,
                [SL_PLAN_SECTION_DATA] = tables->constants.data_bytes,
        };
        struct writer writer = {.fd = fd, .hash = XXH3_createState()};
        int r;

        if (!writer.hash)
                return sl_error_set(error, ENOMEM, "plan file: no memory for its checksum");
        lowered->info.weights_bytes = tables->constants.data_bytes;
        fill_header(&writer);
        plan_sections(&writer, counts);
        if (writer.header.file_bytes > lowered->options.plan_bytes_max)
                r = sl_error_set(error, E2BIG, "a plan file of %llu bytes, plan_bytes_max is %llu",
                        (unsigned long long)writer.header.file_bytes, (unsigned long long)lowered->options.plan_bytes_max);
        else if ((r = write_sections(&writer, lowered, tables)) < 0)
                sl_error_set(error, -r, "plan file: %s", strerror(-r));
        XXH3_freeState(writer.hash);
        return r;
}

int sl_lowered_measure(struct sl_lowered *lowered, struct sl_error *error)
{
        struct tables tables = {0};
        int r = fill_tables(lowered, &tables);

        lowered->info.weights_bytes = tables.constants.data_bytes;
        tables_deinit(&tables);
        return r < 0 ? sl_error_set(error, -r, "constants: %s", strerror(-r)) : 0;
}

int sl_lowered_write(struct sl_lowered *lowered, int fd, struct sl_error *error)
{
        struct tables tables = {0};
        int r = fill_tables(lowered, &tables);

        if (r < 0)
                sl_error_set(error, -r, "plan file: %s", strerror(-r));
        else
                r = write_file(lowered, &tables, fd, error);
        tables_deinit(&tables);
        return r;
}
