/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "plan.h"
#include "plan_map.h"
#include "plan_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxh_x86dispatch.h>

#define LEAD_BYTES 4096u /* of a constant, by which it is looked for: what decides is the whole */

struct known {
        uint32_t member, index;
        uint64_t hash;
};

struct sharing {
        const struct sl_plan *merged;
        struct sl_plan *const *members;
        uint32_t n_members;
        struct known *known; /* open addressing over the hashes of all members' own constants; */
        uint32_t *table;     /* index + 1, 0 is free */
        uint64_t n_known, table_room;
        struct sl_plan_constant *constants; /* of the plan to come */
        struct sl_plan_piece *pieces;
        uint64_t n_constants, n_pieces, n_side_by_side, data_bytes, member_bytes;
        struct sl_plan_header header; /* of the plan to come */
};

static void sharing_deinit(struct sharing *s)
{
        free(s->known);
        free(s->table);
        free(s->constants);
        free(s->pieces);
}

static uint64_t hash_lead(const uint8_t *data, uint64_t bytes)
{
        return XXH3_64bits_withSeed(data, bytes < LEAD_BYTES ? bytes : LEAD_BYTES, bytes);
}

/* ---- what the members have ---- */

static void know_constants(struct sharing *s, uint32_t member)
{
        const struct sl_plan *plan = s->members[member];
        uint64_t mask = s->table_room - 1;

        for (uint32_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS); i++) {
                const struct sl_plan_constant *constant = &plan->constants[i];
                uint64_t hash, at;

                if (constant->in_base != SL_PLAN_OWN || !constant->bytes)
                        continue;
                hash = hash_lead(sl_plan_constant_data(plan, constant), constant->bytes);
                for (at = hash & mask; s->table[at];)
                        at = (at + 1) & mask;
                s->known[s->n_known++] = (struct known){.member = member, .index = i, .hash = hash};
                s->table[at] = (uint32_t)s->n_known;
        }
}

static int know_members(struct sharing *s)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < s->n_members; i++)
                n += sl_plan_count(s->members[i], SL_PLAN_SECTION_CONSTANTS);
        for (s->table_room = 64; s->table_room < 2 * n;)
                s->table_room *= 2;
        s->known = calloc(n + 1, sizeof(*s->known));
        s->table = calloc(s->table_room, sizeof(*s->table));
        if (!s->known || !s->table || n > UINT32_MAX)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_members; i++)
                know_constants(s, i);
        return 0;
}

static bool has_bytes(const struct sharing *s, const struct known *known, const uint8_t *data, uint64_t bytes)
{
        const struct sl_plan *plan = s->members[known->member];
        const struct sl_plan_constant *there = &plan->constants[known->index];

        return there->bytes == bytes && !memcmp(sl_plan_constant_data(plan, there), data, bytes);
}

static bool is_whole_pages(const struct sharing *s, const struct known *known)
{
        const struct sl_plan *plan = s->members[known->member];
        const struct sl_plan_constant *there = &plan->constants[known->index];

        return there->bytes % SL_PAGE_BYTES == 0 && sl_plan_file_offset(plan, there, 0) % SL_PAGE_BYTES == 0;
}

/* @lane's own if several have the same bytes. */
static bool find(const struct sharing *s, const uint8_t *data, uint64_t bytes, uint32_t lane, bool whole_pages,
        struct sl_plan_piece *ret_piece)
{
        uint64_t hash = hash_lead(data, bytes), mask = s->table_room - 1;
        bool found = false;

        for (uint64_t at = hash & mask; s->table[at]; at = (at + 1) & mask) {
                const struct known *known = &s->known[s->table[at] - 1];

                if (known->hash != hash || (found && known->member != lane) || (whole_pages && !is_whole_pages(s, known)) ||
                        !has_bytes(s, known, data, bytes))
                        continue;
                *ret_piece = (struct sl_plan_piece){.member = known->member, .index = known->index, .bytes = bytes};
                found = true;
                if (known->member == lane)
                        break;
        }
        return found;
}

/* ---- what is theirs of the merged plan ---- */

/* Return: pieces, behind those that there are; 0: it is not theirs. */
static uint32_t cut(struct sharing *s, const uint8_t *data, uint64_t bytes)
{
        uint64_t lane_bytes = bytes / s->n_members;
        struct sl_plan_piece *pieces = &s->pieces[s->n_pieces];

        if (!bytes)
                return 0;
        if (find(s, data, bytes, UINT32_MAX, false, &pieces[0]))
                return 1;
        if (!lane_bytes || bytes % s->n_members || lane_bytes % SL_PAGE_BYTES ||
                s->n_side_by_side + s->n_members > SL_PLAN_SIDE_BY_SIDE_MAX)
                return 0;
        for (uint32_t lane = 0; lane < s->n_members; lane++)
                if (!find(s, data + lane * lane_bytes, lane_bytes, lane, true, &pieces[lane]))
                        return 0;
        s->n_side_by_side += s->n_members;
        return s->n_members;
}

static int cut_constants(struct sharing *s)
{
        s->n_constants = sl_plan_count(s->merged, SL_PLAN_SECTION_CONSTANTS);
        s->constants = calloc(s->n_constants + 1, sizeof(*s->constants));
        s->pieces = calloc((s->n_constants + 1) * s->n_members, sizeof(*s->pieces));
        if (!s->constants || !s->pieces)
                return -ENOMEM;
        for (uint64_t i = 0; i < s->n_constants; i++) {
                struct sl_plan_constant *constant = &s->constants[i];
                uint32_t n;

                *constant = s->merged->constants[i];
                n = cut(s, sl_plan_constant_data(s->merged, constant), constant->bytes);
                constant->offset = n ? 0 : s->data_bytes;
                if (n) {
                        constant->in_base = SL_PLAN_PIECES;
                        constant->first_piece = s->n_pieces;
                        constant->n_pieces = n;
                        s->member_bytes += constant->bytes;
                } else {
                        s->data_bytes = sl_align_up(s->data_bytes + constant->bytes, SL_LINE_BYTES);
                }
                s->n_pieces += n;
        }
        return s->n_pieces ? 0 : -ENODATA;
}

/* ---- the file ---- */

static uint64_t count_of(const struct sharing *s, uint32_t id)
{
        switch (id) {
        case SL_PLAN_SECTION_PIECES:
                return s->n_pieces;
        case SL_PLAN_SECTION_MEMBERS:
                return s->n_members;
        case SL_PLAN_SECTION_DATA:
                return s->data_bytes;
        default:
                return sl_plan_count(s->merged, id);
        }
}

/* DATA on a page, as everywhere; the others behind it. */
static void plan_sections(struct sharing *s)
{
        uint64_t first = sl_align_up(sizeof(s->header), SL_PAGE_BYTES), at = first + sl_align_up(s->data_bytes, SL_LINE_BYTES);

        s->header = *s->merged->header;
        for (uint32_t id = 0; id < SL_PLAN_SECTION_COUNT; id++) {
                struct sl_plan_section *section = &s->header.sections[id];

                *section = (struct sl_plan_section){.offset = id == SL_PLAN_SECTION_DATA ? first : at, .count = count_of(s, id)};
                if (id != SL_PLAN_SECTION_DATA)
                        at += sl_align_up(section->count * sl_plan_section_bytes(id), SL_LINE_BYTES);
        }
        s->header.file_bytes = at;
}

static void fill_data(const struct sharing *s, uint8_t *data)
{
        for (uint64_t i = 0; i < s->n_constants; i++)
                if (s->constants[i].in_base == SL_PLAN_OWN)
                        memcpy(data + s->constants[i].offset, sl_plan_constant_data(s->merged, &s->merged->constants[i]),
                                s->constants[i].bytes);
}

static void fill_section(const struct sharing *s, uint32_t id, uint8_t *to)
{
        uint64_t bytes = count_of(s, id) * sl_plan_section_bytes(id);

        if (id == SL_PLAN_SECTION_DATA)
                fill_data(s, to);
        else if (id == SL_PLAN_SECTION_CONSTANTS)
                memcpy(to, s->constants, bytes);
        else if (id == SL_PLAN_SECTION_PIECES)
                memcpy(to, s->pieces, bytes);
        else if (id == SL_PLAN_SECTION_MEMBERS)
                for (uint32_t i = 0; i < s->n_members; i++)
                        ((struct sl_plan_identity *)to)[i] = sl_plan_identity(s->members[i]);
        else
                memcpy(to, s->merged->bytes + s->merged->header->sections[id].offset, bytes);
}

static void fill_file(struct sharing *s, uint8_t *bytes)
{
        struct sl_plan_description *description = (void *)(bytes + s->header.sections[SL_PLAN_SECTION_INFO].offset);

        for (uint32_t id = 0; id < SL_PLAN_SECTION_COUNT; id++)
                fill_section(s, id, bytes + s->header.sections[id].offset);
        description->info.weights_bytes = s->data_bytes;
        description->info.member_bytes = s->member_bytes;
        memcpy(bytes, &s->header, sizeof(s->header));
        s->header.checksum = sl_plan_sum(bytes, s->header.file_bytes);
        memcpy(bytes, &s->header, sizeof(s->header));
}

/* The memory is taken before it is mapped: where there is none the first touch would end the process. */
static int write_file(struct sharing *s, int fd)
{
        uint8_t *bytes;

        plan_sections(s);
        if (fallocate(fd, 0, 0, (off_t)s->header.file_bytes) < 0)
                return -errno;
        bytes = mmap(NULL, s->header.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (bytes == MAP_FAILED)
                return -errno;
        fill_file(s, bytes);
        munmap(bytes, s->header.file_bytes);
        return 0;
}

static bool has_memory_of_its_own(const struct sl_plan *plan)
{
        const struct sl_backend *backend = sl_backend_find(plan->info->backend);

        return backend && backend->runner && backend->runner->memory;
}

int sl_plan_share(
        const struct sl_plan *merged, struct sl_plan *const *members, uint32_t n_members, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sharing_deinit) struct sharing s = {.merged = merged, .members = members, .n_members = n_members};
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = merged->base || merged->n_members || !n_members ? -EINVAL : 0;

        if (r == 0 && has_memory_of_its_own(merged))
                return sl_error_set(error, ENODATA, "constants of a merged plan are copied to its backend's memory");
        if (r == 0)
                r = know_members(&s);
        if (r == 0)
                r = cut_constants(&s);
        if (r == -ENODATA)
                return sl_error_set(error, ENODATA, "nothing of a merged plan is packed as its members have it");
        if (r == 0)
                fd = memfd_create("starling-merged", MFD_CLOEXEC);
        if (r == 0)
                r = fd < 0 ? -errno : write_file(&s, fd);
        if (r < 0)
                return sl_error_set(error, -r, "a merged plan without what its members have: %s", strerror(-r));
        *ret_fd = sl_take_fd(&fd);
        return 0;
}
