/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of the runtime gives up before it looks at what may be hostile: a model file, a plan. It can only be given up,
 * never taken back.
 *
 *     privileges    no new ones; no capabilities but those named; nobody traces it; it dies with its parent
 *     limits        address space, processor time, file size, descriptors, processes
 *     Landlock      no file is opened but below paths that are named, no network, no signal to others    where the kernel has it
 *     call filter   only the system calls that the process makes (call_list.h)   where the kernel has it
 *
 * The last one alone keeps the process from files and from other processes; Landlock alone keeps it from opening files and from
 * signals to others, not from what needs no file: scheduling other processes of its user, or looking at the status of files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_call_list;
struct sl_landlock_path;
struct sl_error;

/* Whether this build has a sanitizer whose shadow memory and leak check some limits would break. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SL_SANITIZED true
#else
#define SL_SANITIZED false
#endif

#define SL_SANDBOX_NO_LIMIT UINT64_MAX

struct sl_sandbox_limits {
        uint64_t address_bytes; /* of address space; SL_SANDBOX_NO_LIMIT */
        uint64_t data_bytes;    /* of private memory; SL_SANDBOX_NO_LIMIT */
        uint64_t file_bytes;    /* that are written to one file */
        uint64_t seconds;       /* of processor time; SL_SANDBOX_NO_LIMIT */
        uint32_t files;         /* that are open already and stay so: as many descriptors more */
        int parent;             /* process id of who started this one: dies with it; 0: it lives on */
        bool background;        /* it gives way to others */
        uint64_t capabilities;  /* that are kept, where there are any: bit CAP_... of each */
        const struct sl_call_list *calls;
        const struct sl_landlock_path *paths; /* that may be opened (landlock.h) */
        size_t n_paths;
};

/*
 * Call before other threads exist, with all files open that will be read. A limit that is lower already stays. Under a sanitizer
 * memory stays unlimited (its shadow takes terabytes), and what its leak check needs stays allowed.
 *
 * Return: 0, and *ret_missing names the layers that this host lacks or denies ("Landlock", "call filter", ...), or is NULL;
 * -ESRCH the parent is gone already; -ENOMEM; -errno of prctl, setrlimit, capset, seccomp.
 */
int sl_sandbox_enter(const struct sl_sandbox_limits *limits, const char **ret_missing, struct sl_error *error);

/* In words, which of these layers a host has not; NULL: it has both. */
const char *sl_sandbox_missing(bool landlock, bool filter);
