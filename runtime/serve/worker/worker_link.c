/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_link.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "idle.h"
#include "process_packet.h"
#include "ref/live.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A sleep is an insurance against a wake-up that is lost, and the time that a region may stay mapped that is to be forgotten. */
#define SLEEP_LIMIT_S 1

static int wait_for_packet(const struct sl_worker_link *link)
{
        struct pollfd socket = {.fd = link->fds.socket, .events = POLLIN};
        int n;

        do
                n = poll(&socket, 1, -1);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

int sl_worker_link_begin(struct sl_worker_link *link, const struct sl_worker_fds *fds)
{
        int r;

        link->fds = *fds;
        link->choices_fd = -1;
        r = wait_for_packet(link);
        if (r == 0)
                r = sl_process_packet_receive(link->fds.socket, &link->start, sizeof(link->start), &link->choices_fd);
        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        return r == sizeof(link->start) && link->start.kind == SL_PROCESS_START ? 0 : -EPROTO;
}

static int map_segment(int *fd, uint64_t bytes, bool writable, struct sl_mapping *ret_mapping, struct sl_error *error)
{
        void *base = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, *fd, 0);

        if (base == MAP_FAILED)
                return sl_error_set(
                        error, errno, "%llu shared bytes cannot be mapped: %s", (unsigned long long)bytes, strerror(errno));
        sl_cleanup_fd(fd);
        *fd = -1;
        *ret_mapping = (struct sl_mapping){.base = base, .bytes = bytes};
        return 0;
}

int sl_worker_link_map(struct sl_worker_link *link, struct sl_error *error)
{
        const struct sl_process_start *start = &link->start;
        int r = map_segment(&link->fds.order, start->order_bytes, false, &link->order_map, error);

        if (r == 0)
                r = map_segment(&link->fds.reply, start->reply_bytes, true, &link->reply_map, error);
        if (r == 0)
                r = map_segment(&link->fds.verdicts, start->verdicts_bytes, false, &link->verdicts_map, error);
        if (r == 0 && sl_regions_new(start->n_regions + 1, &link->regions) < 0)
                r = sl_error_set(error, ENOMEM, "no memory for %u regions", start->n_regions);
        if (r < 0)
                return r;
        link->order = link->order_map.base;
        link->reply = link->reply_map.base;
        link->regions->at[start->n_regions] = (struct sl_mapped_region){.base = link->reply->parts,
                .bytes = start->reply_bytes - offsetof(struct sl_process_reply, parts),
                .fd = -1,
                .writable = true};
        return 0;
}

/* ---- regions ---- */

static void region_forget(struct sl_worker_link *link, uint32_t region)
{
        struct sl_mapped_region *mapped = &link->regions->at[region];

        if (mapped->base && link->unmapping)
                link->unmapping(link->context, region);
        if (mapped->base)
                munmap(mapped->base, mapped->bytes);
        *mapped = (struct sl_mapped_region){.fd = -1};
}

static void region_map(struct sl_worker_link *link, uint32_t region, uint64_t bytes, int fd, bool writable)
{
        void *base;

        region_forget(link, region);
        base = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
        if (base != MAP_FAILED)
                link->regions->at[region] = (struct sl_mapped_region){.base = base, .bytes = bytes, .fd = -1, .writable = writable};
        if (base != MAP_FAILED && link->mapped)
                link->mapped(link->context, region);
        link->n_maps++;
}

/* Return: false: there is none. */
static bool hear_packet(struct sl_worker_link *link)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_process_packet packet;
        int r = sl_process_packet_receive(link->fds.socket, &packet, sizeof(packet), &fd);

        if (r == -EAGAIN)
                return false;
        link->ended |= r != sizeof(packet) || packet.region >= link->start.n_regions;
        if (link->ended)
                return false;
        if (packet.kind == SL_PROCESS_MAP)
                region_map(link, packet.region, packet.bytes, fd, packet.writable);
        else
                region_forget(link, packet.region);
        return true;
}

static void ring_runtime(struct sl_worker_link *link)
{
        if (atomic_load_explicit(&link->order->listening, memory_order_seq_cst))
                (void)!write(link->fds.wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* All that there are: what found no room can come. Return: false: there was none. */
static bool hear_packets(struct sl_worker_link *link)
{
        uint32_t before = link->heard;

        while (hear_packet(link))
                link->heard++;
        if (link->heard == before)
                return false;
        atomic_store_explicit(&link->reply->heard, link->heard, memory_order_seq_cst); /* Z1 */
        ring_runtime(link);
        return true;
}

/* ---- jobs ---- */

bool sl_worker_link_waits(const struct sl_worker_link *link)
{
        return atomic_load_explicit(&link->order->given, memory_order_acquire) != link->taken; /* X2 */
}

static bool job_waits(void *worker_link)
{
        return sl_worker_link_waits(worker_link);
}

bool sl_worker_link_look(struct sl_worker_link *link)
{
        return sl_idle_spin(link->start.spin_ns, job_waits, link);
}

void sl_worker_link_hear(struct sl_worker_link *link)
{
        (void)hear_packets(link);
}

bool sl_worker_link_doze(struct sl_worker_link *link, uint32_t *ret_rung)
{
        *ret_rung = atomic_load_explicit(&link->order->rung, memory_order_acquire);
        atomic_store_explicit(&link->reply->sleeping, 1, memory_order_seq_cst);
        (void)hear_packets(link);
        return !link->ended && atomic_load_explicit(&link->order->given, memory_order_seq_cst) == link->taken;
}

void sl_worker_link_rouse(struct sl_worker_link *link)
{
        atomic_store_explicit(&link->reply->sleeping, 0, memory_order_relaxed);
}

void sl_worker_link_sleep(struct sl_worker_link *link)
{
        const struct timespec limit = {.tv_sec = SLEEP_LIMIT_S};
        uint32_t rung;

        if (sl_worker_link_doze(link, &rung))
                (void)syscall(SYS_futex, &link->order->rung, FUTEX_WAIT, rung, &limit, NULL, 0);
        sl_worker_link_rouse(link);
}

static void copy_job(const struct sl_job *from, struct sl_job *to)
{
        uint32_t pieces = from->n_pieces < SL_JOB_ALIKE_MAX ? from->n_pieces : SL_JOB_ALIKE_MAX; /* that have outputs of any size */

        to->n_pieces = from->n_pieces;
        to->n_inputs = from->n_inputs;
        to->n_outputs = from->n_outputs;
        to->priority = from->priority;
        memcpy(to->pieces, from->pieces, from->n_pieces * sizeof(from->pieces[0]));
        memcpy(to->places, from->places, (size_t)from->n_pieces * (from->n_inputs + from->n_outputs) * sizeof(from->places[0]));
        memcpy(sl_job_given(to), sl_job_given(from),
                (from->n_inputs + (size_t)pieces * from->n_outputs) * sizeof(struct sl_made_output));
}

/* Those of a later job may have come as well. */
static bool lacks_maps(const struct sl_worker_link *link, const struct sl_process_job *ordered)
{
        return (int32_t)(ordered->maps - link->n_maps) > 0;
}

uint32_t sl_worker_link_next(const struct sl_worker_link *link)
{
        return link->order->slots[link->taken % SL_EXECUTOR_SLOTS_MAX];
}

void sl_worker_link_take(struct sl_worker_link *link, struct sl_job *job)
{
        const struct sl_process_job *ordered;

        link->slot = sl_worker_link_next(link);
        ordered = sl_process_order_job(link->order, job, link->slot);
        link->taken++;
        atomic_store_explicit(&link->reply->begun, link->taken, memory_order_relaxed);
        while (lacks_maps(link, ordered) && !link->ended)
                if (!hear_packets(link))
                        wait_for_packet(link);
        copy_job(&ordered->job, job);
}

const struct sl_process_gather *sl_worker_link_gathers(const struct sl_worker_link *link, const struct sl_job *job, uint32_t slot)
{
        return sl_process_order_job(link->order, job, slot)->gathers;
}

void sl_worker_link_rest(struct sl_worker_link *link, uint32_t jobs)
{
        if (atomic_load_explicit(&link->reply->resting, memory_order_relaxed) == jobs)
                return;
        atomic_store_explicit(&link->reply->resting, jobs, memory_order_seq_cst);
        ring_runtime(link);
}

bool sl_worker_link_reaches(const struct sl_worker_link *link, struct sl_job *job, uint32_t piece)
{
        const struct sl_place *inputs = sl_job_inputs(job, piece);

        for (uint32_t i = 0; i < job->n_inputs; i++)
                if (inputs[i].region != SL_NO_REGION && !link->regions->at[inputs[i].region].base)
                        return false;
        return true;
}

bool sl_worker_link_grow(struct sl_worker_link *link, struct sl_pool_grant *grant, uint64_t wanted)
{
        const struct timespec limit = {.tv_sec = SLEEP_LIMIT_S};
        uint32_t asks = atomic_load_explicit(&link->reply->asks, memory_order_relaxed) + 1, answered;

        atomic_store_explicit(&link->reply->wanted_bytes, wanted, memory_order_relaxed);
        atomic_store_explicit(&link->reply->asks, asks, memory_order_seq_cst); /* A1 */
        ring_runtime(link);
        while ((answered = atomic_load_explicit(&link->order->asks_answered, memory_order_acquire)) != asks) /* B2 */
                (void)syscall(SYS_futex, &link->order->asks_answered, FUTEX_WAIT, answered, &limit, NULL, 0);
        grant->bytes = atomic_load_explicit(&link->order->granted_bytes, memory_order_relaxed);
        grant->left_bytes = atomic_load_explicit(&link->order->left_bytes, memory_order_relaxed);
        grant->max_bytes = atomic_load_explicit(&link->order->max_bytes, memory_order_relaxed);
        return grant->bytes >= wanted;
}

void sl_worker_link_answer(
        struct sl_worker_link *link, uint32_t slot, const struct sl_job *job, const struct sl_prediction *prediction)
{
        struct sl_process_reply *reply = link->reply;

        if (prediction->explained)
                reply->faults[slot][prediction->piece] = job->faults[prediction->piece];
        if (prediction->piece < SL_JOB_ALIKE_MAX)
                memcpy(sl_process_reply_made(reply, job->n_outputs, slot, prediction->piece), sl_job_made(job, prediction->piece),
                        job->n_outputs * sizeof(struct sl_made_output));
        reply->answers[link->answered % SL_PROCESS_ANSWERS] = *prediction;
        reply->answers[link->answered % SL_PROCESS_ANSWERS].slot = (uint8_t)slot;
        atomic_store_explicit(&reply->answered, ++link->answered, memory_order_seq_cst); /* Y1 */
        ring_runtime(link);
}

void sl_worker_link_ready(struct sl_worker_link *link, int status, uint64_t first_ns, const char *text)
{
        struct sl_process_packet packet = {.kind = SL_PROCESS_READY,
                .status = status,
                .first_ns = first_ns,
                .lacks_sandbox = status == 0 && text,
                .n_gpus = link->n_gpus,
                .gpu = link->gpu};

        snprintf(packet.text, sizeof(packet.text), "%s", text ? text : "");
        if (sl_process_packet_send(link->fds.socket, &packet, sizeof(packet), -1) < 0)
                link->ended = true;
}

void sl_worker_link_tell_choices(struct sl_worker_link *link, int fd, const char *ignored)
{
        struct sl_process_packet packet = {.kind = SL_PROCESS_CHOICES};

        snprintf(packet.text, sizeof(packet.text), "%s", ignored);
        if (sl_process_packet_send(link->fds.socket, &packet, sizeof(packet), fd) < 0)
                link->ended = true;
}

void sl_worker_link_end(struct sl_worker_link *link)
{
        sl_cleanup_fd(&link->choices_fd);
        for (uint32_t i = 0; link->regions && i < link->start.n_regions; i++)
                region_forget(link, i);
        sl_regions_free(link->regions);
        sl_mapping_free(&link->order_map);
        sl_mapping_free(&link->reply_map);
        sl_mapping_free(&link->verdicts_map);
        sl_cleanup_fd(&link->fds.socket);
        sl_cleanup_fd(&link->fds.order);
        sl_cleanup_fd(&link->fds.reply);
        sl_cleanup_fd(&link->fds.verdicts);
        sl_cleanup_fd(&link->fds.wake);
}
