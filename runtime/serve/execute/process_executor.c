/* SPDX-License-Identifier: Apache-2.0 */
#include "process_state.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "gpu_let.h"
#include "job_runner.h"
#include "sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void process_give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)from;
        sl_process_order(sl_process_of(executor), slot);
}

/* ---- answers: dispatcher ---- */

/* Is it one of the first @n? Both count all jobs ever, and wrap. */
static bool is_among(uint32_t job, uint32_t n)
{
        return (int32_t)(n - job) > 0;
}

/* What a runner says, or the word that ended the work on the piece's segment. */
static bool is_status(const struct sl_process *p, const struct sl_prediction *answer)
{
        const struct sl_job *job = p->common.slots[answer->slot].job;
        int32_t verdict = atomic_load_explicit(
                sl_accumulator_verdict(p->options.accumulator, job->pieces[answer->piece].segment), memory_order_relaxed);
        int32_t status = answer->status;

        return status == verdict || status == 0 || status == -ETIME || status == -ECANCELED || status == -EIO ||
               status == -ERANGE || status == -E2BIG || status == -EMSGSIZE || status == -ENOMEM;
}

static bool is_unanswered(const struct sl_executor *executor, uint32_t slot, uint32_t piece)
{
        const struct sl_given_job *given = &executor->slots[slot];

        return given->unanswered && piece < given->job->n_pieces && !(given->answered[piece / 64] >> piece % 64 & 1);
}

/* Its segment was for this process to combine, if all of it is there. */
static bool may_be_combined(const struct sl_process *p, const struct sl_prediction *answer)
{
        const struct sl_job *job = p->common.slots[answer->slot].job;
        const struct sl_process_job *ordered = sl_process_order_job(p->order, job, answer->slot);

        return answer->status == 0 && ordered->gathers[answer->piece].segment_samples;
}

/* Of a job that it has, about a piece that has none. */
static bool is_possible(const struct sl_process *p, const struct sl_prediction *answer)
{
        return answer->slot < p->common.jobs_max && is_unanswered(&p->common, answer->slot, answer->piece) &&
               is_among(p->numbers[answer->slot], p->given) && is_status(p, answer) &&
               (!answer->combined || may_be_combined(p, answer));
}

/* The next answer, as the worker's memory has it now. False: there is none, or none that can be believed; then none is any more. */
static bool copy_answer(struct sl_process *p, struct sl_prediction *ret_answer)
{
        uint32_t answered = atomic_load_explicit(&p->reply->answered, memory_order_acquire); /* Y2 */

        uint32_t taken = atomic_load_explicit(&p->taken, memory_order_relaxed);

        if (answered == taken || p->distrusted)
                return false;
        *ret_answer = p->reply->answers[taken % SL_PROCESS_ANSWERS];
        if (answered - taken <= SL_PROCESS_ANSWERS && is_possible(p, ret_answer)) {
                atomic_store_explicit(&p->taken, taken + 1, memory_order_relaxed);
                return true;
        }
        p->distrusted = true;
        sl_process_kill(p);
        return false;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
        return value < least ? least : value < most ? value : most;
}

/* The worker's figures count for completions, statistics and service times: they cannot be more than what has passed here. */
static void bound_answer(struct sl_process *p, const struct sl_job *job, uint64_t now_ns, struct sl_prediction *answer)
{
        uint64_t given_ns = p->given_ns[answer->slot];
        uint32_t *unaccounted = &p->unaccounted[answer->slot];

        answer->job_samples = (uint32_t)within(answer->job_samples, 0, *unaccounted);
        *unaccounted -= answer->job_samples;
        if (answer->started_ns)
                answer->started_ns = within(answer->started_ns, given_ns, now_ns);
        answer->staged_ns = within(answer->staged_ns, given_ns, now_ns);
        answer->combined_ns = 0;
        answer->busy_ns = within(answer->busy_ns, 0, now_ns - given_ns);
        answer->computing_ns = within(answer->computing_ns, 0, answer->busy_ns);
        answer->batches = (uint32_t)within(answer->batches, 0, answer->job_samples);
        answer->samples = answer->started_ns ? job->pieces[answer->piece].samples : 0;
        answer->lost = 0;
}

/* Is it a tensor of the output, and of these bytes? */
static bool is_shape(const struct sl_port *port, const struct sl_made_output *made)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape.rank = made->rank};

        if (made->rank > SL_WIRE_RANK_MAX || (made->rank != port->shape.rank && !sl_port_has_open_rank(port)))
                return false;
        for (uint32_t i = 0; i < made->rank; i++) {
                int64_t wanted = i < port->shape.rank ? port->shape.dims[i] : SL_DIM_UNKNOWN;

                if (wanted != SL_DIM_UNKNOWN && made->rank == port->shape.rank && wanted != (int64_t)made->dims[i])
                        return false;
                tensor.shape.dims[i] = (int64_t)made->dims[i];
        }
        return sl_tensor_bytes(&tensor) == made->bytes;
}

/* What is larger than the room of the staging may still fit the client's buffer, which is told so. Return: the status then. */
static int take_made(const struct sl_process *p, struct sl_job *job, const struct sl_prediction *answer, uint32_t output)
{
        struct sl_made_output *own = &sl_job_made(job, answer->piece)[output];
        struct sl_made_output made = sl_process_reply_made(p->reply, p->staging.n_outputs, answer->slot, answer->piece)[output];
        uint64_t room_bytes = p->staging.outputs[output].room_bytes;
        bool unwanted = sl_job_outputs(job, answer->piece)[output].region == SL_NO_REGION;
        bool fits_client, fits_room = unwanted || made.bytes <= room_bytes;
        struct sl_fault *fault = &job->faults[answer->piece];
        int32_t status = answer->status;

        made.capacity_bytes = own->capacity_bytes;
        fits_client = unwanted || made.bytes <= made.capacity_bytes;
        if (!is_shape(&p->staging.outputs[output].port.port, &made) || (status == 0 && !(fits_client && fits_room)))
                return -EIO;
        *own = made;
        if (status == 0 || fits_room || !fits_client)
                return status;
        snprintf(fault->text, sizeof(fault->text), "output %u has %llu bytes, a worker process gives at most %llu", output,
                (unsigned long long)made.bytes, (unsigned long long)room_bytes);
        return -E2BIG;
}

/* @combined: the result of all members, for the client. */
static void take_output(
        const struct sl_process *p, struct sl_job *job, uint32_t slot, uint32_t piece, uint32_t output, bool combined)
{
        const struct sl_served_port *port = &p->staging.outputs[output].port;
        struct sl_job *ordered = &sl_process_order_job(p->order, job, slot)->job; /* which only this process writes to */
        struct sl_place place = combined ? sl_accumulator_result(p->options.accumulator, &job->pieces[piece], output)
                                         : sl_job_outputs(job, piece)[output];
        uint64_t bytes = sl_port_is_open(&port->port) ? sl_job_made(job, piece)[output].bytes
                                                      : sl_served_port_bytes(port, job->pieces[piece].samples);

        if (place.region == SL_NO_REGION) /* nobody wants it */
                return;
        if (sl_job_outputs(ordered, piece)[output].region != p->options.regions->n_max) /* it is there already */
                return;
        memcpy(sl_regions_at(p->options.regions, &place), p->reply->parts + sl_job_outputs(ordered, piece)[output].offset, bytes);
}

/* Of a piece that was combined with those of the other members: the result lies where member 0's prediction would. */
static void take_combined(struct sl_process *p, struct sl_job *job, const struct sl_prediction *answer)
{
        const struct sl_piece *piece = &job->pieces[answer->piece];

        for (uint32_t i = 0; i < p->staging.n_outputs && piece->member == 0; i++)
                take_output(p, job, answer->slot, answer->piece, i, true);
        sl_accumulator_note_combined(p->options.accumulator, piece);
}

/* What belongs to the answer, from the worker's memory to where it is to be. */
static void take_prediction(struct sl_process *p, struct sl_job *job, struct sl_prediction *answer)
{
        uint32_t slot = answer->slot;
        struct sl_fault *fault = &job->faults[answer->piece];

        sl_fault_clear(fault);
        for (uint32_t i = 0; i < p->staging.n_outputs; i++)
                if (sl_port_is_open(&p->staging.outputs[i].port.port) && (answer->status == 0 || answer->status == -EMSGSIZE))
                        answer->status = take_made(p, job, answer, i);
        if (answer->explained && !fault->text[0]) {
                memcpy(fault->text, p->reply->faults[slot][answer->piece].text, sizeof(fault->text));
                fault->text[sizeof(fault->text) - 1] = 0;
        }
        answer->explained = fault->text[0] != 0;
        for (uint32_t i = 0; i < p->staging.n_outputs && answer->status == 0 && !answer->combined; i++)
                take_output(p, job, slot, answer->piece, i, false);
        if (answer->combined)
                take_combined(p, job, answer);
}

static uint32_t first_unanswered(const struct sl_executor *executor, uint32_t slot)
{
        uint32_t piece = 0;

        while (!is_unanswered(executor, slot, piece))
                piece++;
        return piece;
}

/* Of those that are filled, in this order; some of them are answered before. */
static uint32_t first_slot(const struct sl_process *p)
{
        uint32_t first = p->common.oldest;

        for (uint32_t i = 0; i < p->common.jobs_max; i++)
                if (p->common.slots[i].unanswered && is_among(p->numbers[i], p->numbers[first]))
                        first = i;
        return first;
}

/* Its process is gone: what it has not answered, one piece at a time. */
static bool answer_lost(struct sl_process *p, struct sl_prediction *ret_answer)
{
        struct sl_executor *executor = &p->common;

        if (executor->n_given == 0)
                return false;
        uint32_t slot = first_slot(p);
        struct sl_job *job = executor->slots[slot].job;
        uint32_t piece = first_unanswered(executor, slot);
        uint32_t begun = atomic_load_explicit(&p->reply->begun, memory_order_relaxed);
        bool began = is_among(p->numbers[slot], begun);

        sl_fault_clear(&job->faults[piece]);
        sl_fault_tell(&job->faults[piece], p->ended);
        *ret_answer = (struct sl_prediction){.piece = piece,
                .slot = (uint8_t)slot,
                .status = -EIO,
                .explained = 1,
                .lost = began ? SL_LOST_COMPUTING : SL_LOST_WAITING};
        return true;
}

static void deliver(struct sl_process *p, struct sl_job *job, struct sl_prediction *answer)
{
        int32_t status = answer->status;

        sl_process_note_used(p);
        sl_sender_deliver(p->options.accumulator, job, p->options.stats, answer);
        if (status < 0 || answer->status != -EIO)
                return;
        sl_fault_tell(
                &job->faults[answer->piece], "its members were combined in a process that ended before all of them had answered");
        answer->explained = 1;
}

static bool process_poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        struct sl_process *p = sl_process_of(executor);

        executor->ended = sl_executor_started(executor) < 0; /* S2: looked at before the answers, which come first */
        sl_process_note_busy(p);
        sl_process_order_again(p);
        sl_process_answer_ask(p);
        executor->resting = atomic_load_explicit(&p->reply->resting, memory_order_relaxed);
        if (copy_answer(p, ret_prediction)) {
                struct sl_job *job = executor->slots[ret_prediction->slot].job;
                uint64_t now_ns = sl_clock_ns();

                bound_answer(p, job, now_ns, ret_prediction);
                take_prediction(p, job, ret_prediction);
                sl_process_note_answer(p, ret_prediction->slot, now_ns);
                deliver(p, job, ret_prediction);
                return true;
        }
        return executor->ended && answer_lost(p, ret_prediction);
}

static bool process_waiting(struct sl_executor *executor)
{
        struct sl_process *p = sl_process_of(executor);

        return executor->n_given && (atomic_load_explicit(&p->reply->answered, memory_order_seq_cst) !=
                                                    atomic_load_explicit(&p->taken, memory_order_relaxed) ||
                                            atomic_load_explicit(&p->reply->resting, memory_order_seq_cst) != executor->resting ||
                                            sl_process_order_waits(p) || sl_process_asks(p) || sl_executor_started(executor) < 0);
}

static void process_listen(struct sl_executor *executor, bool listening)
{
        atomic_store_explicit(&sl_process_of(executor)->order->listening, listening, memory_order_seq_cst);
}

static void process_stop(struct sl_executor *executor)
{
        struct sl_process *p = sl_process_of(executor);

        sl_process_stop(p);
        sl_growth_share_end(&p->growth);
        free(p->mapped);
        free(p->writable);
        free(p->memory);
        sl_process_staging_deinit(&p->staging);
        free(p);
}

static const struct sl_executor_class process_class = {
        .name = "process",
        .names_the_job = true,
        .give = process_give,
        .poll = process_poll,
        .waiting = process_waiting,
        .listen = process_listen,
        .stop = process_stop,
};

struct sl_executor *sl_process_executor_of(struct sl_executor *executor)
{
        return executor->class == &process_class ? executor : NULL;
}

static int make_tables(struct sl_process *p, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(p->options.plan);
        uint32_t jobs_max = sl_process_executor_jobs(p->options.gpu);

        p->mapped = calloc(p->options.regions->n_max, sizeof(*p->mapped));
        p->writable = calloc(p->options.regions->n_max, sizeof(*p->writable));
        p->memory = calloc(jobs_max, sl_job_bytes(info->n_inputs, info->n_outputs));
        if (!p->mapped || !p->writable || !p->memory ||
                sl_process_staging_init(&p->staging, info, p->common.batch_max, p->options.open_bytes) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a worker process");
        sl_executor_init(&p->common, p->memory, jobs_max, info->n_inputs, info->n_outputs);
        p->common.samples_max = p->staging.samples_max;
        p->common.room_bytes = p->options.open_bytes;
        return 0;
}

int sl_process_executor_new(
        const struct sl_process_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error)
{
        struct sl_process *p = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*p), SL_LINE_PAIR_BYTES));
        int r;

        if (!p)
                return sl_error_set(error, ENOMEM, "no memory for a worker process");
        memset(p, 0, sizeof(*p));
        p->options = *options;
        p->socket_fd = p->pid_fd = p->common.wake_fd = p->choices.fd = -1;
        sl_growth_share_init(&p->growth, options->growth, options->stats);
        p->common.class = &process_class;
        p->common.batch_max = sl_job_runner_batch_max(sl_plan_info(options->plan), options->batch_max);
        p->common.let = options->let;
        p->common.stats = options->stats;
        p->common.gpu = options->gpu && !options->fake ? options->gpu->gpu + 1 : 0;
        r = make_tables(p, error);
        if (r == 0)
                r = sl_process_start(p, error);
        if (r < 0) {
                process_stop(&p->common);
                return r;
        }
        *ret_executor = &p->common;
        return 0;
}
