/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file that is open, and where its external data come from. Who parses the file need not be able to open anything: it may
 * ask somebody else for each file that the model names. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;

/*
 * Where a model's external data may lie: in the folder of its path and below, and, over links, in that in which the file really
 * lies. They are one and the same, unless a link leads to the file: into a cache whose files have names of their own, or into a
 * volume that is replaced as a whole.
 */
struct sl_model_folder {
        int fd;     /* -1: not opened yet */
        char *home; /* the real path of the second one; NULL: it is not known */
        char **others;
        uint32_t n_others; /* real paths of further folders into which links may lead */
};

/* Folders into which links of any model may lead, by absolute paths: where weights are kept apart from models. */
struct sl_data_folders {
        const char *const *paths;
        uint32_t n;
};

struct sl_model_file {
        const char *path; /* the caller's; for messages */
        uint64_t bytes;
        int fd;
        struct sl_model_folder folder;

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

/*
 * External data are what lies in the folder of the file, and where links of it may lead: @others as sl_model_folder_open() has
 * them. There are none when that cannot be read. @file stays where it is.
 */
void sl_model_file_use_folder(struct sl_model_file *file, const struct sl_data_folders *others);

/* Closes what is open. All zeros but for descriptors of -1 is fine. */
void sl_model_file_close(struct sl_model_file *file);

/* The folder of the model file at @path; of @others those that are there, NULL: none. Any thread. Return: 0; -errno without a text.
 * sl_model_folder_close() takes all zeros, too, but for a descriptor of -1. */
int sl_model_folder_open(const char *path, const struct sl_data_folders *others, struct sl_model_folder *ret_folder);
void sl_model_folder_close(struct sl_model_folder *folder);

/*
 * A regular file at @location, relative to the folder. No component may be "..", and no folder a link. A file may be one, if what
 * it leads to lies in the folder in which the model's file really lies, in one of the others, or below; whatever becomes of the
 * link meanwhile, no other is opened. Any thread. Return: 0; -EACCES the location leads outside, or to no regular file; -ENOENT;
 * -EIO.
 */
int sl_model_folder_open_file(const struct sl_model_folder *folder, const char *location, int *ret_fd, struct sl_error *error);
