/* SPDX-License-Identifier: Apache-2.0 */
#include "raw.h"

#include "doorbell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 150000 /* as in world.h: more is a hang */

int raw_dial(const char *socket_path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                int code = errno;

                close(fd);
                return -code;
        }
        return fd;
}

struct sl_message raw_hello(enum sl_role role, const struct sl_channel_shape *shape, uint64_t arena_bytes)
{
        struct sl_message message = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_HELLO};

        message.hello.version_min = message.hello.version_max = SL_WIRE_VERSION;
        message.hello.features = SL_FEATURES;
        message.hello.role = role;
        if (shape)
                message.hello.shape = *shape;
        message.hello.arena_bytes = arena_bytes;
        snprintf(message.hello.label, sizeof(message.hello.label), "raw");
        return message;
}

int raw_ask(int socket, const struct sl_message *question, const int *fds, uint32_t n_fds, struct sl_message *ret_answer,
        int *ret_fds, uint32_t *ret_n_fds)
{
        int r = sl_message_send(socket, question, fds, n_fds);

        if (r < 0 && r != -EPIPE)
                return r;
        r = sl_message_receive(socket, ret_answer, ret_fds, SL_MESSAGE_FDS_MAX, ret_n_fds, 0);
        return r < 0 ? r : ret_answer->status;
}

static int map(int fd, uint64_t bytes, int protection, struct sl_mapping *ret_mapping)
{
        void *base = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

        if (base == MAP_FAILED)
                return -errno;
        *ret_mapping = (struct sl_mapping){.base = base, .bytes = bytes};
        return 0;
}

int raw_attach(struct raw *raw, const char *socket_path, const struct sl_channel_shape *shape, uint64_t arena_bytes)
{
        struct sl_message hello = raw_hello(SL_ROLE_CLIENT, shape, arena_bytes);
        int r;

        memset(raw, 0, sizeof(*raw));
        raw->socket = raw_dial(socket_path);
        if (raw->socket < 0)
                return raw->socket;
        r = raw_ask(raw->socket, &hello, NULL, 0, &raw->welcome, raw->fds, &raw->n_fds);
        if (r < 0)
                return r;
        if (raw->n_fds <= SL_FD_COMPLETION)
                return -EPROTO;
        r = sl_channel_offsets(&raw->welcome.welcome.shape, &raw->offsets);
        if (r == 0)
                r = map(raw->fds[SL_FD_REQUEST], raw->offsets.request_bytes, PROT_READ | PROT_WRITE, &raw->request);
        if (r == 0)
                r = map(raw->fds[SL_FD_RESPONSE], raw->offsets.response_bytes, PROT_READ, &raw->response);
        if (r == 0)
                r = map(raw->fds[SL_FD_CATALOGUE], raw->welcome.welcome.catalogue_bytes, PROT_READ, &raw->catalogue);
        if (r == 0 && raw->n_fds > SL_FD_REGIONS)
                r = map(raw->fds[SL_FD_REGIONS], raw->welcome.welcome.region_bytes, PROT_READ | PROT_WRITE, &raw->arena);
        return r;
}

void raw_detach(struct raw *raw)
{
        struct sl_message bye = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_BYE};

        if (raw->socket >= 0) {
                sl_message_send(raw->socket, &bye, NULL, 0);
                close(raw->socket);
        }
        for (uint32_t i = 0; i < raw->n_fds; i++)
                close(raw->fds[i]);
        sl_mapping_free(&raw->request);
        sl_mapping_free(&raw->response);
        sl_mapping_free(&raw->arena);
        sl_mapping_free(&raw->catalogue);
}

void raw_leave(struct raw *raw)
{
        close(raw->socket);
        raw->socket = -1;
}

void raw_queue(const struct raw *raw, uint32_t queue, struct sl_queue_map *ret_map)
{
        sl_queue_map(ret_map, &raw->welcome.welcome.shape, &raw->offsets, queue, raw->request.base, raw->response.base);
}

/* Every completion is taken before the next submission: index and tag follow from what the runtime has consumed. */
int raw_request(const struct raw *raw, const struct sl_entry *entry, const struct sl_descriptor *descriptors)
{
        struct sl_queue_map queue;
        struct sl_entry copy = *entry;

        raw_queue(raw, 0, &queue);
        uint32_t index = atomic_load(&queue.response->consumed);
        struct sl_entry *slot = &queue.entries[index & queue.mask];
        copy.tag = (uint16_t)(index & queue.mask);
        memcpy(&queue.descriptors[(size_t)copy.tag * queue.tensors], descriptors,
                ((size_t)entry->n_inputs + entry->n_outputs) * sizeof(*descriptors));
        memcpy((char *)slot + sizeof(slot->seq), (char *)&copy + sizeof(slot->seq), sizeof(copy) - sizeof(slot->seq));
        atomic_store(&slot->seq, index + 1);
        sl_doorbell_ring(raw->fds[SL_FD_DOORBELL]);
        for (int tries = 0; atomic_load(&queue.response->tail) != index + 1; tries++) {
                if (tries == PATIENCE_MS)
                        return -ETIMEDOUT;
                usleep(1000);
        }
        atomic_store(&queue.request->head, index + 1);
        return queue.response->completions[index & queue.mask].status;
}

bool raw_ended(const struct raw *raw)
{
        char byte;
        ssize_t n = recv(raw->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
