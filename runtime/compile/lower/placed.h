/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large packed constants, which go straight to where they will stay: to the DATA of the plan file. Each takes whole pages, one
 * behind the other from DATA's start. Where the file lies in huge pages they are made in it, mapped in windows: each page is
 * cleared, written and mapped once. Elsewhere a page costs less in write() than at its first touch: there they are made in a draft
 * that is used again and again, so that it stays in the caches, and written once; those that are too large for it are made in the
 * file all the same. One owner thread.
 */
#pragma once

#include "huge_pages.h"

#include <stdbool.h>
#include <stdint.h>

/* Where DATA lies in every plan file: behind the header, on a page. */
#define SL_PLACED_START 4096u

/* Smaller ones are not worth their own pages. */
#define SL_PLACED_BYTES_MIN (256u << 10)

/* Longer constants are made in the file. */
#define SL_PLACED_DRAFT_BYTES (16u << 20)

/* A part of the file, mapped where its huge pages are mapped as such. */
struct sl_placed_window {
        struct sl_placed_window *before;
        char *data;
        uint64_t first, bytes; /* of the file */
};

/* Zeroed but for the fd, or -1 for no file, it is empty. */
struct sl_placed {
        int fd;
        bool drafts;        /* most of what is taken will be given back: nothing is made in the file that fits a draft */
        uint64_t end_bytes; /* of what is in use, from DATA's start; whole pages */
        void *draft;        /* SL_PLACED_DRAFT_BYTES, once they are wanted */
        struct sl_placed_window *windows; /* the last one first; they stay until the end */
        struct sl_huge_pages pages;
};

void sl_placed_deinit(struct sl_placed *placed);

/*
 * @ret_data: zeros, for @ret_offset of DATA. To be kept or given back before the next is taken. Return: 0; -ENOTSUP too small, or
 * no file that can be mapped; -ENOSPC, -ENOMEM.
 */
int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset);

/* @data becomes the mapped bytes of the file, which nobody changes any more. Return: 0; -ENOSPC, -ENOMEM, -EIO: they are still to
 * be given back. */
int sl_placed_keep(struct sl_placed *placed, uint64_t bytes, uint64_t offset, void **data);

/* The file has zeros there (again); the room is used again if nothing lies behind it. */
void sl_placed_give_back(struct sl_placed *placed, void *data, uint64_t bytes, uint64_t offset);

/* What was kept stays in the file. */
void sl_placed_unmap(const struct sl_placed *placed, void *data, uint64_t bytes);
