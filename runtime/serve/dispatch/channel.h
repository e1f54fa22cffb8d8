/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's end of one client: mappings, queue pairs, arena regions, requests in flight.
 *
 * Threads: the control thread makes it, adds regions, and frees it after the dispatcher has said that it is gone. Everything
 * in sl_queue and the counters below "dispatcher" belong to the dispatcher in between.
 */
#pragma once

#include "attach.h"
#include "fault.h"
#include "request.h"
#include "ring.h"
#include "segment.h"
#include "user.h"
#include "waking.h"

#include <stdbool.h>
#include <sys/types.h>

struct sl_channel;

/* One queue pair. Dispatcher only. */
struct sl_queue {
        struct sl_queue_map map;
        struct sl_channel *channel;
        uint32_t number; /* which of its channel */
        uint32_t head;   /* entries taken */
        struct sl_completer completer;
        uint32_t taken;         /* completions that the client has taken, as last read */
        uint32_t in_flight;     /* requests not FREE */
        uint32_t with_deadline; /* of these */
        uint32_t cancellations; /* as last seen */
        uint32_t idle_passes;   /* since the last entry */
        uint32_t counted_head;  /* head when clients that wait were last counted */
        bool told, held;        /* in the dispatcher's list of those that got completions; left to sleep at least once */
        uint64_t woken_ns;      /* when it was last looked at whether it sleeps, as far as anything was in flight */
        struct sl_queue *next_told;
        struct sl_waking waking;
        struct sl_request *requests; /* [depth], by tag */
};

struct sl_region {
        unsigned char *base;
        uint64_t bytes;
        uint64_t identity;     /* inode number of the memfd; control thread */
        uint32_t number;       /* in the runtime's table of regions */
        _Atomic uint32_t live; /* requests may name it */
};

struct sl_channel {
        uint64_t id;
        uint32_t slot; /* below clients_max: its place in every fair queue and in the stats page */
        uid_t uid;
        pid_t pid;
        char label[32];
        int socket, pidfd, doorbell_fd, completion_fd;
        struct sl_mapping request_map, response_map;
        struct sl_channel_shape shape;
        struct sl_user *user;
        uint64_t arena_bytes; /* control thread */

        /*
         * An index is control's while it has no region, from R1 to R3 the dispatcher's to read, then control's again.
         *
         * (R1) control: regions[n] filled, then store-release live = 1, then n_regions is past it, then the client is told n.
         * (R2) dispatcher: load-acquire live below n_regions, then read the rest.             pairs with R1
         * (R3) dispatcher, asked to release it: live = 0 when nothing in flight names it, then REGION_RELEASED, a mailbox's
         *      release and acquire, after which control takes regions[n] apart and fills it anew.
         */
        struct sl_region regions[SL_REGIONS_MAX];
        _Atomic uint32_t n_regions; /* past the highest index that ever had one */
        struct sl_regions *table;   /* where they have numbers */

        /* dispatcher */
        uint32_t in_flight;
        struct sl_channel *next_leaving;
        bool broken; /* reported to the control thread, no entry is taken any more */
        struct sl_client_stats *stats;
        struct sl_queue *queues; /* [shape.n_queues] */
        struct sl_request *requests;
        struct sl_place *tensors;
        struct sl_made_output *made;   /* as many as tensors */
        struct sl_place *wide_tensors; /* [shape.n_queues][SL_WIDE_SLOTS][SL_TENSORS_MAX] */
        struct sl_made_output *wide_made;
        struct sl_fault *faults; /* one for each request */
};

/*
 * Makes the two memfds, maps and seals them, allocates the records. @ret_request_fd and @ret_response_fd are for the client.
 * Return: 0; -EINVAL, -E2BIG the shape; -ENOMEM, -EMFILE.
 */
int sl_channel_new(const struct sl_channel_shape *shape, struct sl_channel **ret_channel, int *ret_request_fd, int *ret_response_fd,
        struct sl_error *error);

/* Memory that a channel of this shape takes, apart from arena regions: both memfds and the records. 0 for a shape that is none. */
uint64_t sl_channel_bytes(const struct sl_channel_shape *shape);

/* Before the client has the fds: who it is, in its headers too. */
void sl_channel_identify(struct sl_channel *channel, uint64_t id);

/* Unmaps and closes everything; the dispatcher no longer knows the channel. NULL is fine. Returns NULL. */
struct sl_channel *sl_channel_free(struct sl_channel *channel);

/* Adds a region that control has mapped, which gets a number in @table. @fd: its memory. Return: its index, the lowest that is
 * free; -E2BIG; -EMFILE, -ENFILE.
 */
int sl_channel_add_region(struct sl_channel *channel, struct sl_regions *table, const struct sl_mapping *mapping, int fd);

/* REGION_RELEASED has come (R3): its number and its index are free, and it is no longer counted. The mapping is the caller's. */
void sl_channel_remove_region(struct sl_channel *channel, uint32_t index);

/* As many as there are. Control thread. */
uint32_t sl_channel_count_regions(const struct sl_channel *channel);

/* The dispatcher no longer knows the channel: it has no regions any more. Their mappings are the caller's. */
void sl_channel_forget_regions(struct sl_channel *channel);
