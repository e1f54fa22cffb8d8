/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_order.h"

#include "fuse_table.h"
#include "plan_info.h"

#include <stdbool.h>
#include <string.h>

static bool are_alike(const struct sl_plan_info *one, const struct sl_plan_info *other)
{
        return memcmp(one->architecture, other->architecture, sizeof(one->architecture)) == 0;
}

void sl_fuse_order(const struct sl_plan_info *const *infos, uint32_t n, uint32_t *ret_order)
{
        uint32_t first[SL_FUSE_LANES_MAX], count[SL_FUSE_LANES_MAX] = {0}, n_ordered = 0;

        for (uint32_t i = 0; i < n; i++) {
                first[i] = 0;
                while (!are_alike(infos[first[i]], infos[i]))
                        first[i]++;
                count[first[i]]++;
        }
        while (n_ordered < n) {
                uint32_t most = 0;

                for (uint32_t i = 1; i < n; i++)
                        most = count[i] > count[most] ? i : most;
                for (uint32_t i = most; i < n; i++)
                        if (first[i] == most)
                                ret_order[n_ordered++] = i;
                count[most] = 0;
        }
}
