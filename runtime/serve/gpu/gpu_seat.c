/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_seat.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda/own/ensemble.h"
#include "gpu_accumulator.h"
#include "gpu_choosers.h"
#include "gpu_worker.h"
#include "host_region.h"
#include "process_packet.h"
#include "rule.h"
#include "stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches of a worker that are on their way at once: one computes, one's results travel, others lie ready. */
#define LAUNCHES 4

/* A job that has been computed for so long, and waits for other members, is one that rests: less than it takes to be told so. */
#define REST_NS (50 * 1000ull)

_Static_assert(LAUNCHES >= SL_EXECUTOR_SLOTS_MAX, "there is room for each job");

/* A job as it came, in its slot, and what of it is computed. */
struct seat_job {
        struct sl_job *job;
        struct sl_gpu_job gpu;
        uint32_t n_unanswered; /* pieces; 0: the slot is free */
        bool ended, accounted; /* it is computed; an answer has said what it took */
        uint64_t begun_ns, ended_ns, busy_ns, computing_ns;
        uint64_t answered[SL_JOB_PIECES_MAX / 64];
        uint32_t n_live, live[SL_JOB_PIECES_MAX]; /* pieces that are computed */
        int32_t status[SL_JOB_PIECES_MAX];        /* of the others */
        struct sl_gpu_piece pieces[SL_JOB_PIECES_MAX];
        uint32_t samples[SL_JOB_PIECES_MAX];
        int32_t found[SL_JOB_PIECES_MAX];             /* of those that are computed */
        struct sl_held_piece held[SL_JOB_PIECES_MAX]; /* the same */
        const void **inputs;                          /* [piece][input], and so on */
        void **outputs, **places;                     /* where they are computed to, and where in the reply they are to be */
};

struct sl_gpu_seat {
        struct sl_worker_link link;
        struct sl_gpu_programs *programs;
        const struct sl_cuda_driver *driver;
        struct sl_gpu_claim *claim;
        uint32_t row;            /* of its program; SL_GPU_NO_ROW: it has none yet */
        uint32_t chooser;        /* a row of the choosers */
        struct sl_error ignored; /* why what is known of its plan is of no use; "" */
        const struct sl_plan_info *info;
        struct sl_gpu_worker *worker;
        struct sl_host_region *regions; /* [n_regions] */
        struct sl_host_region reply;
        bool holds; /* its outputs can be those of a member that is combined here */
        struct sl_held_shape shape;
        uint64_t last_end_ns, first_ns;
        struct seat_job jobs[SL_EXECUTOR_SLOTS_MAX];
};

/* ---- what it is made of ---- */

static void region_mapped(void *context, uint32_t region)
{
        struct sl_gpu_seat *seat = context;
        const struct sl_mapped_region *mapped = &seat->link.regions->at[region];

        sl_host_region_init(
                &seat->regions[region], seat->driver, mapped->base, sl_align_up(mapped->bytes, SL_PAGE_BYTES), mapped->writable);
}

static void region_unmapping(void *context, uint32_t region)
{
        struct sl_gpu_seat *seat = context;

        sl_host_region_deinit(&seat->regions[region], seat->driver);
}

static int map_link(struct sl_gpu_seat *seat, struct sl_error *error)
{
        struct sl_worker_link *link = &seat->link;
        int r = sl_worker_link_map(link, error);

        if (r < 0)
                return r;
        seat->regions = calloc(link->start.n_regions + 1, sizeof(*seat->regions));
        if (!seat->regions)
                return sl_error_set(error, ENOMEM, "no memory for %u regions", link->start.n_regions);
        sl_host_region_init(
                &seat->reply, seat->driver, link->reply_map.base, sl_align_up(link->reply_map.bytes, SL_PAGE_BYTES), true);
        link->mapped = region_mapped;
        link->unmapping = region_unmapping;
        link->context = seat;
        return 0;
}

static int make_jobs(struct sl_gpu_seat *seat, struct sl_error *error)
{
        const struct sl_plan_info *info = seat->info;

        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++) {
                struct seat_job *job = &seat->jobs[i];

                job->job = calloc(1, sl_job_bytes(info->n_inputs, info->n_outputs));
                job->inputs = calloc((size_t)SL_JOB_PIECES_MAX * info->n_inputs, sizeof(*job->inputs));
                job->outputs = calloc((size_t)SL_JOB_PIECES_MAX * info->n_outputs, sizeof(*job->outputs));
                job->places = calloc((size_t)SL_JOB_PIECES_MAX * info->n_outputs, sizeof(*job->places));
                if (!job->job || !job->inputs || !job->outputs || !job->places)
                        return sl_error_set(error, ENOMEM, "no memory for its jobs");
                job->job->n_inputs = info->n_inputs;
                job->job->n_outputs = info->n_outputs;
        }
        return 0;
}

/* Who knows by which candidates its kernels are made, or finds out meanwhile. */
static struct sl_cuda_chooser *take_chooser(struct sl_gpu_seat *seat)
{
        const struct sl_gpu_chooser_wish wish = {.plan = sl_gpu_program_plan(sl_gpu_programs_program(seat->programs, seat->row)),
                .percent = seat->link.start.gpu_part.percent,
                .tuning = seat->link.start.gpu_tuning,
                .fd = seat->link.choices_fd};

        if (!seat->programs->choosers || seat->link.start.fake) /* nobody computes what is fake */
                return NULL;
        sl_gpu_choosers_take(seat->programs->choosers, &wish, &seat->chooser, &seat->ignored);
        return sl_gpu_choosers_chooser(seat->programs->choosers, seat->chooser);
}

/* Before the runtime hears that it is ready; of one that cannot be, nothing is told. */
static void tell_choices(struct sl_gpu_seat *seat, bool ready)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;

        if (!seat->programs->choosers)
                return;
        if (ready)
                fd = sl_gpu_choosers_news(seat->programs->choosers, seat->chooser);
        if (ready && (fd >= 0 || seat->ignored.text[0]))
                sl_worker_link_tell_choices(&seat->link, fd, seat->ignored.text);
}

/* What rules combine: float32, of a size that is known, at a place that the device reaches. */
static void describe_outputs(struct sl_gpu_seat *seat)
{
        const struct sl_plan_info *info = seat->info;

        seat->holds = seat->reply.reached && info->n_outputs <= SL_HELD_OUTPUTS_MAX;
        seat->shape = (struct sl_held_shape){.n_outputs = info->n_outputs};
        for (uint32_t i = 0; i < info->n_outputs && seat->holds; i++) {
                const struct sl_port *port = &info->outputs[i];
                bool batched = port->batch_axis != SL_PORT_NO_BATCH;

                seat->holds = port->dtype == SL_DTYPE_F32 && !sl_port_is_open(port);
                seat->shape.outputs[i].sample_bytes = sl_gpu_port_bytes(port, 1);
                seat->shape.outputs[i].batched = batched;
                seat->shape.outputs[i].classes = port->shape.rank > batched ? (uint32_t)port->shape.dims[port->shape.rank - 1] : 1;
        }
}

static int make_worker(struct sl_gpu_seat *seat, int plan_fd, int base_fd, struct sl_error *error)
{
        const struct sl_process_start *start = &seat->link.start;
        struct sl_gpu_worker_options options = {.greens = &seat->programs->lets.greens,
                .batch_max = start->batch_max,
                .n_slots = LAUNCHES,
                .writes_done = start->gpu_words};
        int r = sl_gpu_programs_take(seat->programs, plan_fd, base_fd, &seat->row, error);

        if (r < 0)
                return r;
        options.program = sl_gpu_programs_program(seat->programs, seat->row);
        options.green = sl_gpu_lets_green(&seat->programs->lets, seat->claim);
        seat->info = sl_plan_info(sl_gpu_program_plan(options.program));
        options.chooser = take_chooser(seat);
        r = sl_gpu_worker_new(&options, &seat->worker, error);
        describe_outputs(seat);
        return r == 0 ? make_jobs(seat, error) : r;
}

static void *zeros(const struct sl_port *port)
{
        return calloc(1, sl_gpu_port_bytes(port, 1) + 1);
}

/*
 * Workers of its plan may have all slots of the pool: they come back as those go on, unless the device is lost, which one without a
 * launch does not notice.
 */
static int wait_for_first(struct sl_gpu_seat *seat, struct sl_error *error)
{
        const struct sl_gpu_programs *programs = seat->programs;

        while (!sl_gpu_worker_poll(seat->worker))
                if (programs->others && !programs->others(programs->context))
                        return sl_error_set(error, EIO, "the device is lost");
        return sl_gpu_worker_lost(seat->worker, error);
}

/* Its kernels are loaded by it, and what does not run says so before anybody asks. */
static int run_first(struct sl_gpu_seat *seat, struct sl_error *error)
{
        const struct sl_plan_info *info = seat->info;
        struct seat_job *first = &seat->jobs[0];
        const uint32_t one = 1;
        uint64_t begun_ns = sl_clock_ns();
        bool there = true;
        int r = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                there &= (first->inputs[i] = zeros(&info->inputs[i])) != NULL;
        for (uint32_t i = 0; i < info->n_outputs; i++)
                there &= (first->outputs[i] = zeros(&info->outputs[i])) != NULL;
        first->pieces[0] = (struct sl_gpu_piece){.inputs = first->inputs, .outputs = first->outputs};
        first->gpu = (struct sl_gpu_job){.pieces = first->pieces, .samples = &one, .statuses = first->found, .n_pieces = 1};
        if (!there)
                r = sl_error_set(error, ENOMEM, "no memory for a first sample");
        else
                r = sl_gpu_worker_give(seat->worker, &first->gpu) == 0 ? wait_for_first(seat, error)
                                                                       : sl_gpu_worker_lost(seat->worker, error);
        for (uint32_t i = 0; i < info->n_inputs; i++)
                free((void *)first->inputs[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                free(first->outputs[i]);
        seat->first_ns = sl_clock_ns() - begun_ns;
        return r;
}

int sl_gpu_seat_new(const struct sl_gpu_attach *attach, struct sl_gpu_claim *claim, struct sl_gpu_programs *programs,
        struct sl_gpu_seat **ret_seat)
{
        struct sl_gpu_seat *seat = calloc(1, sizeof(*seat));
        struct sl_worker_link link = attach->link;
        struct sl_error error = {""};
        int r;

        if (!seat) {
                sl_worker_link_ready(&link, -ENOMEM, 0, "no memory for a worker");
                sl_worker_link_end(&link);
                sl_gpu_lets_release(&programs->lets, claim);
                return -ENOMEM;
        }
        seat->link = link;
        seat->claim = claim;
        seat->row = SL_GPU_NO_ROW;
        seat->programs = programs;
        seat->chooser = SL_GPU_NO_CHOOSER;
        seat->driver = programs->gpu->device->driver;
        r = map_link(seat, &error);
        if (r == 0)
                r = make_worker(seat, attach->plan_fd, attach->base_fd, &error);
        if (r == 0)
                r = run_first(seat, &error);
        tell_choices(seat, r == 0);
        sl_worker_link_ready(&seat->link, r, seat->first_ns, r < 0 ? error.text : programs->lacks);
        if (r < 0)
                sl_gpu_seat_free(seat);
        else
                *ret_seat = seat;
        return r;
}

static void drop_held(struct sl_gpu_seat *seat, struct seat_job *s)
{
        for (uint32_t i = 0; i < s->n_live; i++)
                if (s->held[i].segment)
                        sl_gpu_accumulator_drop(seat->programs->accumulator, &s->held[i]);
}

struct sl_gpu_seat *sl_gpu_seat_free(struct sl_gpu_seat *seat)
{
        if (!seat)
                return NULL;
        sl_gpu_worker_free(seat->worker);
        if (seat->programs->choosers)
                sl_gpu_choosers_give_back(seat->programs->choosers, seat->chooser);
        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                drop_held(seat, &seat->jobs[i]);
        sl_gpu_programs_give_back(seat->programs, seat->row);
        sl_gpu_lets_release(&seat->programs->lets, seat->claim);
        sl_host_region_deinit(&seat->reply, seat->driver);
        sl_worker_link_end(&seat->link);
        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++) {
                free(seat->jobs[i].job);
                free(seat->jobs[i].inputs);
                free(seat->jobs[i].outputs);
                free(seat->jobs[i].places);
        }
        free(seat->regions);
        free(seat);
        return NULL;
}

/* ---- jobs ---- */

static int given_up(const struct sl_gpu_seat *seat, const struct sl_piece *piece)
{
        const _Atomic int32_t *verdicts = seat->link.verdicts_map.base;
        struct sl_stop stop = {.verdict = &verdicts[piece->segment], .deadline_ns = piece->deadline_ns};

        return sl_stop_look(&stop);
}

static uint32_t samples_of(const struct sl_gpu_seat *seat, const struct sl_piece *piece)
{
        return seat->info->batchable ? piece->samples : 1;
}

/* Its predictions lie inside of what this process may write to. */
static bool has_room(const struct sl_gpu_seat *seat, struct sl_job *job, uint32_t piece)
{
        for (uint32_t i = 0; i < job->n_outputs; i++) {
                const struct sl_place *place = &sl_job_outputs(job, piece)[i];
                const struct sl_mapped_region *region = &seat->link.regions->at[place->region];
                uint64_t bytes = sl_gpu_port_bytes(&seat->info->outputs[i], samples_of(seat, &job->pieces[piece]));

                if (!region->base || !region->writable || !sl_range_inside(place->offset, bytes, region->bytes))
                        return false;
        }
        return true;
}

/* What cannot be reached had no room in this process's memory. */
static int look_at_piece(struct sl_gpu_seat *seat, struct sl_job *job, uint32_t piece)
{
        int status = given_up(seat, &job->pieces[piece]);

        if (status < 0)
                return status;
        return sl_worker_link_reaches(&seat->link, job, piece) && has_room(seat, job, piece) ? 0 : -ENOMEM;
}

/* By the device, all of it. */
static bool is_reached(const struct sl_gpu_seat *seat, struct sl_job *job, uint32_t piece)
{
        bool reached = true;

        for (uint32_t i = 0; i < job->n_outputs; i++) {
                uint32_t region = sl_job_outputs(job, piece)[i].region;

                reached &= region == seat->link.start.n_regions ? seat->reply.reached : seat->regions[region].reached;
        }
        return reached;
}

/* By the numbers of the rules. */
static int own_rule(uint32_t rule)
{
        static const int rules[SL_RULE_COUNT] = {
                [SL_RULE_NONE] = -1,
                [SL_RULE_MEAN] = SL_OWN_RULE_MEAN,
                [SL_RULE_WEIGHTED_MEAN] = SL_OWN_RULE_WEIGHTED_SUM,
                [SL_RULE_MAJORITY_VOTE] = SL_OWN_RULE_MAJORITY_VOTE,
                [SL_RULE_GEOMETRIC_MEAN] = SL_OWN_RULE_GEOMETRIC_MEAN,
                [SL_RULE_MAXIMUM] = SL_OWN_RULE_MAXIMUM,
                [SL_RULE_WEIGHTED_BOXES] = -1,
                [SL_RULE_NMS] = -1,
                [SL_RULE_SOFT_NMS] = -1,
                [SL_RULE_STACKING] = -1,
        };

        return rule < SL_RULE_COUNT ? rules[rule] : -1;
}

/* Does the piece stay on the device, until the other members' predictions are there? */
static bool hold_piece(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t slot, uint32_t n)
{
        const struct sl_piece *piece = &s->job->pieces[s->live[n]];
        const struct sl_process_gather *gather = &sl_worker_link_gathers(&seat->link, s->job, slot)[s->live[n]];
        struct sl_held_shape shape = seat->shape;
        struct sl_held_piece *held = &s->held[n];

        *held = (struct sl_held_piece){.segment = NULL};
        if (!gather->segment_samples || !seat->holds || !seat->programs->accumulator || own_rule(gather->rule) < 0)
                return false;
        shape.segment = piece->segment;
        shape.samples = gather->segment_samples;
        shape.n_members = gather->n_members;
        shape.rule = (uint32_t)own_rule(gather->rule);
        held->member = piece->member;
        held->first = piece->first;
        held->samples = piece->samples;
        held->weight = gather->weight;
        held->outputs = &s->places[(size_t)n * seat->info->n_outputs];
        return sl_gpu_accumulator_come(seat->programs->accumulator, &shape, held, &s->outputs[(size_t)n * seat->info->n_outputs]);
}

static void add_piece(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t slot, uint32_t piece)
{
        const struct sl_plan_info *info = seat->info;
        uint32_t n = s->n_live++;
        const void **inputs = &s->inputs[(size_t)n * info->n_inputs];
        void **outputs = &s->outputs[(size_t)n * info->n_outputs], **places = &s->places[(size_t)n * info->n_outputs];
        bool stays;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                inputs[i] = sl_regions_at(seat->link.regions, &sl_job_inputs(s->job, piece)[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                places[i] = outputs[i] = sl_regions_at(seat->link.regions, &sl_job_outputs(s->job, piece)[i]);
        s->live[n] = piece;
        s->samples[n] = samples_of(seat, &s->job->pieces[piece]);
        stays = hold_piece(seat, s, slot, n);
        s->pieces[n] = (struct sl_gpu_piece){
                .inputs = inputs, .outputs = outputs, .reached = is_reached(seat, s->job, piece), .stays = stays};
}

/* Predictions that nobody computes. */
static void make_fake(const struct sl_gpu_seat *seat, const struct seat_job *s)
{
        for (uint32_t p = 0; p < s->n_live; p++)
                for (uint32_t i = 0; i < seat->info->n_outputs; i++)
                        memset(s->pieces[p].outputs[i], 0, sl_gpu_port_bytes(&seat->info->outputs[i], s->samples[p]));
}

/* What it took counts from the end of the job before, of whatever there was between them. */
static void end_job(struct sl_gpu_seat *seat, struct seat_job *s, int32_t status)
{
        uint64_t started_ns = s->gpu.first_ns ? s->gpu.first_ns : s->begun_ns;
        uint64_t busy_from_ns = seat->last_end_ns > s->begun_ns ? seat->last_end_ns : s->begun_ns;
        uint64_t computing_from_ns = seat->last_end_ns > started_ns ? seat->last_end_ns : started_ns;

        s->ended = true;
        s->ended_ns = sl_clock_ns();
        s->busy_ns = s->ended_ns > busy_from_ns ? s->ended_ns - busy_from_ns : 0;
        s->computing_ns = s->ended_ns > computing_from_ns ? s->ended_ns - computing_from_ns : 0;
        s->gpu.status = status;
        seat->last_end_ns = s->ended_ns;
        for (uint32_t i = 0; i < s->n_live; i++) {
                if (!s->pieces[i].stays)
                        continue;
                if (status < 0 || s->found[i] < 0)
                        sl_held_failed(&s->held[i]);
                else
                        sl_held_made(&s->held[i], s->ended_ns);
        }
}

static void take_job(struct sl_gpu_seat *seat)
{
        uint32_t slot = sl_worker_link_next(&seat->link);
        struct seat_job *s = &seat->jobs[slot];

        sl_worker_link_take(&seat->link, s->job);
        s->begun_ns = sl_clock_ns();
        s->ended = s->accounted = false;
        s->n_live = 0;
        memset(s->answered, 0, sizeof(s->answered));
        if (seat->link.ended)
                return;
        s->n_unanswered = s->job->n_pieces;
        for (uint32_t i = 0; i < s->job->n_pieces; i++) {
                s->status[i] = look_at_piece(seat, s->job, i);
                if (s->status[i] == 0)
                        add_piece(seat, s, slot, i);
        }
        s->gpu = (struct sl_gpu_job){.pieces = s->pieces, .samples = s->samples, .statuses = s->found, .n_pieces = s->n_live};
        memset(s->found, 0, sizeof(s->found));
        if (seat->link.start.fake)
                make_fake(seat, s);
        if (seat->link.start.fake || !s->n_live)
                end_job(seat, s, 0);
        else if (sl_gpu_worker_give(seat->worker, &s->gpu) < 0)
                end_job(seat, s, -EIO);
}

/* ---- answers ---- */

static void say(struct sl_gpu_seat *seat, struct seat_job *s, const struct sl_prediction *answer)
{
        s->answered[answer->piece / 64] |= 1ull << answer->piece % 64;
        s->n_unanswered--; /* before the answer: with the last one the slot may have the next job */
        sl_worker_link_answer(&seat->link, (uint32_t)(s - seat->jobs), s->job, answer);
}

static uint32_t samples_computed(const struct seat_job *s)
{
        uint32_t total = 0;

        for (uint32_t i = 0; i < s->n_live; i++)
                total += s->job->pieces[s->live[i]].samples;
        return total;
}

/* The first of those that were computed accounts for all. */
static void answer_computed(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t nth, int32_t status)
{
        uint32_t piece = s->live[nth];
        struct sl_prediction answer = {.piece = piece,
                .status = status,
                .explained = status == -EIO,
                .started_ns = s->gpu.first_ns ? s->gpu.first_ns : s->begun_ns,
                .staged_ns = s->ended_ns,
                .samples = s->job->pieces[piece].samples};

        if (s->held[nth].segment) {
                answer.combined = s->held[nth].combined && status == 0;
                sl_gpu_accumulator_drop(seat->programs->accumulator, &s->held[nth]);
        }
        if (!s->accounted) {
                answer.batches = s->gpu.launches ? s->gpu.launches : 1;
                answer.busy_ns = s->busy_ns;
                answer.computing_ns = s->computing_ns;
                answer.job_samples = samples_computed(s);
        }
        s->accounted = true;
        say(seat, s, &answer);
}

static bool is_answered(const struct seat_job *s, uint32_t piece)
{
        return s->answered[piece / 64] >> piece % 64 & 1;
}

/* One that waits for other members is not for them to keep when its request has been given up. */
static bool answer_if_settled(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t nth)
{
        int32_t status = s->gpu.status ? s->gpu.status : s->found[nth];

        if (s->pieces[nth].stays && s->held[nth].state != SL_HELD_SETTLED) {
                status = sl_held_waits(&s->held[nth]) ? given_up(seat, &s->job->pieces[s->live[nth]]) : 0;
                if (status == 0)
                        return false;
                sl_held_failed(&s->held[nth]);
        }
        answer_computed(seat, s, nth, status);
        return true;
}

static bool answer_what_is_settled(struct sl_gpu_seat *seat, struct seat_job *s)
{
        uint32_t nth = 0, n_pieces = s->job->n_pieces;
        bool any = false;

        for (uint32_t i = 0; i < n_pieces && s->n_unanswered; i++) {
                bool is_live = nth < s->n_live && s->live[nth] == i;

                if (is_answered(s, i)) {
                        nth += is_live;
                } else if (is_live) {
                        any |= answer_if_settled(seat, s, nth++);
                } else {
                        say(seat, s, &(struct sl_prediction){.piece = i, .status = s->status[i], .staged_ns = s->ended_ns});
                        any = true;
                }
        }
        return any;
}

/* ---- jobs that rest ---- */

/* Computed, and waiting for other members, at the time. */
static bool rests(const struct seat_job *s, uint64_t at_ns)
{
        return s->n_unanswered && s->ended && s->ended_ns <= at_ns;
}

static uint32_t count_resting(const struct sl_gpu_seat *seat, uint64_t at_ns)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                n += rests(&seat->jobs[i], at_ns);
        return n;
}

static void let_oldest_go(const struct sl_gpu_seat *seat)
{
        const struct seat_job *oldest = &seat->jobs[0];

        for (uint32_t i = 1; i < SL_EXECUTOR_SLOTS_MAX; i++)
                if (seat->jobs[i].ended_ns < oldest->ended_ns)
                        oldest = &seat->jobs[i];
        for (uint32_t i = 0; i < oldest->n_live; i++)
                if (sl_held_waits(&oldest->held[i]))
                        sl_held_let_go(oldest->held[i].segment);
}

/*
 * Where all jobs rest, the oldest leaves by itself: what else waits for this model is not to wait for other members. The runtime is
 * told of those that have rested for a while, so that it is not woken for each.
 */
static void look_at_resting(struct sl_gpu_seat *seat)
{
        if (count_resting(seat, UINT64_MAX) == SL_EXECUTOR_SLOTS_MAX)
                let_oldest_go(seat);
        sl_worker_link_rest(&seat->link, sl_gpu_seat_is_busy(seat) ? count_resting(seat, sl_clock_ns() - REST_NS) : 0);
}

static bool answer_all_that_is_settled(struct sl_gpu_seat *seat)
{
        bool any = false;

        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                if (seat->jobs[i].n_unanswered && seat->jobs[i].ended)
                        any |= answer_what_is_settled(seat, &seat->jobs[i]);
        return any;
}

bool sl_gpu_seat_go_on(struct sl_gpu_seat *seat)
{
        bool moved = false;
        struct sl_gpu_job *ended;

        while (sl_worker_link_waits(&seat->link) && !seat->link.ended) {
                take_job(seat);
                moved = true;
        }
        while (sl_gpu_worker_jobs(seat->worker) && (ended = sl_gpu_worker_poll(seat->worker))) {
                struct seat_job *s = (struct seat_job *)((char *)ended - offsetof(struct seat_job, gpu));

                end_job(seat, s, ended->status);
                moved = true;
        }
        if (sl_gpu_seat_lost(seat, NULL))
                return moved;
        moved |= answer_all_that_is_settled(seat);
        look_at_resting(seat);
        return moved;
}

bool sl_gpu_seat_is_busy(const struct sl_gpu_seat *seat)
{
        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                if (seat->jobs[i].n_unanswered)
                        return true;
        return false;
}

struct sl_worker_link *sl_gpu_seat_link(struct sl_gpu_seat *seat)
{
        return &seat->link;
}

int sl_gpu_seat_lost(const struct sl_gpu_seat *seat, struct sl_error *error)
{
        return sl_gpu_worker_lost(seat->worker, error);
}

/* What was computed before, and waits for no other member, keeps its answer. */
static void fail_job(struct sl_gpu_seat *seat, struct seat_job *s, const char *why)
{
        bool is_computed = s->ended && s->gpu.status == 0;

        drop_held(seat, s);
        for (uint32_t i = 0; i < s->n_live; i++) {
                if (is_answered(s, s->live[i]) || (is_computed && !s->pieces[i].stays))
                        continue;
                s->pieces[i].stays = false;
                s->found[i] = -EIO;
                sl_error_fit(why, s->job->faults[s->live[i]].text, sizeof(s->job->faults[0].text));
        }
        if (!s->ended)
                end_job(seat, s, -EIO);
}

void sl_gpu_seat_give_up(struct sl_gpu_seat *seat, const char *why)
{
        struct sl_process_packet packet = {.kind = SL_PROCESS_LOST};

        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                if (seat->jobs[i].n_unanswered) {
                        fail_job(seat, &seat->jobs[i], why);
                        (void)answer_what_is_settled(seat, &seat->jobs[i]);
                }
        sl_error_fit(why, packet.text, sizeof(packet.text));
        (void)sl_process_packet_send(seat->link.fds.socket, &packet, sizeof(packet), -1);
}
