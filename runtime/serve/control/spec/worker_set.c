/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_set.h"

#include "base/error.h"
#include "device_let.h"

#include <errno.h>

int sl_worker_wish_place(struct sl_worker_wish *wish, const char *device, const cpu_set_t *allowed, struct sl_error *error)
{
        struct sl_device_let cores;
        int r;

        if (sl_gpu_let_is_meant(device))
                return sl_gpu_let_parse(device, &wish->gpu, error);
        r = sl_device_let_parse(device, allowed, &cores, error);
        if (r == 0)
                wish->cores = cores.cores;
        return r;
}

static bool is_on_each(const struct sl_worker_wish *wish)
{
        return wish->gpu.name[0] && wish->gpu.gpu == SL_GPU_EACH;
}

int sl_worker_set_spread(const struct sl_worker_set *set, const struct sl_gpu_let *lets, uint32_t n_lets,
        struct sl_worker_set *ret_set, struct sl_error *error)
{
        struct sl_worker_set spread = {.n = 0};

        for (uint32_t i = 0; i < set->n; i++) {
                const struct sl_worker_wish *wish = &set->wishes[i];
                uint32_t copies = wish->gpu.name[0] && !is_on_each(wish) ? 1 : n_lets;

                if (spread.n + copies > SL_WORKERS_MAX)
                        return sl_error_set(error, E2BIG, "%u workers on each of %u GPUs, a model has at most %u in all", set->n,
                                n_lets, SL_WORKERS_MAX);
                for (uint32_t k = 0; k < copies; k++) {
                        struct sl_worker_wish *placed = &spread.wishes[spread.n++];

                        *placed = *wish;
                        if (is_on_each(wish))
                                placed->gpu = sl_gpu_let_of(lets[k].gpu, wish->gpu.percent);
                        else if (!wish->gpu.name[0])
                                placed->gpu = lets[k];
                }
        }
        *ret_set = spread;
        return 0;
}

void sl_worker_set_without_gpus(const struct sl_worker_set *set, struct sl_worker_set *ret_set)
{
        struct sl_worker_set without = {.n = 0};

        for (uint32_t i = 0; i < set->n; i++) {
                if (strcmp(set->wishes[i].gpu.name, set->wishes[0].gpu.name) != 0)
                        continue;
                without.wishes[without.n] = set->wishes[i];
                without.wishes[without.n++].gpu = (struct sl_gpu_let){.name = ""};
        }
        *ret_set = without;
}

uint32_t sl_worker_set_gpus(const struct sl_worker_set *set, uint32_t ret_gpus[SL_GPUS_MAX])
{
        uint32_t n = 0;

        for (uint32_t gpu = 0; gpu < SL_GPUS_MAX; gpu++)
                for (uint32_t i = 0; i < set->n; i++)
                        if (set->wishes[i].gpu.name[0] && set->wishes[i].gpu.gpu == gpu) {
                                ret_gpus[n++] = gpu;
                                break;
                        }
        return n;
}

bool sl_worker_set_wants_each(const struct sl_worker_set *set)
{
        for (uint32_t i = 0; i < set->n; i++)
                if (is_on_each(&set->wishes[i]))
                        return true;
        return false;
}
