/* SPDX-License-Identifier: Apache-2.0 */
#include "ways.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 100000u

struct sl_plan *ways_open(int fd)
{
        struct sl_plan *plan = NULL;
        struct sl_error error = {""};

        if (sl_plan_open_intact(fd, NULL, &plan, &error) < 0)
                copies_die("plan", error.text);
        return plan;
}

void ways_load(struct loaded *loaded, uint32_t batch, uint64_t seed)
{
        const struct sl_plan_info *info = sl_plan_info(loaded->plan);
        struct sl_error error = {""};

        if (sl_instance_new(loaded->plan, batch, &loaded->instance, &error) < 0)
                copies_die("instance", error.text);
        for (uint32_t i = 0; i < info->n_inputs; i++)
                loaded->inputs[i] = copies_input_new(&info->inputs[i], batch, &seed);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                loaded->outputs[i] = copies_bytes_new(copies_port_bytes(&info->outputs[i], batch));
}

void ways_run(struct loaded *loaded, uint32_t batch)
{
        int r = sl_instance_run(loaded->instance, batch, (const void *const *)loaded->inputs, loaded->outputs);

        if (r < 0)
                copies_die("run", strerror(-r));
}

struct worker {
        pid_t pid;
        int go, done; /* rounds wanted; a byte for each request that was kept */
};

static uint32_t load_merged(const struct ways_plans *plans, const struct way *way, struct loaded *loaded)
{
        struct sl_plan *members[COPIES_MAX];
        struct sl_error error = {""};
        uint32_t n = 0;

        for (uint32_t l = 0; l < way->lanes; l++)
                members[l] = ways_open(plans->singles[l]);
        for (uint32_t first = 0; first < way->lanes; first += plans->block_lanes) {
                uint32_t left = way->lanes - first, lanes = left < plans->block_lanes ? left : plans->block_lanes;

                if (sl_plan_open_merged(plans->merged[n], members + first, lanes, true, &loaded[n].plan, &error) < 0)
                        copies_die("merged plan", error.text);
                ways_load(&loaded[n++], way->batch, 1);
        }
        return n;
}

/* Plans of worker @number of @way. Return: how many. */
static uint32_t load_share(const struct ways_plans *plans, const struct way *way, uint32_t number, struct loaded *loaded)
{
        uint32_t n = 0;

        if (way->fused)
                return load_merged(plans, way, loaded);
        for (uint32_t l = number; l < way->lanes; l += way->processes) {
                loaded[n].plan = ways_open(plans->singles[l]);
                ways_load(&loaded[n++], way->batch, l + 1);
        }
        return n;
}

_Noreturn static void work(const struct ways_plans *plans, const struct way *way, uint32_t number, int go, int done)
{
        static struct loaded loaded[COPIES_MAX];
        uint32_t n = load_share(plans, way, number, loaded), rounds = 1;

        do {
                for (uint32_t i = 0; i < rounds; i++)
                        for (uint32_t k = 0; k < n; k++)
                                ways_run(&loaded[k], way->batch);
                if (write(done, "", 1) != 1)
                        break;
        } while (read(go, &rounds, sizeof(rounds)) == sizeof(rounds));
        _exit(0);
}

static void begin_worker(const struct ways_plans *plans, const struct way *way, uint32_t number, struct worker *workers)
{
        int go[2], done[2];

        if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
                copies_die("pipe", strerror(errno));
        fflush(stdout);
        workers[number] = (struct worker){.pid = fork(), .go = go[1], .done = done[0]};
        if (workers[number].pid < 0)
                copies_die("process", strerror(errno));
        if (workers[number].pid == 0) {
                for (uint32_t i = 0; i <= number; i++)
                        close(workers[i].go);
                work(plans, way, number, go[0], done[1]);
        }
        close(go[0]);
        close(done[1]);
}

static void wait_for(const struct worker *workers, uint32_t n)
{
        char byte;

        for (uint32_t i = 0; i < n; i++)
                if (read(workers[i].done, &byte, 1) != 1)
                        copies_die("worker", "it has ended");
}

static double time_rounds(const struct worker *workers, uint32_t n, uint32_t rounds)
{
        uint64_t from = sl_clock_ns();

        for (uint32_t i = 0; i < n; i++)
                if (write(workers[i].go, &rounds, sizeof(rounds)) != sizeof(rounds))
                        copies_die("worker", "it has ended");
        wait_for(workers, n);
        return (double)(sl_clock_ns() - from) / SL_NS_PER_SECOND / rounds;
}

static uint64_t memory_of(pid_t pid)
{
        char path[64], line[256];
        unsigned long long kib = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "Pss: %llu kB", &kib) == 1)
                        break;
        if (file)
                fclose(file);
        return kib << 10;
}

double ways_measure(const struct ways_plans *plans, const struct way *way, double seconds_wanted, uint64_t *ret_bytes)
{
        struct worker workers[COPIES_MAX] = {{0}};
        uint32_t n = way->processes, rounds;
        double seconds;

        for (uint32_t i = 0; i < n; i++)
                begin_worker(plans, way, i, workers);
        wait_for(workers, n);
        seconds = time_rounds(workers, n, 1);
        rounds = (uint32_t)fmin(ROUNDS_MAX, seconds_wanted / fmax(seconds, 1e-6));
        if (rounds > 1)
                seconds = time_rounds(workers, n, rounds);
        *ret_bytes = 0;
        for (uint32_t i = 0; i < n; i++)
                *ret_bytes += memory_of(workers[i].pid);
        for (uint32_t i = 0; i < n; i++) {
                close(workers[i].go);
                close(workers[i].done);
                waitpid(workers[i].pid, NULL, 0);
        }
        return seconds;
}
