/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on their way to a worker's process, behind the regions that they name. The dispatcher's, which waits for nobody:
 *
 *     filled --all regions that it names are sent--> given (X1)
 *        +--the socket has no room: held, and those behind it, until the worker has heard packets (Z1)
 *
 * A worker hears them when it takes a job and before it sleeps, so that one that computes does so when it is done.
 */
#include "process_state.h"

#include "accumulator.h"
#include "assembly.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "child_spawn.h"
#include "process_packet.h"
#include "warm_up.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where it may write, but its file cannot be opened so, it reads. */
static int send_region(struct sl_process *p, uint32_t region)
{
        const struct sl_mapped_region *mapped = &p->options.regions->at[region];
        SL_CLEANUP(sl_cleanup_fd) int writable_fd = p->options.gpu_direct ? sl_spawn_writable(mapped->fd) : -1;
        struct sl_process_packet packet = {
                .kind = SL_PROCESS_MAP, .region = region, .bytes = mapped->bytes, .writable = writable_fd >= 0};
        int r = sl_process_packet_send(p->socket_fd, &packet, sizeof(packet), writable_fd >= 0 ? writable_fd : mapped->fd);

        if (r < 0)
                return r;
        p->mapped[region] = mapped->serial;
        p->writable[region] = writable_fd >= 0;
        p->maps++;
        return 0;
}

static int need_region(struct sl_process *p, uint32_t region)
{
        return p->mapped[region] == p->options.regions->at[region].serial ? 0 : send_region(p, region);
}

/* Of a model by itself: what is combined lies in the staging, which nobody maps. */
static bool is_clients(const struct sl_process *p, const struct sl_place *output)
{
        return p->options.gpu_direct && output->region != SL_NO_REGION && p->options.regions->at[output->region].fd >= 0;
}

static int send_regions(struct sl_process *p, struct sl_job *job)
{
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                const struct sl_place *inputs = sl_job_inputs(job, i), *outputs = sl_job_outputs(job, i);
                int r = 0;

                for (uint32_t k = 0; k < job->n_inputs && r == 0; k++)
                        r = inputs[k].region == SL_NO_REGION ? 0 : need_region(p, inputs[k].region);
                for (uint32_t k = 0; k < job->n_outputs && r == 0; k++)
                        r = is_clients(p, &outputs[k]) ? need_region(p, outputs[k].region) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Once it is known what the worker may write to. All others are in the reply. */
static void aim_at_clients(struct sl_process *p, uint32_t slot, struct sl_job *job)
{
        struct sl_job *copy = &sl_process_order_job(p->order, job, slot)->job;

        for (uint32_t i = 0; i < job->n_pieces && p->options.gpu_direct; i++)
                for (uint32_t k = 0; k < job->n_outputs; k++) {
                        const struct sl_place *output = &sl_job_outputs(job, i)[k];

                        if (is_clients(p, output) && p->writable[output->region])
                                sl_job_outputs(copy, i)[k] = *output;
                }
}

/* Where the worker puts output @output of the piece before which @samples of the job lie. */
static struct sl_place staged_place(const struct sl_process *p, uint32_t slot, uint32_t output, uint32_t samples)
{
        uint64_t stride = sl_served_port_stride(&p->staging.outputs[output].port);

        SL_ASSERT(stride || samples == 0 || !p->staging.outputs[output].port.sample_bytes);
        return (struct sl_place){
                .region = p->options.regions->n_max,
                .offset = p->staging.first + slot * p->staging.job_bytes + p->staging.outputs[output].offset + stride * samples,
                .stride = stride,
        };
}

/* Whether, and how, the piece's prediction may stay with those of the other members. */
static struct sl_process_gather gather_of(const struct sl_process *p, const struct sl_piece *piece)
{
        const struct sl_segment *segment = sl_accumulator_segment(p->options.accumulator, piece->segment);
        const struct sl_assembly *assembly = segment->work->assembly;

        if (!p->common.gpu || segment->gpu != p->common.gpu || !sl_accumulator_is_untouched(segment))
                return (struct sl_process_gather){0};
        return (struct sl_process_gather){.segment_samples = segment->samples,
                .n_members = (uint16_t)assembly->n_members,
                .rule = (uint16_t)assembly->rule,
                .weight = assembly->weights[piece->member]};
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Pieces share the room of an output that says only afterwards how large it is; what nobody wants has none. */
static void place_open(const struct sl_process *p, const struct sl_job *job, uint32_t piece, uint32_t output, struct sl_job *copy)
{
        struct sl_place *place = &sl_job_outputs(copy, piece)[output];

        place->offset += sl_job_room(job, piece, output);
        if (sl_job_outputs((struct sl_job *)job, piece)[output].region == SL_NO_REGION)
                *place = (struct sl_place){.region = SL_NO_REGION};
        sl_job_made(copy, piece)[output].capacity_bytes =
                least(sl_job_made(job, piece)[output].capacity_bytes, p->staging.outputs[output].room_bytes);
}

/* As the worker sees it: the same pieces, with places of its own for what it makes. */
static void copy_job(struct sl_process *p, uint32_t slot, struct sl_job *job)
{
        struct sl_process_job *ordered = sl_process_order_job(p->order, job, slot);
        struct sl_job *copy = &ordered->job;
        uint32_t samples = 0;

        copy->n_pieces = job->n_pieces;
        copy->n_inputs = job->n_inputs;
        copy->n_outputs = job->n_outputs;
        copy->priority = job->priority;
        memcpy(copy->pieces, job->pieces, job->n_pieces * sizeof(job->pieces[0]));
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                memcpy(sl_job_inputs(copy, i), sl_job_inputs(job, i), job->n_inputs * sizeof(struct sl_place));
                for (uint32_t k = 0; k < job->n_outputs; k++) {
                        bool is_open = sl_port_is_open(&p->staging.outputs[k].port.port);

                        sl_job_outputs(copy, i)[k] = staged_place(p, slot, k, is_open ? 0 : samples);
                        if (is_open)
                                place_open(p, job, i, k, copy);
                }
                ordered->gathers[i] = gather_of(p, &job->pieces[i]);
                samples += job->pieces[i].samples;
        }
        memcpy(sl_job_given(copy), sl_job_given(job), job->n_inputs * sizeof(struct sl_made_output));
        p->unaccounted[slot] = samples;
}

void sl_process_wake(struct sl_process *p)
{
        if (!atomic_load_explicit(&p->reply->sleeping, memory_order_seq_cst))
                return;
        atomic_fetch_add_explicit(&p->order->rung, 1, memory_order_release);
        (void)syscall(SYS_futex, &p->order->rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Return: 0; -EAGAIN it is held; -errno. */
static int give_next(struct sl_process *p)
{
        uint32_t slot = p->filled_slots[p->given % SL_EXECUTOR_SLOTS_MAX];
        struct sl_job *job = p->common.slots[slot].job;
        int r = send_regions(p, job);

        if (r < 0)
                return r;
        aim_at_clients(p, slot, job);
        sl_process_order_job(p->order, job, slot)->maps = p->maps;
        p->given_ns[slot] = sl_clock_ns();
        p->order->slots[p->given % SL_EXECUTOR_SLOTS_MAX] = (uint8_t)slot;
        atomic_store_explicit(&p->order->given, ++p->given, memory_order_seq_cst); /* X1 */
        return 0;
}

static void give_filled(struct sl_process *p)
{
        int r = 0;

        p->heard = atomic_load_explicit(&p->reply->heard, memory_order_acquire); /* Z2 */
        while (r == 0 && p->given != p->filled)
                r = give_next(p);
        if (r < 0 && r != -EAGAIN)
                sl_process_kill(p); /* what it has is answered when it is reaped */
        sl_process_wake(p);
}

void sl_process_order(struct sl_process *p, uint32_t slot)
{
        copy_job(p, slot, p->common.slots[slot].job);
        p->filled_slots[p->filled % SL_EXECUTOR_SLOTS_MAX] = (uint8_t)slot;
        p->numbers[slot] = p->filled++;
        sl_process_note_busy(p);
        sl_warm_up_call(&p->order->called);
        give_filled(p);
}

bool sl_process_order_waits(const struct sl_process *p)
{
        return p->given != p->filled && atomic_load_explicit(&p->reply->heard, memory_order_seq_cst) != p->heard;
}

void sl_process_order_again(struct sl_process *p)
{
        if (sl_process_order_waits(p))
                give_filled(p);
}
