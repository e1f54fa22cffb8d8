/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells one model file from another: its content, and, cheaper, what the file system says of it. Where the file may have
 * external data, every regular file of its folder counts too: which of them it reads is known only to whoever parses it, and nobody
 * does that here. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_stop;

struct sl_digest {
        uint64_t low, high;
};

/*
 * By path, device, inode, size, and times of change and of content: a file with the same identity has the same content, unless two
 * changes fell into one tick of the file system's clock, or somebody set it. *ret_changed: seconds since 1970 of the last change.
 * @folder: the other files of the folder too. Return: 0; -errno; -E2BIG too many files.
 */
int sl_model_identify(const char *path, bool folder, struct sl_digest *ret_identity, int64_t *ret_changed);

/* That of a model at some time, with its folder or without. All zeros: it is not known. */
struct sl_model_identity {
        struct sl_digest digest;
        bool known, folder;
};

/* It is the same now, or was not known. */
bool sl_model_is_still(const char *path, const struct sl_model_identity *identity);

struct sl_model_content {
        struct sl_digest digest;
        bool folder;    /* the file may have external data, and the digest covers its folder, */
        bool by_status; /* of which nothing was read: all its files have more than the bytes that may be read */
};

/*
 * By content. @bytes_max: of the file, and of its folder; @stop is looked at for each MiB. Return: as above; -EFBIG the file is
 * larger; what sl_stop_look() returns.
 */
int sl_model_digest(const char *path, uint64_t bytes_max, const struct sl_stop *stop, struct sl_model_content *ret_content);
