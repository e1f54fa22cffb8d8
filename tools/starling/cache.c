/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling cache list|clear`: the compiled plans that runtimes of this user keep. Works beside them.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "cache_folder.h"
#include "command.h"
#include "command_options.h"
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPTIONS = OPTIONS_BEGIN, CACHE_OPTIONS(OPTION_ID) };

struct wish {
        const char *config, *action;
        bool json;
};

/* What there is; a folder that is not there holds nothing. */
struct content {
        char path[PATH_MAX];
        uint64_t bytes_max;
        int folder; /* -1: none */
};

static int parse(int argc, char **argv, struct wish *ret_wish)
{
        static const struct option options[] = {CACHE_OPTIONS(OPTION_GETOPT){0}};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_CONFIG)
                        ret_wish->config = optarg;
                else if (option == OPTION_JSON)
                        ret_wish->json = true;
                else
                        return -EINVAL;
        }
        if (argc - optind != 1)
                return -EINVAL;
        ret_wish->action = argv[optind];
        return strcmp(ret_wish->action, "list") == 0 || strcmp(ret_wish->action, "clear") == 0 ? 0 : -EINVAL;
}

static int open_content(const struct sl_config *config, struct content *content, struct sl_error *error)
{
        int r = 0;

        content->bytes_max = config->cache_bytes;
        if (config->cache_directory)
                snprintf(content->path, sizeof(content->path), "%s", config->cache_directory);
        else
                r = sl_cache_folder_default(content->path, error);
        if (r == 0)
                r = sl_cache_folder_open(content->path, false, &content->folder, error);
        return r == -ENOENT && content->path[0] ? 0 : r;
}

static const char *kind_name(enum sl_cache_file_kind kind)
{
        static const char *const names[] = {[SL_CACHE_PLAN] = "plan",
                [SL_CACHE_RECORD] = "record",
                [SL_CACHE_BASE] = "base",
                [SL_CACHE_MODEL] = "model",
                [SL_CACHE_CORE] = "core",
                [SL_CACHE_ALLOCATION] = "allocation",
                [SL_CACHE_FUSE] = "fuse",
                [SL_CACHE_CHOICES] = "choices",
                [SL_CACHE_UNDER_WAY] = "unfinished"};

        return names[kind];
}

static void print_json(const struct content *content, const struct sl_cache_file *files, uint32_t n)
{
        json_t *array = json_array(), *object;

        for (uint32_t i = 0; i < n; i++)
                json_array_append_new(
                        array, json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", files[i].name, "kind", kind_name(files[i].kind),
                                       "bytes", (json_int_t)files[i].bytes, "used_unix_seconds", (json_int_t)files[i].used.tv_sec,
                                       "uid", files[i].asked ? json_integer(files[i].uid) : json_null()));
        object = json_pack(
                "{s:s, s:I, s:o}", "directory", content->path, "bytes_max", (json_int_t)content->bytes_max, "files", array);
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

static void print_file(const struct sl_cache_file *file)
{
        char used[32], owner[16] = "models";
        struct tm time;

        localtime_r(&file->used.tv_sec, &time);
        strftime(used, sizeof(used), "%Y-%m-%d %H:%M:%S", &time);
        if (file->asked)
                snprintf(owner, sizeof(owner), "user %u", file->uid);
        printf("%14" PRIu64 "  %s  %-15s  %s\n", file->bytes, used, owner, file->name);
}

static void print_text(const struct content *content, const struct sl_cache_file *files, uint32_t n)
{
        uint64_t bytes = 0;

        printf("%14s  %-19s  %-15s  %s\n", "bytes", "last use", "for", "file");
        for (uint32_t i = 0; i < n; i++) {
                print_file(&files[i]);
                bytes += files[i].bytes;
        }
        printf("%" PRIu32 " files of %" PRIu64 " bytes in %s, at most %" PRIu64 "\n", n, bytes, content->path, content->bytes_max);
}

static int list(const struct content *content, bool json)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_cache_file *files = NULL;
        uint32_t n = 0;
        int r = content->folder >= 0 ? sl_cache_folder_list(content->folder, &files, &n) : 0;

        if (r == 0)
                (json ? print_json : print_text)(content, files, n);
        return r;
}

static int clear(const struct content *content, bool json)
{
        uint64_t bytes = 0;
        uint32_t n = 0;
        int r = content->folder >= 0 ? sl_cache_folder_clear(content->folder, &n, &bytes) : 0;

        if (r == 0 && json)
                printf("{\"removed_files\": %" PRIu32 ", \"removed_bytes\": %" PRIu64 "}\n", n, bytes);
        else if (r == 0)
                printf("%" PRIu32 " files of %" PRIu64 " bytes removed from %s\n", n, bytes, content->path);
        return r;
}

int command_cache(int argc, char **argv)
{
        struct content content = {.folder = -1};
        struct sl_error error = {""};
        struct sl_config *config;
        struct wish wish = {0};

        if (parse(argc, argv, &wish) < 0)
                return complain_usage("cache");
        if (sl_config_read(wish.config, &config, &error) < 0)
                return complain(STATUS_USAGE, "cache", "%s", error.text);
        int r = open_content(config, &content, &error);
        sl_config_free(config);
        if (r < 0)
                return complain(STATUS_FAILED, "cache", "%s", error.text);
        r = (strcmp(wish.action, "list") == 0 ? list : clear)(&content, wish.json);
        sl_cleanup_fd(&content.folder);
        return r == 0 ? STATUS_OK : complain(STATUS_FAILED, "cache", "\"%s\": %s", content.path, strerrordesc_np(-r));
}
