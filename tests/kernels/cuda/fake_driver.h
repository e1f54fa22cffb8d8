/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver without a GPU: device memory is memory of the process, mapped as the driver would map it, and what streams are told
 * to do is done here, later: by fake_cuda_step(), by a query or a synchronisation, one operation at a time, of whichever stream
 * chance says, in any order that streams and events allow. A program that forgets to wait is so found out. Copies check that what
 * they touch is there.
 *
 * There is one such driver in a process; its functions may be called by any thread.
 */
#pragma once

#include "cuda/driver/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct fake_cuda_launch {
        uint32_t grid[3], block[3], shared_bytes;
};

/* A kernel that can be launched: its one argument is a struct of so many bytes. */
struct fake_cuda_kernel {
        const char *name;
        size_t argument_bytes;
        void (*run)(const struct fake_cuda_launch *launch, const void *argument);
        uint64_t (*takes_ns)(const void *argument); /* by the clock of the device, which is no other; NULL: FAKE_CUDA_LAUNCH_NS */
};

#define FAKE_CUDA_LAUNCH_NS 1000

/* What the driver shows; set before the first call. */
struct fake_cuda_options {
        int n_devices, major, n_processors;
        size_t granularity, memory_bytes;
        const struct fake_cuda_kernel *kernels;
        size_t n_kernels;
        bool writes_values;  /* streams can write to memory of the host */
        bool (*stands)(void); /* asked with each query of an event by which something is timed: true, nothing has ended; NULL: no */
        uint64_t seed;
};

enum fake_cuda_call {
#define X(field, name, version) FAKE_CUDA_##field,
        SL_CUDA_DRIVER_CALLS(X)
#undef X
                FAKE_CUDA_CALL_COUNT,
};

/* Forgets everything, and starts with what most tests want: one Hopper with 132 multiprocessors and pages of 64 KiB. */
struct fake_cuda_options fake_cuda_defaults(void);
void fake_cuda_begin(const struct fake_cuda_options *options, struct sl_cuda_driver *ret_driver);

/* The @nth call from now on (1: the next one) of this function fails with @result. */
void fake_cuda_fail(enum fake_cuda_call call, uint32_t nth, CUresult result);

/* From now on every call answers this, as after an error that sticks. */
void fake_cuda_lose(CUresult result);

uint32_t fake_cuda_calls(enum fake_cuda_call call);

/* Does one operation of a stream. False: there is none that could go on. */
bool fake_cuda_step(void);
void fake_cuda_finish(void);

/* What is there and was not given back: memory, addresses, mappings, registrations, streams, events, graphs, contexts. */
uint32_t fake_cuda_held(void);
size_t fake_cuda_memory_in_use(void);

/* Is [@address, + @bytes) memory of the device that can be used? */
bool fake_cuda_is_device(CUdeviceptr address, size_t bytes);

/* The groups of multiprocessors that a stream may use, by bits; UINT64_MAX: all, and what is in no group. */
uint64_t fake_cuda_stream_groups(CUstream stream);
