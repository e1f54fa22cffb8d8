/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "plan.h"
#include "plan_sum.h"
#include "ports.h"
#include "process.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WORKERS_MAX 16

struct worker {
        struct sl_plan *own_plan; /* NULL: the first worker's serves this one too */
        struct sl_instance *instance;
        uint32_t size;
};

struct crew {
        uint32_t n;
        struct worker workers[WORKERS_MAX];
};

static int parse(struct crew *crew, const char *sizes, struct sl_error *error)
{
        const char *at = sizes;
        char *end;

        do {
                long size = strtol(at, &end, 10);

                if (end == at || size < 1 || size > 1024 || (*end && *end != ',') || crew->n == WORKERS_MAX)
                        return sl_error_set(
                                error, EINVAL, "at most %d batch sizes are wanted, as in 1,2,4, not \"%s\"", WORKERS_MAX, sizes);
                crew->workers[crew->n++].size = (uint32_t)size;
                at = end + 1;
        } while (*end);
        return 0;
}

/* The same bytes in memory that nobody else has mapped. */
static int copy_of(int plan_fd, int *ret_fd)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("plan", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : sl_plan_sum_copy(plan_fd, fd);

        if (r == 0)
                *ret_fd = sl_take_fd(&fd);
        return r;
}

static int open_plan(struct worker *worker, int plan_fd, bool copy, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = copy ? copy_of(plan_fd, &fd) : 0;

        if (r < 0)
                return sl_error_set(error, -r, "no copy of the plan: %s", strerror(-r));
        return sl_plan_open(copy ? fd : plan_fd, &worker->own_plan, error);
}

/* A worker of @size: its buffers are on loan for the run, the workspace stays. */
static int run_once(struct worker *worker, const struct sl_plan *plan, struct sl_error *error)
{
        struct sl_ports ports;
        int r = sl_instance_new(plan, worker->size, &worker->instance, error);

        if (r == 0)
                r = sl_ports_init(&ports, sl_plan_info(plan), worker->size, error);
        if (r < 0)
                return r;
        r = sl_instance_run(worker->instance, worker->size, (const void *const *)ports.inputs, ports.outputs);
        sl_ports_deinit(&ports);
        return r == 0 ? 0 : sl_error_set(error, -r, "a run of batch size %u: %s", worker->size, strerror(-r));
}

static int start(struct crew *crew, int plan_fd, bool copies, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < crew->n; i++) {
                struct worker *worker = &crew->workers[i];

                if (i == 0 || copies)
                        r = open_plan(worker, plan_fd, copies, error);
                if (r == 0)
                        r = run_once(worker, worker->own_plan ? worker->own_plan : crew->workers[0].own_plan, error);
        }
        return r;
}

static void end(struct crew *crew)
{
        for (uint32_t i = crew->n; i-- > 0;) {
                sl_instance_free(crew->workers[i].instance);
                sl_plan_free(crew->workers[i].own_plan);
        }
}

int sl_crew_measure(int plan_fd, const char *sizes, bool copies, struct sl_crew_memory *ret_memory, struct sl_error *error)
{
        struct sl_crew_memory memory = {0};
        struct crew crew = {0};
        int r = parse(&crew, sizes, error);

        if (r == 0)
                r = sl_process_rss(getpid(), &memory.before_bytes);
        if (r == 0)
                r = start(&crew, plan_fd, copies, error);
        malloc_trim(0); /* the buffers that were on loan are nobody's memory */
        if (r == 0)
                r = sl_process_rss(getpid(), &memory.after_bytes);
        if (r == 0) {
                memory.workers = crew.n;
                memory.weights_bytes = sl_plan_info(crew.workers[0].own_plan)->weights_bytes;
                *ret_memory = memory;
        }
        end(&crew);
        return r;
}
