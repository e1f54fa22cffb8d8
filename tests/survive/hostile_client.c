/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that lies. It attaches byte by byte, and then breaks every rule of the wire for some milliseconds; when the runtime ends
 * the connection it comes again. What it does can be had again by its seed, but for the races, which are the point.
 *
 *     hostile-client SOCKET SEED MILLISECONDS ATTACK
 *
 * Exit status: 0 the runtime was there to the end, 1 it was not.
 */
#include "base/clock.h"
#include "catalogue.h"
#include "digits.h"
#include "doorbell.h"
#include "raw.h"
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUES      2u
#define DEPTH       16u
#define TENSORS     4u
#define ARENA_BYTES (1u << 20)

struct hostile {
        const char *socket_path;
        uint32_t seed;
        uint64_t until_ns;
        struct raw raw;
        struct sl_queue_map queues[QUEUES];
        atomic_bool stop; /* the second thread */
};

static bool over(const struct hostile *h)
{
        return sl_clock_ns() >= h->until_ns;
}

static uint64_t any(struct hostile *h)
{
        uint64_t value = 0;

        switch (digits_random(&h->seed, 5)) {
        case 0:
                return digits_random(&h->seed, 8);
        case 1:
                return UINT64_MAX - digits_random(&h->seed, 128);
        case 2:
                return 1ull << digits_random(&h->seed, 64);
        default:
                for (int i = 0; i < 3; i++)
                        value = value << 24 ^ digits_random(&h->seed, 1u << 28);
                return value;
        }
}

static int attach(struct hostile *h, uint32_t depth)
{
        const struct sl_channel_shape shape = {.n_queues = QUEUES, .depth = depth, .tensors = TENSORS};
        int r = raw_attach(&h->raw, h->socket_path, &shape, ARENA_BYTES);

        for (uint32_t q = 0; q < QUEUES && r == 0; q++)
                raw_queue(&h->raw, q, &h->queues[q]);
        return r;
}

static void ring_doorbell(struct hostile *h)
{
        sl_doorbell_ring(h->raw.fds[SL_FD_DOORBELL]);
}

/* ---- entries that are nearly right ---- */

static const struct sl_catalogue_model *some_model(struct hostile *h, uint32_t *ret_index)
{
        const struct sl_catalogue *catalogue = h->raw.catalogue.base;

        for (int i = 0; i < 16; i++) {
                uint32_t index = digits_random(&h->seed, 8);

                if (catalogue->models[index].state == SL_MODEL_READY) {
                        *ret_index = index;
                        return &catalogue->models[index];
                }
        }
        return NULL;
}

static const struct sl_catalogue_port *ports_of(struct hostile *h, const struct sl_catalogue_model *model)
{
        const struct sl_catalogue *catalogue = h->raw.catalogue.base;

        return (const void *)(catalogue->parts + model->part);
}

static size_t element_bytes(uint8_t dtype)
{
        return dtype == 7 ? 8 : 4; /* int64, float32 */
}

static void describe(struct sl_descriptor *d, const struct sl_catalogue_port *port, uint32_t samples, uint64_t offset)
{
        *d = (struct sl_descriptor){.offset = offset, .dtype = port->dtype, .rank = port->rank, .batch_axis = port->batch_axis};
        d->bytes = element_bytes(port->dtype);
        for (uint32_t i = 0; i < port->rank; i++) {
                d->dims[i] = port->dims[i] < 0 ? samples : (uint32_t)port->dims[i];
                d->bytes *= d->dims[i];
        }
}

/* One in two is what an honest client would send; the others differ in one field or in several. */
static void spoil(struct hostile *h, void *bytes, size_t n)
{
        for (uint32_t left = digits_random(&h->seed, 4); left > 1; left--) {
                uint64_t value = any(h);
                size_t at = digits_random(&h->seed, (uint32_t)(n - sizeof(value)));

                memcpy((char *)bytes + at, &value, 1u << digits_random(&h->seed, 4));
        }
}

static void send_entry(struct hostile *h, uint32_t q, bool tag_kept)
{
        struct sl_queue_map *queue = &h->queues[q];
        uint32_t index = atomic_load(&queue->response->consumed) + digits_random(&h->seed, 3);
        struct sl_entry *slot = &queue->entries[index & queue->mask], entry = {.n_inputs = 1, .n_outputs = 1};
        uint32_t model_index = 0;
        const struct sl_catalogue_model *model = some_model(h, &model_index);

        entry.samples = 1 + digits_random(&h->seed, 200);
        entry.tag = (uint16_t)(index & queue->mask);
        entry.user_data = any(h);
        entry.model = model_index;
        entry.generation = model ? model->generation : 0;
        struct sl_descriptor *descriptors = &queue->descriptors[(size_t)entry.tag * queue->tensors];
        if (model) {
                describe(&descriptors[0], &ports_of(h, model)[0], entry.samples, 0);
                describe(&descriptors[1], &ports_of(h, model)[model->n_inputs], entry.samples, ARENA_BYTES / 2);
                spoil(h, descriptors, 2 * sizeof(*descriptors));
        }
        uint16_t tag = entry.tag;
        spoil(h, (char *)&entry + 4, sizeof(entry) - 4);
        if (tag_kept)
                entry.tag = tag;
        memcpy((char *)slot + 4, (char *)&entry + 4, sizeof(entry) - 4);
        atomic_store(&slot->seq, index + 1);
}

/* ---- the second thread: everything changes after it was published ---- */

static void *scribble(void *context)
{
        struct hostile *h = context;
        struct hostile own = *h;

        own.seed ^= 0x5bd1e995;
        while (!atomic_load(&h->stop)) {
                struct sl_queue_map *queue = &own.queues[digits_random(&own.seed, QUEUES)];
                uint64_t value = any(&own);
                uint32_t tag = digits_random(&own.seed, DEPTH);

                switch (digits_random(&own.seed, 8)) {
                case 0:
                        atomic_store(&queue->request->head, (uint32_t)value);
                        break;
                case 1:
                        atomic_store(&queue->request->sleep, digits_random(&own.seed, 4));
                        break;
                case 2:
                        atomic_store(&queue->cancels[tag], atomic_load(&queue->response->consumed) - digits_random(&own.seed, 4));
                        atomic_fetch_add(&queue->request->cancellations, 1);
                        break;
                case 3:
                        spoil(&own, &queue->descriptors[(size_t)tag * queue->tensors], 2 * sizeof(struct sl_descriptor));
                        break;
                case 4:
                        spoil(&own, (char *)&queue->entries[tag] + 4, sizeof(struct sl_entry) - 4);
                        break;
                case 5:
                        ring_doorbell(&own);
                        break;
                default:
                        memcpy((char *)own.raw.arena.base + digits_random(&own.seed, ARENA_BYTES - 8), &value, sizeof(value));
                        break;
                }
        }
        return NULL;
}

static void scramble_all(struct hostile *h)
{
        uint64_t *words = h->raw.request.base;

        for (size_t i = 0; i < h->raw.request.bytes / 8; i++)
                words[i] = any(h);
        ring_doorbell(h);
}

/* The region that all of its requests name goes, whatever is in flight, and another one comes in its place. */
static void exchange_region(struct hostile *h)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_RELEASE}, answer;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n = 0;

        question.region.index = digits_random(&h->seed, 8) ? 0 : (uint32_t)any(h);
        raw_ask(h->raw.socket, &question, NULL, 0, &answer, fds, &n);
        question.type = SL_MESSAGE_REGION;
        question.region.bytes = ARENA_BYTES;
        if (raw_ask(h->raw.socket, &question, NULL, 0, &answer, fds, &n) == 0)
                while (n > 0)
                        close(fds[--n]);
}

static void attack_rings_once(struct hostile *h, bool tag_kept)
{
        uint64_t until = sl_clock_ns() + (20 + digits_random(&h->seed, 80)) * SL_NS_PER_MS;
        pthread_t thread;

        atomic_store(&h->stop, false);
        pthread_create(&thread, NULL, scribble, h);
        while (sl_clock_ns() < until && !over(h) && !raw_ended(&h->raw)) {
                for (int i = 0; i < 64; i++)
                        send_entry(h, digits_random(&h->seed, QUEUES), tag_kept);
                ring_doorbell(h);
                if (digits_random(&h->seed, 8) == 0)
                        exchange_region(h);
        }
        atomic_store(&h->stop, true);
        pthread_join(thread, NULL);
        if (digits_random(&h->seed, 4) == 0)
                scramble_all(h);
}

/* Entries, descriptors, indices, cancels, sleep words, arena: from two threads at once. */
static int attack_rings(struct hostile *h)
{
        while (!over(h)) {
                int r = attach(h, DEPTH);

                if (r < 0) {
                        raw_detach(&h->raw);
                        return r;
                }
                attack_rings_once(h, digits_random(&h->seed, 4));
                raw_detach(&h->raw);
        }
        return 0;
}

/* Well-formed requests for whatever is served, over inputs that are anything: integers that index are out of bounds. */
static int attack_inputs(struct hostile *h)
{
        int r = attach(h, DEPTH);

        while (r == 0 && !over(h) && !raw_ended(&h->raw)) {
                uint64_t *words = h->raw.arena.base;

                for (size_t i = 0; i < ARENA_BYTES / 16; i++)
                        words[i] = any(h);
                for (uint32_t i = 0; i < 8; i++) {
                        struct sl_queue_map *queue = &h->queues[i % QUEUES];
                        uint32_t index = atomic_load(&queue->response->consumed);
                        struct sl_entry *slot = &queue->entries[index & queue->mask];
                        uint32_t model_index = 0;
                        const struct sl_catalogue_model *model = some_model(h, &model_index);
                        struct sl_entry entry = {.n_inputs = 1, .n_outputs = 1, .samples = 1 + digits_random(&h->seed, 64)};
                        struct sl_descriptor *descriptors = &queue->descriptors[(index & queue->mask) * queue->tensors];

                        if (!model)
                                continue;
                        entry.tag = (uint16_t)(index & queue->mask);
                        entry.model = model_index;
                        entry.generation = model->generation;
                        describe(&descriptors[0], &ports_of(h, model)[0], entry.samples, 0);
                        describe(&descriptors[1], &ports_of(h, model)[model->n_inputs], entry.samples, ARENA_BYTES / 2);
                        memcpy((char *)slot + 4, (char *)&entry + 4, sizeof(entry) - 4);
                        atomic_store(&slot->seq, index + 1);
                        ring_doorbell(h);
                        while (atomic_load(&queue->response->consumed) == index && !over(h) && !raw_ended(&h->raw))
                                ;
                        atomic_store(&queue->request->head, atomic_load(&queue->response->tail));
                }
                /* A tag that still flies ends the channel: come again then. */
                if (raw_ended(&h->raw)) {
                        raw_detach(&h->raw);
                        r = attach(h, DEPTH);
                }
        }
        raw_detach(&h->raw);
        return r;
}

/* Bells that never stop, that are full, and whose flags were changed; holes punched into what the runtime reads. */
static int attack_bells(struct hostile *h)
{
        const uint64_t full = UINT64_MAX - 1;
        int r = attach(h, DEPTH);

        if (r < 0)
                return r;
        fcntl(h->raw.fds[SL_FD_COMPLETION], F_SETFL, 0);
        fcntl(h->raw.fds[SL_FD_DOORBELL], F_SETFL, O_NONBLOCK);
        while (!over(h) && !raw_ended(&h->raw)) {
                struct sl_queue_map *queue = &h->queues[0];
                uint32_t index = atomic_load(&queue->response->consumed);
                struct sl_entry *slot = &queue->entries[index & queue->mask];

                atomic_store(&queue->request->sleep, 1 + digits_random(&h->seed, 2));
                slot->flags = SL_ENTRY_NOOP;
                atomic_store(&slot->seq, index + 1);
                /* A bell that is an eventfd would be full now, and would block who rings it. */
                if (write(h->raw.fds[SL_FD_COMPLETION], &full, sizeof(full)) < 0 && errno == EAGAIN)
                        ring_doorbell(h);
                if (write(h->raw.fds[SL_FD_DOORBELL], &full, sizeof(full)) < 0) {
                        uint64_t rings;

                        (void)!read(h->raw.fds[SL_FD_DOORBELL], &rings, sizeof(rings));
                }
                for (int i = 0; i < 100; i++)
                        ring_doorbell(h);
                fallocate(h->raw.fds[SL_FD_REQUEST], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)h->raw.request.bytes);
                fallocate(h->raw.fds[SL_FD_REGIONS], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, ARENA_BYTES);
                atomic_store(&queue->request->head, atomic_load(&queue->response->tail));
        }
        raw_detach(&h->raw);
        return 0;
}

/* ---- the socket ---- */

static int some_fd(struct hostile *h)
{
        int fd;

        switch (digits_random(&h->seed, 6)) {
        case 0:
                return open("/dev/zero", O_RDWR | O_CLOEXEC);
        case 1: /* not sealed */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                return ftruncate(fd, 1 << 16) < 0 ? fd : fd;
        case 2: /* sealed, and of no size */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
                return fd;
        case 3: /* nobody can write it */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                (void)!ftruncate(fd, 1 << 16);
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
                return fd;
        case 4: /* far over any quota */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                (void)!ftruncate(fd, 1ll << 42);
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
                return fd;
        default:
                return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        }
}

static uint32_t some_fds(struct hostile *h, int *ret_fds)
{
        uint32_t n = digits_random(&h->seed, 4) ? 0 : digits_random(&h->seed, SL_MESSAGE_FDS_MAX + 1);

        for (uint32_t i = 0; i < n; i++)
                ret_fds[i] = some_fd(h);
        return n;
}

static struct sl_message some_message(struct hostile *h)
{
        const struct sl_channel_shape shape = {.n_queues = QUEUES, .depth = DEPTH, .tensors = TENSORS};
        struct sl_message message = raw_hello(SL_ROLE_CLIENT, &shape, digits_random(&h->seed, 2) ? any(h) : 0);

        message.type = digits_random(&h->seed, 3) ? SL_MESSAGE_HELLO : digits_random(&h->seed, 13);
        if (message.type != SL_MESSAGE_HELLO)
                message.region.bytes = any(h);
        spoil(h, (char *)&message + 8, SL_MESSAGE_BYTES - 8);
        memset(message.text, 'x', sizeof(message.text));
        if (digits_random(&h->seed, 3) == 0) /* a name of any length, sometimes without an end */
                memset(message.model, 1 + (int)digits_random(&h->seed, 255), 1 + digits_random(&h->seed, sizeof(message.model)));
        return message;
}

static void send_garbage(struct hostile *h, int socket)
{
        char bytes[4096];
        struct sl_message *message = (struct sl_message *)bytes;

        for (size_t i = 0; i + 8 <= sizeof(bytes); i += 8) {
                uint64_t value = any(h);

                memcpy(bytes + i, &value, sizeof(value));
        }
        if (digits_random(&h->seed, 2))
                message->magic = SL_WIRE_MAGIC;
        send(socket, bytes, digits_random(&h->seed, 2) ? SL_MESSAGE_BYTES : digits_random(&h->seed, sizeof(bytes)),
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Messages that are nearly right, that are noise, that carry descriptors of all kinds; answers that nobody reads. */
static int attack_socket(struct hostile *h)
{
        while (!over(h)) {
                int socket = raw_dial(h->socket_path), fds[SL_MESSAGE_FDS_MAX];

                if (socket < 0)
                        return socket;
                for (uint32_t left = 1 + digits_random(&h->seed, 20); left > 0; left--) {
                        struct sl_message message = some_message(h);
                        uint32_t n = some_fds(h, fds);

                        if (digits_random(&h->seed, 4))
                                sl_message_send(socket, &message, fds, n);
                        else
                                send_garbage(h, socket);
                        while (n > 0)
                                close(fds[--n]);
                }
                close(socket);
        }
        return 0;
}

/* More clients, and more connections that say nothing, than there is room for. */
static int attack_seats(struct hostile *h)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 2, .tensors = 1};
        int sockets[256];

        while (!over(h)) {
                struct pollfd spoke = {.fd = -1, .events = POLLIN};
                uint32_t n = 0;

                for (; n < 256 && !over(h); n++) {
                        struct sl_message hello = raw_hello(SL_ROLE_CLIENT, &shape, 0);

                        sockets[n] = raw_dial(h->socket_path);
                        if (sockets[n] < 0)
                                break;
                        if (n % 3 && sl_message_send(sockets[n], &hello, NULL, 0) == 0)
                                spoke.fd = sockets[n];
                }
                poll(&spoke, 1, spoke.fd < 0 ? 20 : 5000); /* all were there when the last to speak is answered */
                while (n > 0)
                        close(sockets[--n]);
        }
        return 0;
}

static const struct attack {
        const char *name;
        int (*run)(struct hostile *h);
} attacks[] = {{"rings", attack_rings}, {"inputs", attack_inputs}, {"bells", attack_bells}, {"socket", attack_socket},
        {"seats", attack_seats}};

int main(int argc, char **argv)
{
        struct hostile h = {0};
        int r = -EINVAL;

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (argc < 5)
                return 2;
        h.socket_path = argv[1];
        h.seed = (uint32_t)strtoul(argv[2], NULL, 10);
        h.until_ns = sl_clock_ns() + strtoull(argv[3], NULL, 10) * SL_NS_PER_MS;
        for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
                if (strcmp(argv[4], attacks[i].name) == 0)
                        r = attacks[i].run(&h);
        if (r < 0)
                fprintf(stderr, "hostile client, %s: %s\n", argv[4], strerror(-r));
        return r < 0;
}
