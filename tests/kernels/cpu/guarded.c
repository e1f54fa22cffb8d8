/* SPDX-License-Identifier: Apache-2.0 */
#include "guarded.h"

#include "base/bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_BYTES 256 /* beside the memory, at least */
#define GUARD_VALUE 0x5a

struct guarded {
        unsigned char *pages, *data;
        uint64_t bytes; /* that may be touched, of pages */
        struct guarded *next;
};

static struct guarded *all_guarded;

void *guarded_alloc(uint64_t bytes)
{
        static uint32_t n;
        struct guarded *guarded = malloc(sizeof(*guarded));
        uint64_t room = sl_align_up(bytes + GUARD_BYTES, 64);

        cr_assert_not_null(guarded);
        *guarded = (struct guarded){.bytes = sl_align_up(room, SL_PAGE_BYTES), .next = all_guarded};
        guarded->pages = mmap(NULL, guarded->bytes + 2 * SL_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(guarded->pages, MAP_FAILED);
        guarded->pages += SL_PAGE_BYTES;
        cr_assert_eq(mprotect(guarded->pages, guarded->bytes, PROT_READ | PROT_WRITE), 0);
        memset(guarded->pages, GUARD_VALUE, guarded->bytes);
        guarded->data = guarded->pages + (n++ * 2654435761u >> 31 ? 0 : guarded->bytes - sl_align_up(bytes, 64));
        all_guarded = guarded;
        return guarded->data;
}

static struct guarded **find_guarded(const void *data)
{
        struct guarded **link = &all_guarded;

        while ((*link)->data != data)
                link = &(*link)->next;
        return link;
}

void guarded_free(void *data)
{
        struct guarded **link = data ? find_guarded(data) : NULL, *guarded;

        if (!link)
                return;
        guarded = *link;
        *link = guarded->next;
        munmap(guarded->pages - SL_PAGE_BYTES, guarded->bytes + 2 * SL_PAGE_BYTES);
        free(guarded);
}

bool guarded_stands(const void *data, uint64_t bytes)
{
        const struct guarded *guarded = *find_guarded(data);

        for (const unsigned char *d = guarded->pages; d < guarded->pages + guarded->bytes; d++)
                if ((d < guarded->data || d >= guarded->data + bytes) && *d != GUARD_VALUE)
                        return false;
        return true;
}
