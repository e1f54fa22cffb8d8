/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory segments: sealed memfds. "Segment" here is memory; the segments of a request are elsewhere always called by
 * their number. Functions without state; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;

enum sl_seal {
        SL_SEAL_SHARED,   /* SHRINK|GROW|SEAL: both sides write */
        SL_SEAL_RESPONSE, /* SHRINK|GROW|FUTURE_WRITE|SEAL: after the maker has mapped it, nobody maps it for writing again */
};

struct sl_mapping {
        void *base;
        uint64_t bytes;
};

/* Makes a close-on-exec memfd of @bytes (page-aligned up), maps it read-write and seals it. The caller owns both.
 * Return: 0, -ENOMEM, -EMFILE, -ENOSPC, -errno; the text names @name and the size. */
int sl_segment_create(
        const char *name, uint64_t bytes, enum sl_seal seal, int *ret_fd, struct sl_mapping *ret_mapping, struct sl_error *error);

/* Maps a segment that came from the other side. -EBADMSG unless it is a memfd of exactly @bytes with (at least) the seals. */
int sl_segment_map(int fd, uint64_t bytes, enum sl_seal seal, int writable, struct sl_mapping *ret_mapping, struct sl_error *error);

/* Checks seals and reads the size of a memfd that the other side handed back. Return: 0, -EBADMSG. */
int sl_segment_check(int fd, enum sl_seal seal, uint64_t *ret_bytes, struct sl_error *error);

/* Faults in [offset, offset + bytes) for writing. Return: 0, -ENOMEM; quietly 0 where the kernel lacks MADV_POPULATE_WRITE. */
int sl_mapping_populate(const struct sl_mapping *mapping, uint64_t offset, uint64_t bytes);

/* Unmaps; an empty mapping is fine. Leaves it empty. */
void sl_mapping_free(struct sl_mapping *mapping);
