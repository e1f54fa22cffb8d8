/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that completes later, in the place of `cpu`: each session has a thread that computes what was launched, one after the
 * other, by the kernels of `ref`, with a blob for each kernel. What it does is said by one struct, under one lock.
 */
#pragma once

#include "backend.h"

#include <pthread.h>

struct late_control {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        /* Said by the test. */
        bool closed;         /* nothing is computed */
        uint32_t delay_us;   /* before each launch is computed */
        uint32_t fails_at;   /* the launch with this number, from 1 on, ends with -ERANGE */
        uint32_t blob_bytes; /* of each node's; 0: none */
        /* Said by the backend. */
        uint32_t n_launched, n_computed, n_sessions, n_kernels;
        uint32_t n_blobs; /* that the last session was given */
};

extern struct late_control late;

/* As if nothing had happened. */
void late_reset(void);

void late_close(void);
void late_open(void);
void late_say(uint32_t *what, uint32_t value);
uint32_t late_ask(const uint32_t *what);
