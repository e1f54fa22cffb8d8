/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fiber runs threads of the block one after the other until one of them waits; another one goes on with the rest then. When all
 * threads have ended or wait, those whose barrier is complete are let go.
 */
#include "block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define THREADS_MAX 1024
#define WARP        32
#define STACK_BYTES 65536

struct host_index threadIdx, blockIdx, blockDim, gridDim;
void *host_shared;

enum state { READY, AT_BLOCK, AT_WARP, ENDED };

struct thread {
        enum state state;
        struct fiber *fiber;
        uint64_t given[2]; /* to shuffles, in turn */
        uint32_t shuffles;
};

struct fiber {
        ucontext_t context;
        char *stack;
        struct fiber *next_idle;
};

static struct {
        pthread_mutex_t lock;
        void (*body)(const void *argument);
        const void *argument;
        uint32_t n_threads, next, running;
        struct thread threads[THREADS_MAX];
        struct fiber *current, *idle;
        ucontext_t scheduler;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void enter_thread(uint32_t i)
{
        host.running = i;
        host.threads[i].fiber = host.current;
        threadIdx = (struct host_index){i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
}

/* A fiber never ends: it is idle when there is no thread to begin. */
static void fiber_main(void)
{
        for (;;) {
                while (host.next < host.n_threads) {
                        enter_thread(host.next++);
                        host.body(host.argument);
                        host.threads[host.running].state = ENDED;
                }
                host.current->next_idle = host.idle;
                host.idle = host.current;
                swapcontext(&host.current->context, &host.scheduler);
        }
}

static void *allocate(size_t bytes)
{
        void *memory = calloc(1, bytes);

        if (!memory) {
                fprintf(stderr, "no memory for %zu bytes\n", bytes);
                abort();
        }
        return memory;
}

static void fiber_init(struct fiber *fiber)
{
        fiber->stack = allocate(STACK_BYTES);
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack;
        fiber->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&fiber->context, fiber_main, 0);
}

static struct fiber *take_fiber(void)
{
        struct fiber *fiber = host.idle ? host.idle : allocate(sizeof(*fiber));

        host.idle = fiber->next_idle;
        if (!fiber->stack)
                fiber_init(fiber);
        return fiber;
}

static void free_fibers(void)
{
        while (host.idle) {
                struct fiber *fiber = host.idle;

                host.idle = fiber->next_idle;
                free(fiber->stack);
                free(fiber);
        }
}

static void resume(struct fiber *fiber)
{
        host.current = fiber;
        swapcontext(&host.scheduler, &fiber->context);
}

static void wait_as(enum state state)
{
        uint32_t me = host.running;
        struct fiber *fiber = host.current;

        host.threads[me].state = state;
        swapcontext(&fiber->context, &host.scheduler);
        enter_thread(me);
}

void host_block_barrier(void)
{
        wait_as(AT_BLOCK);
}

void host_warp_barrier(void)
{
        wait_as(AT_WARP);
}

uint64_t host_shuffle(uint64_t bits, uint32_t lane)
{
        struct thread *me = &host.threads[host.running];
        uint32_t turn = me->shuffles++ % 2, from = host.running / WARP * WARP + lane;

        me->given[turn] = bits;
        wait_as(AT_WARP);
        return host.threads[from].given[turn];
}

/* Threads of [@first, @end) that all have ended or are at that barrier may go on. */
static bool release(uint32_t first, uint32_t end, enum state state)
{
        uint32_t waiting = 0, ended = 0;

        for (uint32_t i = first; i < end; i++) {
                waiting += host.threads[i].state == state;
                ended += host.threads[i].state == ENDED;
        }
        if (!waiting || waiting + ended < end - first)
                return false;
        for (uint32_t i = first; i < end; i++)
                if (host.threads[i].state == state)
                        host.threads[i].state = READY;
        return true;
}

static bool release_any(void)
{
        bool released = release(0, host.n_threads, AT_BLOCK);

        for (uint32_t i = 0; i < host.n_threads; i += WARP)
                released |= release(i, i + WARP < host.n_threads ? i + WARP : host.n_threads, AT_WARP);
        return released;
}

static bool all_ended(void)
{
        for (uint32_t i = 0; i < host.n_threads; i++)
                if (host.threads[i].state != ENDED)
                        return false;
        return true;
}

static void run_block(void)
{
        host.next = 0;
        for (uint32_t i = 0; i < host.n_threads; i++)
                host.threads[i] = (struct thread){.state = READY};
        for (;;) {
                while (host.next < host.n_threads)
                        resume(take_fiber());
                if (all_ended())
                        return;
                if (!release_any()) {
                        fprintf(stderr, "threads of a block wait at different barriers\n");
                        abort();
                }
                for (uint32_t i = 0; i < host.n_threads; i++)
                        if (host.threads[i].state == READY)
                                resume(host.threads[i].fiber);
        }
}

void host_run(void (*thread)(const void *argument), struct host_index grid, struct host_index block, uint32_t shared_bytes,
        const void *argument)
{
        pthread_mutex_lock(&host.lock);
        host.body = thread;
        host.argument = argument;
        host.n_threads = block.x * block.y * block.z;
        if (host.n_threads > THREADS_MAX || host.n_threads % WARP) {
                fprintf(stderr, "a block of %u threads\n", host.n_threads);
                abort();
        }
        gridDim = grid;
        blockDim = block;
        host_shared = allocate(shared_bytes ? shared_bytes : 1);
        for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
                for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
                        for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                                run_block();
        free(host_shared);
        free_fibers();
        pthread_mutex_unlock(&host.lock);
}
