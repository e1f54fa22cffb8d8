/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_backend.h"

#include "backend.h"
#include "base/error.h"
#include "fake_driver.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the place of which it is. */
#ifndef FAKE_BACKEND_NAME
#define FAKE_BACKEND_NAME "cpu"
#endif

struct sl_session {
        const struct sl_cuda_device *cuda;
        CUstream stream;
        CUdeviceptr finding;
        bool owned;
};

struct sl_kernel {
        struct sl_session *session;
        struct sl_kernel *exact; /* of ref */
        uint32_t n_inputs, n_outputs;
};

struct argument {
        struct sl_kernel *exact;
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX];
        void *scratch;
        uint32_t *finding; /* NULL: nobody looks */
};

static struct sl_device standard;
static atomic_uint held;

void fake_backend_use(const struct sl_cuda_device *device)
{
        standard = (struct sl_device){.cuda = device};
}

uint32_t fake_backend_held(void)
{
        return atomic_load(&held);
}

static void run(const struct fake_cuda_launch *launch, const void *argument)
{
        const struct argument *a = argument;
        const struct sl_binding binding = {.inputs = a->inputs, .outputs = (void *const *)a->outputs, .scratch = a->scratch};

        (void)launch;
        if (sl_backend_ref.runner->launch(a->exact, &binding) == -ERANGE && a->finding)
                *a->finding = 1;
}

static const struct fake_cuda_kernel step = {.name = "step", .argument_bytes = sizeof(struct argument), .run = run};

static int open_session(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
        struct sl_error *error)
{
        struct sl_session *session = calloc(1, sizeof(*session));
        const struct sl_device *on = device ? device : &standard;
        CUresult result = CUDA_SUCCESS;

        (void)blobs, (void)n_blobs;
        *session = (struct sl_session){.cuda = on->cuda, .stream = on->stream, .finding = on->finding, .owned = !on->stream};
        if (session->owned)
                result = on->cuda->driver->stream_create_with_priority(&session->stream, CU_STREAM_NON_BLOCKING, 0);
        if (result != CUDA_SUCCESS) {
                free(session);
                return sl_cuda_check(on->cuda->driver, result, error, "a session");
        }
        atomic_fetch_add(&held, 1);
        *ret_session = session;
        return 0;
}

static struct sl_session *close_session(struct sl_session *session)
{
        if (session && session->owned)
                session->cuda->driver->stream_destroy(session->stream);
        if (session)
                atomic_fetch_sub(&held, 1);
        free(session);
        return NULL;
}

static int build(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        struct sl_kernel *kernel = calloc(1, sizeof(*kernel));
        int r = sl_backend_ref.runner->compile(NULL, source, &kernel->exact, error);

        if (r < 0) {
                free(kernel);
                return r;
        }
        kernel->session = session;
        kernel->n_inputs = source->node->n_inputs;
        kernel->n_outputs = source->node->n_outputs;
        atomic_fetch_add(&held, 1);
        *ret_kernel = kernel;
        return 0;
}

static struct sl_kernel *release(struct sl_kernel *kernel)
{
        if (!kernel)
                return NULL;
        sl_backend_ref.runner->kernel_free(kernel->exact);
        atomic_fetch_sub(&held, 1);
        free(kernel);
        return NULL;
}

static size_t scratch_bytes(const struct sl_kernel *kernel)
{
        return sl_backend_ref.runner->scratch_bytes(kernel->exact);
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        struct argument argument = {
                .exact = kernel->exact, .scratch = binding->scratch, .finding = (uint32_t *)kernel->session->finding};
        void *arguments[] = {&argument};
        CUresult result;

        memcpy(argument.inputs, binding->inputs, kernel->n_inputs * sizeof(argument.inputs[0]));
        memcpy(argument.outputs, binding->outputs, kernel->n_outputs * sizeof(argument.outputs[0]));
        result = kernel->session->cuda->driver->launch_kernel(
                (CUfunction)(uintptr_t)&step, 1, 1, 1, 1, 1, 1, 0, kernel->session->stream, arguments, NULL);
        return result == CUDA_SUCCESS ? -EINPROGRESS : sl_cuda_errno(result);
}

static int wait_session(struct sl_session *session, uint64_t until_ns)
{
        (void)until_ns;
        return sl_cuda_errno(session->cuda->driver->stream_synchronize(session->stream));
}

static int poll_session(struct sl_session *session)
{
        return wait_session(session, 0);
}

static int allocate(struct sl_session *session, uint64_t bytes, void **ret_memory, struct sl_error *error)
{
        CUdeviceptr address = 0;
        int r = sl_cuda_check(session->cuda->driver, session->cuda->driver->mem_alloc(&address, bytes ? bytes : 1), error,
                "%llu bytes of the device", (unsigned long long)bytes);

        *ret_memory = (void *)address;
        return r;
}

static void *give_back(struct sl_session *session, void *memory)
{
        if (memory)
                session->cuda->driver->mem_free((CUdeviceptr)memory);
        return NULL;
}

static int upload(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        CUresult result = session->cuda->driver->memcpy_htod_async((CUdeviceptr)to, from, bytes, session->stream);

        return result == CUDA_SUCCESS ? -EINPROGRESS : sl_cuda_errno(result);
}

static int download(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        CUresult result = session->cuda->driver->memcpy_dtoh_async(to, (CUdeviceptr)from, bytes, session->stream);

        return result == CUDA_SUCCESS ? -EINPROGRESS : sl_cuda_errno(result);
}

static const struct sl_device_memory memory = {.allocate = allocate, .release = give_back, .upload = upload, .download = download};

static const struct sl_runner runner = {
        .memory = &memory,
        .open = open_session,
        .close = close_session,
        .compile = build,
        .scratch_bytes = scratch_bytes,
        .launch = launch,
        .poll = poll_session,
        .wait = wait_session,
        .kernel_free = release,
};

static bool takes(const struct sl_target *target, const struct sl_node_desc *node)
{
        return sl_backend_ref.planner->supports(target, node);
}

static uint32_t list(const struct sl_target *target, const struct sl_node_desc *node, uint32_t ret_algorithms[SL_ALGORITHM_COUNT],
        double ret_seconds[SL_ALGORITHM_COUNT])
{
        return sl_backend_ref.planner->algorithms(target, node, ret_algorithms, ret_seconds);
}

static int pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        return sl_backend_ref.planner->pack(target, node, index, ret_packed);
}

static int provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        return sl_backend_ref.planner->provide(source, ret_provision, error);
}

static int key(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES])
{
        (void)target;
        snprintf(ret_key, SL_BACKEND_KEY_BYTES, "fake 1");
        return 0;
}

static const struct sl_planner planner = {.supports = takes, .algorithms = list, .pack = pack, .provide = provide};

const struct sl_backend fake_backend = {
        .name = FAKE_BACKEND_NAME, .step_weight = 32, .key = key, .planner = &planner, .runner = &runner};

/* In the place of kernels/backends.c. */
static const struct sl_backend *const all[] = {&sl_backend_ref, &fake_backend};

const struct sl_backend *sl_backend_at(uint32_t index)
{
        return index < sizeof(all) / sizeof(all[0]) ? all[index] : NULL;
}

const struct sl_backend *sl_backend_find(const char *name)
{
        for (uint32_t i = 0; sl_backend_at(i); i++)
                if (!strcmp(sl_backend_at(i)->name, name))
                        return sl_backend_at(i);
        return NULL;
}
