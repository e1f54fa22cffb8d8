/* SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include "backend.h"
#include "op.h"

#include <dnnl.h>
#include <string.h>
#include <xxhash.h>

static const char *const backend_names[SL_PLAN_BACKEND_COUNT] = {
        [SL_PLAN_BACKEND_REF] = "ref",
        [SL_PLAN_BACKEND_CPU] = "cpu",
};

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
        const dnnl_version_t *dnnl = dnnl_version();
        struct sl_plan_key key = {
                .dnnl_major = (uint32_t)dnnl->major,
                .dnnl_minor = (uint32_t)dnnl->minor,
                .dnnl_patch = (uint32_t)dnnl->patch,
                .cpu_isa = (uint32_t)dnnl_get_effective_cpu_isa(),
                .operators = hash_operators(),
                .struct_bytes = {sizeof(struct sl_plan_info), sizeof(struct sl_plan_program), sizeof(struct sl_plan_step),
                        sizeof(struct sl_plan_operand), sizeof(struct sl_attr), sizeof(struct sl_plan_constant),
                        sizeof(struct sl_packed), SL_DTYPE_LIMIT},
        };

        return key;
}

const char *sl_plan_backend_name(uint32_t backend)
{
        return backend < SL_PLAN_BACKEND_COUNT ? backend_names[backend] : NULL;
}

uint32_t sl_plan_backend_number(const char *name)
{
        uint32_t backend = 0;

        while (backend < SL_PLAN_BACKEND_COUNT && strcmp(name, backend_names[backend]))
                backend++;
        return backend;
}
