/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains by the hash of a path. Number 2 * index is what is wanted of a name, the next one what serves. One is in the chain of its
 * path as long as the name has it.
 */
#include "files.h"

#include "registry_state.h"

#include <string.h>

static uint16_t *chain_of(struct sl_registry *r, const char *path)
{
        uint32_t hash = 0x811c9dc5u; /* FNV-1a (Fowler, Noll, Vo) */

        for (; *path; path++)
                hash = (hash ^ (unsigned char)*path) * 0x01000193u;
        return &r->by_file[hash % SL_NAME_BUCKETS];
}

static const struct sl_own_spec *spec_of(const struct sl_registry *r, uint32_t number)
{
        const struct sl_served *served = &r->served[number / 2];

        return number % 2 ? served->spec : served->want.spec;
}

static bool has_path(const struct sl_own_spec *spec)
{
        return spec && spec->spec.path;
}

static void replace(struct sl_registry *r, uint32_t number, const struct sl_own_spec *spec)
{
        const struct sl_own_spec *before = spec_of(r, number);
        uint16_t *link;

        if (before == spec)
                return;
        if (has_path(before)) {
                for (link = chain_of(r, before->path); *link != number + 1; link = &r->next_of_file[*link - 1])
                        ;
                *link = r->next_of_file[number];
        }
        if (has_path(spec)) {
                link = chain_of(r, spec->path);
                r->next_of_file[number] = *link;
                *link = (uint16_t)(number + 1);
        }
}

void sl_files_note(struct sl_registry *r, struct sl_served *served, const struct sl_own_spec *want, const struct sl_own_spec *spec)
{
        replace(r, 2 * served->index, want);
        replace(r, 2 * served->index + 1, spec);
}

uint64_t sl_files_find(struct sl_registry *r, const struct sl_model_spec *spec)
{
        for (uint32_t at = *chain_of(r, spec->path); at; at = r->next_of_file[at - 1]) {
                const struct sl_own_spec *there = spec_of(r, at - 1);

                if (there->spec.stamp == spec->stamp && strcmp(there->path, spec->path) == 0)
                        return there->file;
        }
        return 0;
}

/* Names are told in the order of their places. */
struct sl_served *sl_files_next(struct sl_registry *r, const struct sl_own_spec *spec, const struct sl_served *name)
{
        struct sl_served *next = NULL;

        for (uint32_t at = has_path(spec) ? *chain_of(r, spec->path) : 0; at; at = r->next_of_file[at - 1]) {
                struct sl_served *served = &r->served[(at - 1) / 2];

                if (at % 2 && served->want.number && served->want.spec->file == spec->file &&
                        (!name || served->index > name->index) && (!next || served->index < next->index))
                        next = served;
        }
        return next;
}
