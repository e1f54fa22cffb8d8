/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing in a plan file is believed before this walk: it may have been damaged on disk, or written by a compiler process that a
 * hostile model took over. What is checked here is everything that can be checked without a kernel; sl_instance_new() asks the
 * backends about the rest.
 */
#include "plan_map.h"

#include "base/error.h"
#include "op.h"
#include "plan.h"
#include "plan_sum.h"

#include <stdlib.h>
#include <string.h>

/* Tensors of one program whose shapes are data-dependent. */
#define SLOTS_MAX (1u << 20)

/* Bodies inside bodies: as deep as a graph may be. */
#define DEPTH_MAX 4

static int damaged(struct sl_error *error, const char *what, uint64_t value, uint64_t limit)
{
        return sl_error_set(error, EBADMSG, "plan file: %s is %llu, the limit is %llu", what, (unsigned long long)value,
                (unsigned long long)limit);
}

static int check_key(const struct sl_plan_key *key, struct sl_error *error)
{
        struct sl_plan_key here = sl_plan_key_here();

        if (!memcmp(key, &here, sizeof(here)))
                return 0;
        return sl_error_set(error, EPROTONOSUPPORT, "plan file: made for operators %llx, here are %llx, or its structs differ",
                (unsigned long long)key->operators, (unsigned long long)here.operators);
}

static int check_checksum(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t checksum;

        if (plan->intact)
                return 0;
        checksum = sl_plan_sum(plan->bytes, plan->n_bytes);
        if (checksum == plan->header->checksum)
                return 0;
        return sl_error_set(error, EBADMSG, "plan file: damaged, its checksum is %llx and should be %llx",
                (unsigned long long)checksum, (unsigned long long)plan->header->checksum);
}

static int check_header(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_header *header = plan->header;
        int r;

        if (memcmp(header->magic, SL_PLAN_MAGIC, sizeof(header->magic)))
                return sl_error_set(error, EBADMSG, "plan file: it does not begin as a plan file does");
        if (header->version != SL_PLAN_VERSION)
                return sl_error_set(
                        error, EPROTONOSUPPORT, "plan file: version %u, this program reads %u", header->version, SL_PLAN_VERSION);
        if (header->header_bytes != sizeof(*header))
                return damaged(error, "size of the header", header->header_bytes, sizeof(*header));
        if (header->file_bytes != plan->n_bytes)
                return damaged(error, "size in the header", header->file_bytes, plan->n_bytes);
        if (!sl_core_figures_are_sound(&header->target.core))
                return sl_error_set(error, EBADMSG, "plan file: a figure of what it was planned for is no positive number");
        r = check_checksum(plan, error);
        return r < 0 ? r : check_key(&header->key, error);
}

/* A plan that stands alone may be opened beside a base, and takes nothing from it. */
static int check_base(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_identity *named = &plan->header->base;
        struct sl_plan_identity here;

        if (plan->is_for_people || (!named->checksum && !named->bytes))
                return 0;
        here = plan->base ? sl_plan_identity(plan->base) : (struct sl_plan_identity){0};
        if (plan->base && named->checksum == here.checksum && named->bytes == here.bytes)
                return 0;
        return sl_error_set(error, ESTALE, "plan file: derived from plan %llx of %llu bytes, here is %s %llx",
                (unsigned long long)named->checksum, (unsigned long long)named->bytes, plan->base ? "plan" : "none,",
                (unsigned long long)here.checksum);
}

/* A merged plan that has nothing of its members may be opened beside any. */
static int check_members(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_section *section = &plan->header->sections[SL_PLAN_SECTION_MEMBERS];
        const struct sl_plan_identity *named = (const void *)(plan->bytes + section->offset);

        if (plan->is_for_people || !section->count)
                return 0;
        if (section->count != plan->n_members)
                return sl_error_set(error, ESTALE, "plan file: it has constants of %llu members' plans, here are %u",
                        (unsigned long long)section->count, plan->n_members);
        for (uint32_t i = 0; i < plan->n_members; i++) {
                struct sl_plan_identity here = sl_plan_identity(plan->members[i]);

                if (named[i].checksum != here.checksum || named[i].bytes != here.bytes)
                        return sl_error_set(error, ESTALE, "plan file: its member %u is plan %llx, here is %llx", i,
                                (unsigned long long)named[i].checksum, (unsigned long long)here.checksum);
        }
        return 0;
}

static int check_sections(const struct sl_plan *plan, struct sl_error *error)
{
        for (uint32_t id = 0; id < SL_PLAN_SECTION_COUNT; id++) {
                const struct sl_plan_section *section = &plan->header->sections[id];
                uint64_t bytes;

                if (section->offset % 64 || section->offset < sizeof(struct sl_plan_header))
                        return damaged(error, "offset of a section", section->offset, plan->n_bytes);
                if (sl_mul_overflows(section->count, sl_plan_section_bytes(id), &bytes) ||
                        !sl_range_inside(section->offset, bytes, plan->n_bytes))
                        return damaged(error, "size of a section", section->count, plan->n_bytes);
        }
        if (plan->header->sections[SL_PLAN_SECTION_INFO].count != 1)
                return damaged(error, "number of descriptions", plan->header->sections[SL_PLAN_SECTION_INFO].count, 1);
        return 0;
}

static const void *section_at(const struct sl_plan *plan, enum sl_plan_section_id id)
{
        return plan->bytes + plan->header->sections[id].offset;
}

static void point_sections(struct sl_plan *plan)
{
        plan->backends = section_at(plan, SL_PLAN_SECTION_BACKENDS);
        plan->programs = section_at(plan, SL_PLAN_SECTION_PROGRAMS);
        plan->steps = section_at(plan, SL_PLAN_SECTION_STEPS);
        plan->operands = section_at(plan, SL_PLAN_SECTION_OPERANDS);
        plan->attrs = section_at(plan, SL_PLAN_SECTION_ATTRS);
        plan->constants = section_at(plan, SL_PLAN_SECTION_CONSTANTS);
        plan->pieces = section_at(plan, SL_PLAN_SECTION_PIECES);
        plan->forms = section_at(plan, SL_PLAN_SECTION_FORMS);
        plan->blobs = section_at(plan, SL_PLAN_SECTION_BLOBS);
        plan->blob_data = section_at(plan, SL_PLAN_SECTION_BLOB_DATA);
        plan->data = section_at(plan, SL_PLAN_SECTION_DATA);
}

static bool text_ends(const char *text, size_t bytes)
{
        return memchr(text, 0, bytes) != NULL;
}

/* Does it still mean what it did when it was written? Who cannot tell here looks, and leaves it to who runs it. */
static int check_backend_key(const struct sl_plan_backend *row, struct sl_error *error)
{
        const struct sl_backend *backend = sl_backend_find(row->name);
        char here[SL_BACKEND_KEY_BYTES] = "";
        int r;

        if (!backend)
                return sl_error_set(error, EPROTONOSUPPORT, "plan file: this program has no backend \"%s\"", row->name);
        r = backend->key ? backend->key(NULL, here) : 0;
        if (r == -ENODEV || (r == 0 && !strcmp(here, row->key)))
                return 0;
        return sl_error_set(error, EPROTONOSUPPORT, "plan file: made for backend \"%s\" with \"%s\", here is \"%s\"", row->name,
                row->key, here);
}

/* All blobs belong to backends, in their order. */
static int check_backends(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n = sl_plan_count(plan, SL_PLAN_SECTION_BACKENDS), n_blobs = sl_plan_count(plan, SL_PLAN_SECTION_BLOBS), next = 0;

        if (n > SL_PLAN_BACKENDS_MAX)
                return damaged(error, "number of backends", n, SL_PLAN_BACKENDS_MAX);
        for (uint64_t i = 0; i < n; i++) {
                const struct sl_plan_backend *row = &plan->backends[i];
                int r;

                if (!text_ends(row->name, sizeof(row->name)) || !text_ends(row->key, sizeof(row->key)))
                        return sl_error_set(error, EBADMSG, "plan file: the name of a backend has no end");
                if (row->first_blob != next || !sl_range_inside(next, row->n_blobs, n_blobs))
                        return damaged(error, "first blob of a backend", row->first_blob, n_blobs);
                next += row->n_blobs;
                r = check_backend_key(row, error);
                if (r < 0)
                        return r;
        }
        return next == n_blobs ? 0 : damaged(error, "number of blobs", n_blobs, next);
}

static int check_blobs(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_BLOB_DATA);

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_BLOBS); i++) {
                const struct sl_plan_blob *blob = &plan->blobs[i];

                if (blob->offset % SL_LINE_BYTES)
                        return damaged(error, "offset of a blob", blob->offset, n_data);
                if (!sl_range_inside(blob->offset, blob->bytes, n_data))
                        return damaged(error, "size of a blob", blob->bytes, n_data);
        }
        return 0;
}

/* A dimension is at most the largest tensor, so that products with strides stay far from 2^64. */
static bool shape_is_sound(const struct sl_shape *shape)
{
        if (shape->rank > SL_RANK_MAX)
                return false;
        for (uint32_t i = 0; i < shape->rank; i++) {
                if (shape->dims[i] < 0 || (uint64_t)shape->dims[i] > SL_PLAN_BYTES_MAX)
                        return false;
        }
        return true;
}

static bool tensor_is_sound(const struct sl_tensor *tensor)
{
        if (!sl_dtype_bytes(tensor->dtype) || !shape_is_sound(&tensor->shape))
                return false;
        if (tensor->layout == SL_LAYOUT_CHANNELS_LAST && (tensor->shape.rank < 3 || tensor->shape.rank > 5))
                return false;
        return tensor->layout <= SL_LAYOUT_CHANNELS_LAST && sl_tensor_bytes(tensor) <= SL_PLAN_BYTES_MAX;
}

/* Of a value whose shape is known when it runs: what is written of it is a hint. */
static bool open_tensor_is_sound(const struct sl_tensor *tensor)
{
        if (!sl_dtype_bytes(tensor->dtype) || tensor->shape.rank > SL_RANK_MAX || tensor->layout != SL_LAYOUT_PLAIN)
                return false;
        for (uint32_t i = 0; i < tensor->shape.rank; i++) {
                int64_t dim = tensor->shape.dims[i];

                if (dim < SL_DIM_UNKNOWN || dim > (int64_t)SL_PLAN_BYTES_MAX)
                        return false;
        }
        return true;
}

/* The port's tensor at a batch size. */
static struct sl_tensor port_tensor(const struct sl_port *port, uint64_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        if (port->batch_axis == 0 && port->shape.rank)
                tensor.shape.dims[0] = (int64_t)batch;
        return tensor;
}

/* Samples are gathered port by port: a model that takes several has a place for them in each. */
static bool port_is_sound(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        struct sl_tensor tensor;

        if (port->shape.rank > SL_RANK_MAX || port->indexes > 1)
                return false;
        if (port->batch_axis != SL_PORT_NO_BATCH && port->batch_axis != 0)
                return false;
        if (port->batch_axis == 0 && (!port->shape.rank || port->shape.dims[0] != SL_DIM_BATCH))
                return false;
        if (info->batchable && port->batch_axis != 0)
                return false;
        for (uint32_t i = 0; i < port->shape.rank; i++) {
                if (port->symbols[i] != SL_PORT_NO_SYMBOL && port->symbols[i] >= info->n_symbols)
                        return false;
        }
        tensor = port_tensor(port, info->batches[info->n_batches - 1]);
        return sl_port_is_open(port) ? open_tensor_is_sound(&tensor) && !input && !info->batchable : tensor_is_sound(&tensor);
}

/* Of a signature: the batch first, unknown dimensions anywhere, and a symbol only where an input's dimension is unknown. */
static bool open_port_is_sound(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        if (port->shape.rank > SL_RANK_MAX || port->indexes > 1 || !sl_dtype_bytes(port->dtype))
                return false;
        for (uint32_t i = 0; i < port->shape.rank; i++) {
                int64_t dim = port->shape.dims[i];
                bool named = port->symbols[i] != SL_PORT_NO_SYMBOL;

                if (named && (!input || dim != SL_DIM_UNKNOWN || port->symbols[i] >= info->n_symbols))
                        return false;
                if (dim < 0 && dim != SL_DIM_UNKNOWN && (i > 0 || dim != SL_DIM_BATCH))
                        return false;
                if (input && dim == SL_DIM_UNKNOWN && !named)
                        return false;
        }
        return port->batch_axis == (port->shape.rank && port->shape.dims[0] == SL_DIM_BATCH ? 0 : SL_PORT_NO_BATCH);
}

/* Constants are looked at later: here only that inputs which may be left out are the last. */
static bool fallbacks_are_sound(const struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                uint32_t fallback = info->inputs[i].fallback;

                if (i > 0 && info->inputs[i - 1].fallback && !fallback)
                        return false;
                if (fallback && (fallback == SL_PORT_FALLBACK_ELSEWHERE) != !info->n_batches)
                        return false;
        }
        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (info->outputs[i].fallback)
                        return false;
        return true;
}

static bool described_well(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        return info->n_batches ? port_is_sound(port, info, input) : open_port_is_sound(port, info, input);
}

static int check_ports(const struct sl_plan_info *info, struct sl_error *error)
{
        if (!fallbacks_are_sound(info))
                return sl_error_set(error, EBADMSG, "plan file: inputs that may be left out are described wrongly");
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                if (!described_well(&info->inputs[i], info, true))
                        return sl_error_set(error, EBADMSG, "plan file: input %u is described wrongly", i);
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (!described_well(&info->outputs[i], info, false))
                        return sl_error_set(error, EBADMSG, "plan file: output %u is described wrongly", i);
        }
        return 0;
}

static int check_symbols(const struct sl_plan_info *info, struct sl_error *error)
{
        if (info->n_symbols > SL_SYMBOLS_MAX)
                return damaged(error, "number of open dimensions", info->n_symbols, SL_SYMBOLS_MAX);
        if (info->n_symbols && (info->batchable || info->n_batches > 1))
                return damaged(error, "number of batch sizes beside open dimensions", info->n_batches, 1);
        return 0;
}

/* It promises nothing that could be run. */
static int check_signature(const struct sl_plan *plan, struct sl_error *error)
{
        if (sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS))
                return damaged(error, "number of programs of a signature", sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), 0);
        return 0;
}

/* NULL: it is not there, whole. */
static const char *text_at(const struct sl_plan *plan, uint64_t at)
{
        const char *names = section_at(plan, SL_PLAN_SECTION_NAMES);

        return at < sl_plan_count(plan, SL_PLAN_SECTION_NAMES) ? names + at : NULL;
}

/* The ports behind @info, which has room for them. */
static int point_ports(const struct sl_plan *plan, struct sl_plan_info *info, struct sl_error *error)
{
        const struct sl_plan_port *ports = section_at(plan, SL_PLAN_SECTION_PORTS);

        info->inputs = (struct sl_port *)(info + 1);
        info->outputs = info->inputs + info->n_inputs;
        for (uint32_t i = 0; i < info->n_inputs + info->n_outputs; i++) {
                info->inputs[i] = ports[i].port;
                info->inputs[i].name = text_at(plan, ports[i].name);
                if (!info->inputs[i].name)
                        return damaged(error, "name of a port", ports[i].name, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        }
        return 0;
}

static int point_texts(
        const struct sl_plan *plan, const struct sl_plan_description *from, struct sl_plan_info *info, struct sl_error *error)
{
        info->name = text_at(plan, from->name);
        if (!info->name)
                return damaged(error, "name of the graph", from->name, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        for (uint32_t i = 0; i < SL_SYMBOLS_MAX; i++) {
                info->symbols[i] = text_at(plan, from->symbols[i]);
                if (!info->symbols[i])
                        return damaged(
                                error, "name of an open dimension", from->symbols[i], sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        }
        return 0;
}

/* NAMES ends with a terminator, so that every text in it does. */
static int read_info(struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_description *from = section_at(plan, SL_PLAN_SECTION_INFO);
        uint64_t n_ports = sl_plan_count(plan, SL_PLAN_SECTION_PORTS), bytes = sl_plan_count(plan, SL_PLAN_SECTION_NAMES);
        const uint8_t *names = section_at(plan, SL_PLAN_SECTION_NAMES);
        int r;

        if (from->info.n_inputs > SL_PLAN_PORTS_MAX)
                return damaged(error, "number of inputs", from->info.n_inputs, SL_PLAN_PORTS_MAX);
        if (from->info.n_outputs > SL_PLAN_PORTS_MAX)
                return damaged(error, "number of outputs", from->info.n_outputs, SL_PLAN_PORTS_MAX);
        if (n_ports != from->info.n_inputs + from->info.n_outputs)
                return damaged(error, "number of ports", n_ports, from->info.n_inputs + from->info.n_outputs);
        if (!bytes || names[bytes - 1])
                return sl_error_set(error, EBADMSG, "plan file: a name has no end");
        plan->info = malloc(sizeof(*plan->info) + n_ports * sizeof(struct sl_port));
        if (!plan->info)
                return sl_error_set(error, ENOMEM, "plan: no memory for %llu ports", (unsigned long long)n_ports);
        *plan->info = from->info;
        r = point_texts(plan, from, plan->info, error);
        return r < 0 ? r : point_ports(plan, plan->info, error);
}

static int check_batches(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_info *info = plan->info;

        int r = check_symbols(info, error);

        if (r < 0)
                return r;
        if (info->n_symbols && !info->n_batches)
                return check_signature(plan, error);
        if (!info->n_batches || info->n_batches > SL_PLAN_BATCHES_MAX)
                return damaged(error, "number of batch sizes", info->n_batches, SL_PLAN_BATCHES_MAX);
        if (sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS) < info->n_batches)
                return damaged(error, "number of programs", sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), info->n_batches);
        for (uint32_t i = 0; i < info->n_batches; i++) {
                if (info->batches[i] <= (i ? info->batches[i - 1] : 0))
                        return damaged(error, "a batch size that is not above the one before it", info->batches[i], UINT32_MAX);
                if (info->batches[i] != plan->programs[i].batch)
                        return damaged(error, "batch size of a program", plan->programs[i].batch, info->batches[i]);
                if (info->workspace_bytes[i] != plan->programs[i].workspace_bytes)
                        return damaged(error, "workspace of a program", plan->programs[i].workspace_bytes, SL_PLAN_BYTES_MAX);
        }
        if (info->n_lanes > SL_PLAN_LANES_MAX)
                return damaged(error, "number of lanes", info->n_lanes, SL_PLAN_LANES_MAX);
        if (info->batchable > 1 || (info->batchable && info->batches[0] != 1))
                return damaged(error, "smallest batch", info->batches[0], 1);
        return 0;
}

static int check_info(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_info *info = plan->info;
        int r;

        if (!text_ends(info->backend, sizeof(info->backend)))
                return sl_error_set(error, EBADMSG, "plan file: the name of its backend has no end");
        if (!sl_backend_find(info->backend))
                return sl_error_set(error, EBADMSG, "plan file: there is no backend \"%s\"", info->backend);
        r = check_batches(plan, error);
        if (r < 0)
                return r;
        return check_ports(info, error);
}

/* A lane of a constant of a merged plan. */
static int check_part_of_base(const struct sl_plan_constant *constant, const struct sl_plan_constant *there, struct sl_error *error)
{
        if (constant->offset || constant->base_offset % 64 ||
                !sl_range_inside(constant->base_offset, constant->bytes, there->bytes))
                return damaged(
                        error, "end of a part of a constant in the base", constant->base_offset + constant->bytes, there->bytes);
        return 0;
}

/* Where its bytes are; its form, which it has itself, has been checked. */
static int check_constant_in_base(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        const struct sl_plan_identity *named = &plan->header->base;
        uint64_t n = named->checksum || named->bytes ? sl_plan_count(plan->base, SL_PLAN_SECTION_CONSTANTS) : 0;
        const struct sl_plan_constant *there;

        if (constant->base_index >= n)
                return damaged(error, "number of a constant in the base", constant->base_index, n);
        there = &plan->base->constants[constant->base_index];
        if (constant->in_base == SL_PLAN_PART)
                return check_part_of_base(constant, there, error);
        if (constant->offset || constant->base_offset || constant->bytes != there->bytes)
                return damaged(error, "size of a constant in the base", constant->bytes, there->bytes);
        if (constant->hash != there->hash)
                return damaged(error, "digest of a constant in the base", constant->hash, there->hash);
        if (constant->packed != there->packed || constant->form_bytes != there->form_bytes ||
                memcmp(plan->forms + constant->form_offset, plan->base->forms + there->form_offset, there->form_bytes))
                return sl_error_set(error, EBADMSG, "plan file: constant %u of the base has another form", constant->base_index);
        return 0;
}

/* Bytes of a member's own; what is one of several pieces can be mapped beside the others. */
static int check_piece(const struct sl_plan *plan, const struct sl_plan_piece *piece, bool alone, struct sl_error *error)
{
        uint64_t n_members = sl_plan_count(plan, SL_PLAN_SECTION_MEMBERS), n, at;
        const struct sl_plan_constant *there;

        if (piece->member >= n_members)
                return damaged(error, "number of a member", piece->member, n_members);
        n = sl_plan_count(plan->members[piece->member], SL_PLAN_SECTION_CONSTANTS);
        if (piece->index >= n)
                return damaged(error, "number of a member's constant", piece->index, n);
        there = &plan->members[piece->member]->constants[piece->index];
        if (there->in_base != SL_PLAN_OWN)
                return damaged(error, "place of a member's constant", there->in_base, SL_PLAN_OWN);
        if (piece->offset % 64 || !piece->bytes || !sl_range_inside(piece->offset, piece->bytes, there->bytes))
                return damaged(error, "end of a piece of a member's constant", piece->offset + piece->bytes, there->bytes);
        at = sl_plan_file_offset(plan->members[piece->member], there, piece->offset);
        if (!alone && (piece->bytes % SL_PAGE_BYTES || at % SL_PAGE_BYTES))
                return damaged(error, "a piece that is not whole pages, at", at, piece->bytes);
        return 0;
}

static int check_constant_of_pieces(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        uint64_t n_pieces = sl_plan_count(plan, SL_PLAN_SECTION_PIECES), bytes = 0;

        if (constant->offset || constant->base_index || constant->base_offset)
                return damaged(error, "offset of a constant that is pieces", constant->offset, 0);
        if (!constant->n_pieces || !sl_range_inside(constant->first_piece, constant->n_pieces, n_pieces))
                return damaged(error, "end of a constant's pieces", constant->first_piece + constant->n_pieces, n_pieces);
        for (uint64_t i = 0; i < constant->n_pieces; i++) {
                const struct sl_plan_piece *piece = &plan->pieces[constant->first_piece + i];
                int r = check_piece(plan, piece, constant->n_pieces == 1, error);

                if (r < 0)
                        return r;
                bytes += piece->bytes;
                if (bytes > SL_PLAN_BYTES_MAX)
                        return damaged(error, "size of a constant's pieces", bytes, SL_PLAN_BYTES_MAX);
        }
        return bytes == constant->bytes ? 0 : damaged(error, "size of a constant's pieces", bytes, constant->bytes);
}

static int check_constant_here(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_DATA);

        if (constant->base_index || constant->base_offset)
                return damaged(error, "number in the base of a constant that is not there", constant->base_index, 0);
        if (constant->offset % 64 || !sl_range_inside(constant->offset, constant->bytes, n_data))
                return damaged(error, "end of a constant", constant->offset + constant->bytes, n_data);
        return 0;
}

static int check_constant(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        if (plan->is_for_people && constant->in_base)
                return 0;
        if (constant->in_base == SL_PLAN_PIECES)
                return check_constant_of_pieces(plan, constant, error);
        if (constant->first_piece || constant->n_pieces)
                return damaged(error, "number of pieces of a constant that has none", constant->n_pieces, 0);
        return constant->in_base ? check_constant_in_base(plan, constant, error) : check_constant_here(plan, constant, error);
}

static int check_constants(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_DATA), n_forms = sl_plan_count(plan, SL_PLAN_SECTION_FORMS);

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS); i++) {
                const struct sl_plan_constant *constant = &plan->constants[i];
                int r;

                if (constant->in_base >= SL_PLAN_SHARING_COUNT)
                        return damaged(error, "place of a constant", constant->in_base, SL_PLAN_SHARING_COUNT);
                if (constant->form_bytes > SL_PACK_FORM_BYTES || constant->packed > 1)
                        return damaged(error, "form of a constant", constant->form_bytes, SL_PACK_FORM_BYTES);
                if (!sl_range_inside(constant->form_offset, constant->form_bytes, n_forms))
                        return damaged(error, "end of a form", constant->form_offset + constant->form_bytes, n_forms);
                if (constant->packed && !constant->bytes)
                        return damaged(error, "size of a packed constant", constant->bytes, n_data);
                r = check_constant(plan, constant, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* An input that is left out is a plain constant of its own bytes. */
static int check_fallbacks(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n = sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS);

        for (uint32_t i = 0; i < plan->info->n_inputs && plan->info->n_batches; i++) {
                const struct sl_port *port = &plan->info->inputs[i];
                struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};
                const struct sl_plan_constant *constant;

                if (!port->fallback)
                        continue;
                if (port->fallback - 1 >= n)
                        return damaged(error, "constant of an input", port->fallback - 1, n);
                constant = &plan->constants[port->fallback - 1];
                if (constant->packed || port->batch_axis != SL_PORT_NO_BATCH || constant->bytes != sl_tensor_bytes(&tensor))
                        return damaged(error, "bytes of the constant of an input", constant->bytes, sl_tensor_bytes(&tensor));
        }
        return 0;
}

static int check_attrs(const struct sl_plan *plan, struct sl_error *error)
{
        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_ATTRS); i++) {
                const struct sl_attr *attr = &plan->attrs[i];

                if (attr->id >= SL_ATTR_COUNT)
                        return damaged(error, "number of an attribute", attr->id, SL_ATTR_COUNT);
                if (attr->type >= SL_ATTR_TYPE_LIMIT)
                        return damaged(error, "type of an attribute", attr->type, SL_ATTR_TYPE_LIMIT);
                if (attr->count > SL_ATTR_INTS_MAX)
                        return damaged(error, "length of an attribute", attr->count, SL_ATTR_INTS_MAX);
        }
        return 0;
}

static bool port_operand_fits(
        const struct sl_plan_operand *operand, const struct sl_port *ports, uint32_t n_ports, const struct sl_plan_program *program)
{
        struct sl_tensor tensor;

        if (operand->index >= n_ports)
                return false;
        tensor = port_tensor(&ports[operand->index], program->batch);
        return sl_tensor_bytes(&operand->tensor) <= sl_tensor_bytes(&tensor);
}

static bool constant_operand_fits(const struct sl_plan *plan, const struct sl_plan_operand *operand)
{
        const struct sl_plan_constant *constant;

        if (operand->index >= sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS))
                return false;
        constant = &plan->constants[operand->index];
        return constant->packed || sl_tensor_bytes(&operand->tensor) <= constant->bytes;
}

/* The ports of a body are tensors that its step gives it. */
static bool body_port_fits(const struct sl_plan *plan, const struct sl_plan_operand *operand, const struct sl_plan_program *body)
{
        bool input = operand->place == SL_PLACE_INPUT;
        const struct sl_plan_operand *port;

        if (operand->index >= (input ? body->n_inputs : body->n_outputs))
                return false;
        port = &plan->operands[body->first_operand + (input ? 0 : body->n_inputs) + operand->index];
        return port->place == operand->place && sl_tensor_bytes(&operand->tensor) <= sl_tensor_bytes(&port->tensor);
}

/* A kernel touches no byte outside its tensors; this says that all of those bytes exist. */
static bool operand_fits(
        const struct sl_plan *plan, const struct sl_plan_operand *operand, const struct sl_plan_program *program, bool written)
{
        switch (operand->place) {
        case SL_PLACE_NONE:
                return !written && operand->tensor.dtype == SL_DTYPE_NONE;
        case SL_PLACE_WORKSPACE:
                return operand->offset % SL_LINE_BYTES == 0 &&
                       sl_range_inside(operand->offset, sl_tensor_bytes(&operand->tensor), program->workspace_bytes);
        case SL_PLACE_CONSTANT:
                return !written && constant_operand_fits(plan, operand);
        case SL_PLACE_INPUT:
                if (!program->batch)
                        return !written && body_port_fits(plan, operand, program);
                return !written && port_operand_fits(operand, plan->info->inputs, plan->info->n_inputs, program);
        case SL_PLACE_OUTPUT:
                if (!program->batch)
                        return body_port_fits(plan, operand, program);
                return port_operand_fits(operand, plan->info->outputs, plan->info->n_outputs, program);
        case SL_PLACE_SLOT:
                return operand->index < program->n_slots && operand->offset <= 1;
        default:
                return false;
        }
}

static bool is_open_output(const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_operand *operand)
{
        return program->batch && operand->place == SL_PLACE_OUTPUT && operand->index < plan->info->n_outputs &&
               sl_port_is_open(&plan->info->outputs[operand->index]);
}

/* A step of the interpreter reads and writes PLAIN tensors as they are. */
static bool dynamic_operand_fits(const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, bool written)
{
        if (operand->place == SL_PLACE_NONE)
                return !written && operand->tensor.dtype == SL_DTYPE_NONE;
        if (operand->place == SL_PLACE_SLOT)
                return open_tensor_is_sound(&operand->tensor) && operand->index < program->n_slots && operand->offset <= 1;
        if (is_open_output(plan, program, operand))
                return written && step->op == SL_OP_IDENTITY && step->n_inputs == 1;
        if (operand->tensor.layout != SL_LAYOUT_PLAIN || !tensor_is_sound(&operand->tensor))
                return false;
        if (operand->place == SL_PLACE_CONSTANT)
                return operand_fits(plan, operand, program, written) && !plan->constants[operand->index].packed;
        return operand_fits(plan, operand, program, written);
}

static bool static_operand_fits(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_operand *operand, bool written)
{
        if (operand->place == SL_PLACE_SLOT || is_open_output(plan, program, operand))
                return false;
        return operand_fits(plan, operand, program, written);
}

static int check_operands(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++) {
                const struct sl_plan_operand *operand = &plan->operands[step->first_operand + i];
                bool written = i >= step->n_inputs, fits;

                if (!step->dynamic && operand->place != SL_PLACE_NONE && !tensor_is_sound(&operand->tensor))
                        return sl_error_set(error, EBADMSG, "plan file: operand %u of a %s has no sound type or shape", i,
                                sl_op_name(step->op));
                fits = step->dynamic ? dynamic_operand_fits(plan, program, step, operand, written)
                                     : static_operand_fits(plan, program, operand, written);
                if (!fits)
                        return sl_error_set(
                                error, EBADMSG, "plan file: operand %u of a %s lies outside its place", i, sl_op_name(step->op));
        }
        return 0;
}

/* The bodies of a step come behind the program that it is in, so that none runs itself. */
static bool overlaps(uint64_t at, uint64_t bytes, const struct sl_plan_operand *operand)
{
        return operand->place == SL_PLACE_WORKSPACE && at < operand->offset + sl_tensor_bytes(&operand->tensor) &&
               operand->offset < at + bytes;
}

/*
 * A kernel trusts that what it writes stays: its scratch is nobody's, and no two outputs are one. That an output takes the place of
 * an input is up to the operator.
 */
static int check_places(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_error *error)
{
        const struct sl_plan_operand *operands = &plan->operands[step->first_operand], *outputs = operands + step->n_inputs;

        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++)
                if (overlaps(step->scratch_offset, step->scratch_bytes, &operands[i]))
                        return sl_error_set(
                                error, EBADMSG, "plan file: operand %u of a %s lies in its scratch", i, sl_op_name(step->op));
        for (uint32_t i = 1; i < step->n_outputs; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (outputs[k].place == SL_PLACE_WORKSPACE &&
                                overlaps(outputs[k].offset, sl_tensor_bytes(&outputs[k].tensor), &outputs[i]))
                                return sl_error_set(
                                        error, EBADMSG, "plan file: outputs %u and %u of a %s overlap", k, i, sl_op_name(step->op));
        return 0;
}

static int check_step_bodies(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), at = (uint64_t)(program - plan->programs);
        bool control = sl_op_traits(step->op) & SL_OP_CONTROL;
        uint64_t wanted = !control ? 0 : step->op == SL_OP_IF ? 2 : 1;

        if (step->dynamic > 1 || (control && !step->dynamic))
                return damaged(error, "kind of a step", step->dynamic, 1);
        if (step->n_bodies != wanted)
                return damaged(error, "number of bodies of a step", step->n_bodies, wanted);
        if (!wanted)
                return 0;
        if (step->first_body <= at || step->first_body < plan->info->n_batches ||
                !sl_range_inside(step->first_body, step->n_bodies, n_programs))
                return damaged(error, "first body of a step", step->first_body, n_programs);
        for (uint64_t b = 0; b < step->n_bodies; b++)
                if (plan->programs[step->first_body + b].workspace_bytes > step->scratch_bytes)
                        return damaged(error, "workspace of a body", plan->programs[step->first_body + b].workspace_bytes,
                                step->scratch_bytes);
        return 0;
}

/* Who runs a dynamic step is decided when it runs. */
static int check_step_backend(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_backends = sl_plan_count(plan, SL_PLAN_SECTION_BACKENDS);

        if (step->dynamic && (step->backend || step->blob != SL_PLAN_NO_BLOB))
                return damaged(error, "backend of a dynamic step", step->backend, 0);
        if (!step->dynamic && step->backend >= n_backends)
                return damaged(error, "number of a backend", step->backend, n_backends);
        if (step->blob != SL_PLAN_NO_BLOB && step->blob >= plan->backends[step->backend].n_blobs)
                return damaged(error, "number of a blob", step->blob, plan->backends[step->backend].n_blobs);
        return 0;
}

/* Whether a kernel can be cut so is seen when there is one. */
static int check_splits(const struct sl_plan_step *step, struct sl_error *error)
{
        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++) {
                struct sl_split split = step->splits[i];
                uint32_t size = step->dynamic ? 0 : sl_team_size_at(i), most = split.axis == SL_AXIS_NONE && size ? 1 : size;

                if (split.axis >= SL_AXIS_COUNT || (step->dynamic && split.axis))
                        return damaged(error, "axis of a step's parts", split.axis, SL_AXIS_COUNT);
                if (split.members > most || (split.axis != SL_AXIS_NONE && split.members < 2))
                        return damaged(error, "number of a step's parts", split.members, most);
                if (split.first + split.members > size || (split.first && !split.members))
                        return damaged(error, "first member of a step's parts", split.first, size);
                if (split.begins > (size > 0))
                        return damaged(error, "mark of a step that waits", split.begins, size > 0);
        }
        return 0;
}

static int check_step(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_operands = sl_plan_count(plan, SL_PLAN_SECTION_OPERANDS);

        if (step->name[SL_PLAN_NAME_BYTES - 1])
                return damaged(error, "last byte of the name of a step", (uint8_t)step->name[SL_PLAN_NAME_BYTES - 1], 0);
        if (step->choice.reason >= SL_CHOICE_REASON_COUNT)
                return damaged(error, "reason of a step's algorithm", step->choice.reason, SL_CHOICE_REASON_COUNT);
        if (step->op >= SL_OP_COUNT)
                return damaged(error, "number of an operator", step->op, SL_OP_COUNT);
        if (step->n_inputs > SL_NODE_INPUTS_MAX)
                return damaged(error, "number of inputs of a step", step->n_inputs, SL_NODE_INPUTS_MAX);
        if (step->n_outputs > SL_NODE_OUTPUTS_MAX || !step->n_outputs)
                return damaged(error, "number of outputs of a step", step->n_outputs, SL_NODE_OUTPUTS_MAX);
        if (step->n_attrs > SL_NODE_ATTRS_MAX)
                return damaged(error, "number of attributes of a step", step->n_attrs, SL_NODE_ATTRS_MAX);
        if (!sl_range_inside(step->first_operand, step->n_inputs + step->n_outputs, n_operands))
                return damaged(error, "first operand of a step", step->first_operand, n_operands);
        if (!sl_range_inside(step->first_attr, step->n_attrs, sl_plan_count(plan, SL_PLAN_SECTION_ATTRS)))
                return damaged(error, "first attribute of a step", step->first_attr, sl_plan_count(plan, SL_PLAN_SECTION_ATTRS));
        if (step->epilogue.activation > SL_ACT_ELU || step->epilogue.has_residual > 1)
                return damaged(error, "activation of a step", step->epilogue.activation, SL_ACT_ELU);
        if (step->scratch_offset % SL_LINE_BYTES ||
                !sl_range_inside(step->scratch_offset, step->scratch_bytes, program->workspace_bytes))
                return damaged(error, "scratch of a step", step->scratch_bytes, program->workspace_bytes);
        int r = check_step_backend(plan, step, error);

        if (r == 0)
                r = check_splits(step, error);
        if (r == 0)
                r = check_step_bodies(plan, program, step, error);
        if (r == 0)
                r = check_operands(plan, program, step, error);
        return r < 0 ? r : check_places(plan, step, error);
}

static int check_program(const struct sl_plan *plan, const struct sl_plan_program *program, struct sl_error *error)
{
        uint64_t n_steps = sl_plan_count(plan, SL_PLAN_SECTION_STEPS);

        if (!sl_range_inside(program->first_step, program->n_steps, n_steps))
                return damaged(error, "first step of a program", program->first_step, n_steps);
        if (program->workspace_bytes > SL_PLAN_BYTES_MAX)
                return damaged(error, "workspace of a program", program->workspace_bytes, SL_PLAN_BYTES_MAX);
        if (program->n_slots > SLOTS_MAX)
                return damaged(error, "number of slots of a program", program->n_slots, SLOTS_MAX);
        if (program->dynamic_bytes > SL_PLAN_BYTES_MAX)
                return damaged(error, "dynamic memory of a program", program->dynamic_bytes, SL_PLAN_BYTES_MAX);
        for (uint64_t i = 0; i < program->n_steps; i++) {
                int r = check_step(plan, program, &plan->steps[program->first_step + i], error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* What has a static shape is a port under its own number, PLAIN; the rest is a slot. */
static bool body_port_is_sound(const struct sl_plan *plan, const struct sl_plan_program *program, uint64_t i)
{
        const struct sl_plan_operand *port = &plan->operands[program->first_operand + i];
        bool input = i < program->n_inputs;

        if (port->place == SL_PLACE_SLOT)
                return port->index < program->n_slots && open_tensor_is_sound(&port->tensor);
        return port->place == (input ? SL_PLACE_INPUT : SL_PLACE_OUTPUT) && port->index == (input ? i : i - program->n_inputs) &&
               port->tensor.layout == SL_LAYOUT_PLAIN && tensor_is_sound(&port->tensor);
}

static int check_body(const struct sl_plan *plan, const struct sl_plan_program *program, struct sl_error *error)
{
        uint64_t n_operands = sl_plan_count(plan, SL_PLAN_SECTION_OPERANDS);

        if (program->batch)
                return damaged(error, "batch of a body", program->batch, 0);
        if (program->n_inputs > SL_NODE_INPUTS_MAX || program->n_outputs > SL_NODE_OUTPUTS_MAX + 1)
                return damaged(error, "number of inputs or outputs of a body", program->n_inputs, SL_NODE_INPUTS_MAX);
        if (!sl_range_inside(program->first_operand, program->n_inputs + program->n_outputs, n_operands))
                return damaged(error, "first operand of a body", program->first_operand, n_operands);
        for (uint64_t i = 0; i < program->n_inputs + program->n_outputs; i++)
                if (!body_port_is_sound(plan, program, i))
                        return sl_error_set(error, EBADMSG, "plan file: a body has an input or an output that is none");
        return 0;
}

/* One walk suffices, for a body comes behind whoever runs it. Each is of one step, in whose scratch it works. */
static int check_depth(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS);
        uint8_t *depths = calloc(n_programs + 1, 1);
        int r = depths ? 0 : sl_error_set(error, ENOMEM, "plan file: no memory for %llu programs", (unsigned long long)n_programs);

        for (uint64_t p = 0; p < n_programs && r == 0; p++)
                for (uint64_t s = 0; s < plan->programs[p].n_steps && r == 0; s++) {
                        const struct sl_plan_step *step = &plan->steps[plan->programs[p].first_step + s];

                        if (step->n_bodies && depths[p] >= DEPTH_MAX)
                                r = damaged(error, "depth of bodies", depths[p] + 1u, DEPTH_MAX);
                        for (uint64_t b = 0; b < step->n_bodies && r == 0; b++) {
                                uint8_t *depth = &depths[step->first_body + b];

                                if (*depth)
                                        r = damaged(error, "number of steps of one body", 2, 1);
                                *depth = (uint8_t)(depths[p] + 1);
                        }
                }
        free(depths);
        return r;
}

static int check_programs(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS);
        int r = 0;

        for (uint64_t i = 0; i < n_programs && r == 0; i++) {
                if (i >= plan->info->n_batches)
                        r = check_body(plan, &plan->programs[i], error);
                else if (plan->programs[i].n_inputs || plan->programs[i].n_outputs)
                        r = damaged(error, "ports of a program that is no body", plan->programs[i].n_inputs, 0);
                if (r == 0)
                        r = check_program(plan, &plan->programs[i], error);
        }
        return r < 0 ? r : check_depth(plan, error);
}

int sl_plan_check(struct sl_plan *plan, struct sl_error *error)
{
        int (*const walks[])(const struct sl_plan *, struct sl_error *) = {
                check_backends, check_blobs, check_info, check_constants, check_fallbacks, check_attrs};
        int r;

        plan->header = (const void *)plan->bytes;
        r = check_header(plan, error);
        if (r < 0)
                return r;
        r = check_base(plan, error);
        if (r < 0)
                return r;
        r = check_sections(plan, error);
        if (r < 0)
                return r;
        r = check_members(plan, error);
        if (r < 0)
                return r;
        point_sections(plan);
        r = read_info(plan, error);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
                r = walks[i](plan, error);
                if (r < 0)
                        return r;
        }
        return check_programs(plan, error);
}

static void read_input(const struct sl_plan *plan, const struct sl_plan_operand *operand, uint32_t i, struct sl_plan_call *call)
{
        const struct sl_plan_constant *constant;

        call->packed[i].data_bytes = 0;
        call->packed[i].form_bytes = 0;
        call->constants[i] = NULL;
        if (operand->place != SL_PLACE_CONSTANT)
                return;
        constant = &plan->constants[operand->index];
        call->constants[i] = sl_plan_constant_data(plan, constant);
        if (!constant->packed)
                return;
        call->packed[i].data_bytes = constant->bytes;
        call->packed[i].form_bytes = constant->form_bytes;
        memcpy(call->packed[i].form, plan->forms + constant->form_offset, constant->form_bytes);
}

/* The shape rules are run once more: kernels rely on outputs that follow from the inputs. */
static bool outputs_follow(const struct sl_node_desc *node)
{
        struct sl_node_desc inferred = *node;

        if (sl_op_infer(&inferred, NULL) < 0)
                return false;
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_tensor *stored = &node->outputs[i], *made = &inferred.outputs[i];

                if (stored->dtype == SL_DTYPE_NONE)
                        continue;
                if (stored->dtype != made->dtype || !sl_shape_equal(&stored->shape, &made->shape))
                        return false;
        }
        return true;
}

int sl_plan_read_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_plan_call *ret_call)
{
        const struct sl_plan_operand *operands = &plan->operands[step->first_operand];
        struct sl_node_desc *node = &ret_call->node;

        memset(node, 0, sizeof(*node));
        node->op = step->op;
        node->n_inputs = step->n_inputs;
        node->n_outputs = step->n_outputs;
        node->epilogue = step->epilogue;
        node->attrs.count = step->n_attrs;
        memcpy(node->attrs.items, &plan->attrs[step->first_attr], step->n_attrs * sizeof(struct sl_attr));
        for (uint32_t i = 0; i < step->n_inputs; i++) {
                node->inputs[i] = operands[i].tensor;
                read_input(plan, &operands[i], i, ret_call);
        }
        for (uint32_t i = 0; i < step->n_outputs; i++)
                node->outputs[i] = operands[step->n_inputs + i].tensor;
        return outputs_follow(node) ? 0 : -EBADMSG;
}
