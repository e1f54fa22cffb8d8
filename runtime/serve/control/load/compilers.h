/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that starts and ends compilers. Either waits until another process has got a processor: a fork is answered, a process
 * that was killed is gone. On a busy machine that is tens of milliseconds, in which the control thread hears nobody.
 *
 *     start order --sl_compile_order_take()--> compilation --sl_compilers_end()--> (none)
 *          +------sl_compile_order_cancel()----------------------------------------^
 *
 * What was promised to a compiler that is ended is its own until its process is gone, and so is its place among the loads:
 * sl_compilers_hear() says when.
 *
 * The thread lives as long as what it has started: compilers die with it. It is the owner of the zygote's forks; others that start
 * compilers by the same zygote take turns with it (compile_zygote.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_bell;
struct sl_compilation;
struct sl_compile_options;
struct sl_compile_order;
struct sl_compilers;
struct sl_error;

/* @owner is rung when one that was ended is gone. All calls are of one thread. Return: 0, -ENOMEM, -EAGAIN. */
int sl_compilers_new(struct sl_bell *owner, struct sl_compilers **ret_compilers);

/* Waits for what was ordered. NULL is fine. Returns NULL. */
struct sl_compilers *sl_compilers_free(struct sl_compilers *compilers);

/*
 * A compiler is to be started, on the processors of the calling thread. @options are read during the call, but for what they say of
 * data folders and the zygote. Return: 0; -ENOMEM, -EMFILE with text.
 */
int sl_compilers_start(struct sl_compilers *compilers, const struct sl_compile_options *options,
        struct sl_compile_order **ret_order, struct sl_error *error);

/* Readable once it has been carried out. The order's. */
int sl_compile_order_fd(const struct sl_compile_order *order);
bool sl_compile_order_is_done(const struct sl_compile_order *order);

/* Waits for that, and frees the order. Return: as sl_compile_start(). */
int sl_compile_order_take(struct sl_compile_order *order, struct sl_compilation **ret_compilation, struct sl_error *error);

/* Whatever has come of it is ended, or is about to be; @bytes are promised to it. NULL is fine: nothing is. Returns NULL. */
struct sl_compile_order *sl_compile_order_cancel(struct sl_compile_order *order, uint64_t bytes);

/* The child is killed at once, and is gone some time later; @bytes are promised to it. NULL is fine: nothing is. */
void sl_compilers_end(struct sl_compilers *compilers, struct sl_compilation *compilation, uint64_t bytes);

/* How many of those are not known to be gone. */
uint32_t sl_compilers_ending(const struct sl_compilers *compilers);

/* Hears which are gone since the last call. Return: how many; @ret_bytes: promised to them. */
uint32_t sl_compilers_hear(struct sl_compilers *compilers, uint64_t *ret_bytes);
