/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

#include "base/error.h"
#include "plan_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Each mapping is one of those that the process may have. Return: 0, -E2BIG. */
static int count_side_by_side(const struct sl_plan *plan, uint64_t *ret_bytes)
{
        uint64_t bytes = 0, n = 0;

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS); i++) {
                const struct sl_plan_constant *constant = &plan->constants[i];

                if (constant->n_pieces < 2)
                        continue;
                n += constant->n_pieces;
                bytes += constant->bytes;
                if (n > SL_PLAN_SIDE_BY_SIDE_MAX || bytes > SL_PLAN_BYTES_MAX)
                        return -E2BIG;
        }
        *ret_bytes = bytes;
        return 0;
}

static int map_pieces(const struct sl_plan *plan, const struct sl_plan_constant *constant, uint8_t *at)
{
        for (uint64_t i = 0; i < constant->n_pieces; i++) {
                const struct sl_plan_piece *piece = &plan->pieces[constant->first_piece + i];
                const struct sl_plan *member = plan->members[piece->member];
                uint64_t from = sl_plan_file_offset(member, &member->constants[piece->index], piece->offset);

                if (mmap(at, piece->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE | MAP_FIXED, member->fd, (off_t)from) == MAP_FAILED)
                        return -errno;
                at += piece->bytes;
        }
        return 0;
}

static const uint8_t *find_piece(const struct sl_plan *plan, const struct sl_plan_piece *piece)
{
        const struct sl_plan *member = plan->members[piece->member];

        return member->data + member->constants[piece->index].offset + piece->offset;
}

static int place_constants(struct sl_plan *plan)
{
        uint8_t *next = plan->side_by_side;
        int r = 0;

        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS) && r == 0; i++) {
                const struct sl_plan_constant *constant = &plan->constants[i];

                if (constant->n_pieces == 1)
                        plan->gathered[i] = find_piece(plan, &plan->pieces[constant->first_piece]);
                if (constant->n_pieces < 2)
                        continue;
                r = map_pieces(plan, constant, next);
                plan->gathered[i] = next;
                next += constant->bytes;
        }
        return r;
}

int sl_plan_gather(struct sl_plan *plan, struct sl_error *error)
{
        uint64_t bytes;
        int r = count_side_by_side(plan, &bytes);

        if (r < 0)
                return sl_error_set(
                        error, EBADMSG, "plan file: more than %u pieces of constants lie side by side", SL_PLAN_SIDE_BY_SIDE_MAX);
        if (!sl_plan_count(plan, SL_PLAN_SECTION_PIECES))
                return 0;
        plan->gathered = calloc(sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS) + 1, sizeof(*plan->gathered));
        if (!plan->gathered)
                return sl_error_set(error, ENOMEM, "plan: no memory for where its members' constants are");
        if (bytes) {
                void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

                if (room == MAP_FAILED)
                        return sl_error_set(error, ENOMEM, "plan: no %llu bytes of addresses for its members' constants",
                                (unsigned long long)bytes);
                plan->side_by_side = room;
                plan->side_by_side_bytes = bytes;
        }
        r = place_constants(plan);
        return r < 0 ? sl_error_set(error, -r, "plan: %llu bytes of its members' constants cannot be mapped: %s",
                               (unsigned long long)bytes, strerror(-r))
                     : 0;
}

void sl_plan_gather_undo(struct sl_plan *plan)
{
        if (plan->side_by_side)
                munmap(plan->side_by_side, plan->side_by_side_bytes);
        plan->side_by_side = NULL;
        free(plan->gathered);
        plan->gathered = NULL;
}
