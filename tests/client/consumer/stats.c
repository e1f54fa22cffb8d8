/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the stats page, as somebody else's program sees it: the names of the models of a page in a file. */
#include <starling/seqlock.h>
#include <starling/stats.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
        struct stat status;
        int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;

        if (fd < 0 || fstat(fd, &status) < 0)
                return 1;
        const char *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return 1;
        const struct sl_stats_header *header = (const struct sl_stats_header *)base;
        if (header->magic != SL_STATS_MAGIC || header->version != SL_STATS_VERSION)
                return 1;
        const struct sl_stats_extent *models = &header->sections[SL_STATS_MODELS];
        for (uint32_t i = 0; i < models->count; i++) {
                const struct sl_model_stats *slot = (const void *)(base + models->offset + (uint64_t)i * models->stride);
                struct sl_model_stats copy;

                if (sl_seqlock_read(&slot->slot.seq, &copy, slot, sizeof(copy)) == 0 && copy.slot.used)
                        printf("%s\n", copy.name);
        }
        return 0;
}
