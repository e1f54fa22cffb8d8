/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing in a plan file is believed before this walk: it may have been damaged on disk, or written by a compiler process that a
 * hostile model took over. What is checked here is everything that can be checked without a kernel; sl_instance_new() asks the
 * backends about the rest.
 */
#include "plan_check.h"

#include "plan.h"
#include "plan_sum.h"

#include <stdlib.h>
#include <string.h>

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
                return sl_plan_damaged(error, "size of the header", header->header_bytes, sizeof(*header));
        if (header->file_bytes != plan->n_bytes)
                return sl_plan_damaged(error, "size in the header", header->file_bytes, plan->n_bytes);
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
                        return sl_plan_damaged(error, "offset of a section", section->offset, plan->n_bytes);
                if (sl_mul_overflows(section->count, sl_plan_section_bytes(id), &bytes) ||
                        !sl_range_inside(section->offset, bytes, plan->n_bytes))
                        return sl_plan_damaged(error, "size of a section", section->count, plan->n_bytes);
        }
        if (plan->header->sections[SL_PLAN_SECTION_INFO].count != 1)
                return sl_plan_damaged(error, "number of descriptions", plan->header->sections[SL_PLAN_SECTION_INFO].count, 1);
        return 0;
}

static void point_sections(struct sl_plan *plan)
{
        plan->backends = sl_plan_section_at(plan, SL_PLAN_SECTION_BACKENDS);
        plan->programs = sl_plan_section_at(plan, SL_PLAN_SECTION_PROGRAMS);
        plan->steps = sl_plan_section_at(plan, SL_PLAN_SECTION_STEPS);
        plan->names = sl_plan_section_at(plan, SL_PLAN_SECTION_NAMES);
        plan->operands = sl_plan_section_at(plan, SL_PLAN_SECTION_OPERANDS);
        plan->attrs = sl_plan_section_at(plan, SL_PLAN_SECTION_ATTRS);
        plan->constants = sl_plan_section_at(plan, SL_PLAN_SECTION_CONSTANTS);
        plan->pieces = sl_plan_section_at(plan, SL_PLAN_SECTION_PIECES);
        plan->forms = sl_plan_section_at(plan, SL_PLAN_SECTION_FORMS);
        plan->blobs = sl_plan_section_at(plan, SL_PLAN_SECTION_BLOBS);
        plan->blob_data = sl_plan_section_at(plan, SL_PLAN_SECTION_BLOB_DATA);
        plan->data = sl_plan_section_at(plan, SL_PLAN_SECTION_DATA);
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
                return sl_plan_damaged(error, "number of backends", n, SL_PLAN_BACKENDS_MAX);
        for (uint64_t i = 0; i < n; i++) {
                const struct sl_plan_backend *row = &plan->backends[i];
                int r;

                if (!sl_plan_text_ends(row->name, sizeof(row->name)) || !sl_plan_text_ends(row->key, sizeof(row->key)))
                        return sl_error_set(error, EBADMSG, "plan file: the name of a backend has no end");
                if (row->first_blob != next || !sl_range_inside(next, row->n_blobs, n_blobs))
                        return sl_plan_damaged(error, "first blob of a backend", row->first_blob, n_blobs);
                next += row->n_blobs;
                r = check_backend_key(row, error);
                if (r < 0)
                        return r;
        }
        return next == n_blobs ? 0 : sl_plan_damaged(error, "number of blobs", n_blobs, next);
}

static int check_blobs(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_BLOB_DATA);

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_BLOBS); i++) {
                const struct sl_plan_blob *blob = &plan->blobs[i];

                if (blob->offset % SL_LINE_BYTES)
                        return sl_plan_damaged(error, "offset of a blob", blob->offset, n_data);
                if (!sl_range_inside(blob->offset, blob->bytes, n_data))
                        return sl_plan_damaged(error, "size of a blob", blob->bytes, n_data);
        }
        return 0;
}
/* A lane of a constant of a merged plan. */
static int check_part_of_base(const struct sl_plan_constant *constant, const struct sl_plan_constant *there, struct sl_error *error)
{
        if (constant->offset || constant->base_offset % 64 ||
                !sl_range_inside(constant->base_offset, constant->bytes, there->bytes))
                return sl_plan_damaged(
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
                return sl_plan_damaged(error, "number of a constant in the base", constant->base_index, n);
        there = &plan->base->constants[constant->base_index];
        if (constant->in_base == SL_PLAN_PART)
                return check_part_of_base(constant, there, error);
        if (constant->offset || constant->base_offset || constant->bytes != there->bytes)
                return sl_plan_damaged(error, "size of a constant in the base", constant->bytes, there->bytes);
        if (constant->hash != there->hash)
                return sl_plan_damaged(error, "digest of a constant in the base", constant->hash, there->hash);
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
                return sl_plan_damaged(error, "number of a member", piece->member, n_members);
        n = sl_plan_count(plan->members[piece->member], SL_PLAN_SECTION_CONSTANTS);
        if (piece->index >= n)
                return sl_plan_damaged(error, "number of a member's constant", piece->index, n);
        there = &plan->members[piece->member]->constants[piece->index];
        if (there->in_base != SL_PLAN_OWN)
                return sl_plan_damaged(error, "place of a member's constant", there->in_base, SL_PLAN_OWN);
        if (piece->offset % 64 || !piece->bytes || !sl_range_inside(piece->offset, piece->bytes, there->bytes))
                return sl_plan_damaged(error, "end of a piece of a member's constant", piece->offset + piece->bytes, there->bytes);
        at = sl_plan_file_offset(plan->members[piece->member], there, piece->offset);
        if (!alone && (piece->bytes % SL_PAGE_BYTES || at % SL_PAGE_BYTES))
                return sl_plan_damaged(error, "a piece that is not whole pages, at", at, piece->bytes);
        return 0;
}

static int check_constant_of_pieces(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        uint64_t n_pieces = sl_plan_count(plan, SL_PLAN_SECTION_PIECES), bytes = 0;

        if (constant->offset || constant->base_index || constant->base_offset)
                return sl_plan_damaged(error, "offset of a constant that is pieces", constant->offset, 0);
        if (!constant->n_pieces || !sl_range_inside(constant->first_piece, constant->n_pieces, n_pieces))
                return sl_plan_damaged(error, "end of a constant's pieces", constant->first_piece + constant->n_pieces, n_pieces);
        for (uint64_t i = 0; i < constant->n_pieces; i++) {
                const struct sl_plan_piece *piece = &plan->pieces[constant->first_piece + i];
                int r = check_piece(plan, piece, constant->n_pieces == 1, error);

                if (r < 0)
                        return r;
                bytes += piece->bytes;
                if (bytes > SL_PLAN_BYTES_MAX)
                        return sl_plan_damaged(error, "size of a constant's pieces", bytes, SL_PLAN_BYTES_MAX);
        }
        return bytes == constant->bytes ? 0 : sl_plan_damaged(error, "size of a constant's pieces", bytes, constant->bytes);
}

static int check_constant_here(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_DATA);

        if (constant->base_index || constant->base_offset)
                return sl_plan_damaged(error, "number in the base of a constant that is not there", constant->base_index, 0);
        if (constant->offset % 64 || !sl_range_inside(constant->offset, constant->bytes, n_data))
                return sl_plan_damaged(error, "end of a constant", constant->offset + constant->bytes, n_data);
        return 0;
}

static int check_constant(const struct sl_plan *plan, const struct sl_plan_constant *constant, struct sl_error *error)
{
        if (plan->is_for_people && constant->in_base)
                return 0;
        if (constant->in_base == SL_PLAN_PIECES)
                return check_constant_of_pieces(plan, constant, error);
        if (constant->first_piece || constant->n_pieces)
                return sl_plan_damaged(error, "number of pieces of a constant that has none", constant->n_pieces, 0);
        return constant->in_base ? check_constant_in_base(plan, constant, error) : check_constant_here(plan, constant, error);
}

static int check_constants(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_data = sl_plan_count(plan, SL_PLAN_SECTION_DATA), n_forms = sl_plan_count(plan, SL_PLAN_SECTION_FORMS);

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS); i++) {
                const struct sl_plan_constant *constant = &plan->constants[i];
                int r;

                if (constant->in_base >= SL_PLAN_SHARING_COUNT)
                        return sl_plan_damaged(error, "place of a constant", constant->in_base, SL_PLAN_SHARING_COUNT);
                if (constant->form_bytes > SL_PACK_FORM_BYTES || constant->packed > 1)
                        return sl_plan_damaged(error, "form of a constant", constant->form_bytes, SL_PACK_FORM_BYTES);
                if (!sl_range_inside(constant->form_offset, constant->form_bytes, n_forms))
                        return sl_plan_damaged(error, "end of a form", constant->form_offset + constant->form_bytes, n_forms);
                if (constant->packed && !constant->bytes)
                        return sl_plan_damaged(error, "size of a packed constant", constant->bytes, n_data);
                r = check_constant(plan, constant, error);
                if (r < 0)
                        return r;
        }
        return 0;
}
int sl_plan_check(struct sl_plan *plan, struct sl_error *error)
{
        int (*const walks[])(const struct sl_plan *, struct sl_error *) = {
                check_backends, check_blobs, sl_plan_check_info, check_constants, sl_plan_check_fallbacks, sl_plan_check_attrs};
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
        r = sl_plan_point_info(plan, error);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
                r = walks[i](plan, error);
                if (r < 0)
                        return r;
        }
        return sl_plan_check_programs(plan, error);
}
