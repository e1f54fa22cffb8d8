/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "cuda" as programs link it: each function is that of the module, which is opened by the first of them that needs it.
 * Its name, its traits and that it has memory of its own are known without. A session or a kernel is there only where the module
 * is open. Where it is not there nothing is supported; prepare() and key() say why.
 */
#include "backend.h"

#include "cuda_front/module.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct sl_backend *behind(struct sl_error *error)
{
        const struct sl_cuda_module *module;

        return sl_cuda_module_open(&module, error) == 0 ? module->backend : NULL;
}

/* ---- what plans ---- */

static int prepare_planning(const struct sl_target *target, struct sl_error *error)
{
        const struct sl_cuda_module *module;
        int r = sl_cuda_module_open(&module, error);

        if (r < 0 || !module->backend->planner->prepare)
                return r;
        return module->backend->planner->prepare(target, error);
}

static bool supports(const struct sl_target *target, const struct sl_node_desc *node)
{
        const struct sl_backend *backend = behind(NULL);

        return backend && backend->planner->supports(target, node);
}

static uint32_t algorithms(const struct sl_target *target, const struct sl_node_desc *node,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT])
{
        const struct sl_backend *backend = behind(NULL);

        return backend ? backend->planner->algorithms(target, node, ret_algorithms, ret_seconds) : 0;
}

static int pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const struct sl_backend *backend = behind(NULL);

        return backend ? backend->planner->pack(target, node, index, ret_packed) : -ENOTSUP;
}

static int repack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed,
        const void *plain, void *ret_data)
{
        const struct sl_backend *backend = behind(NULL);

        return backend && backend->planner->repack ? backend->planner->repack(target, node, index, packed, plain, ret_data)
                                                   : -ENOTSUP;
}

static int provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        const struct sl_cuda_module *module;
        int r = sl_cuda_module_open(&module, error);

        return r < 0 ? r : module->backend->planner->provide(source, ret_provision, error);
}

static const char *engine(const struct sl_blob *blob)
{
        const struct sl_backend *backend = behind(NULL);

        return backend && backend->planner->engine ? backend->planner->engine(blob) : "";
}

static const struct sl_planner planner = {
        .traits = SL_PLANNER_HALVES | SL_PLANNER_ALONE | SL_PLANNER_NARROW,
        .prepare = prepare_planning,
        .supports = supports,
        .algorithms = algorithms,
        .pack = pack,
        .repack = repack,
        .provide = provide,
        .engine = engine,
};

/* ---- what computes: behind open() the module is there ---- */

static const struct sl_runner *runner_behind(void)
{
        return behind(NULL)->runner;
}

static int allocate(struct sl_session *session, uint64_t bytes, void **ret_memory, struct sl_error *error)
{
        return runner_behind()->memory->allocate(session, bytes, ret_memory, error);
}

static void *release(struct sl_session *session, void *memory)
{
        return memory ? runner_behind()->memory->release(session, memory) : NULL;
}

static int upload(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        return runner_behind()->memory->upload(session, to, from, bytes);
}

static int download(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        return runner_behind()->memory->download(session, to, from, bytes);
}

static int prepare_running(struct sl_device *device, struct sl_error *error)
{
        const struct sl_cuda_module *module;
        int r = sl_cuda_module_open(&module, error);

        return r < 0 || !module->backend->runner->prepare ? r : module->backend->runner->prepare(device, error);
}

static int open_session(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
        struct sl_error *error)
{
        const struct sl_cuda_module *module;
        int r = sl_cuda_module_open(&module, error);

        return r < 0 ? r : module->backend->runner->open(device, blobs, n_blobs, ret_session, error);
}

static struct sl_session *close_session(struct sl_session *session)
{
        return session ? runner_behind()->close(session) : NULL;
}

static int compile(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        return runner_behind()->compile(session, source, ret_kernel, error);
}

static size_t scratch_bytes(const struct sl_kernel *kernel)
{
        return runner_behind()->scratch_bytes(kernel);
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        return runner_behind()->launch(kernel, binding);
}

static int poll(struct sl_session *session)
{
        return runner_behind()->poll(session);
}

static int wait(struct sl_session *session, uint64_t until_ns)
{
        return runner_behind()->wait(session, until_ns);
}

static struct sl_kernel *kernel_free(struct sl_kernel *kernel)
{
        return kernel ? runner_behind()->kernel_free(kernel) : NULL;
}

static const struct sl_device_memory memory = {.allocate = allocate, .release = release, .upload = upload, .download = download};

static const struct sl_runner runner = {
        .memory = &memory,
        .prepare = prepare_running,
        .open = open_session,
        .close = close_session,
        .compile = compile,
        .scratch_bytes = scratch_bytes,
        .launch = launch,
        .poll = poll,
        .wait = wait,
        .kernel_free = kernel_free,
};

/* ---- both ---- */

/* Which file plans here, without opening it: another one may plan otherwise. */
static void stamp(char ret_key[SL_BACKEND_KEY_BYTES])
{
        char path[PATH_MAX];
        struct stat file;

        if (sl_cuda_module_find(path, NULL) && stat(path, &file) == 0)
                snprintf(ret_key, SL_BACKEND_KEY_BYTES, "a module of %lld bytes of %lld.%09ld", (long long)file.st_size,
                        (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
        else
                ret_key[0] = 0;
}

static int key(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES])
{
        const struct sl_cuda_module *module;
        int r = target ? sl_cuda_module_open(&module, NULL) : -ENODEV;

        if (!target)
                stamp(ret_key);
        return r < 0 ? r : module->backend->key(target, ret_key);
}

const struct sl_backend sl_backend_cuda = {.name = "cuda", .step_weight = 1, .key = key, .planner = &planner, .runner = &runner};
