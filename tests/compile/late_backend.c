/* SPDX-License-Identifier: Apache-2.0 */
#include "late_backend.h"

#include "base/clock.h"
#include "base/error.h"
#include "op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_MAX 256

/* No address of a process has this bit. */
#define THERE (1ull << 62)

struct sl_session {
        pthread_t thread;
        bool ends;
        uint32_t n_queued, n_done; /* since it was opened; the next is at n_done % QUEUE_MAX */
        struct job {
                struct sl_kernel *kernel; /* NULL: inputs[0] is copied to outputs[0] */
                uint64_t bytes;           /* of the copy */
                struct sl_binding binding;
                const void *inputs[SL_NODE_INPUTS_MAX];
                void *outputs[SL_NODE_OUTPUTS_MAX];
        } jobs[QUEUE_MAX];
        int failure; /* the first, until somebody hears of it */
};

struct sl_kernel {
        struct sl_session *session;
        struct sl_kernel *exact; /* of ref */
        uint32_t n_inputs, n_outputs;
};

static const struct sl_runner runner, resident_runner;
static struct sl_backend late_backend;

struct late_control late = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void late_reset(void)
{
        pthread_mutex_lock(&late.lock);
        late.closed = false;
        late.delay_us = late.fails_at = late.n_launched = late.n_computed = 0;
        late.blob_bytes = late.n_blobs = 0;
        late.n_memory_max = late.n_memory = late.n_uploads = late.n_downloads = 0;
        late.device = NULL;
        pthread_mutex_unlock(&late.lock);
        late_backend.runner = &runner;
}

void late_use_memory(void)
{
        late_backend.runner = &resident_runner;
}

void *late_address(void *here)
{
        return (void *)((uintptr_t)here + THERE);
}

static void *host_address(const void *there)
{
        return there ? (void *)((uintptr_t)there - THERE) : NULL;
}

void late_close(void)
{
        pthread_mutex_lock(&late.lock);
        late.closed = true;
        pthread_mutex_unlock(&late.lock);
}

void late_say(uint32_t *what, uint32_t value)
{
        pthread_mutex_lock(&late.lock);
        *what = value;
        pthread_mutex_unlock(&late.lock);
}

uint32_t late_ask(const uint32_t *what)
{
        uint32_t value;

        pthread_mutex_lock(&late.lock);
        value = *what;
        pthread_mutex_unlock(&late.lock);
        return value;
}

void late_open(void)
{
        pthread_mutex_lock(&late.lock);
        late.closed = false;
        pthread_cond_broadcast(&late.changed);
        pthread_mutex_unlock(&late.lock);
}

static bool takes(const struct sl_target *target, const struct sl_node_desc *node)
{
        return node->op != SL_OP_SIGMOID && sl_backend_ref.planner->supports(target, node);
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

/* The same for nodes of one operator. */
static void fill_blob(const struct sl_node_desc *node, uint8_t *bytes, uint64_t n_bytes)
{
        for (uint64_t i = 0; i < n_bytes; i++)
                bytes[i] = (uint8_t)(node->op * 31 + i % 251);
}

static int provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        int r = sl_backend_ref.planner->provide(source, ret_provision, error);

        if (r < 0 || !late.blob_bytes)
                return r;
        ret_provision->blob = malloc(late.blob_bytes);
        ret_provision->blob_bytes = late.blob_bytes;
        fill_blob(source->node, ret_provision->blob, late.blob_bytes);
        return 0;
}

static int compute(const struct job *job)
{
        if (!job->kernel) {
                memcpy(job->outputs[0], job->inputs[0], job->bytes);
                return 0;
        }
        return sl_backend_ref.runner->launch(job->kernel->exact, &job->binding);
}

/* The lock is held. */
static void work_one(struct sl_session *session)
{
        struct job *job = &session->jobs[session->n_done % QUEUE_MAX];
        uint32_t delay_us = late.delay_us, number = ++late.n_computed;
        int r;

        pthread_mutex_unlock(&late.lock);
        usleep(delay_us);
        r = compute(job);
        pthread_mutex_lock(&late.lock);
        if (number == late.fails_at)
                r = -ERANGE;
        session->failure = session->failure ? session->failure : r;
        session->n_done++;
        pthread_cond_broadcast(&late.changed);
}

static void *work(void *context)
{
        struct sl_session *session = context;

        pthread_mutex_lock(&late.lock);
        while (!session->ends) {
                if (late.closed || session->n_done == session->n_queued)
                        pthread_cond_wait(&late.changed, &late.lock);
                else
                        work_one(session);
        }
        pthread_mutex_unlock(&late.lock);
        return NULL;
}

static int open_session(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
        struct sl_error *error)
{
        struct sl_session *session = calloc(1, sizeof(*session));

        for (uint64_t i = 0; i < n_blobs; i++)
                if ((uintptr_t)blobs[i].data % 64)
                        return sl_error_set(error, EBADMSG, "a blob is not aligned");
        pthread_mutex_lock(&late.lock);
        late.n_sessions++;
        late.device = device;
        late.n_blobs = (uint32_t)n_blobs;
        pthread_mutex_unlock(&late.lock);
        pthread_create(&session->thread, NULL, work, session);
        *ret_session = session;
        return 0;
}

static struct sl_session *close_session(struct sl_session *session)
{
        if (!session)
                return NULL;
        pthread_mutex_lock(&late.lock);
        session->ends = true;
        late.n_sessions--;
        pthread_cond_broadcast(&late.changed);
        pthread_mutex_unlock(&late.lock);
        pthread_join(session->thread, NULL);
        free(session);
        return NULL;
}

static int check_blob(const struct sl_kernel_source *source, struct sl_error *error)
{
        const uint8_t *bytes = source->blob ? source->blob->data : NULL;
        uint8_t wanted[4096];
        uint64_t n = bytes && source->blob->bytes < sizeof(wanted) ? source->blob->bytes : bytes ? sizeof(wanted) : 0;

        fill_blob(source->node, wanted, n);
        return !n || !memcmp(bytes, wanted, n) ? 0 : sl_error_set(error, EBADMSG, "the blob of another node");
}

static int build(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        struct sl_kernel *kernel;
        int r = check_blob(source, error);

        if (r < 0)
                return r;
        kernel = calloc(1, sizeof(*kernel));
        *kernel = (struct sl_kernel){.session = session, .n_inputs = source->node->n_inputs, .n_outputs = source->node->n_outputs};
        r = sl_backend_ref.runner->compile(NULL, source, &kernel->exact, error);
        if (r < 0) {
                free(kernel);
                return r;
        }
        late_say(&late.n_kernels, late.n_kernels + 1);
        *ret_kernel = kernel;
        return 0;
}

static size_t scratch_bytes(const struct sl_kernel *kernel)
{
        return sl_backend_ref.runner->scratch_bytes(kernel->exact);
}

/* The job behind all others, with the lock held until push() has it. */
static struct job *next_job(struct sl_session *session)
{
        struct job *job;

        pthread_mutex_lock(&late.lock);
        while (session->n_queued - session->n_done == QUEUE_MAX)
                pthread_cond_wait(&late.changed, &late.lock);
        job = &session->jobs[session->n_queued % QUEUE_MAX];
        *job = (struct job){.kernel = NULL};
        return job;
}

static int push(struct sl_session *session)
{
        session->n_queued++;
        late.n_launched++;
        pthread_cond_broadcast(&late.changed);
        pthread_mutex_unlock(&late.lock);
        return -EINPROGRESS;
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        struct job *job = next_job(kernel->session);

        job->kernel = kernel;
        job->binding = *binding;
        memcpy(job->inputs, binding->inputs, kernel->n_inputs * sizeof(*job->inputs));
        memcpy(job->outputs, binding->outputs, kernel->n_outputs * sizeof(*job->outputs));
        job->binding.inputs = job->inputs;
        job->binding.outputs = job->outputs;
        job->binding.pace = NULL;
        return push(kernel->session);
}

static int launch_there(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        struct sl_binding here = *binding;
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < kernel->n_inputs; i++)
                inputs[i] = host_address(binding->inputs[i]);
        for (uint32_t i = 0; i < kernel->n_outputs; i++)
                outputs[i] = host_address(binding->outputs[i]);
        here.inputs = inputs;
        here.outputs = outputs;
        here.scratch = host_address(binding->scratch);
        return launch(kernel, &here);
}

/* ---- memory of its own ---- */

static int allocate(struct sl_session *session, uint64_t bytes, void **ret_memory, struct sl_error *error)
{
        bool full;

        (void)session;
        pthread_mutex_lock(&late.lock);
        full = late.n_memory_max && late.n_memory == late.n_memory_max;
        late.n_memory += !full;
        pthread_mutex_unlock(&late.lock);
        if (full)
                return sl_error_set(error, ENOMEM, "there is no memory left");
        *ret_memory = late_address(aligned_alloc(256, (bytes + 256) / 256 * 256));
        return 0;
}

static void *give_back(struct sl_session *session, void *memory)
{
        (void)session;
        if (memory)
                late_say(&late.n_memory, late.n_memory - 1);
        free(host_address(memory));
        return NULL;
}

static int copy(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        struct job *job = next_job(session);

        job->inputs[0] = from;
        job->outputs[0] = to;
        job->bytes = bytes;
        return push(session);
}

static int upload(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        late_say(&late.n_uploads, late.n_uploads + 1);
        return copy(session, host_address(to), from, bytes);
}

static int download(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        late_say(&late.n_downloads, late.n_downloads + 1);
        return copy(session, to, host_address(from), bytes);
}

static const struct sl_device_memory memory = {.allocate = allocate, .release = give_back, .upload = upload, .download = download};

/* The lock is held. */
static int look(struct sl_session *session)
{
        int r = session->failure;

        if (session->n_done != session->n_queued)
                return -EINPROGRESS;
        session->failure = 0;
        return r;
}

static int poll_session(struct sl_session *session)
{
        int r;

        pthread_mutex_lock(&late.lock);
        r = look(session);
        pthread_mutex_unlock(&late.lock);
        return r;
}

static int wait_session(struct sl_session *session, uint64_t until_ns)
{
        int r;

        pthread_mutex_lock(&late.lock);
        while ((r = look(session)) == -EINPROGRESS && sl_clock_ns() < until_ns) {
                struct timespec soon;

                clock_gettime(CLOCK_REALTIME, &soon);
                soon.tv_sec++;
                pthread_cond_timedwait(&late.changed, &late.lock, &soon);
        }
        pthread_mutex_unlock(&late.lock);
        return r;
}

static struct sl_kernel *release(struct sl_kernel *kernel)
{
        if (!kernel)
                return NULL;
        late_say(&late.n_kernels, late.n_kernels - 1);
        sl_backend_ref.runner->kernel_free(kernel->exact);
        free(kernel);
        return NULL;
}

static int key(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES])
{
        (void)target;
        snprintf(ret_key, SL_BACKEND_KEY_BYTES, "later 1");
        return 0;
}

static const struct sl_planner planner = {
        .traits = SL_PLANNER_HALVES, .supports = takes, .algorithms = list, .pack = pack, .provide = provide};

static const struct sl_runner runner = {
        .open = open_session,
        .close = close_session,
        .compile = build,
        .scratch_bytes = scratch_bytes,
        .launch = launch,
        .poll = poll_session,
        .wait = wait_session,
        .kernel_free = release,
};

static const struct sl_runner resident_runner = {
        .memory = &memory,
        .open = open_session,
        .close = close_session,
        .compile = build,
        .scratch_bytes = scratch_bytes,
        .launch = launch_there,
        .poll = poll_session,
        .wait = wait_session,
        .kernel_free = release,
};

static struct sl_backend late_backend = {.name = "cpu", .step_weight = 32, .key = key, .planner = &planner, .runner = &runner};

/* In the place of kernels/backends.c. */
const struct sl_backend *sl_backend_at(uint32_t index)
{
        static const struct sl_backend *const all[] = {&sl_backend_ref, &late_backend, NULL};

        return index < 2 ? all[index] : NULL;
}

const struct sl_backend *sl_backend_find(const char *name)
{
        for (uint32_t i = 0; sl_backend_at(i); i++)
                if (!strcmp(sl_backend_at(i)->name, name))
                        return sl_backend_at(i);
        return NULL;
}
