/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_seat.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "gpu_choosers.h"
#include "gpu_worker.h"
#include "host_region.h"
#include "process_packet.h"
#include "stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches of a worker that are on their way at once: one computes, one's results travel, others lie ready. */
#define LAUNCHES 4

/* A job as it came, and what of it is computed. */
struct seat_job {
        struct sl_job *job;
        struct sl_gpu_job gpu;
        bool ended;
        uint64_t begun_ns, ended_ns;
        uint32_t n_live, live[SL_JOB_PIECES_MAX]; /* pieces that are computed */
        int32_t status[SL_JOB_PIECES_MAX];        /* of the others */
        struct sl_gpu_piece pieces[SL_JOB_PIECES_MAX];
        uint32_t samples[SL_JOB_PIECES_MAX];
        int32_t found[SL_JOB_PIECES_MAX]; /* of those that are computed */
        const void **inputs;              /* [piece][input], and so on */
        void **outputs;
};

struct sl_gpu_seat {
        struct sl_worker_link link;
        struct sl_gpu_programs *programs;
        const struct sl_cuda_driver *driver;
        struct sl_gpu_share share;
        bool has_share;
        uint32_t chooser;        /* a row of the choosers */
        struct sl_error ignored; /* why what is known of its plan is of no use; "" */
        const struct sl_plan_info *info;
        struct sl_gpu_worker *worker;
        struct sl_host_region *regions; /* [n_regions] */
        struct sl_host_region reply;
        uint32_t n_answered; /* jobs, ever */
        uint64_t last_end_ns, first_ns;
        struct seat_job jobs[SL_EXECUTOR_JOBS_MAX]; /* job i in i % SL_EXECUTOR_JOBS_MAX */
};

/* ---- what it is made of ---- */

static void region_mapped(void *context, uint32_t region)
{
        struct sl_gpu_seat *seat = context;
        const struct sl_mapped_region *mapped = &seat->link.regions->at[region];

        sl_host_region_init(&seat->regions[region], seat->driver, mapped->base, sl_align_up(mapped->bytes, SL_PAGE_BYTES), false);
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

        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++) {
                struct seat_job *job = &seat->jobs[i];

                job->job = calloc(1, sl_job_bytes(info->n_inputs, info->n_outputs));
                job->inputs = calloc((size_t)SL_JOB_PIECES_MAX * info->n_inputs, sizeof(*job->inputs));
                job->outputs = calloc((size_t)SL_JOB_PIECES_MAX * info->n_outputs, sizeof(*job->outputs));
                if (!job->job || !job->inputs || !job->outputs)
                        return sl_error_set(error, ENOMEM, "no memory for its jobs");
                job->job->n_inputs = info->n_inputs;
                job->job->n_outputs = info->n_outputs;
        }
        return 0;
}

/* Who knows by which candidates its kernels are made, or finds out meanwhile. */
static struct sl_cuda_chooser *take_chooser(struct sl_gpu_seat *seat)
{
        const struct sl_gpu_chooser_wish wish = {.plan = sl_gpu_program_plan(sl_gpu_programs_program(seat->programs, &seat->share)),
                .percent = seat->link.start.percent,
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

static int make_worker(struct sl_gpu_seat *seat, int plan_fd, int base_fd, struct sl_error *error)
{
        const struct sl_process_start *start = &seat->link.start;
        struct sl_gpu_worker_options options = {.greens = &seat->programs->greens,
                .batch_max = start->batch_max,
                .n_slots = LAUNCHES,
                .writes_done = start->gpu_words};
        int r = sl_gpu_programs_take(seat->programs, plan_fd, base_fd, start->percent, &seat->share, error);

        if (r < 0)
                return r;
        seat->has_share = true;
        options.program = sl_gpu_programs_program(seat->programs, &seat->share);
        options.green = sl_gpu_programs_green(seat->programs, &seat->share);
        seat->info = sl_plan_info(sl_gpu_program_plan(options.program));
        options.chooser = take_chooser(seat);
        r = sl_gpu_worker_new(&options, &seat->worker, error);
        return r == 0 ? make_jobs(seat, error) : r;
}

static void *zeros(const struct sl_port *port)
{
        return calloc(1, sl_gpu_port_bytes(port, 1) + 1);
}

/* Its kernels are loaded by it, and what does not run says so before anybody asks. */
static int run_first(struct sl_gpu_seat *seat, struct sl_error *error)
{
        const struct sl_plan_info *info = seat->info;
        struct seat_job *first = &seat->jobs[0];
        const uint32_t one = 1;
        uint64_t begun_ns = sl_clock_ns();
        bool there = true;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                there &= (first->inputs[i] = zeros(&info->inputs[i])) != NULL;
        for (uint32_t i = 0; i < info->n_outputs; i++)
                there &= (first->outputs[i] = zeros(&info->outputs[i])) != NULL;
        first->pieces[0] = (struct sl_gpu_piece){.inputs = first->inputs, .outputs = first->outputs};
        first->gpu = (struct sl_gpu_job){.pieces = first->pieces, .samples = &one, .statuses = first->found, .n_pieces = 1};
        if (there && sl_gpu_worker_give(seat->worker, &first->gpu) == 0)
                while (!sl_gpu_worker_poll(seat->worker))
                        ;
        for (uint32_t i = 0; i < info->n_inputs; i++)
                free((void *)first->inputs[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                free(first->outputs[i]);
        seat->first_ns = sl_clock_ns() - begun_ns;
        if (!there)
                return sl_error_set(error, ENOMEM, "no memory for a first sample");
        return sl_gpu_worker_lost(seat->worker, error);
}

int sl_gpu_seat_new(const struct sl_gpu_attach *attach, struct sl_gpu_programs *programs, struct sl_gpu_seat **ret_seat)
{
        struct sl_gpu_seat *seat = calloc(1, sizeof(*seat));
        struct sl_worker_link link = attach->link;
        struct sl_error error = {""};
        int r;

        if (!seat) {
                sl_worker_link_ready(&link, -ENOMEM, 0, "no memory for a worker");
                sl_worker_link_end(&link);
                return -ENOMEM;
        }
        seat->link = link;
        seat->programs = programs;
        seat->chooser = SL_GPU_NO_CHOOSER;
        seat->driver = programs->gpu->device->driver;
        r = map_link(seat, &error);
        if (r == 0)
                r = make_worker(seat, attach->plan_fd, attach->base_fd, &error);
        if (r == 0)
                r = run_first(seat, &error);
        tell_choices(seat, r == 0);
        sl_worker_link_ready(&seat->link, r, seat->first_ns, r < 0 ? error.text : NULL);
        if (r < 0)
                sl_gpu_seat_free(seat);
        else
                *ret_seat = seat;
        return r;
}

struct sl_gpu_seat *sl_gpu_seat_free(struct sl_gpu_seat *seat)
{
        if (!seat)
                return NULL;
        sl_gpu_worker_free(seat->worker);
        if (seat->programs->choosers)
                sl_gpu_choosers_give_back(seat->programs->choosers, seat->chooser);
        if (seat->has_share)
                sl_gpu_programs_give_back(seat->programs, &seat->share);
        sl_host_region_deinit(&seat->reply, seat->driver);
        sl_worker_link_end(&seat->link);
        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++) {
                free(seat->jobs[i].job);
                free(seat->jobs[i].inputs);
                free(seat->jobs[i].outputs);
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

/* What cannot be reached had no room in this process's memory. */
static int look_at_piece(struct sl_gpu_seat *seat, struct sl_job *job, uint32_t piece)
{
        int status = given_up(seat, &job->pieces[piece]);

        return status < 0 || sl_worker_link_reaches(&seat->link, job, piece) ? status : -ENOMEM;
}

static void add_piece(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t piece)
{
        const struct sl_plan_info *info = seat->info;
        uint32_t n = s->n_live++;
        const void **inputs = &s->inputs[(size_t)n * info->n_inputs];
        void **outputs = &s->outputs[(size_t)n * info->n_outputs];

        for (uint32_t i = 0; i < info->n_inputs; i++)
                inputs[i] = sl_regions_at(seat->link.regions, &sl_job_inputs(s->job, piece)[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                outputs[i] = sl_regions_at(seat->link.regions, &sl_job_outputs(s->job, piece)[i]);
        s->live[n] = piece;
        s->samples[n] = info->batchable ? s->job->pieces[piece].samples : 1;
        s->pieces[n] = (struct sl_gpu_piece){.inputs = inputs, .outputs = outputs, .reached = seat->reply.reached};
}

/* Predictions that nobody computes. */
static void make_fake(const struct sl_gpu_seat *seat, const struct seat_job *s)
{
        for (uint32_t p = 0; p < s->n_live; p++)
                for (uint32_t i = 0; i < seat->info->n_outputs; i++)
                        memset(s->pieces[p].outputs[i], 0, sl_gpu_port_bytes(&seat->info->outputs[i], s->samples[p]));
}

static void end_job(struct seat_job *s, int32_t status)
{
        s->ended = true;
        s->ended_ns = sl_clock_ns();
        s->gpu.status = status;
}

static void take_job(struct sl_gpu_seat *seat)
{
        struct seat_job *s = &seat->jobs[seat->link.taken % SL_EXECUTOR_JOBS_MAX];

        sl_worker_link_take(&seat->link, s->job);
        s->begun_ns = sl_clock_ns();
        s->ended = false;
        s->n_live = 0;
        if (seat->link.ended)
                return;
        for (uint32_t i = 0; i < s->job->n_pieces; i++) {
                s->status[i] = look_at_piece(seat, s->job, i);
                if (s->status[i] == 0)
                        add_piece(seat, s, i);
        }
        s->gpu = (struct sl_gpu_job){.pieces = s->pieces, .samples = s->samples, .statuses = s->found, .n_pieces = s->n_live};
        memset(s->found, 0, sizeof(s->found));
        if (seat->link.start.fake)
                make_fake(seat, s);
        if (seat->link.start.fake || !s->n_live)
                end_job(s, 0);
        else if (sl_gpu_worker_give(seat->worker, &s->gpu) < 0)
                end_job(s, -EIO);
}

/* The first of those that were computed accounts for all. */
static void answer_piece(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t slot, uint32_t nth, uint32_t total)
{
        uint32_t piece = s->live[nth];
        uint64_t started_ns = s->gpu.first_ns ? s->gpu.first_ns : s->begun_ns;
        uint64_t busy_from_ns = seat->last_end_ns > s->begun_ns ? seat->last_end_ns : s->begun_ns;
        uint64_t computing_from_ns = seat->last_end_ns > started_ns ? seat->last_end_ns : started_ns;
        struct sl_prediction answer = {.piece = piece,
                .status = s->gpu.status ? s->gpu.status : s->found[nth],
                .explained = s->gpu.status < 0,
                .started_ns = started_ns,
                .staged_ns = s->ended_ns,
                .samples = s->job->pieces[piece].samples};

        if (nth == 0) {
                answer.batches = s->gpu.launches ? s->gpu.launches : 1;
                answer.busy_ns = s->ended_ns > busy_from_ns ? s->ended_ns - busy_from_ns : 0;
                answer.computing_ns = s->ended_ns > computing_from_ns ? s->ended_ns - computing_from_ns : 0;
                answer.job_samples = total;
        }
        sl_worker_link_answer(&seat->link, slot, s->job, &answer);
}

static void answer_job(struct sl_gpu_seat *seat, struct seat_job *s, uint32_t slot)
{
        uint32_t total = 0, nth = 0;

        for (uint32_t i = 0; i < s->n_live; i++)
                total += s->job->pieces[s->live[i]].samples;
        for (uint32_t i = 0, n = s->job->n_pieces; i < n; i++) {
                if (nth < s->n_live && s->live[nth] == i)
                        answer_piece(seat, s, slot, nth++, total);
                else
                        sl_worker_link_answer(&seat->link, slot, s->job,
                                &(struct sl_prediction){.piece = i, .status = s->status[i], .staged_ns = s->ended_ns});
        }
        seat->last_end_ns = s->ended_ns;
}

static bool answer_oldest(struct sl_gpu_seat *seat)
{
        uint32_t slot = seat->n_answered % SL_EXECUTOR_JOBS_MAX;

        if (!sl_gpu_seat_is_busy(seat) || !seat->jobs[slot].ended)
                return false;
        seat->n_answered++; /* before the answers: with the last one the slot may have the next job */
        answer_job(seat, &seat->jobs[slot], slot);
        return true;
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

                end_job(s, ended->status);
                moved = true;
        }
        while (!sl_gpu_seat_lost(seat, NULL) && answer_oldest(seat))
                moved = true;
        return moved;
}

bool sl_gpu_seat_is_busy(const struct sl_gpu_seat *seat)
{
        return seat->n_answered != seat->link.taken;
}

struct sl_worker_link *sl_gpu_seat_link(struct sl_gpu_seat *seat)
{
        return &seat->link;
}

int sl_gpu_seat_lost(const struct sl_gpu_seat *seat, struct sl_error *error)
{
        return sl_gpu_worker_lost(seat->worker, error);
}

void sl_gpu_seat_give_up(struct sl_gpu_seat *seat, const char *why)
{
        struct sl_process_packet packet = {.kind = SL_PROCESS_LOST};

        while (sl_gpu_seat_is_busy(seat)) {
                struct seat_job *s = &seat->jobs[seat->n_answered % SL_EXECUTOR_JOBS_MAX];

                if (!s->ended || s->gpu.status < 0) {
                        end_job(s, -EIO);
                        for (uint32_t i = 0; i < s->n_live; i++)
                                snprintf(s->job->faults[s->live[i]].text, sizeof(s->job->faults[0].text), "%s", why);
                }
                (void)answer_oldest(seat);
        }
        snprintf(packet.text, sizeof(packet.text), "%s", why);
        (void)sl_process_packet_send(seat->link.fds.socket, &packet, sizeof(packet), -1);
}
