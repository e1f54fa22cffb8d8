/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies plan files into the folder of the cache (cache_folder.h) one after the other, on a thread of its own, which the first copy
 * starts: that is as slow as the disk.
 *
 * Threads: one owner; kept() runs on the copier's thread.
 */
#pragma once

#include "cache_folder.h"

#include <pthread.h>
#include <stdatomic.h>

struct sl_plan_copy;

struct sl_plan_copier {
        void (*kept)(void *context, const char *name, int fd); /* a copy is complete, the file is @fd */
        void *context;
        pthread_t thread;
        bool has_thread;
        pthread_mutex_t lock; /* of what follows */
        pthread_cond_t change;
        struct sl_plan_copy *first, **last; /* the first is under way */
        int failed;                         /* -errno of a copy that nobody has heard of */
        atomic_bool stops;
};

void sl_plan_copier_init(struct sl_plan_copier *copier, void (*kept)(void *context, const char *name, int fd), void *context);

/* Gives up copies that are under way. */
void sl_plan_copier_deinit(struct sl_plan_copier *copier);

/* Begins to copy the file, which nobody may change any more, to @name in @folder, which stays open. Return: 0, -errno. */
int sl_plan_copier_add(struct sl_plan_copier *copier, int folder, const char *name, int plan_fd);

/* Until all copies are complete. */
void sl_plan_copier_wait(struct sl_plan_copier *copier);

/* What the first copy met that failed since the last call: -errno; 0. */
int sl_plan_copier_failure(struct sl_plan_copier *copier);
