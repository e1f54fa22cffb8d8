/*
 * What a process gives up before it looks at a model file: address space, time, descriptors, privileges, the network, other
 * programs, other processes, and writing to any file that is not open yet. It can only be given up, never taken back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/* Whether this build has a sanitizer whose shadow memory and leak check some limits would break. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SL_SANITIZED true
#else
#define SL_SANITIZED false
#endif

struct sl_sandbox_limits {
        uint64_t memory_bytes; /* of address space, and of what is written to one file */
        uint64_t seconds;      /* of processor time */
        int parent;            /* process id of who started this one: dies with it; 0: no matter */
};

/*
 * Call before other threads exist. Under a sanitizer the address space stays unlimited (its shadow takes terabytes), and what its
 * leak check needs stays allowed. Return: 0; -ESRCH the parent is gone already; -errno of prctl, setrlimit, seccomp.
 */
int sl_sandbox_enter(const struct sl_sandbox_limits *limits, struct sl_error *error);
