/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What administrators, and whoever manages the runtime, have asked for, in the order of its coming, until it is a want. Most of it
 * follows what the repository has at that time or later. So it waits for a scan that has begun since (scanner.h), and all that came
 * during one scan waits for the next one together: a storm of them takes two scans, however many they are. Control thread only.
 */
#pragma once

#include "layout.h"
#include "scanner.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_draft;
struct sl_orders;

#define SL_ORDERS_MAX 256u /* each administrator waits for the answer to its last one */

/* All of the repository; one name, RELOAD whatever its stamp; workers of several models; workers as the configuration says. */
#define SL_ORDER_KINDS(X)                                                                                                          \
        X(SYNC, "sync")                                                                                                            \
        X(LOAD, "load")                                                                                                            \
        X(RELOAD, "reload")                                                                                                        \
        X(UNLOAD, "unload")                                                                                                        \
        X(APPLY, "apply")                                                                                                          \
        X(CONFIGURE, "configure")

enum sl_order_kind {
#define X(id, name) SL_ORDER_##id,
        SL_ORDER_KINDS(X)
#undef X
};

const char *sl_order_name(enum sl_order_kind kind);

struct sl_order {
        enum sl_order_kind kind;
        uint64_t asker;         /* 0: nobody */
        uint64_t scan;          /* it waits for the end of this one; 0: for none. Set when it is added */
        struct sl_draft *draft; /* of APPLY */
        char name[SL_MODEL_NAME_BYTES];
};

int sl_orders_new(const struct sl_runtime_options *runtime, struct sl_bell *owner, struct sl_orders **ret_orders);

/* With the drafts of orders. NULL is fine. Returns NULL. */
struct sl_orders *sl_orders_free(struct sl_orders *orders);

/* At the end of the queue, with its draft. A SYNC that waits for the same scan as another one is that one. Return: 0; -EBUSY too
 * many wait, with text. */
int sl_orders_add(struct sl_orders *orders, const struct sl_order *order, struct sl_error *error);

/* True: another scan has ended, and sl_orders_found() is what it has found, until the orders that waited for it are taken. */
bool sl_orders_hear(struct sl_orders *orders);
const struct sl_scan_found *sl_orders_found(const struct sl_orders *orders);

/* The first one, if it waits for nothing; it is the caller's, and so is its draft. Once there is none a scan begins for the others.
 */
bool sl_orders_take(struct sl_orders *orders, struct sl_order *ret_order);

bool sl_orders_wait(const struct sl_orders *orders);

/* Some wait for nothing. */
bool sl_orders_are_ready(const struct sl_orders *orders);
