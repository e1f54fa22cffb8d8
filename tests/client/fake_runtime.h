/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime made of one thread, for tests of the client: it accepts clients, serves their rings with the functions of shm/, and can
 * be told to misbehave. It computes nothing: "echo" copies its input.
 *
 *     echo    float32 [N,4] -> float32 [N,4], at most 1024 samples; loading it makes what was opened before stale
 *     pair    float32 [N,2], int64 [N,3] -> both, as they came
 *     vector  float32 [3] -> float32 [3], no batch
 *     first3  float32 [?,2] -> float32 [?,2]: the first three rows
 *     broken  float32 [N,1] -> float32 [N,1]: completes with -EIO
 *     loading, failed: models in these states
 *     first, second  as echo: the variants of task "either", 0.9 accurate for 1 and 0.8 for 2
 *
 * Threads: the functions are called by the test's thread; the runtime's thread owns everything else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_runtime;
struct sl_task_page;

struct fake_options {
        const char *socket;          /* path */
        uint64_t arena_limit_bytes;  /* 0: 1 GiB */
        uint64_t region_limit_bytes; /* of one region; 0: none */
        bool keeps_regions;          /* releases none: they are in use, it says */
        uint32_t depth_granted;      /* 0: what is asked for */
        uint32_t echo_width;         /* 0: 4 */
        bool echo_optional;          /* it has a second input, [3] of int64, that a request may leave out */
        uint16_t outputs_too_many;   /* that completions announce */
        bool without_echo;
        bool silent;           /* listens, and never answers */
        const char *refusal;   /* answers every hello with -EACCES and this text */
        uint32_t wire_version; /* 0: the real one */
        bool without_tasks;    /* it knows of no page of tasks */
        uint32_t wanted;       /* threads that want to run, it says, on two cores, and that workers compute; 0: it says nothing */

        /* What is said of a channel does not hold. */
        uint32_t bound; /* 1 + the core that it says it is bound to; 0: none */
        bool wrong_request_header, wrong_response_header, impossible_dispatcher, impossible_shape;
};

/* Listens when it returns. Return: 0, -errno. */
int fake_runtime_start(const struct fake_options *options, struct fake_runtime **ret_runtime);

/* Dies as by SIGKILL, after publishing (without a wake-up) the completions of the first @n_published held requests. */
struct fake_runtime *fake_runtime_kill(struct fake_runtime *runtime, uint32_t n_published);

/* While held, requests are taken and not answered, unless they are cancelled or expire. */
void fake_runtime_hold(struct fake_runtime *runtime, bool hold);

/* Requests that are held now. */
uint32_t fake_runtime_held(struct fake_runtime *runtime);

/* Of these, those whose tag's cancel word is not 0. */
uint32_t fake_runtime_named(struct fake_runtime *runtime);

/* Publishes a completion that nobody asked for, of this tag and submission index, on queue pair 0 of every client. */
void fake_runtime_lie(struct fake_runtime *runtime, uint16_t tag, uint32_t index);

/* Its page of tasks, which the test's thread writes from the start on. */
struct sl_task_page *fake_runtime_tasks(struct fake_runtime *runtime);

/* Places of "first" and "second" in the catalogue. */
enum { FAKE_FIRST = 7, FAKE_SECOND };

/* Requests to the model at @index end with @status and a reason from now on; 0: they do not. */
void fake_runtime_refuse(struct fake_runtime *runtime, uint32_t index, int status);

/* Clients that are attached. */
uint32_t fake_runtime_clients(struct fake_runtime *runtime);

/* Regions that the newest client has, counted when it last asked for or handed back one. */
uint32_t fake_runtime_regions(struct fake_runtime *runtime);
