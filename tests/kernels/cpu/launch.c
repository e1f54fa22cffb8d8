/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch costs besides time: memory and threads. Every allocation of the process passes through the counters below, so this
 * is a program of its own, and sanitizers (which count for themselves) do without it.
 */
#include "case.h"

#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>

/*
 * oneDNN 2.6.3 keeps the arguments of an execution in a hash table of its own: a few nodes, which the allocator's cache of the
 * thread serves without a lock or a system call. That much is let pass; scratch or packing buffers would not fit.
 */
#define BOOKKEEPING_BLOCKS 16
#define BOOKKEEPING_BYTES  1024

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *data, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *data);

static _Thread_local bool counting;
static _Thread_local long n_allocated, n_freed;
static _Thread_local size_t allocated_bytes;

static void count_allocation(size_t bytes)
{
        if (!counting)
                return;
        n_allocated++;
        allocated_bytes += bytes;
}

void *malloc(size_t bytes)
{
        count_allocation(bytes);
        return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
        count_allocation(count * bytes);
        return __libc_calloc(count, bytes);
}

void *realloc(void *data, size_t bytes)
{
        count_allocation(bytes);
        return __libc_realloc(data, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
        count_allocation(bytes);
        return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
        return memalign(alignment, bytes);
}

int posix_memalign(void **ret_data, size_t alignment, size_t bytes)
{
        *ret_data = memalign(alignment, bytes);
        return *ret_data ? 0 : 12;
}

void free(void *data)
{
        if (counting && data)
                n_freed++;
        __libc_free(data);
}

static void count_launch(const char *line)
{
        struct test_case test;
        struct test_kernel cpu;

        sl_cpu_use_one_thread();
        case_parse(line, &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        cr_assert_eq(test_kernel_launch(&cpu), 0);
        n_allocated = n_freed = 0;
        allocated_bytes = 0;
        counting = true;
        int r = test_kernel_launch(&cpu);
        counting = false;
        cr_expect_eq(r, 0);
        test_kernel_deinit(&cpu);
}

static const char *const own_loops[] = {
        "Add 3x57 57",
        "Sum 3x57 3x57 57",
        "Relu 3x57",
        "Cast 3x57 to=7",
        "Where 3x57:bool 3x57 57",
        "Concat 2x3x4x5 2x1x4x5 axis=1 nhwc",
        "Transpose 67x43",
        "Reorder 2x67x19x23 tonhwc",
        "Gather 10x4 3:int64 axis=0 below:10",
        "BatchNormalization 2x7x5x3 7 7 7 7 positive nhwc",
        "LayerNormalization 4x5x96 96 96",
        "Softmax 2x5x4x4 axis=1",
        "Softmax 4x1000",
        "ReduceMean 2x3x4x5 axes=2,3",
};

Test(cpu_launch, an_own_loop_allocates_nothing)
{
        for (size_t i = 0; i < sizeof(own_loops) / sizeof(own_loops[0]); i++) {
                count_launch(own_loops[i]);
                cr_expect_eq(n_allocated, 0, "%s: %ld allocations of %zu bytes", own_loops[i], n_allocated, allocated_bytes);
        }
}

static const char *const onednn_calls[] = {
        "Conv 2x32x14x14 32x32x3x3 32 pads=1,1,1,1 packed nhwc +residual +relu",
        "Conv 1x3x64x64 16x3x7x7 16 pads=3,3,3,3 strides=2,2 packed tonhwc +relu",
        "Conv 2x24x10x10 24x1x3x3 24 group=24 pads=1,1,1,1 packed nhwc +clip",
        "Conv 2x16x9x9 32x16x1x1 32 packed nhwc",
        "Conv 2x16x10x10 32x4x3x3 32 group=4 pads=1,1,1,1 packed nhwc +relu",
        "Gemm 8x640 10x640 10 transB=1 packed +relu",
        "MatMul 12x64x32 12x32x64 64 +relu",
        "MaxPool 2x8x12x12 kernel_shape=2,2 strides=2,2 nhwc",
        "GlobalAveragePool 2x32x7x7 nhwc",
        "Tanh 3x57",
};

Test(cpu_launch, a_call_of_onednn_keeps_nothing_and_allocates_bookkeeping_only)
{
        for (size_t i = 0; i < sizeof(onednn_calls) / sizeof(onednn_calls[0]); i++) {
                count_launch(onednn_calls[i]);
                cr_expect_eq(n_allocated, n_freed, "%s: %ld allocated, %ld freed", onednn_calls[i], n_allocated, n_freed);
                cr_expect(n_allocated <= BOOKKEEPING_BLOCKS && allocated_bytes <= BOOKKEEPING_BYTES,
                        "%s: %ld allocations of %zu bytes", onednn_calls[i], n_allocated, allocated_bytes);
        }
}

static int count_threads(void)
{
        DIR *tasks = opendir("/proc/self/task");
        int count = 0;

        cr_assert_not_null(tasks);
        for (struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks))
                count += entry->d_name[0] != '.';
        closedir(tasks);
        return count;
}

Test(cpu_launch, a_launch_starts_no_threads)
{
        int before = count_threads();

        count_launch("Conv 8x32x28x28 32x32x3x3 32 pads=1,1,1,1 packed nhwc");
        count_launch("Gemm 256x256 256x256 256 packed");
        cr_expect_eq(count_threads(), before);
}
