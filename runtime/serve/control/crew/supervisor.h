/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hears worker processes (execute/process_executor.h): that one is ready, that one has ended. One descriptor for all of them, which
 * the control thread waits for. What follows from it is for whoever started them: sl_executor_started() has changed.
 *
 * Control thread only.
 */
#pragma once

#include <stdint.h>

struct sl_executor;
struct sl_gpu_hosts;
struct sl_plan_cache;
struct sl_supervisor;
struct sl_tunings;

/*
 * @say: one line of the log for a model: @event "worker-ended", "sandbox-incomplete", with the cause; @tell: one with these fields.
 * @cache: of plans, where what GPUs find out about plans is kept; NULL: nowhere.
 */
struct sl_supervisor_options {
        void (*say)(void *context, int level, const char *event, const char *model, const char *cause);
        void (*tell)(void *context, int level, const char *event, const char *fields);
        void *context;
        struct sl_plan_cache *cache;
};

/* Return: 0; -ENOMEM, -EMFILE. */
int sl_supervisor_new(const struct sl_supervisor_options *options, struct sl_supervisor **ret_supervisor);

/* It watches nobody any more. NULL is fine. Returns NULL. */
struct sl_supervisor *sl_supervisor_free(struct sl_supervisor *supervisor);

/* The processes of GPUs, which workers that are watched hold. The supervisor's. */
struct sl_gpu_hosts *sl_supervisor_gpu_hosts(struct sl_supervisor *supervisor);

/* What is known of plans on them. The supervisor's. */
struct sl_tunings *sl_supervisor_tunings(struct sl_supervisor *supervisor);

/* Readable when there is something to hear. */
int sl_supervisor_fd(const struct sl_supervisor *supervisor);

/* From its start until it has ended or is freed. Return: 0; -ENOMEM, -ENOSPC. */
int sl_supervisor_watch(struct sl_supervisor *supervisor, struct sl_executor *executor);
void sl_supervisor_unwatch(struct sl_supervisor *supervisor, const struct sl_executor *executor);

/* All that there is to hear, without waiting. */
void sl_supervisor_hear(struct sl_supervisor *supervisor);
