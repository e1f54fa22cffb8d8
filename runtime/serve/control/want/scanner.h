/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what there is to serve on a thread of its own: a folder that is locked, slow or gone holds up this thread alone. One scan
 * at a time; its owner, the control thread, takes what one has found before it begins the next.
 *
 *     IDLE --begin--> SCANNING --(thread) found--> FOUND --take--> IDLE
 */
#pragma once

#include "base/error.h"
#include "listing.h"

#include <stdbool.h>

struct sl_bell;
struct sl_runtime_options;
struct sl_scanner;

struct sl_scan_found {
        int status; /* of scan() */
        struct sl_error error;
        struct sl_listing listing; /* good until the next scan begins */
};

/* @owner: rung when something has been found. Return: 0, -EAGAIN, -ENOMEM. */
int sl_scanner_new(const struct sl_runtime_options *runtime, struct sl_bell *owner, struct sl_scanner **ret_scanner);

/* Waits for the scan that is under way. NULL is fine. Returns NULL. */
struct sl_scanner *sl_scanner_free(struct sl_scanner *scanner);

/* IDLE. */
void sl_scanner_begin(struct sl_scanner *scanner);

/* False: nothing has been found that was not taken. */
bool sl_scanner_take(struct sl_scanner *scanner, struct sl_scan_found *ret_found);
