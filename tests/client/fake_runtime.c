/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_runtime.h"

#include "attach.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "catalogue.h"
#include "doorbell.h"
#include "reason.h"
#include "ring.h"
#include "segment.h"
#include "task_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX   8
#define HELD_MAX      256
#define IDLE_ROUNDS   4096
#define SOCKET_ROUNDS 32 /* rings come first */
#define SLEEP_MS      20
#define ECHO_SAMPLES  1024

struct held {
        struct sl_entry entry;
        uint32_t queue, index;
};

struct guest {
        const struct fake_runtime *runtime;
        int socket, doorbell, completion;
        uint32_t role;
        struct sl_channel_shape shape;
        struct sl_channel_offsets offsets;
        struct sl_mapping request, response;
        struct sl_mapping regions[SL_REGIONS_MAX];
        uint32_t n_regions; /* past the highest index that ever had one */
        struct {
                struct sl_queue_map map;
                uint32_t head;
                struct sl_completer completer;
        } queues[SL_QUEUES_MAX];
        struct held held[HELD_MAX];
        uint32_t n_held;
};

struct fake_runtime {
        struct fake_options options;
        char path[108];
        int listener, catalogue_fd;
        struct sl_mapping catalogue;
        struct guest *guests[CLIENTS_MAX];
        uint32_t echo_generation;
        pthread_t thread;
        _Atomic bool stop, hold, lie;
        _Atomic int refusals[FAKE_SECOND + 1]; /* by the place of the model; 0: none */
        uint16_t lie_tag; /* set before `lie` */
        uint32_t lie_index;
        _Atomic uint32_t n_published_at_death, n_held, n_named, n_clients, n_regions;
};

/* ---- catalogue ---- */

/* A model with inputs "x" and "ids" and outputs "y" and "ids_out", or the first of each. */
struct listed {
        struct sl_catalogue_model model;
        struct sl_catalogue_port ports[4];
};

static const char texts[] = "x\0ids\0y\0ids_out\0cat\x1f"
                            "a dog\x1f";

#define LABELS 16 /* where "cat" begins */

static void port(struct sl_catalogue_port *to, uint32_t name, uint32_t dtype, uint8_t batch_axis, uint8_t rank, const int32_t *dims)
{
        to->name = name;
        to->dtype = (uint8_t)dtype;
        to->rank = rank;
        to->batch_axis = batch_axis;
        memcpy(to->dims, dims, rank * sizeof(*dims));
}

static struct listed listed(const char *name, uint32_t state, uint32_t n)
{
        struct listed listed = {.model = {.state = state, .generation = 1, .version = 1, .segment_samples = 128}};

        listed.model.samples_max = ECHO_SAMPLES;
        listed.model.n_inputs = listed.model.n_outputs = n;
        snprintf(listed.model.name, sizeof(listed.model.name), "%s", name);
        return listed;
}

static void both(struct listed *listed, uint32_t i, uint32_t dtype, uint8_t axis, uint8_t rank, const int32_t *dims)
{
        static const uint32_t inputs[] = {0, 2}, outputs[] = {6, 8};

        port(&listed->ports[i], inputs[i], dtype, axis, rank, dims);
        port(&listed->ports[listed->model.n_inputs + i], outputs[i], dtype, axis, rank, dims);
}

static void list(struct sl_catalogue *catalogue, uint32_t index, struct listed *listed)
{
        const struct sl_catalogue_part part = {listed->ports, texts, sizeof(texts)};

        if (sl_catalogue_write(catalogue, index, &listed->model, &part) < 0)
                abort();
}

enum { ECHO, PAIR, VECTOR, FIRST3, BROKEN, LOADING, FAILED, FIRST, SECOND, N_MODELS };
static_assert((int)FIRST == (int)FAKE_FIRST && (int)SECOND == (int)FAKE_SECOND, "");

static void publish_echo(struct fake_runtime *f)
{
        struct listed echo = listed("echo", f->options.without_echo ? SL_MODEL_ABSENT : SL_MODEL_READY, 1);

        echo.model.generation = f->echo_generation;
        echo.model.n_inputs = f->options.echo_optional ? 2 : 1;
        both(&echo, 0, SL_DTYPE_F32, 0, 2, (int32_t[]){-1, f->options.echo_width ? (int32_t)f->options.echo_width : 4});
        if (f->options.echo_optional) {
                both(&echo, 1, SL_DTYPE_I64, SL_NO_BATCH_AXIS, 1, (int32_t[]){3});
                echo.ports[1].optional = 1;
        }
        list(f->catalogue.base, ECHO, &echo);
}

static void fill_tasks(struct fake_runtime *f, const struct listed *first)
{
        struct sl_task_head task = {.name = 1, .n = 2, .has_costs = 1, .signature = sl_task_signature(first->ports, 1, 1)};
        struct sl_variant_row rows[2] = {
                {.state = SL_VARIANT_SERVES, .index = FIRST, .samples_max = ECHO_SAMPLES, .accuracy = 0.9, .cost = 1, .name = 8},
                {.state = SL_VARIANT_SERVES, .index = SECOND, .samples_max = ECHO_SAMPLES, .accuracy = 0.8, .cost = 2, .name = 14}};
        char names[] = "\0either\0first\0second";

        if (fake_runtime_tasks(f))
                sl_task_page_write(fake_runtime_tasks(f), &(struct sl_task_content){.tasks = &task,
                                                                  .rows = rows,
                                                                  .texts = names,
                                                                  .n_tasks = 1,
                                                                  .n_rows = 2,
                                                                  .texts_bytes = sizeof(names)});
}

static void fill_catalogue(struct fake_runtime *f)
{
        struct sl_catalogue *catalogue = f->catalogue.base;
        struct listed models[N_MODELS] = {
                [PAIR] = listed("pair", SL_MODEL_READY, 2),
                [VECTOR] = listed("vector", SL_MODEL_READY, 1),
                [FIRST3] = listed("first3", SL_MODEL_READY, 1),
                [BROKEN] = listed("broken", SL_MODEL_READY, 1),
                [LOADING] = listed("loading", SL_MODEL_LOADING, 1),
                [FAILED] = listed("failed", SL_MODEL_FAILED, 1),
                [FIRST] = listed("first", SL_MODEL_READY, 1),
                [SECOND] = listed("second", SL_MODEL_READY, 1),
        };

        snprintf(models[FAILED].model.reason, sizeof(models[FAILED].model.reason), "not an ONNX file");
        models[PAIR].model.flags = SL_MODEL_ENSEMBLE;
        both(&models[PAIR], 0, SL_DTYPE_F32, 0, 2, (int32_t[]){-1, 2});
        both(&models[PAIR], 1, SL_DTYPE_I64, 0, 2, (int32_t[]){-1, 3});
        models[PAIR].ports[1].labels = models[PAIR].ports[3].labels = LABELS;
        both(&models[VECTOR], 0, SL_DTYPE_F32, SL_NO_BATCH_AXIS, 1, (int32_t[]){3});
        both(&models[FIRST3], 0, SL_DTYPE_F32, SL_NO_BATCH_AXIS, 2, (int32_t[]){-1, 2});
        both(&models[FIRST], 0, SL_DTYPE_F32, 0, 2, (int32_t[]){-1, 4});
        both(&models[SECOND], 0, SL_DTYPE_F32, 0, 2, (int32_t[]){-1, 4});
        both(&models[BROKEN], 0, SL_DTYPE_F32, 0, 2, (int32_t[]){-1, 1});
        catalogue->magic = SL_WIRE_MAGIC;
        catalogue->version = SL_WIRE_VERSION;
        catalogue->pid = (uint32_t)getpid();
        if (f->options.wanted)
                sl_spin_advise(&catalogue->dispatchers[0], 2, f->options.wanted, 0, 1);
        if (f->options.bound)
                sl_dispatcher_bound(&catalogue->dispatchers[0], (int)f->options.bound - 1);
        f->echo_generation = 1;
        publish_echo(f);
        for (uint32_t i = PAIR; i < N_MODELS; i++)
                list(catalogue, i, &models[i]);
        fill_tasks(f, &models[FIRST]);
}

/* ---- answering requests ---- */

static int refusal(const struct guest *g, const struct held *h)
{
        return h->entry.model <= FAKE_SECOND ? atomic_load(&g->runtime->refusals[h->entry.model]) : 0;
}

static bool is_refused(const struct guest *g, const struct held *h)
{
        return !(h->entry.flags & SL_ENTRY_NOOP) && refusal(g, h);
}

static void complete(struct guest *g, const struct held *h, int status, uint64_t bytes_needed)
{
        const struct sl_completion completion = {
                .user_data = h->entry.user_data,
                .status = status,
                .tag = h->entry.tag,
                .queued_ns = 1,
                .batched_ns = 2,
                .computing_ns = 3,
                .combining_ns = 4,
                .bytes_needed = bytes_needed,
                .index = h->index,
                .n_outputs = status == 0 ? h->entry.n_outputs + g->runtime->options.outputs_too_many : 0,
                .flags = is_refused(g, h) ? SL_COMPLETION_REASON : 0,
        };

        sl_completer_put(&g->queues[h->queue].completer, &g->queues[h->queue].map, &completion);
}

static void *bytes_at(const struct guest *g, const struct sl_descriptor *d)
{
        if (d->region >= g->n_regions || !sl_range_inside(d->offset, d->bytes, g->regions[d->region].bytes))
                return NULL;
        return (char *)g->regions[d->region].base + d->offset;
}

static int copy_tensor(struct guest *g, const struct held *h, uint32_t i, uint64_t *ret_needed)
{
        struct sl_queue_map *map = &g->queues[h->queue].map;
        const struct sl_descriptor *in = &sl_descriptors_of(map, h->entry.tag, h->entry.n_inputs + h->entry.n_outputs)[i];
        const struct sl_descriptor *out = in + h->entry.n_inputs;
        struct sl_output *shape = &sl_outputs_of(map, h->entry.tag, h->entry.n_inputs + h->entry.n_outputs)[i];
        const void *from = bytes_at(g, in);
        void *to = bytes_at(g, out);
        uint64_t bytes = in->bytes;

        if (!from || (!to && out->dtype != SL_DTYPE_NONE))
                return -EINVAL;
        *shape = (struct sl_output){.rank = in->rank, .dtype = in->dtype};
        memcpy(shape->dims, in->dims, sizeof(shape->dims));
        if (h->entry.model == FIRST3 && in->dims[0] > 3) {
                shape->dims[0] = 3;
                bytes = 3 * in->dims[1] * sizeof(float);
        }
        shape->bytes = bytes;
        *ret_needed = bytes;
        if (out->dtype != SL_DTYPE_NONE && out->bytes < bytes)
                return -EMSGSIZE;
        if (out->dtype != SL_DTYPE_NONE) /* it is wanted */
                memcpy(to, from, bytes);
        *ret_needed = 0;
        return 0;
}

static void answer(struct guest *g, const struct held *h)
{
        uint64_t needed = 0;
        int r = 0;

        if (h->entry.flags & SL_ENTRY_NOOP) {
                complete(g, h, 0, 0);
                return;
        }
        if (is_refused(g, h)) {
                sl_reason_put(&g->queues[h->queue].map, h->entry.tag, &(struct sl_reason){.code = SL_REASON_GENERATION}, NULL);
                complete(g, h, refusal(g, h), 0);
                return;
        }
        if (h->entry.model == BROKEN)
                r = -EIO;
        else if (h->entry.model == ECHO && h->entry.generation != g->runtime->echo_generation)
                r = -ESTALE;
        for (uint32_t i = 0; r == 0 && i < h->entry.n_outputs; i++)
                r = copy_tensor(g, h, i, &needed);
        complete(g, h, r, needed);
}

static bool cancelled(const struct guest *g, const struct held *h)
{
        return atomic_load_explicit(&g->queues[h->queue].map.cancels[h->entry.tag], memory_order_acquire) == h->index + 1;
}

/* Lets go of what is held, all of it or only what was cancelled or has expired. */
static void release(struct guest *g, bool all)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < g->n_held; i++) {
                struct held h = g->held[i];

                if (cancelled(g, &h))
                        complete(g, &h, -ECANCELED, 0);
                else if (h.entry.deadline_ns && h.entry.deadline_ns <= sl_clock_ns())
                        complete(g, &h, -ETIME, 0);
                else if (all)
                        answer(g, &h);
                else
                        g->held[kept++] = h;
        }
        g->n_held = kept;
}

static bool take_entries(struct guest *g, uint32_t queue)
{
        struct sl_queue_map *map = &g->queues[queue].map;
        uint32_t *head = &g->queues[queue].head;
        bool any = false;

        while (g->n_held < HELD_MAX && sl_entry_take(*head, map, &g->held[g->n_held].entry)) {
                g->held[g->n_held].queue = queue;
                g->held[g->n_held].index = (*head)++;
                g->n_held++;
                any = true;
        }
        if (any)
                sl_consumed_publish(*head, map);
        return any;
}

static bool publish(struct guest *g, bool wake)
{
        bool any = false;

        for (uint32_t i = 0; i < g->shape.n_queues; i++)
                if (sl_completer_publish(&g->queues[i].completer, &g->queues[i].map)) {
                        any = true;
                        if (wake)
                                sl_client_wake(&g->queues[i].map, g->completion);
                }
        return any;
}

/* Held requests whose tag has a cancel word, whatever request it names. */
static uint32_t count_named(const struct guest *g)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < g->n_held; i++)
                n += atomic_load(&g->queues[g->held[i].queue].map.cancels[g->held[i].entry.tag]) != 0;
        return n;
}

static bool dispatch(struct fake_runtime *f, struct guest *g)
{
        bool any = false;

        if (g->role != SL_ROLE_CLIENT)
                return false;
        for (uint32_t i = 0; i < g->shape.n_queues; i++)
                any |= take_entries(g, i);
        release(g, !f->hold);
        atomic_store(&f->n_named, count_named(g));
        atomic_store(&f->n_held, g->n_held);
        return publish(g, true) || any;
}

static void lie(struct guest *g, uint16_t tag, uint32_t index)
{
        struct held h = {.index = index, .entry = {.tag = tag}};

        if (g->role != SL_ROLE_CLIENT)
                return;
        complete(g, &h, 0, 0);
        publish(g, true);
}

/* ---- attach ---- */

static struct sl_message answer_of(uint32_t type, int status, const char *text)
{
        struct sl_message m = {.magic = SL_WIRE_MAGIC, .type = type, .status = status};

        snprintf(m.text, sizeof(m.text), "%s", text ? text : "");
        return m;
}

static uint64_t granted_bytes(const struct guest *g)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < g->n_regions; i++)
                sum += g->regions[i].bytes;
        return sum;
}

static uint64_t limit_of(const struct fake_runtime *f)
{
        return f->options.arena_limit_bytes ? f->options.arena_limit_bytes : 1ull << 30;
}

static uint32_t free_index(const struct guest *g)
{
        uint32_t index = 0;

        while (index < g->n_regions && g->regions[index].base)
                index++;
        return index;
}

static void count_region(struct fake_runtime *f, struct guest *g, uint32_t index)
{
        if (index == g->n_regions)
                g->n_regions++;
        atomic_fetch_add(&f->n_regions, 1);
}

static int new_region(struct fake_runtime *f, struct guest *g, uint64_t bytes, uint32_t *ret_index, int *ret_fd)
{
        uint32_t index = *ret_index = free_index(g);

        if (index == SL_REGIONS_MAX)
                return -E2BIG;
        if (granted_bytes(g) + bytes > limit_of(f) || (f->options.region_limit_bytes && bytes > f->options.region_limit_bytes))
                return -EDQUOT;

        int r = sl_segment_create("fake-region", bytes, SL_SEAL_SHARED, ret_fd, &g->regions[index], NULL);

        if (r == 0)
                count_region(f, g, index);
        return r;
}

static int keep_region(struct fake_runtime *f, struct guest *g, uint32_t *ret_index, int fd)
{
        uint32_t index = *ret_index = free_index(g);
        uint64_t bytes;
        int r = sl_segment_check(fd, SL_SEAL_SHARED, &bytes, NULL);

        if (r == 0)
                r = sl_segment_map(fd, bytes, SL_SEAL_SHARED, 1, &g->regions[index], NULL);
        if (r == 0)
                count_region(f, g, index);
        return r;
}

static void write_header(const struct guest *g, void *memory, uint64_t bytes)
{
        *(struct sl_channel_header *)memory = (struct sl_channel_header){
                .magic = SL_WIRE_MAGIC,
                .version = SL_WIRE_VERSION,
                .n_queues = g->shape.n_queues,
                .depth = g->shape.depth,
                .tensors = g->shape.tensors,
                .bytes = bytes,
                .client_id = 7,
        };
}

static int make_channel(struct guest *g, int *ret_request_fd, int *ret_response_fd)
{
        int r = sl_channel_offsets(&g->shape, &g->offsets);

        if (r == 0)
                r = sl_segment_create("fake-request", g->offsets.request_bytes, SL_SEAL_SHARED, ret_request_fd, &g->request, NULL);
        if (r == 0)
                r = sl_segment_create(
                        "fake-response", g->offsets.response_bytes, SL_SEAL_RESPONSE, ret_response_fd, &g->response, NULL);
        if (r < 0)
                return r;
        write_header(g, g->request.base, g->offsets.request_bytes);
        write_header(g, g->response.base, g->offsets.response_bytes);
        ((struct sl_channel_header *)g->request.base)->depth += g->runtime->options.wrong_request_header;
        ((struct sl_channel_header *)g->response.base)->depth += g->runtime->options.wrong_response_header;
        for (uint32_t i = 0; i < g->shape.n_queues; i++)
                sl_queue_map(&g->queues[i].map, &g->shape, &g->offsets, i, g->request.base, g->response.base);
        g->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        g->completion = sl_completion_bell_new();
        return 0;
}

static int welcome(struct fake_runtime *f, struct guest *g, const struct sl_message *hello)
{
        struct sl_message m = answer_of(SL_MESSAGE_WELCOME, 0, NULL);
        int fds[SL_MESSAGE_FDS_MAX] = {[SL_FD_CATALOGUE] = f->catalogue_fd};
        uint32_t n = 1, index;

        g->role = hello->hello.role;
        g->shape = hello->hello.shape;
        if (f->options.depth_granted)
                g->shape.depth = f->options.depth_granted;
        m.welcome.version = f->options.wire_version ? f->options.wire_version : SL_WIRE_VERSION;
        m.welcome.features = f->options.without_tasks ? SL_FEATURES & ~(uint64_t)SL_FEATURE_TASKS : SL_FEATURES;
        m.welcome.client_id = 7;
        m.welcome.shape = g->shape;
        m.welcome.catalogue_bytes = f->catalogue.bytes;
        m.welcome.arena_limit_bytes = limit_of(f);
        if (g->role == SL_ROLE_CLIENT) {
                if (make_channel(g, &fds[SL_FD_REQUEST], &fds[SL_FD_RESPONSE]) < 0)
                        return -EINVAL;
                fds[SL_FD_DOORBELL] = g->doorbell;
                fds[SL_FD_COMPLETION] = g->completion;
                n = SL_FD_REGIONS;
                if (!hello->hello.n_kept_regions && hello->hello.arena_bytes &&
                        new_region(f, g, hello->hello.arena_bytes, &index, &fds[n]) == 0)
                        n++;
                m.welcome.region_bytes = g->regions[0].bytes;
        }

        if (f->options.impossible_shape)
                m.welcome.shape.depth = UINT32_MAX;
        if (f->options.impossible_dispatcher)
                m.welcome.dispatcher_of_queue[g->shape.n_queues - 1] = SL_DISPATCHERS_MAX;

        int r = sl_message_send(g->socket, &m, fds, n);

        if (n > 1) {
                close(fds[SL_FD_REQUEST]);
                close(fds[SL_FD_RESPONSE]);
        }
        if (n > SL_FD_REGIONS)
                close(fds[SL_FD_REGIONS]);
        return r;
}

static int region(struct fake_runtime *f, struct guest *g, const struct sl_message *question, int kept_fd)
{
        int fd = -1;
        uint32_t index;
        int r = kept_fd >= 0 ? keep_region(f, g, &index, kept_fd) : new_region(f, g, question->region.bytes, &index, &fd);
        struct sl_message m = answer_of(SL_MESSAGE_REGION, r, r == -EDQUOT ? "the arena's quota is used up" : "");

        if (r == 0) {
                m.region.index = index;
                m.region.bytes = g->regions[index].bytes;
        }
        r = sl_message_send(g->socket, &m, &fd, fd >= 0);
        if (fd >= 0)
                close(fd);
        return r;
}

static int release_region(struct fake_runtime *f, struct guest *g, uint32_t index)
{
        struct sl_message m = answer_of(SL_MESSAGE_REGION, f->options.keeps_regions ? -EBUSY : 0, "it is in use");

        if (index >= g->n_regions || !g->regions[index].base)
                return -EINVAL;
        if (!f->options.keeps_regions) {
                sl_mapping_free(&g->regions[index]);
                atomic_fetch_sub(&f->n_regions, 1);
        }
        m.region.index = index;
        return sl_message_send(g->socket, &m, NULL, 0);
}

static int administer(struct fake_runtime *f, struct guest *g, const struct sl_message *question)
{
        bool missing = strcmp(question->model, "missing") == 0;
        struct sl_message m =
                answer_of(SL_MESSAGE_DONE, missing ? -ENOENT : 0, missing ? "no model \"missing\" in the repository" : "");

        if (strcmp(question->model, "echo") == 0) {
                f->echo_generation++;
                publish_echo(f);
        }
        return sl_message_send(g->socket, &m, NULL, 0);
}

static int handle(struct fake_runtime *f, struct guest *g, const struct sl_message *m, const int *fds, uint32_t n_fds)
{
        struct sl_message refusal = answer_of(SL_MESSAGE_WELCOME, -EACCES, f->options.refusal);

        switch (m->type) {
        case SL_MESSAGE_HELLO:
                if (!f->options.refusal)
                        return welcome(f, g, m);
                sl_message_send(g->socket, &refusal, NULL, 0);
                return -EACCES;
        case SL_MESSAGE_REGION:
                return region(f, g, m, n_fds ? fds[0] : -1);
        case SL_MESSAGE_RELEASE:
                return release_region(f, g, m->region.index);
        case SL_MESSAGE_BYE:
                return 0;
        default:
                return administer(f, g, m);
        }
}

static void guest_free(struct guest *g)
{
        close(g->socket);
        if (g->doorbell >= 0)
                close(g->doorbell);
        if (g->completion >= 0)
                close(g->completion);
        sl_mapping_free(&g->request);
        sl_mapping_free(&g->response);
        for (uint32_t i = 0; i < g->n_regions; i++)
                sl_mapping_free(&g->regions[i]);
        free(g);
}

/* Return: 0; negative when the client has gone. */
static int listen_to(struct fake_runtime *f, struct guest *g)
{
        struct sl_message m;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;
        int r = sl_message_receive(g->socket, &m, fds, SL_MESSAGE_FDS_MAX, &n_fds, MSG_DONTWAIT);

        if (r == -EAGAIN)
                return 0;
        if (r < 0)
                return r;
        r = handle(f, g, &m, fds, n_fds);
        for (uint32_t i = 0; i < n_fds; i++)
                close(fds[i]);
        return r;
}

static void admit(struct fake_runtime *f)
{
        int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        for (uint32_t i = 0; fd >= 0 && i < CLIENTS_MAX; i++) {
                if (f->guests[i])
                        continue;
                f->guests[i] = calloc(1, sizeof(*f->guests[i]));
                f->guests[i]->runtime = f;
                f->guests[i]->socket = fd;
                f->guests[i]->doorbell = f->guests[i]->completion = -1;
                atomic_fetch_add(&f->n_clients, 1);
                return;
        }
        if (fd >= 0)
                close(fd);
}

/* ---- the thread ---- */

static bool serve_rings(struct fake_runtime *f)
{
        bool any = false;

        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                any |= f->guests[i] && dispatch(f, f->guests[i]);
        return any;
}

static void serve_sockets(struct fake_runtime *f)
{
        admit(f);
        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                if (f->guests[i] && !f->options.silent && listen_to(f, f->guests[i]) < 0) {
                        guest_free(f->guests[i]);
                        f->guests[i] = NULL;
                        atomic_fetch_sub(&f->n_clients, 1);
                }
}

static void sleep_until_rung(struct fake_runtime *f)
{
        struct sl_dispatcher_line *line = &((struct sl_catalogue *)f->catalogue.base)->dispatchers[0];
        struct pollfd fds[1 + 2 * CLIENTS_MAX] = {{.fd = f->listener, .events = POLLIN}};
        nfds_t n = 1;

        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                if (f->guests[i]) {
                        fds[n++] = (struct pollfd){.fd = f->guests[i]->socket, .events = POLLIN};
                        fds[n++] = (struct pollfd){.fd = f->guests[i]->doorbell, .events = POLLIN};
                }
        sl_dispatcher_sleep(line);
        if (!serve_rings(f))
                poll(fds, n, SLEEP_MS);
        sl_dispatcher_wake(line);
        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                if (f->guests[i] && f->guests[i]->doorbell >= 0)
                        sl_doorbell_clear(f->guests[i]->doorbell);
}

static void tell_lies(struct fake_runtime *f)
{
        if (!atomic_exchange(&f->lie, false))
                return;
        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                if (f->guests[i])
                        lie(f->guests[i], f->lie_tag, f->lie_index);
}

static void die(struct fake_runtime *f)
{
        for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
                struct guest *g = f->guests[i];

                if (!g)
                        continue;
                for (uint32_t k = 0; k < f->n_published_at_death && k < g->n_held; k++)
                        answer(g, &g->held[k]);
                publish(g, false);
                guest_free(g);
        }
}

static void *run(void *context)
{
        struct fake_runtime *f = context;
        uint32_t idle = 0;

        while (!f->stop) {
                if (serve_rings(f)) {
                        idle = 0;
                        continue;
                }
                if (++idle % SOCKET_ROUNDS)
                        continue;
                serve_sockets(f);
                tell_lies(f);
                if (idle < IDLE_ROUNDS)
                        continue;
                sleep_until_rung(f);
                idle = IDLE_ROUNDS / 2;
        }
        die(f);
        return NULL;
}

/* ---- control ---- */

static int open_listener(struct fake_runtime *f)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
        unlink(f->path);
        f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (bind(f->listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(f->listener, 16) < 0)
                return -errno;
        return 0;
}

int fake_runtime_start(const struct fake_options *options, struct fake_runtime **ret_runtime)
{
        struct fake_runtime *f = calloc(1, sizeof(*f));
        int r;

        f->options = *options;
        snprintf(f->path, sizeof(f->path), "%s", options->socket);
        r = sl_segment_create("fake-catalogue", sizeof(struct sl_catalogue) + (options->without_tasks ? 0 : SL_TASK_PAGE_BYTES),
                SL_SEAL_RESPONSE, &f->catalogue_fd, &f->catalogue, NULL);
        if (r < 0)
                return r;
        fill_catalogue(f);
        r = open_listener(f);
        if (r < 0)
                return r;
        *ret_runtime = f;
        return -pthread_create(&f->thread, NULL, run, f);
}

struct fake_runtime *fake_runtime_kill(struct fake_runtime *f, uint32_t n_published)
{
        if (!f)
                return NULL;
        f->n_published_at_death = n_published;
        f->stop = true;
        pthread_join(f->thread, NULL);
        close(f->listener);
        unlink(f->path);
        close(f->catalogue_fd);
        sl_mapping_free(&f->catalogue);
        free(f);
        return NULL;
}

struct sl_task_page *fake_runtime_tasks(struct fake_runtime *f)
{
        return sl_task_page_in(&f->catalogue);
}

void fake_runtime_refuse(struct fake_runtime *f, uint32_t index, int status)
{
        f->refusals[index] = status;
}

void fake_runtime_hold(struct fake_runtime *f, bool hold)
{
        f->hold = hold;
}

uint32_t fake_runtime_held(struct fake_runtime *f)
{
        return f->n_held;
}

uint32_t fake_runtime_named(struct fake_runtime *f)
{
        return f->n_named;
}

void fake_runtime_lie(struct fake_runtime *f, uint16_t tag, uint32_t index)
{
        f->lie_tag = tag;
        f->lie_index = index;
        f->lie = true;
}

uint32_t fake_runtime_clients(struct fake_runtime *f)
{
        return f->n_clients;
}

uint32_t fake_runtime_regions(struct fake_runtime *f)
{
        return f->n_regions;
}
