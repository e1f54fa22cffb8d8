/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends of a plan file while it is written, with what each wants kept: who runs steps, what its part of the plan depends on,
 * and its blobs, equal ones once. Of the compiler's process; one owner thread.
 */
#pragma once

#include "format.h"

#include <stdint.h>

struct sl_kept_blob;

struct sl_backend_table {
        const struct sl_backend *backends[SL_PLAN_BACKENDS_MAX];
        struct sl_plan_backend rows[SL_PLAN_BACKENDS_MAX];
        uint32_t n_backends;
        struct sl_kept_blob *blobs; /* in the order in which they came */
        uint64_t n_blobs, room;

        /* Filled by sl_backend_table_settle(). */
        struct sl_plan_blob *places;
        const void **data; /* of each place; the caller's */
        uint64_t data_bytes;
};

void sl_backend_table_deinit(struct sl_backend_table *table);

/* The number of a backend, which is new or not. Return: 0; -E2BIG more than SL_PLAN_BACKENDS_MAX; -ENODEV: see sl_backend.key. */
int sl_backend_table_find(
        struct sl_backend_table *table, const struct sl_backend *backend, const struct sl_target *target, uint32_t *ret_number);

/*
 * One of the backend's own, which stays the caller's until the table ends; *ret_number counts its blobs alone. Return: 0; -ENOMEM;
 * -E2BIG more than can be numbered.
 */
int sl_backend_table_keep(struct sl_backend_table *table, uint32_t backend, const struct sl_blob *blob, uint32_t *ret_number);

/* Gives all blobs their places: those of one backend behind each other. Return: 0; -ENOMEM. */
int sl_backend_table_settle(struct sl_backend_table *table);
