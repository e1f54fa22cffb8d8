/* SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include "op.h"

#include <string.h>
#include <xxhash.h>

size_t sl_plan_section_bytes(enum sl_plan_section_id id)
{
        static const size_t bytes[SL_PLAN_SECTION_COUNT] = {
#define X(id, type) [SL_PLAN_SECTION_##id] = sizeof(type),
                SL_PLAN_SECTIONS(X)
#undef X
        };

        return bytes[id];
}

static uint64_t hash_name(uint64_t seed, const char *name)
{
        return XXH3_64bits_withSeed(name, strlen(name), seed);
}

/* Operator and attribute numbers are positions in tables: whoever inserts a row makes older plans unreadable, not wrong. */
static uint64_t hash_operators(void)
{
        uint64_t hash = 0;

        for (uint32_t op = 0; op < SL_OP_COUNT; op++)
                hash = hash_name(hash, sl_op_name(op));
        for (uint32_t attr = 0; attr < SL_ATTR_COUNT; attr++)
                hash = hash_name(hash, sl_attr_name(attr));
        return hash;
}

struct sl_plan_key sl_plan_key_here(void)
{
        struct sl_plan_key key = {
                .operators = hash_operators(),
                .struct_bytes = {sizeof(struct sl_plan_description), sizeof(struct sl_plan_program), sizeof(struct sl_plan_step),
                        sizeof(struct sl_plan_operand), sizeof(struct sl_attr), sizeof(struct sl_plan_constant),
                        sizeof(struct sl_packed), SL_DTYPE_LIMIT, sizeof(struct sl_plan_backend), sizeof(struct sl_plan_blob),
                        sizeof(struct sl_plan_piece), sizeof(struct sl_plan_identity), sizeof(struct sl_plan_port)},
        };

        return key;
}
