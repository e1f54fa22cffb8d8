/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that completes later, in the place of `cpu`: each session has a thread that computes what was launched, one after the
 * other, by the kernels of `ref`, with a blob for each kernel. What it does is said by one struct, under one lock. It may have
 * memory of its own: addresses there are none of the host's, so that whoever follows one dies.
 */
#pragma once

#include "backend.h"

#include <pthread.h>

struct late_control {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        /* Said by the test. */
        bool closed;           /* nothing is computed */
        uint32_t delay_us;     /* before each launch is computed */
        uint32_t fails_at;     /* the launch with this number, from 1 on, ends with -ERANGE */
        uint32_t blob_bytes;   /* of each node's; 0: none */
        uint32_t n_memory_max; /* pieces of its memory that there are at once, beyond which there is none; 0: any number */
        /* Said by the backend. */
        uint32_t n_launched, n_computed, n_sessions, n_kernels;
        uint32_t n_blobs; /* that the last session was given */
        uint32_t n_memory, n_uploads, n_downloads;
        struct sl_device *device; /* on which the last session was opened */
};

extern struct late_control late;

/* As if nothing had happened. */
void late_reset(void);

/* Before a plan is run: until late_reset() its kernels work in memory of its own. */
void late_use_memory(void);

/* The address that memory of the test has there. */
void *late_address(void *here);

void late_close(void);
void late_open(void);
void late_say(uint32_t *what, uint32_t value);
uint32_t late_ask(const uint32_t *what);
