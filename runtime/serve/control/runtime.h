/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime: everything that serves, behind one handle. The daemon describes what to serve and how; nothing here knows of
 * YAML, repositories or signals.
 *
 *     control thread (the caller of sl_runtime_run)   attach socket, loads and unloads models, client deaths, signals
 *     dispatcher thread                               submission rings, admission, broadcaster, schedulers, completions
 *     worker threads (one per instance)               batcher, predictor, sender; the last sender of a segment combines it
 *
 * One thread is the control thread: it makes the runtime and makes every call below. Threads own what they touch and talk through
 * single-producer mailboxes; see runtime/serve/README.md.
 */
#pragma once

#include "runtime_options.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_runtime;

/*
 * Makes the stats page, the catalogue and the dispatcher; serves nothing yet. Options are copied (what they point to is
 * not). Return: 0; -EADDRINUSE another runtime has this name; -EACCES, -ENOSPC, -EMFILE, -ENOMEM; the text names the thing.
 */
int sl_runtime_new(const struct sl_runtime_options *options, struct sl_runtime **ret_runtime, struct sl_error *error);

/* Frees; stops first if need be (without grace). Removes socket and stats page. NULL is fine. Returns NULL. */
struct sl_runtime *sl_runtime_free(struct sl_runtime *runtime);

/*
 * Loads everything that scan() lists and waits until each is ready or has failed (one log line each). To be called before
 * sl_runtime_listen(): ready means ready; once more tries what has failed again. Return: 0, also when some failed; -errno of
 * scan(). @ret_failed: how many did.
 */
int sl_runtime_load_all(struct sl_runtime *runtime, uint32_t *ret_failed, struct sl_error *error);

/* Whether what the scan lists under that name has failed to load. */
bool sl_runtime_has_failed(const struct sl_runtime *runtime, const char *name);

/* Whether some model that serves has got its size of the open dimension @name from its option shapes, or the defaults'. */
bool sl_runtime_takes_size(const struct sl_runtime *runtime, const char *name);

/* Calls @handle in the control thread whenever @fd is readable (a signalfd). The fd stays the caller's. */
int sl_runtime_watch(struct sl_runtime *runtime, int fd, void (*handle)(void *context), void *context);

/* Whether the dispatcher has answered the last probe; if so, it gets another one. Control thread (a handler). */
bool sl_runtime_probe(struct sl_runtime *runtime);

/* Opens the attach socket: from here on a client that connects can infer. The folder of the socket must exist. -errno with text. */
int sl_runtime_listen(struct sl_runtime *runtime, struct sl_error *error);

/* Serves until sl_runtime_stop(), then drains: no new requests, grace time, the rest completed as cancelled. Return: 0, -errno. */
int sl_runtime_run(struct sl_runtime *runtime);

/* Ends sl_runtime_run(): from a handler of sl_runtime_watch(). Called a second time: without grace. */
void sl_runtime_stop(struct sl_runtime *runtime);

/* Of 2^32 - 1 requests, how many are traced from now on. */
void sl_runtime_sample(struct sl_runtime *runtime, uint32_t sampling);

/* Scans again: loads what is new, reloads what changed, unloads what is gone. Control thread (a handler); goes on in the
 * background, and options.reloaded tells when the scan has ended. */
void sl_runtime_reload(struct sl_runtime *runtime);
