/* SPDX-License-Identifier: Apache-2.0 */
#include "green.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

struct sl_green {
        struct sl_greens *greens;
        struct sl_green *next;
        CUgreenCtx context;
        uint64_t all;              /* the atoms of its context, by bits */
        struct sl_let_atoms atoms; /* those of them that are its own; retired, that were */
        uint32_t n_processors, n_streams;
        bool dropped, retired;
};

/* The driver rounds the least that is asked for up to what it can cut. A device that it does not cut has no lets. */
static CUresult split(struct sl_greens *greens)
{
        const struct sl_cuda_driver *driver = greens->device->driver;
        unsigned int n_groups = SL_LET_ATOMS_MAX;
        CUdevResource whole, rest;
        CUresult result = driver->device_get_dev_resource(greens->device->number, &whole, CU_DEV_RESOURCE_TYPE_SM);

        if (result == CUDA_SUCCESS)
                result = driver->dev_sm_resource_split_by_count(greens->groups, &n_groups, &whole, &rest, 0, 1);
        if (sl_cuda_is_lost(result))
                return result;
        if (result != CUDA_SUCCESS || sl_let_map_init(&greens->map, whole.sm.smCount, greens->groups[0].sm.smCount) < 0)
                greens->map = (struct sl_let_map){.n_processors = (uint32_t)greens->device->n_processors};
        else if (n_groups < greens->map.n_atoms)
                greens->map.n_atoms = n_groups;
        return CUDA_SUCCESS;
}

int sl_greens_init(struct sl_greens *greens, const struct sl_cuda_device *device, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = device->driver;
        CUresult result;

        *greens = (struct sl_greens){.device = device};
        result = split(greens);
        if (result == CUDA_SUCCESS)
                result = driver->ctx_get_stream_priority_range(&greens->least_priority, &greens->greatest_priority);
        return sl_cuda_check(driver, result, error, "the multiprocessors of %s", device->name);
}

static CUresult create_context(struct sl_green *green, uint64_t atoms)
{
        const struct sl_cuda_device *device = green->greens->device;
        CUdevResource groups[SL_LET_ATOMS_MAX];
        CUdevResourceDesc desc;
        unsigned int n = 0;
        CUresult result;

        for (uint64_t left = atoms; left; left &= left - 1)
                groups[n++] = green->greens->groups[__builtin_ctzll(left)];
        green->n_processors = n * green->greens->map.atom;
        result = device->driver->dev_resource_generate_desc(&desc, groups, n);
        return result == CUDA_SUCCESS
                       ? device->driver->green_ctx_create(&green->context, desc, device->number, CU_GREEN_CTX_DEFAULT_STREAM)
                       : result;
}

int sl_green_new(struct sl_greens *greens, uint32_t percent, struct sl_green **ret_green, struct sl_error *error)
{
        struct sl_let_map map = greens->map; /* the new one, when all of it has come about */
        struct sl_green *green = calloc(1, sizeof(*green));
        CUresult result;
        int r;

        if (!green)
                return sl_error_set(error, ENOMEM, "no memory for a let");
        green->greens = greens;
        r = sl_let_map_take(&map, percent, &green->atoms, error);
        if (r == 0) {
                result = create_context(green, green->atoms.atoms);
                r = sl_cuda_check(greens->device->driver, result, error, "a green context of %u multiprocessors on %s",
                        green->n_processors, greens->device->name);
        }
        if (r < 0) {
                free(green);
                return r;
        }
        greens->map = map;
        green->all = green->atoms.atoms;
        green->next = greens->first;
        greens->first = green;
        *ret_green = green;
        return 0;
}

/* Those that were restored without some of what was given back have it for themselves again. */
static void give_back(struct sl_greens *greens, struct sl_let_atoms atoms)
{
        sl_let_map_give_back(&greens->map, atoms);
        for (struct sl_green *green = greens->first; green; green = green->next)
                if (!green->retired)
                        green->atoms.atoms |= sl_let_map_take_again(&greens->map, (struct sl_let_atoms){.atoms = green->all}).atoms;
}

void sl_green_retire(struct sl_green *green)
{
        green->retired = true;
        give_back(green->greens, green->atoms);
}

void sl_green_restore(struct sl_green *green)
{
        green->atoms.atoms = green->all;
        green->atoms = sl_let_map_take_again(&green->greens->map, green->atoms);
        green->retired = false;
}

static void unlink_green(struct sl_green *green)
{
        struct sl_green **at = &green->greens->first;

        while (*at != green)
                at = &(*at)->next;
        *at = green->next;
}

static void end_when_unused(struct sl_green *green)
{
        if (!green->dropped || green->n_streams)
                return;
        unlink_green(green);
        if (!green->retired)
                give_back(green->greens, green->atoms);
        green->greens->device->driver->green_ctx_destroy(green->context);
        free(green);
}

struct sl_green *sl_green_drop(struct sl_green *green)
{
        if (!green)
                return NULL;
        green->dropped = true;
        end_when_unused(green);
        return NULL;
}

uint32_t sl_green_processors(const struct sl_green *green)
{
        return green->n_processors;
}

int sl_green_stream(
        const struct sl_greens *greens, struct sl_green *green, uint32_t priority, CUstream *ret_stream, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = greens->device->driver;
        int range = greens->least_priority - greens->greatest_priority;
        int number = greens->least_priority - (priority < (uint32_t)range ? (int)priority : range);
        CUresult result = green ? driver->green_ctx_stream_create(ret_stream, green->context, CU_STREAM_NON_BLOCKING, number)
                                : driver->stream_create_with_priority(ret_stream, CU_STREAM_NON_BLOCKING, number);

        if (result == CUDA_SUCCESS && green)
                green->n_streams++;
        return sl_cuda_check(driver, result, error, "a stream of priority %u on %s", priority, greens->device->name);
}

void sl_green_end_stream(const struct sl_greens *greens, struct sl_green *green, CUstream stream)
{
        if (!stream)
                return;
        greens->device->driver->stream_destroy(stream);
        if (!green)
                return;
        green->n_streams--;
        end_when_unused(green);
}
