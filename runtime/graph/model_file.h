/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file that is open, and where its external data come from. Who parses the file need not be able to open anything: it may
 * ask somebody else for each file that the model names. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;

struct sl_model_file {
        const char *path; /* the caller's; for messages */
        uint64_t bytes;
        int fd, folder_fd;

        /*
         * Opens external data for reading, by the location that the model gives; the caller closes the descriptor. NULL: there are
         * none. Called by the importer, on its thread; may wait. Return: as sl_model_folder_open_file().
         */
        int (*open_external)(void *context, const char *location, int *ret_fd, struct sl_error *error);
        void *context;
};

/*
 * Opens a regular file with something in it, without external data: the caller sets open_external, or calls the next function.
 * Return: 0; -ENOENT; -EBADMSG it is something else, or empty; -EIO.
 */
int sl_model_file_open(const char *path, struct sl_model_file *ret_file, struct sl_error *error);

/* External data are what lies in the folder of the file; there are none when that cannot be read. @file stays where it is. */
void sl_model_file_use_folder(struct sl_model_file *file);

/* Closes what is open. All zeros but for descriptors of -1 is fine. */
void sl_model_file_close(struct sl_model_file *file);

/* The folder in which the model file at @path lies. Any thread. Return: 0; -errno without a text. */
int sl_model_folder_open(const char *path, int *ret_fd);

/*
 * A regular file at @location, relative to the folder. No component may be "..", and none a link. Any thread.
 * Return: 0; -EACCES the location leads outside, over a link, or to no regular file; -ENOENT; -EIO.
 */
int sl_model_folder_open_file(int folder_fd, const char *location, int *ret_fd, struct sl_error *error);
