/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fiber runs threads of the block one after the other until one of them waits; another one goes on with the rest then. When all
 * threads have ended or wait, those whose barrier is complete are let go. Blocks are short and many, so fibers are kept from one launch
 * to the next, and a switch makes no system call, as swapcontext() does.
 */
#include "block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 1024
#define WARP        32
#define STACK_BYTES 65536
#define SAVED       6 /* registers, by host_switch_stack() */

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
        void *pointer; /* of its stack, while it does not run */
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
        void *scheduler; /* pointer of its stack, while a fiber runs */
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Leaves what a call keeps on the stack, whose pointer goes to @ret_pointer, and returns to whoever left the stack at @pointer so. */
void host_switch_stack(void **ret_pointer, void *pointer);
__asm__(".text\n"
        ".type host_switch_stack, @function\n"
        "host_switch_stack:\n"
        "        pushq %rbp\n"
        "        pushq %rbx\n"
        "        pushq %r12\n"
        "        pushq %r13\n"
        "        pushq %r14\n"
        "        pushq %r15\n"
        "        movq %rsp, (%rdi)\n"
        "        movq %rsi, %rsp\n"
        "        popq %r15\n"
        "        popq %r14\n"
        "        popq %r13\n"
        "        popq %r12\n"
        "        popq %rbx\n"
        "        popq %rbp\n"
        "        ret\n"
        ".size host_switch_stack, . - host_switch_stack\n");

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
                host_switch_stack(&host.current->pointer, host.scheduler);
        }
}

static void *allocate(size_t bytes)
{
        void *memory = malloc(bytes);

        if (!memory) {
                fprintf(stderr, "no memory for %zu bytes\n", bytes);
                abort();
        }
        return memory;
}

static struct fiber *fiber_new(void)
{
        struct fiber *fiber = allocate(sizeof(*fiber));
        void **top;

        fiber->stack = allocate(STACK_BYTES);
        top = (void **)(void *)(fiber->stack + STACK_BYTES);
        *--top = NULL; /* where a call of fiber_main() would return to */
        *--top = (void *)fiber_main;
        for (int i = 0; i < SAVED; i++)
                *--top = NULL;
        fiber->pointer = top;
        return fiber;
}

static struct fiber *take_fiber(void)
{
        struct fiber *fiber = host.idle;

        if (!fiber)
                return fiber_new();
        host.idle = fiber->next_idle;
        return fiber;
}

/* When the program ends, or the library that this is in is closed. */
__attribute__((destructor)) static void free_fibers(void)
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
        host_switch_stack(&host.scheduler, fiber->pointer);
}

static void wait_as(enum state state)
{
        uint32_t me = host.running;
        struct fiber *fiber = host.current;

        host.threads[me].state = state;
        host_switch_stack(&fiber->pointer, host.scheduler);
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
        host_shared = calloc(1, shared_bytes ? shared_bytes : 1);
        if (!host_shared)
                abort();
        for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
                for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
                        for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                                run_block();
        free(host_shared);
        pthread_mutex_unlock(&host.lock);
}
