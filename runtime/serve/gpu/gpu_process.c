/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_process.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda/libraries.h"
#include "gpu_accumulator.h"
#include "gpu_attach.h"
#include "gpu_choosers.h"
#include "gpu_programs.h"
#include "gpu_sandbox.h"
#include "gpu_seat.h"
#include "gpu_sleep.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SEATS_MAX 128

/* Of a sleep: what may wait for the next look, a worker that comes or goes. */
#define SLEEP_NS (50 * SL_NS_PER_MS)

/* Turns of the loop between two such looks while there is work. */
#define TURNS_PER_LOOK 1024

/* After the last job, before it sleeps. */
#define SPIN_NS (50 * 1000ull)

/* Workers that wait until those come, or have left, that make room for their let; and for how long. */
#define WAITING_MAX 64
#define WAIT_NS     (2 * SL_NS_PER_SECOND)

struct process {
        struct sl_cuda_driver driver;
        struct sl_cuda_device device;
        struct sl_gpu gpu;
        struct sl_gpu_programs *programs;
        struct sl_gpu_choosers choosers;
        uint32_t n_gpus;            /* of this host; 0: that is not known */
        struct sl_cuda_figures figures; /* of this one; zeros: they are not known */
        int fault;                  /* why there is no device; 0: there is one */
        struct sl_error fault_text; /* in words */
        uint32_t n_seats;
        struct sl_gpu_seat *seats[SEATS_MAX];
        uint32_t n_waiting;
        struct waiting {
                struct sl_gpu_attach attach;
                struct sl_gpu_claim *claim;
                uint64_t until_ns;
        } waiting[WAITING_MAX];
        bool ended; /* the runtime is gone */
        bool lost;  /* the device is */
};

/* ---- its start ---- */

/* Without the backend a plan says what it lacks. */
static int open_libraries(struct process *p, struct sl_error *error)
{
        const struct sl_backend *backend = sl_backend_find("cuda");

        return backend && backend->runner && backend->runner->prepare ? backend->runner->prepare(&p->gpu.common, error) : 0;
}

/* Workers, and the ensembles that they combine for. */
static bool go_on(struct process *p)
{
        bool moved = false;

        for (uint32_t i = 0; i < p->n_seats; i++)
                moved |= sl_gpu_seat_go_on(p->seats[i]);
        if (p->programs && p->programs->accumulator)
                moved |= sl_gpu_accumulator_go_on(p->programs->accumulator, sl_clock_ns());
        return moved;
}

/* While a worker comes, the others compute. */
static bool go_on_meanwhile(void *context)
{
        struct process *p = context;
        struct sl_error why;

        (void)go_on(p);
        for (uint32_t i = 0; i < p->n_seats; i++)
                if (sl_gpu_seat_lost(p->seats[i], &why))
                        return false;
        return true;
}

/* That they are lost is found out behind what is timed. */
static void breathe(void *context)
{
        (void)go_on_meanwhile(context);
}

static int open_gpu(struct process *p, uint32_t number, struct sl_error *error)
{
        int r = sl_cuda_driver_open(NULL, &p->driver, error);

        p->n_gpus = r == 0 ? sl_cuda_device_count(&p->driver) : 0;
        if (r == 0)
                r = sl_cuda_device_open(&p->driver, number, &p->device, error);
        if (r == 0)
                r = sl_gpu_init(&p->gpu, &p->device, 0, error);
        if (r == 0)
                (void)sl_cuda_device_figures(&p->device, &p->figures);
        if (r == 0)
                r = open_libraries(p, error);
        if (r < 0)
                return r;
        p->programs = calloc(1, sizeof(*p->programs));
        r = p->programs ? sl_gpu_programs_init(p->programs, &p->gpu, error) : sl_error_set(error, ENOMEM, "no memory");
        if (r < 0)
                return r;
        p->choosers = (struct sl_gpu_choosers){.gpu = &p->gpu, .breathe = breathe, .context = p};
        p->programs->others = go_on_meanwhile;
        p->programs->context = p;
        p->programs->choosers = &p->choosers;
        return 0;
}

/* ---- workers that come and go ---- */

static void answer(const struct process *p, struct sl_gpu_attach *attach, int status, const char *why)
{
        attach->link.n_gpus = p->n_gpus;
        attach->link.gpu = p->figures;
        sl_worker_link_ready(&attach->link, status, 0, status < 0 ? why : NULL);
        sl_worker_link_end(&attach->link);
}

/*
 * For ensembles, as soon as there is more than one model that could be a member. Without it, or room for it, the runtime combines.
 * What the backend does not have (own kernels) is not there.
 */
static void make_accumulator(struct process *p)
{
        const struct sl_cuda_libraries *libraries = sl_cuda_libraries_held();
        struct sl_error error;

        if (!p->programs->accumulator && libraries && p->n_seats > 1)
                (void)sl_gpu_accumulator_new(
                        &p->gpu, &p->programs->lets.greens, &libraries->own, &p->programs->accumulator, &error);
}

static void close_plan(struct sl_gpu_attach *attach)
{
        sl_cleanup_fd(&attach->plan_fd);
        sl_cleanup_fd(&attach->base_fd);
}

/* Nothing comes of it but the answer. */
static void answer_and_end(const struct process *p, struct sl_gpu_attach *attach, int status, const char *why)
{
        answer(p, attach, status, why);
        close_plan(attach);
}

/* It has its let. What a first sample has lost is lost for all. */
static void add_seat(struct process *p, struct waiting *arrival)
{
        int r;

        if (p->n_seats == SEATS_MAX) {
                sl_gpu_lets_release(&p->programs->lets, arrival->claim);
                answer_and_end(p, &arrival->attach, -ENOMEM, "a GPU has room for 128 workers");
                return;
        }
        r = sl_gpu_seat_new(&arrival->attach, arrival->claim, p->programs, &p->seats[p->n_seats]);
        if (r == 0)
                p->n_seats++;
        make_accumulator(p);
        p->lost |= r == -EIO;
        close_plan(&arrival->attach);
}

/* Return: false: its let has no room yet. */
static bool settle(struct process *p, struct waiting *arrival)
{
        struct sl_error error = {""};
        int r = sl_gpu_lets_take(&p->programs->lets, arrival->claim, &error);

        if (r == 0)
                add_seat(p, arrival);
        else if (r == -EBUSY && sl_clock_ns() < arrival->until_ns && !sl_gpu_attach_is_gone(&arrival->attach))
                return false;
        else {
                sl_gpu_lets_release(&p->programs->lets, arrival->claim);
                answer_and_end(p, &arrival->attach, r, error.text);
        }
        return true;
}

/* Only who replaces somebody waits: of those that come with it some may make room. */
static void arrive(struct process *p, struct sl_gpu_attach *attach)
{
        const struct sl_gpu_part *part = &attach->link.start.gpu_part;
        struct waiting arrival = {.attach = *attach};

        if (p->fault || attach->asks) {
                answer_and_end(p, attach, p->fault, p->fault_text.text);
                return;
        }
        arrival.claim = sl_gpu_lets_claim(&p->programs->lets, part);
        if (!arrival.claim) {
                answer_and_end(p, attach, -ENOMEM, "no memory for a worker");
                return;
        }
        if (part->replaced_crew && p->n_waiting < WAITING_MAX)
                arrival.until_ns = sl_clock_ns() + WAIT_NS;
        if (!settle(p, &arrival))
                p->waiting[p->n_waiting++] = arrival;
}

/* In the order in which they came. */
static void settle_waiting(struct process *p)
{
        uint32_t n = p->n_waiting;

        p->n_waiting = 0;
        for (uint32_t i = 0; i < n; i++) {
                struct waiting arrival = p->waiting[i];

                if (!settle(p, &arrival))
                        p->waiting[p->n_waiting++] = arrival;
        }
}

static void receive_workers(struct process *p)
{
        struct sl_gpu_attach attach;
        int r;

        while ((r = sl_gpu_attach_receive(&attach)) == 1)
                arrive(p, &attach);
        p->ended |= r < 0;
}

static void look_around(struct process *p)
{
        receive_workers(p);
        for (uint32_t i = p->n_seats; i-- > 0;) {
                sl_worker_link_hear(sl_gpu_seat_link(p->seats[i]));
                if (!sl_gpu_seat_link(p->seats[i])->ended)
                        continue;
                sl_gpu_seat_free(p->seats[i]);
                p->seats[i] = p->seats[--p->n_seats];
        }
        settle_waiting(p);
}

/* ---- what it does ---- */

static bool is_busy(const struct process *p)
{
        for (uint32_t i = 0; i < p->n_seats; i++)
                if (sl_gpu_seat_is_busy(p->seats[i]))
                        return true;
        return false;
}

/* Nothing that is done on the device works again: everybody is told, and the process ends. */
static bool is_lost(struct process *p)
{
        struct sl_error why = {""};

        for (uint32_t i = 0; i < p->n_seats && !why.text[0]; i++)
                (void)sl_gpu_seat_lost(p->seats[i], &why);
        if (!why.text[0] && p->programs && p->programs->accumulator)
                (void)sl_gpu_accumulator_lost(p->programs->accumulator, &why);
        for (uint32_t i = 0; i < p->n_seats && why.text[0]; i++)
                sl_gpu_seat_give_up(p->seats[i], why.text);
        return why.text[0];
}

static void sleep_on_all(struct process *p)
{
        const _Atomic uint32_t *words[SEATS_MAX] = {NULL};
        uint32_t values[SEATS_MAX] = {0}, n = p->n_seats;
        bool idle = true;

        for (uint32_t i = 0; i < n; i++) {
                struct sl_worker_link *link = sl_gpu_seat_link(p->seats[i]);

                words[i] = &link->order->rung;
                idle &= sl_worker_link_doze(link, &values[i]);
        }
        if (idle)
                sl_gpu_sleep(words, values, n, SLEEP_NS);
        for (uint32_t i = 0; i < n; i++)
                sl_worker_link_rouse(sl_gpu_seat_link(p->seats[i]));
}

static int serve(struct process *p)
{
        uint64_t quiet_ns = sl_clock_ns();

        for (uint32_t turn = 0; !p->ended; turn++) {
                bool moved = go_on(p);

                if (is_lost(p) || p->lost)
                        return 2;
                if (turn % TURNS_PER_LOOK == 0)
                        look_around(p);
                if (moved || is_busy(p)) {
                        quiet_ns = sl_clock_ns();
                } else if (sl_clock_ns() - quiet_ns > SPIN_NS) {
                        look_around(p);
                        if (!p->n_seats && !p->n_waiting && !p->ended)
                                sl_gpu_attach_wait();
                        else
                                sleep_on_all(p);
                }
        }
        return 0;
}

static void process_end(struct process *p)
{
        for (uint32_t i = 0; i < p->n_seats; i++)
                sl_gpu_seat_free(p->seats[i]);
        for (uint32_t i = 0; i < p->n_waiting; i++) {
                sl_gpu_lets_release(&p->programs->lets, p->waiting[i].claim);
                sl_worker_link_end(&p->waiting[i].attach.link);
                close_plan(&p->waiting[i].attach);
        }
        if (p->programs)
                sl_gpu_accumulator_free(p->programs->accumulator);
        free(p->programs);
        sl_cuda_device_close(&p->device);
        sl_cuda_driver_close(&p->driver);
        free(p);
}

int sl_gpu_serve(uint32_t gpu)
{
        struct process *p = calloc(1, sizeof(*p));
        const char *lacks;
        int r;

        if (!p)
                return 1;
        (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* streams that share one of 8 queues wait for each other */
        p->fault = open_gpu(p, gpu, &p->fault_text);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        lacks = sl_gpu_sandbox_enter("/dev");
        if (p->programs)
                p->programs->lacks = lacks;
        r = serve(p);
        if (r == 2) /* what it has on the device cannot even be given back */
                _exit(r);
        process_end(p);
        return r;
}
