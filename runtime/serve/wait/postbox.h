/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts through an eventfd: the way to wake a waiting thread from any other. An eventfd carries a count and no tokens, so the
 * tokens that wait to be seen lie beside it, each once.
 *
 * Threads: sl_postbox_put() any; sl_postbox_take() the waiting one. A mutex guards the tokens; the path of requests does not come
 * here while both sides are awake.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_postbox;

int sl_postbox_new(struct sl_postbox **ret_postbox);
struct sl_postbox *sl_postbox_free(struct sl_postbox *postbox);

/* Readable when a token came in. Owned by the postbox, non-blocking. */
int sl_postbox_fd(const struct sl_postbox *postbox);

/* Return: 0; -EAGAIN when SL_WAIT_POSTS_MAX different tokens lie here. */
int sl_postbox_put(struct sl_postbox *postbox, uint64_t token);

/* Takes up to @n tokens, the oldest first. *ret_more: some stay. Return: the number of tokens. */
uint32_t sl_postbox_take(struct sl_postbox *postbox, uint64_t *ret_tokens, uint32_t n, bool *ret_more);
