/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large packed constants, which go straight to where they will stay: to the DATA of the plan file. Each takes whole pages, one
 * behind the other from DATA's start. They are made in a draft that is used again and again, so that it stays in the caches, and
 * written once; those that are too large for it are made in the file, mapped. One owner thread.
 */
#pragma once

#include "huge_pages.h"

#include <stdint.h>

/* Where DATA lies in every plan file: behind the header, on a page. */
#define SL_PLACED_START 4096u

/* Smaller ones are not worth their own pages. */
#define SL_PLACED_BYTES_MIN (256u << 10)

/* Longer constants are made in the file. */
#define SL_PLACED_DRAFT_BYTES (16u << 20)

/* Zeroed but for the fd, or -1 for no file, it is empty. */
struct sl_placed {
        int fd;
        uint64_t end_bytes; /* of what is in use, from DATA's start; whole pages */
        void *draft;        /* SL_PLACED_DRAFT_BYTES, once they are wanted */
        struct sl_huge_pages pages;
};

void sl_placed_deinit(struct sl_placed *placed);

/*
 * @ret_data: zeros, for @ret_offset of DATA. To be kept or given back before the next is taken. Return: 0; -ENOTSUP too small, or
 * no file that can be mapped; -ENOSPC, -ENOMEM.
 */
int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset);

/* @data becomes the mapped, read-only bytes of the file. Return: 0; -ENOSPC, -ENOMEM, -EIO: they are still to be given back. */
int sl_placed_keep(struct sl_placed *placed, uint64_t bytes, uint64_t offset, void **data);

/* The file has zeros there (again); the room is used again if nothing lies behind it. */
void sl_placed_give_back(struct sl_placed *placed, void *data, uint64_t bytes, uint64_t offset);

/* What was kept stays in the file. */
void sl_placed_unmap(void *data, uint64_t bytes);
