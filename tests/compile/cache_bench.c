/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_bench.h"

#include "base/error.h"
#include "network.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cache_bench bench;

void write_file(const char *path, const char *content)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        cr_assert_geq(fd, 0, "%s", path);
        cr_assert_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
        close(fd);
}

const char *inside(const char *name)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", bench.folder, name);
        return path;
}

void open_cache(uint64_t bytes)
{
        cr_assert_eq(sl_plan_cache_new(inside("cache"), bytes, &bench.cache, NULL), 0);
}

void cache_bench_init(void)
{
        struct network net;
        uint32_t x;

        strcpy(bench.folder, "/tmp/starling-cache-XXXXXX");
        cr_assert_not_null(mkdtemp(bench.folder));
        cr_assert_eq(mkdir(inside("model"), 0700), 0);
        snprintf(bench.model, sizeof(bench.model), "%s/model/model.onnx", bench.folder);
        write_file(bench.model, "not parsed here");
        open_cache(64 * MIB);
        sl_lower_options_init(&bench.options);
        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 4, 4));
        network_output(&net, network_apply(&net, SL_OP_RELU, x));
        network_finish(&net);
        bench.plan_fd = network_plan_fd(&net, "cpu", 1);
        network_deinit(&net);
}

void cache_bench_deinit(void)
{
        char command[128];

        sl_plan_cache_free(bench.cache);
        close(bench.plan_fd);
        snprintf(command, sizeof(command), "rm -rf %s", bench.folder);
        cr_assert_eq(system(command), 0);
}

struct sl_plan_cache_key key_of(const char *path)
{
        struct sl_plan_cache_key key;
        struct sl_error error = {""};

        cr_assert_eq(sl_plan_cache_key(bench.cache, path, NULL, &bench.options, NULL, &key, &error), 0, "%s", error.text);
        return key;
}

struct sl_plan_cache_key keep(void)
{
        struct sl_plan_cache_key key = key_of(bench.model);
        struct sl_error error = {""};

        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_cache_wait(bench.cache, &error), 0, "%s", error.text);
        return key;
}

int find(const struct sl_plan_cache_key *key, struct sl_error *error)
{
        struct sl_plan *plan = NULL;
        int r = sl_plan_cache_find(bench.cache, key, NULL, &plan, error);

        cr_assert_eq(!plan, r != 0);
        sl_plan_free(plan);
        return r;
}

uint64_t plan_bytes(void)
{
        struct stat status;

        cr_assert_eq(fstat(bench.plan_fd, &status), 0);
        return ((uint64_t)status.st_size + 4095) / 4096 * 4096 + 4096;
}

const char *entry(const struct sl_plan_cache_key *key)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/cache/%s", bench.folder, key->name);
        return path;
}

void let_the_clock_tick(void)
{
        usleep(20000);
}

const char *record_of(const struct sl_plan_cache_key *key)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/cache/%.32s.intact", bench.folder, key->name);
        return path;
}
