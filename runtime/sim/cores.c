/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX
#define NONE  UINT32_MAX

/* What is nearer than this is now: clocks are sums of doubles. */
#define CLOSE_NS 1e-3

struct job {
        uint32_t worker;
        double end; /* on the lane's clock */
        double share;
        uint64_t slice_end_ns;
};

/* A model on the cores of a let. */
struct lane {
        uint32_t model, n, first_job; /* that compute: jobs[first_job, first_job + n) */
        double clock, slow_down;
        double beside; /* sum of pair - 1 over all that compute there, its own jobs among them */
        double itself; /* pair - 1 of two of its own */
        double end;    /* the earliest, on its clock */
};

/* The cores of a let, and of those lets that share them. */
struct group {
        uint32_t class_index, first_lane, n_lanes, n, at_once;
        uint64_t at_ns;  /* up to which the clocks are right */
        uint64_t due_ns; /* when the next job there is done */
        double shares;   /* of all that compute */
        uint32_t due_lane;
        bool due_is_slice; /* nobody is done then, but somebody makes room */
        uint64_t slice_ns;
        uint32_t first_waiting, n_workers; /* waiting[first_waiting, first_waiting + n_workers): a ring */
        uint32_t oldest, n_waiting;
};

struct sl_sim_cores {
        uint32_t n_groups, n_models;
        struct group *groups;
        struct lane *lanes;
        struct job *jobs;
        struct job *waiting;          /* @end: what is left of them alone */
        uint32_t *lane_of, *group_of; /* of each worker */
        double *pairs;                /* - 1, of [class][model][other] */
};

/* The worker's group and lane; a new one of each where there is none yet. */
static void place_worker(struct sl_sim_cores *cores, const struct sl_sim_world *world, uint32_t group, uint32_t owner,
        uint32_t *n_lanes, uint32_t worker)
{
        const struct sl_sim_worker *w = &world->workers[worker];
        struct group *g = &cores->groups[group];
        uint32_t lane = g->first_lane;

        if (world->lets[w->let].cores_of != owner)
                return;
        while (lane < g->first_lane + g->n_lanes && cores->lanes[lane].model != w->model)
                lane++;
        if (lane == g->first_lane + g->n_lanes) {
                cores->lanes[(*n_lanes)++] = (struct lane){.model = w->model, .slow_down = 1};
                g->n_lanes++;
        }
        cores->group_of[worker] = group;
        g->n_workers++;
        cores->lane_of[worker] = lane;
}

static void place_jobs(struct sl_sim_cores *cores, const struct sl_sim_world *world, uint32_t n_lanes)
{
        uint32_t first = 0;

        for (uint32_t lane = 0; lane < n_lanes; lane++) {
                cores->lanes[lane].first_job = first;
                for (uint32_t i = 0; i < world->n_workers; i++)
                        first += cores->lane_of[i] == lane;
        }
}

static void copy_pairs(struct sl_sim_cores *cores, const struct sl_sim_world *world)
{
        size_t n = (size_t)world->n_classes * world->n_models * world->n_models;

        for (size_t i = 0; i < n; i++)
                cores->pairs[i] = world->pairs[i] > 1 ? world->pairs[i] - 1 : 0;
}

static const double *pairs_of(const struct sl_sim_cores *cores, const struct group *g, uint32_t model)
{
        return &cores->pairs[((size_t)g->class_index * cores->n_models + model) * cores->n_models];
}

static uint32_t count_groups(const struct sl_sim_world *world)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < world->n_lets; i++)
                n += world->lets[i].cores_of == i;
        return n;
}

static void place_all(struct sl_sim_cores *cores, const struct sl_sim_world *world)
{
        uint32_t n_lanes = 0, group = 0, n_placed = 0;

        for (uint32_t let = 0; let < world->n_lets; let++) {
                if (world->lets[let].cores_of != let)
                        continue;
                cores->groups[group] = (struct group){.class_index = world->lets[let].class_index,
                        .first_lane = n_lanes,
                        .at_once = world->lets[let].at_once,
                        .due_ns = NEVER,
                        .due_lane = NONE,
                        .slice_ns = world->lets[let].slice_ns,
                        .first_waiting = n_placed};
                for (uint32_t i = 0; i < world->n_workers; i++)
                        place_worker(cores, world, group, let, &n_lanes, i);
                n_placed += cores->groups[group].n_workers;
                group++;
        }
        place_jobs(cores, world, n_lanes);
        copy_pairs(cores, world);
        for (uint32_t i = 0; i < cores->n_groups; i++)
                for (uint32_t k = 0; k < cores->groups[i].n_lanes; k++) {
                        struct lane *lane = &cores->lanes[cores->groups[i].first_lane + k];

                        lane->itself = pairs_of(cores, &cores->groups[i], lane->model)[lane->model];
                }
}

int sl_sim_cores_new(const struct sl_sim_world *world, struct sl_sim_cores **ret_cores)
{
        struct sl_sim_cores *cores = calloc(1, sizeof(*cores));
        uint32_t n_groups = count_groups(world);

        if (!cores)
                return -ENOMEM;
        cores->n_groups = n_groups;
        cores->n_models = world->n_models;
        cores->groups = calloc(n_groups, sizeof(*cores->groups));
        cores->lanes = calloc(world->n_workers, sizeof(*cores->lanes));
        cores->jobs = calloc(world->n_workers, sizeof(*cores->jobs));
        cores->waiting = calloc(world->n_workers, sizeof(*cores->waiting));
        cores->lane_of = calloc(world->n_workers, sizeof(*cores->lane_of));
        cores->group_of = calloc(world->n_workers, sizeof(*cores->group_of));
        cores->pairs = calloc((size_t)world->n_classes * world->n_models * world->n_models, sizeof(*cores->pairs));
        if (!cores->groups || !cores->lanes || !cores->jobs || !cores->waiting || !cores->lane_of || !cores->group_of ||
                !cores->pairs) {
                sl_sim_cores_free(cores);
                return -ENOMEM;
        }
        place_all(cores, world);
        *ret_cores = cores;
        return 0;
}

struct sl_sim_cores *sl_sim_cores_free(struct sl_sim_cores *cores)
{
        if (!cores)
                return NULL;
        free(cores->groups);
        free(cores->lanes);
        free(cores->jobs);
        free(cores->waiting);
        free(cores->lane_of);
        free(cores->group_of);
        free(cores->pairs);
        free(cores);
        return NULL;
}

static void advance(struct sl_sim_cores *cores, struct group *g, uint64_t now_ns)
{
        double ns = (double)(now_ns - g->at_ns);

        g->at_ns = now_ns;
        for (uint32_t i = g->first_lane; i < g->first_lane + g->n_lanes; i++)
                if (cores->lanes[i].n)
                        cores->lanes[i].clock += ns / cores->lanes[i].slow_down;
}

/* One more job of @model computes, or one fewer. */
static void count_beside(struct sl_sim_cores *cores, struct group *g, uint32_t model, double change)
{
        for (uint32_t i = g->first_lane; i < g->first_lane + g->n_lanes; i++) {
                struct lane *lane = &cores->lanes[i];

                lane->beside = g->n ? lane->beside + change * pairs_of(cores, g, lane->model)[model] : 0;
        }
}

static void find_end(const struct sl_sim_cores *cores, struct lane *lane)
{
        const struct job *jobs = &cores->jobs[lane->first_job];

        lane->end = lane->n ? jobs[0].end : 0;
        for (uint32_t i = 1; i < lane->n; i++)
                if (jobs[i].end < lane->end)
                        lane->end = jobs[i].end;
}

/* When the lane's clock comes to its earliest end, rounded up. */
static uint64_t lane_due_ns(const struct group *g, const struct lane *lane)
{
        double left = (lane->end - lane->clock) * lane->slow_down;
        uint64_t whole = left > CLOSE_NS ? (uint64_t)left : 0;

        return g->at_ns + whole + (left > (double)whole + CLOSE_NS);
}

/* Somebody waits: who has computed for a slice makes room, unless it is done by then. */
static void look_at_slices(const struct sl_sim_cores *cores, struct group *g)
{
        for (uint32_t i = g->first_lane; i < g->first_lane + g->n_lanes; i++) {
                const struct lane *lane = &cores->lanes[i];

                for (uint32_t k = 0; k < lane->n; k++) {
                        uint64_t end_ns = cores->jobs[lane->first_job + k].slice_end_ns;

                        end_ns = end_ns > g->at_ns ? end_ns : g->at_ns;
                        if (end_ns >= g->due_ns)
                                continue;
                        g->due_ns = end_ns;
                        g->due_lane = i;
                        g->due_is_slice = true;
                }
        }
}

/* After a change: how fast the clocks run, and who is done first. */
static void look_ahead(struct sl_sim_cores *cores, struct group *g)
{
        double shared = g->at_once ? (double)g->n / g->at_once : 1, full = g->shares > 1 ? g->shares : 1;

        g->due_ns = NEVER;
        for (uint32_t i = g->first_lane; i < g->first_lane + g->n_lanes; i++) {
                struct lane *lane = &cores->lanes[i];
                double beside = 1 + lane->beside - lane->itself;
                uint64_t due_ns;

                if (!lane->n)
                        continue;
                lane->slow_down = beside > shared ? beside : shared;
                lane->slow_down = (lane->slow_down > 1 ? lane->slow_down : 1) * full;
                due_ns = lane_due_ns(g, lane);
                if (due_ns >= g->due_ns)
                        continue;
                g->due_ns = due_ns;
                g->due_lane = i;
                g->due_is_slice = false;
        }
        if (g->n_waiting)
                look_at_slices(cores, g);
}

static void start(struct sl_sim_cores *cores, struct group *g, const struct job *job)
{
        struct lane *lane = &cores->lanes[cores->lane_of[job->worker]];
        struct job started = *job;

        started.end += lane->clock;
        started.slice_end_ns = g->at_ns + g->slice_ns;
        lane->end = lane->n && lane->end < started.end ? lane->end : started.end;
        cores->jobs[lane->first_job + lane->n++] = started;
        g->n++;
        g->shares += job->share;
        count_beside(cores, g, lane->model, 1);
}

static void wait(struct sl_sim_cores *cores, struct group *g, const struct job *job)
{
        cores->waiting[g->first_waiting + (g->oldest + g->n_waiting++) % g->n_workers] = *job;
}

static void start_next(struct sl_sim_cores *cores, struct group *g)
{
        if (!g->n_waiting)
                return;
        g->n_waiting--;
        start(cores, g, &cores->waiting[g->first_waiting + g->oldest]);
        g->oldest = (g->oldest + 1) % g->n_workers;
}

void sl_sim_cores_begin(struct sl_sim_cores *cores, uint32_t worker, uint64_t now_ns, double alone_ns, double share)
{
        struct group *g = &cores->groups[cores->group_of[worker]];
        const struct job job = {.worker = worker, .end = alone_ns, .share = share};

        advance(cores, g, now_ns);
        if (g->slice_ns && g->at_once && g->n >= g->at_once)
                wait(cores, g, &job);
        else
                start(cores, g, &job);
        look_ahead(cores, g);
}

uint64_t sl_sim_cores_next_ns(const struct sl_sim_cores *cores)
{
        uint64_t next = NEVER;

        for (uint32_t i = 0; i < cores->n_groups; i++)
                if (cores->groups[i].due_ns < next)
                        next = cores->groups[i].due_ns;
        return next;
}

/* Which of a lane's jobs is done first, or has to make room first; of several, that of the lowest number. */
static uint32_t first_of(const struct sl_sim_cores *cores, const struct lane *lane, bool by_slice)
{
        const struct job *jobs = &cores->jobs[lane->first_job];
        uint32_t first = 0;

        for (uint32_t i = 1; i < lane->n; i++) {
                double mine = by_slice ? (double)jobs[i].slice_end_ns : jobs[i].end;
                double least = by_slice ? (double)jobs[first].slice_end_ns : jobs[first].end;

                if (mine < least || (mine <= least && jobs[i].worker < jobs[first].worker))
                        first = i;
        }
        return first;
}

/* What is due in the group stops; its @end is what is left of it. */
static struct job stop(struct sl_sim_cores *cores, struct group *g)
{
        struct lane *lane = &cores->lanes[g->due_lane];
        struct job *jobs = &cores->jobs[lane->first_job];
        uint32_t first = first_of(cores, lane, g->due_is_slice);
        struct job stopped = jobs[first];

        stopped.end -= lane->clock;
        jobs[first] = jobs[--lane->n];
        find_end(cores, lane);
        g->n--;
        g->shares = g->n ? g->shares - stopped.share : 0;
        count_beside(cores, g, lane->model, -1);
        return stopped;
}

/* Return: true: a worker is done; false: one has made room. */
static bool go_on(struct sl_sim_cores *cores, struct group *g, uint64_t now_ns, uint32_t *ret_worker)
{
        bool is_done = !g->due_is_slice;
        struct job stopped;

        advance(cores, g, now_ns);
        stopped = stop(cores, g);
        if (!is_done)
                wait(cores, g, &stopped);
        start_next(cores, g);
        look_ahead(cores, g);
        *ret_worker = stopped.worker;
        return is_done;
}

bool sl_sim_cores_end(struct sl_sim_cores *cores, uint64_t now_ns, uint32_t *ret_worker)
{
        for (uint32_t i = 0; i < cores->n_groups; i++)
                while (cores->groups[i].due_ns <= now_ns)
                        if (go_on(cores, &cores->groups[i], now_ns, ret_worker))
                                return true;
        return false;
}
