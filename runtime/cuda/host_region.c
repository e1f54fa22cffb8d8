/* SPDX-License-Identifier: Apache-2.0 */
#include "host_region.h"

void sl_host_region_init(
        struct sl_host_region *region, const struct sl_cuda_driver *driver, void *base, uint64_t bytes, bool writable)
{
        unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | (writable ? 0 : CU_MEMHOSTREGISTER_READ_ONLY);

        *region = (struct sl_host_region){.base = base, .bytes = bytes};
        region->reached = driver->mem_host_register(base, bytes, flags) == CUDA_SUCCESS;
}

void sl_host_region_deinit(struct sl_host_region *region, const struct sl_cuda_driver *driver)
{
        if (region->reached)
                driver->mem_host_unregister(region->base);
        *region = (struct sl_host_region){.base = NULL};
}
