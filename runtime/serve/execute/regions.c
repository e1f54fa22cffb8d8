/* SPDX-License-Identifier: Apache-2.0 */
#include "regions.h"

#include "base/cleanup.h"
#include "child_spawn.h"

#include <errno.h>
#include <stdlib.h>

int sl_regions_new(uint32_t n_max, struct sl_regions **ret_regions)
{
        struct sl_regions *regions = calloc(1, sizeof(*regions));

        if (!regions)
                return -ENOMEM;
        regions->n_max = n_max;
        regions->at = calloc(n_max, sizeof(*regions->at));
        if (!regions->at) {
                sl_regions_free(regions);
                return -ENOMEM;
        }
        *ret_regions = regions;
        return 0;
}

struct sl_regions *sl_regions_free(struct sl_regions *regions)
{
        if (!regions)
                return NULL;
        free(regions->at);
        free(regions);
        return NULL;
}

static int take_number(struct sl_regions *regions)
{
        uint32_t number = regions->free;

        if (!number)
                return regions->n < regions->n_max ? (int)regions->n++ : -E2BIG;
        regions->free = (uint32_t)regions->at[number - 1].bytes;
        return (int)(number - 1);
}

int sl_regions_add(struct sl_regions *regions, void *base, uint64_t bytes, int fd)
{
        int kept = fd < 0 ? -1 : sl_spawn_read_only(fd);
        int number;

        if (fd >= 0 && kept < 0)
                return kept;
        number = take_number(regions);
        if (number < 0) {
                sl_cleanup_fd(&kept);
                return number;
        }
        regions->n_fds += kept >= 0;
        regions->at[number] = (struct sl_mapped_region){.base = base, .bytes = bytes, .serial = ++regions->serials, .fd = kept};
        return number;
}

void sl_regions_remove(struct sl_regions *regions, uint32_t number)
{
        for (struct sl_regions_watch *watch = regions->watches; watch; watch = watch->next)
                watch->removed(watch, number);
        regions->n_fds -= regions->at[number].fd >= 0;
        sl_cleanup_fd(&regions->at[number].fd);
        regions->at[number] = (struct sl_mapped_region){.bytes = regions->free, .fd = -1};
        regions->free = number + 1;
}

void sl_regions_watch(struct sl_regions *regions, struct sl_regions_watch *watch)
{
        watch->next = regions->watches;
        regions->watches = watch;
}

void sl_regions_unwatch(struct sl_regions *regions, struct sl_regions_watch *watch)
{
        struct sl_regions_watch **link = &regions->watches;

        while (*link && *link != watch)
                link = &(*link)->next;
        if (*link)
                *link = watch->next;
}
