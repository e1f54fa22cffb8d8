/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "model.h"
#include "queue.h"
#include "region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_QUEUE_PAIRS 4u
#define DEFAULT_QUEUE_DEPTH 64u
#define DEFAULT_TENSORS     8u
#define DEFAULT_ARENA_BYTES (16ull << 20)

/* ---- options ---- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
        return value ? value : otherwise;
}

static int role_of(enum starling_role role, uint32_t *ret_role)
{
        switch (role) {
        case STARLING_ROLE_CLIENT:
                *ret_role = SL_ROLE_CLIENT;
                return 0;
        case STARLING_ROLE_READER:
                *ret_role = SL_ROLE_READER;
                return 0;
        case STARLING_ROLE_ADMIN:
                *ret_role = SL_ROLE_ADMIN;
                return 0;
        }
        return -EINVAL;
}

static int check_shape(const struct sl_channel_shape *shape, struct sl_error *error)
{
        struct sl_channel_offsets offsets;
        int r = sl_channel_offsets(shape, &offsets);

        if (shape->n_queues > SL_QUEUES_MAX)
                return sl_error_set(error, EINVAL, "queue_pairs is %" PRIu32 ", wants at most %u", shape->n_queues, SL_QUEUES_MAX);
        if (shape->tensors > SL_TENSORS_MAX)
                return sl_error_set(
                        error, EINVAL, "tensors_per_request is %" PRIu32 ", wants at most %u", shape->tensors, SL_TENSORS_MAX);
        if (r == -EINVAL)
                return sl_error_set(error, EINVAL, "queue_depth is %" PRIu32 ", wants a power of two from %u to %u", shape->depth,
                        SL_QUEUE_DEPTH_MIN, SL_QUEUE_DEPTH_MAX);
        if (r == -E2BIG)
                return sl_error_set(error, E2BIG,
                        "rings of %" PRIu32 " queue pairs, depth %" PRIu32 ", with %" PRIu32 " tensors each exceed %u bytes",
                        shape->n_queues, shape->depth, shape->tensors, SL_REQUEST_BYTES_MAX);
        return r;
}

static int check_reserved(const struct starling_options *options, struct sl_error *error)
{
        for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
                if (options->reserved[i])
                        return sl_error_set(error, EINVAL, "reserved[%zu] of the options is not 0", i);
        return 0;
}

static int attachment_of(const struct starling_options *options, struct sl_attachment *ret_want, struct sl_error *error)
{
        struct sl_attachment want = {
                .runtime = options->runtime ? options->runtime : SL_SOCKET_NAME,
                .label = options->label ? options->label : program_invocation_short_name,
                .shape =
                        {
                                .n_queues = or_default(options->queue_pairs, DEFAULT_QUEUE_PAIRS),
                                .depth = or_default(options->queue_depth, DEFAULT_QUEUE_DEPTH),
                                .tensors = or_default(options->tensors_per_request, DEFAULT_TENSORS),
                        },
                .arena_bytes = options->arena_bytes ? options->arena_bytes : DEFAULT_ARENA_BYTES,
                .timeout_ns = options->timeout_ns,
        };

        if (role_of(options->role, &want.role) < 0)
                return sl_error_set(error, EINVAL, "role %d is not known", (int)options->role);
        if (want.arena_bytes > INT64_MAX - SL_PAGE_BYTES)
                return sl_error_set(error, EINVAL, "arena_bytes is %" PRIu64 ", too large", want.arena_bytes);
        want.arena_bytes = sl_align_up(want.arena_bytes, SL_PAGE_BYTES);
        *ret_want = want;

        int r = check_reserved(options, error);

        return r < 0 ? r : check_shape(&want.shape, error);
}

/* ---- connect, close ---- */

static struct starling_client *client_new(const struct sl_attachment *want)
{
        struct starling_client *client = calloc(1, sizeof(*client));

        if (!client)
                return NULL;
        sl_connection_empty(&client->connection);
        client->unmapped.fd = -1;
        pthread_mutex_init(&client->lock, NULL);
        client->epoch = 1;
        client->arena_bytes = want->arena_bytes;
        client->runtime = strdup(want->runtime);
        sl_utf8_fit(want->label, client->label, sizeof(client->label));
        if (!client->runtime || sl_fork_guard_init(&client->fork) < 0)
                return starling_close(client);
        return client;
}

static int attach_first(struct starling_client *client, const struct sl_attachment *want, struct sl_error *error)
{
        struct sl_fresh_region fresh;
        int r = sl_connection_open(want, &client->connection, &fresh, error);

        if (r < 0 || fresh.fd < 0)
                return r;
        return sl_region_add(client, fresh.fd, fresh.bytes, error);
}

int starling_connect(const struct starling_options *options, struct starling_client **ret_client, struct starling_error *error)
{
        const struct starling_options defaults = {0};
        struct sl_attachment want;
        int r = attachment_of(options ? options : &defaults, &want, sl_error_of(error));

        if (r < 0)
                return r;

        struct starling_client *client = client_new(&want);

        if (!client)
                return sl_error_set(sl_error_of(error), ENOMEM, "no memory for a client");
        r = attach_first(client, &want, sl_error_of(error));
        if (r < 0) {
                starling_close(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

struct starling_client *starling_close(struct starling_client *client)
{
        if (!client)
                return NULL;
        /* A forked child that has the socket as well would keep the connection: it ends behind what was sent. */
        if (client->connection.socket >= 0 && !sl_forked(&client->fork)) {
                sl_connection_bye(&client->connection);
                sl_connection_break(&client->connection);
        }
        sl_connection_close(&client->connection);
        for (uint32_t i = 0; i < SL_QUEUES_MAX; i++)
                sl_queue_free(client->queues[i]);
        sl_models_free(client);
        sl_regions_free(client);
        sl_fork_guard_deinit(&client->fork);
        pthread_mutex_destroy(&client->lock);
        free(client->runtime);
        free(client);
        return NULL;
}

void starling_disconnect(struct starling_client *client)
{
        if (!sl_forked(&client->fork))
                sl_connection_break(&client->connection);
}

/* ---- reconnect ---- */

static void list_kept(struct starling_client *client, int *ret_fds, uint64_t *ret_bytes, struct sl_attachment *want)
{
        want->n_kept = sl_regions_settle(client);
        for (uint32_t i = 0; i < want->n_kept; i++) {
                ret_fds[i] = client->regions[i].fd;
                ret_bytes[i] = client->regions[i].mapping.bytes;
        }
        want->kept_fds = ret_fds;
        want->kept_bytes = ret_bytes;
}

static int check_same_shape(const struct starling_client *client, const struct sl_connection *fresh, struct sl_error *error)
{
        const struct sl_channel_shape *was = &client->connection.shape, *is = &fresh->shape;

        if (memcmp(was, is, sizeof(*was)) == 0)
                return 0;
        return sl_error_set(error, EPROTO,
                "the runtime grants %u queue pairs of depth %u with %u tensors, this client has %u of depth %u with %u",
                is->n_queues, is->depth, is->tensors, was->n_queues, was->depth, was->tensors);
}

static void renew_queues(struct starling_client *client)
{
        for (uint32_t i = 0; i < SL_QUEUES_MAX; i++) {
                struct starling_queue *queue = client->queues[i];

                if (!queue)
                        continue;
                if (queue->abandoned) {
                        sl_flights_drop_stash(&queue->flights);
                        queue->open = queue->abandoned = false;
                }
                sl_queue_bind(queue);
                sl_queue_watch(queue);
        }
}

static void bury_queues(struct starling_client *client)
{
        for (uint32_t i = 0; i < SL_QUEUES_MAX; i++)
                if (client->queues[i]) {
                        sl_queue_unwatch(client->queues[i]);
                        sl_queue_bury(client->queues[i]);
                }
}

/* The arena was handed over already; from here on nothing can fail. */
static void adopt(struct starling_client *client, struct sl_connection *fresh)
{
        bury_queues(client);
        sl_cleanup_fd(&client->unmapped.fd); /* the earlier runtime's, as nothing was in it */
        client->unmapped.fd = -1;
        sl_connection_close(&client->connection);
        client->connection = *fresh;
        sl_connection_empty(fresh);
        client->epoch = client->epoch == UINT16_MAX ? 1 : (uint16_t)(client->epoch + 1);
        renew_queues(client);
        sl_models_renew(client);
}

int starling_reconnect(struct starling_client *client, uint64_t timeout_ns, struct starling_error *error)
{
        SL_CLEANUP(sl_connection_close) struct sl_connection fresh;
        struct sl_attachment want = {
                .runtime = client->runtime,
                .label = client->label,
                .role = client->connection.role,
                .shape = client->connection.shape,
                .arena_bytes = client->arena_bytes,
                .timeout_ns = timeout_ns,
        };
        struct sl_fresh_region region;
        uint64_t bytes[SL_REGIONS_MAX];
        int fds[SL_REGIONS_MAX];

        sl_connection_empty(&fresh);
        if (sl_forked(&client->fork))
                return sl_error_set(sl_error_of(error), ECHILD, "%s", starling_strerror(-ECHILD));
        sl_connection_break(&client->connection);
        list_kept(client, fds, bytes, &want);

        int r = sl_connection_open(&want, &fresh, &region, sl_error_of(error));

        if (r < 0)
                return r;
        r = check_same_shape(client, &fresh, sl_error_of(error));
        if (r == 0 && region.fd >= 0)
                r = sl_region_add(client, region.fd, region.bytes, sl_error_of(error));
        else
                sl_cleanup_fd(&region.fd);
        if (r == 0)
                adopt(client, &fresh);
        return r;
}

/* ---- what was granted ---- */

int starling_client_describe(const struct starling_client *client, struct starling_client_info *ret_info)
{
        const struct sl_connection *connection = &client->connection;
        struct starling_client_info info = {
                .client_id = connection->client_id,
                .queue_pairs = connection->shape.n_queues,
                .queue_depth = connection->shape.depth,
                .tensors_per_request = connection->shape.tensors,
                .arena_limit_bytes = connection->arena_limit_bytes,
        };

        if (sl_forked(&client->fork))
                return -ECHILD;

        const struct sl_arena_sum sum = sl_regions_sum(client, false);

        info.regions = sum.regions;
        info.arena_bytes = sum.bytes;
        info.arena_used_bytes = sum.used;
        *ret_info = info;
        return 0;
}
