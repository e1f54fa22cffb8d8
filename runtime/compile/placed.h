/*
 * Large packed constants, which are made where they will stay: in the DATA of the plan file, mapped. Each takes whole pages, one
 * behind the other from DATA's start. Nothing is copied afterwards, and no memory is taken twice. One owner thread.
 */
#pragma once

#include <stdint.h>

/* Where DATA lies in every plan file: behind the header, on a page. */
#define SL_PLACED_START 4096u

/* Smaller ones are not worth their own pages. */
#define SL_PLACED_BYTES_MIN (256u << 10)

/* Zeroed but for the fd, or -1 for no file, it is empty. */
struct sl_placed {
        int fd;
        uint64_t end_bytes; /* of what is in use, from DATA's start; whole pages */
};

/* @ret_data: zeros, at @ret_offset of DATA. Return: 0; -ENOTSUP too small, or no file that can be mapped; -ENOSPC, -ENOMEM. */
int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset);

/* Unmaps, and the file has zeros there again; the room is used again if nothing lies behind it. */
void sl_placed_give_back(struct sl_placed *placed, void *data, uint64_t bytes, uint64_t offset);

/* Unmaps; the data stay in the file. */
void sl_placed_unmap(void *data, uint64_t bytes);
