/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of a backend that computes, in the process that serves.
 *
 * A *session* is what the kernels of one instance share: a stream of a device, handles of libraries, code out of blobs. Kernels of
 * a session run in the order of their launches, one after the other, so that each reads what those before it have written. What was
 * launched may go on after launch() has returned -EINPROGRESS; wait() and poll() say when all of it is done. A backend of the host
 * computes in launch() and shares nothing: it has no sessions, and no wait().
 *
 * Threads: a session and its kernels belong to one thread at a time, which calls everything here; whoever completes a launch
 * besides is the backend's own business.
 */
#pragma once

#include "kernel_source.h"
#include "part.h"

#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_kernel;  /* opaque; each backend has its own */
struct sl_session; /* the same */
struct sl_device;  /* the same: what a session is opened on, where a process has several such things */
struct sl_draws;
struct sl_pace;

/* Pointers of one launch. All 64-byte aligned where the plan owns them; client memory is 64-byte aligned too. */
struct sl_binding {
        const void *const *inputs; /* n_inputs; NULL for an absent one; packed data for packed inputs */
        void *const *outputs;      /* n_outputs */
        void *scratch;             /* at least the kernel's scratch_bytes, 64-byte aligned */

        /* Where a kernel that fills fewer rows of output 0 than it has says how many; the others are 0. NULL: nobody asks. */
        int64_t *made;

        /* Ends the launch before it is done, where the kernel looks at it (those of ref do). NULL: nobody ends it. */
        struct sl_pace *pace;

        /* What starling.SampleKeys reads; NULL: keys of nobody's samples (draw.h). */
        struct sl_draws *draws;

        /* What of the node is computed; its units are those that units() says. NULL: all of it. */
        const struct sl_part *part;
};

/*
 * Memory of a device, which the host neither reads nor writes: its addresses are numbers to all but the backend. What was
 * allocated in one session may be used in any other on the same device. All pointers of a binding lie in such memory then.
 */
struct sl_device_memory {
        /*
         * Load time; may block. Aligned to 256 bytes, not cleared; 0 bytes have an address, too. Return: 0; -ENOMEM, after which
         * everything goes on as before; -EIO the device is lost; the text says which.
         */
        int (*allocate)(struct sl_session *session, uint64_t bytes, void **ret_memory, struct sl_error *error);

        /* Nothing in flight uses it. NULL is fine. Returns NULL. */
        void *(*release)(struct sl_session *session, void *memory);

        /*
         * Copies between the host and the device. They take their turn among the launches of the session: an upload is seen by
         * those behind it, a download has what those before it wrote. Memory of the host stays until all of it has ended. Never
         * allocates. Return: 0 it is done; -EINPROGRESS poll() and wait() say when; -EIO.
         */
        int (*upload)(struct sl_session *session, void *to, const void *from, uint64_t bytes);
        int (*download)(struct sl_session *session, void *to, const void *from, uint64_t bytes);
};

struct sl_runner {
        /* NULL: kernels read and write memory of the host. Else open(), poll() and wait() are there. */
        const struct sl_device_memory *memory;

        /*
         * Once in a process, before it gives up files: opens what sessions on the device will take. May take seconds. NULL: nothing
         * has to be opened. Return: 0; -ENOENT a library is missing; -errno, the text says which.
         */
        int (*prepare)(struct sl_device *device, struct sl_error *error);

        /*
         * Load time; may block and allocate. @blobs are all that the plan keeps for this backend; a hostile compiler may have
         * written them. They outlive the session, and so does @device; NULL: the one that the backend takes by itself. NULL:
         * sessions are NULL. Return: 0; -ENODEV no device; -ENOMEM; -EBADMSG a blob is not what this backend writes.
         */
        int (*open)(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
                struct sl_error *error);

        /* Nothing is in flight, and its kernels are freed. NULL is fine. Returns NULL. */
        struct sl_session *(*close)(struct sl_session *session);

        /*
         * Load time; may block and allocate. Return: 0; -ENOTSUP if the planner does not support it so; -ENOMEM; -EBADMSG the blob
         * does not fit the node.
         */
        int (*compile)(struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel,
                struct sl_error *error);

        /* Bytes of scratch that each launch needs. */
        size_t (*scratch_bytes)(const struct sl_kernel *kernel);

        /* About how many bytes a kernel takes as long as it lives, its code included. NULL: nobody knows. Pure. */
        uint64_t (*kernel_bytes)(const struct sl_kernel *kernel);

        /*
         * Into how many units a launch can be cut along @axis (enum sl_axis, but NONE); below 2: not at all. Parts of one kernel
         * may be launched by several threads at once. NULL: no kernel is ever cut. Pure.
         */
        int64_t (*units)(const struct sl_kernel *kernel, uint32_t axis);

        /*
         * What of operand @operand (SL_REACH_OUTPUT) a launch of @part reads or writes; scratch is nobody's operand. False: maybe
         * all of it. NULL: nobody knows. Pure.
         */
        bool (*reach)(const struct sl_kernel *kernel, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach);

        /* Of a launch in parts (part.h); 1: there is one, and each part has scratch of its own. As units(). */
        int64_t (*stages)(const struct sl_kernel *kernel);

        /*
         * Load time; may block and allocate: what launches of @count parts along @axis need beside. It replaces what was there for
         * another count. NULL: nothing. Return: 1; 0 nothing is needed, whatever the count; -ENOTSUP it cannot be cut so; -ENOMEM.
         */
        int (*divide)(struct sl_kernel *kernel, uint32_t axis, uint32_t count);

        /*
         * Request path; never allocates, never waits. A kernel is not launched again before it has ended. Return: 0 computed, on
         * the calling thread; -EINPROGRESS it completes later, the binding and all that it points to stay until then; -ERANGE when
         * an index in the data lies outside its bounds; what the binding's pace says (outputs are then undefined).
         */
        int (*launch)(struct sl_kernel *kernel, const struct sl_binding *binding);

        /*
         * Has all that was launched in the session ended? poll() looks; wait() sleeps until then or until @until_ns
         * (CLOCK_MONOTONIC). NULL for who computes in launch(); else both are there. Return: 0 it has, and what it wrote can be
         * read by anybody; -EINPROGRESS not yet; any other error of a launch once, when all of them have ended: the first one,
         * after which the session is as good as before, or says so for ever (-EIO the device is lost).
         */
        int (*poll)(struct sl_session *session);
        int (*wait)(struct sl_session *session, uint64_t until_ns);

        /* Nothing of it is in flight. NULL is fine. Returns NULL. */
        struct sl_kernel *(*kernel_free)(struct sl_kernel *kernel);
};
