/* SPDX-License-Identifier: Apache-2.0 */
#include "base_plan.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "plan_map.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct sl_base_plan {
        struct sl_plan *plan;
        uint32_t *constants; /* open addressing over the hashes of constants: index + 1, 0 is free */
        uint64_t constants_room;
        uint32_t *steps; /* and over the names of the steps of the first program */
        uint64_t steps_room;
};

SL_DEFINE_CLEANUP(struct sl_base_plan *, sl_base_plan_free)

/* A power of two, at least twice as many. */
static uint64_t room_for(uint64_t n)
{
        uint64_t room = 64;

        while (room < 2 * n)
                room *= 2;
        return room;
}

static void insert(uint32_t *table, uint64_t room, uint64_t hash, uint32_t index)
{
        uint64_t at = hash & (room - 1);

        while (table[at])
                at = (at + 1) & (room - 1);
        table[at] = index + 1;
}

static uint64_t hash_name(const char *name)
{
        return XXH3_64bits(name, strlen(name));
}

static int fill_tables(struct sl_base_plan *base)
{
        const struct sl_plan_program *program = base->plan->programs;
        uint64_t n_constants = sl_plan_count(base->plan, SL_PLAN_SECTION_CONSTANTS);

        base->constants_room = room_for(n_constants);
        base->steps_room = room_for(program->n_steps);
        base->constants = calloc(base->constants_room, sizeof(*base->constants));
        base->steps = calloc(base->steps_room, sizeof(*base->steps));
        if (!base->constants || !base->steps)
                return -ENOMEM;
        for (uint64_t i = 0; i < n_constants; i++)
                insert(base->constants, base->constants_room, base->plan->constants[i].hash, (uint32_t)i);
        for (uint64_t i = 0; i < program->n_steps; i++)
                insert(base->steps, base->steps_room,
                        hash_name(sl_plan_step_name(base->plan, &base->plan->steps[program->first_step + i])), (uint32_t)i);
        return 0;
}

int sl_base_plan_open(int fd, struct sl_base_plan **ret_base, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_base_plan_free) struct sl_base_plan *base = calloc(1, sizeof(*base));
        int r;

        if (!base)
                return sl_error_set(error, ENOMEM, "base plan: no memory for %zu bytes", sizeof(*base));
        r = sl_plan_open(fd, &base->plan, error);
        if (r == -ESTALE)
                return sl_error_set(error, EINVAL, "base plan: it is derived from another");
        if (r < 0)
                return sl_error_prefix(error, r, "base plan");
        if (!base->plan->info->n_batches)
                return sl_error_set(error, EINVAL, "base plan: it is a signature, which has no constants");
        if (fill_tables(base) < 0)
                return sl_error_set(error, ENOMEM, "base plan: no memory for an index of its constants");
        *ret_base = sl_take(base);
        return 0;
}

struct sl_base_plan *sl_base_plan_free(struct sl_base_plan *base)
{
        if (!base)
                return NULL;
        sl_plan_free(base->plan);
        free(base->constants);
        free(base->steps);
        free(base);
        return NULL;
}

void sl_base_plan_know_sum(struct sl_base_plan *base, uint64_t sum)
{
        sl_plan_know_sum(base->plan, sum);
}

struct sl_plan_identity sl_base_plan_identity(const struct sl_base_plan *base)
{
        return sl_plan_identity(base->plan);
}

/* The hash only leads here: what decides is the content. */
static bool is_same(const struct sl_plan *plan, const struct sl_plan_constant *there, const void *data, uint64_t bytes,
        const struct sl_packed *packed)
{
        uint32_t form_bytes = packed ? packed->form_bytes : 0;

        return there->bytes == bytes && there->packed == (packed != NULL) && there->form_bytes == form_bytes &&
               (!form_bytes || !memcmp(plan->forms + there->form_offset, packed->form, form_bytes)) &&
               (sl_plan_constant_data(plan, there) == data || !memcmp(sl_plan_constant_data(plan, there), data, bytes));
}

static bool find_whole(const struct sl_base_plan *base, const void *data, uint64_t bytes, const struct sl_packed *packed,
        uint64_t hash, struct sl_base_place *ret_place)
{
        uint64_t mask = base->constants_room - 1;

        for (uint64_t at = hash & mask; base->constants[at]; at = (at + 1) & mask) {
                const struct sl_plan_constant *there = &base->plan->constants[base->constants[at] - 1];

                if (there->hash != hash || !is_same(base->plan, there, data, bytes, packed))
                        continue;
                *ret_place = (struct sl_base_place){.index = base->constants[at] - 1};
                return true;
        }
        return false;
}

#define LANES_MAX 64

/* A merged plan has its lanes' constants one behind the other: parts of equal size. */
static bool find_part(
        const struct sl_base_plan *base, const void *data, uint64_t bytes, bool packed, struct sl_base_place *ret_place)
{
        uint64_t n_constants = sl_plan_count(base->plan, SL_PLAN_SECTION_CONSTANTS);

        if (!bytes || bytes % SL_LINE_BYTES)
                return false;
        for (uint32_t i = 0; i < n_constants; i++) {
                const struct sl_plan_constant *there = &base->plan->constants[i];
                const uint8_t *lanes = sl_plan_constant_data(base->plan, there);

                if (there->packed != packed || there->bytes % bytes || there->bytes / bytes > LANES_MAX)
                        continue;
                for (uint64_t at = 0; at < there->bytes; at += bytes) {
                        if (memcmp(lanes + at, data, bytes))
                                continue;
                        *ret_place = (struct sl_base_place){.index = i, .part = true, .offset = at};
                        return true;
                }
        }
        return false;
}

bool sl_base_plan_find(const struct sl_base_plan *base, const void *data, uint64_t bytes, const struct sl_packed *packed,
        uint64_t hash, struct sl_base_place *ret_place)
{
        return base &&
               (find_whole(base, data, bytes, packed, hash, ret_place) || find_part(base, data, bytes, packed != NULL, ret_place));
}

const void *sl_base_plan_data(const struct sl_base_plan *base, const struct sl_base_place *place)
{
        return sl_plan_constant_data(base->plan, &base->plan->constants[place->index]) + place->offset;
}

static uint32_t algorithm_of(const struct sl_plan *plan, const struct sl_plan_step *step)
{
        for (uint32_t i = 0; i < step->n_attrs; i++) {
                const struct sl_attr *attr = &plan->attrs[step->first_attr + i];

                if (attr->id == SL_ATTR_ALGORITHM && attr->i > SL_ALGORITHM_AUTO && attr->i < SL_ALGORITHM_COUNT)
                        return (uint32_t)attr->i;
        }
        return SL_ALGORITHM_AUTO;
}

uint32_t sl_base_plan_algorithm(const struct sl_base_plan *base, const char *name, uint32_t op)
{
        uint64_t mask = base ? base->steps_room - 1 : 0;

        for (uint64_t at = hash_name(name) & mask; base && *name && base->steps[at]; at = (at + 1) & mask) {
                const struct sl_plan_step *step = &base->plan->steps[base->plan->programs->first_step + base->steps[at] - 1];

                if (step->op == op && !strcmp(sl_plan_step_name(base->plan, step), name))
                        return algorithm_of(base->plan, step);
        }
        return SL_ALGORITHM_AUTO;
}
