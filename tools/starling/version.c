/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling version`: the program; with --host what it runs on, and what a core of that reaches, as the runtime has measured it for
 * its plans (plan_cache.h), or measures now and keeps where the runtime finds it.
 */
#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/processor.h"
#include "command.h"
#include "command_options.h"
#include "config.h"
#include "plan_cache.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, VERSION_OPTIONS(OPTION_ID) };

#define CACHES_MAX 8

struct wish {
        const char *config;
        bool host, json;
};

struct cache {
        char level[8], type[32], size[32];
};

struct host {
        char processor[SL_PROCESSOR_BYTES];
        struct cache caches[CACHES_MAX];
        uint32_t n_caches;
        bool measured; /* a backend has found what to plan for */
        struct sl_target target;
};

SL_DEFINE_CLEANUP(struct sl_plan_cache *, sl_plan_cache_free)

static int parse(int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {VERSION_OPTIONS(OPTION_GETOPT){0}};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_CONFIG)
                        wish->config = optarg;
                else if (option == OPTION_HOST)
                        wish->host = true;
                else if (option == OPTION_JSON)
                        wish->json = true;
                else
                        return -EINVAL;
        }
        return optind == argc ? 0 : -EINVAL;
}

static bool read_line(const char *path, char *ret_line, size_t bytes)
{
        FILE *file = fopen(path, "re");
        bool read = file && fgets(ret_line, (int)bytes, file);

        if (read)
                ret_line[strcspn(ret_line, "\n")] = 0;
        if (file)
                fclose(file);
        return read;
}

/* Those of the first processor, as the system says; it may say nothing. */
static void read_caches(struct host *host)
{
        static const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
        char path[128];

        for (uint32_t i = 0; i < CACHES_MAX; i++) {
                struct cache *cache = &host->caches[host->n_caches];

                snprintf(path, sizeof(path), "%s%u/level", folder, i);
                if (!read_line(path, cache->level, sizeof(cache->level)))
                        return;
                snprintf(path, sizeof(path), "%s%u/type", folder, i);
                if (!read_line(path, cache->type, sizeof(cache->type)))
                        return;
                snprintf(path, sizeof(path), "%s%u/size", folder, i);
                if (read_line(path, cache->size, sizeof(cache->size)))
                        host->n_caches++;
        }
}

static const struct sl_backend *measuring_backend(void)
{
        const struct sl_backend *backend;
        uint32_t i = 0;

        while ((backend = sl_backend_at(i++)) && !backend->planner->measure)
                ;
        return backend;
}

/* From the folder of the runtime that has this configuration; without a cache it is measured each time, as by the runtime. */
static int read_target(const char *config_path, struct host *host, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_cache_free) struct sl_plan_cache *cache = NULL;
        const struct sl_backend *backend = measuring_backend();
        struct sl_config *config;
        int r = sl_config_read(config_path, &config, error);

        if (r < 0 || !backend)
                return r;
        r = config->cache_bytes ? sl_plan_cache_new(config->cache_directory, config->cache_bytes, &cache, error) : 0;
        if (cache)
                r = sl_plan_cache_target(cache, backend->name, &host->target);
        else if (r == 0)
                r = backend->planner->measure(&host->target);
        host->measured = r == 0;
        sl_config_free(config);
        return r == -ENOTSUP ? 0 : r;
}

static void print_text(const struct host *host)
{
        char key[SL_BACKEND_KEY_BYTES], figures[SL_CORE_FIGURES_TEXT_BYTES];
        struct sl_core_figures core = host->target.core;
        const struct sl_backend *backend;

        printf("processor  %s\n", host->processor);
        for (uint32_t i = 0; i < host->n_caches; i++)
                printf("cache      L%s %s %s\n", host->caches[i].level, host->caches[i].type, host->caches[i].size);
        for (uint32_t i = 0; (backend = sl_backend_at(i)); i++) {
                bool here = backend->key && backend->key(NULL, key) == 0;

                printf("backend    %s%s%s\n", backend->name, here ? ": " : "", here ? key : "");
        }
        if (!host->measured) {
                printf("core       nothing is measured on this processor\n");
                return;
        }
        printf("core, rates as measured:\n");
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++) {
                struct sl_core_figure_info info = sl_core_figure_info(i);

                printf("    %-16s  %8.2g %-12s  %s\n", info.name, *sl_core_figure(&core, i), info.unit, info.text);
        }
        sl_core_figures_print(&core, figures);
        printf("as an option:\n    core=%s\n", figures);
}

static void print_json(const struct host *host)
{
        json_t *caches = json_array(), *backends = json_array(), *core = json_object(), *object;
        char key[SL_BACKEND_KEY_BYTES] = "";
        struct sl_core_figures figures = host->target.core;
        const struct sl_backend *backend;

        for (uint32_t i = 0; i < host->n_caches; i++)
                json_array_append_new(caches, json_pack("{s:s, s:s, s:s}", "level", host->caches[i].level, "type",
                                                      host->caches[i].type, "size", host->caches[i].size));
        for (uint32_t i = 0; (backend = sl_backend_at(i)); i++) {
                bool here = backend->key && backend->key(NULL, key) == 0;

                json_array_append_new(
                        backends, json_pack("{s:s, s:o}", "name", backend->name, "key", here ? json_string(key) : json_null()));
        }
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT && host->measured; i++)
                json_object_set_new(core, sl_core_figure_info(i).name, json_real(*sl_core_figure(&figures, i)));
        object = json_pack("{s:s, s:s, s:o, s:o, s:o}", "version", STARLING_TOOL_VERSION, "processor", host->processor, "caches",
                caches, "backends", backends, "core", core);
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(3));
        putchar('\n');
        json_decref(object);
}

int command_version(int argc, char **argv)
{
        struct sl_error error = {""};
        struct host host = {.n_caches = 0};
        struct wish wish = {0};

        if (parse(argc, argv, &wish) < 0)
                return complain_usage("version");
        if (wish.host && read_target(wish.config, &host, &error) < 0)
                return complain(STATUS_FAILED, "version", "%s", error.text[0] ? error.text : "the core cannot be measured");
        sl_processor_name(host.processor);
        read_caches(&host);
        if (wish.json) {
                print_json(&host);
                return STATUS_OK;
        }
        printf("starling %s\n", STARLING_TOOL_VERSION);
        if (wish.host)
                print_text(&host);
        return STATUS_OK;
}
