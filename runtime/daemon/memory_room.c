/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_room.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024
#define FILE_BYTES 8192

/* The names of one version's files; each has the pages of files under these keys of memory.stat, those of groups below included. */
struct controller {
        const char *folder, *limits[2], *used, *file_pages[2];
};

static const struct controller version_1 = {
        .folder = "/sys/fs/cgroup/memory",
        .limits = {"memory.limit_in_bytes"},
        .used = "memory.usage_in_bytes",
        .file_pages = {"total_active_file", "total_inactive_file"},
};

static const struct controller version_2 = {
        .folder = "/sys/fs/cgroup",
        .limits = {"memory.max", "memory.high"},
        .used = "memory.current",
        .file_pages = {"active_file", "inactive_file"},
};

static bool read_file(const char *root, const char *folder, const char *name, char *ret_text)
{
        char path[PATH_BYTES];

        if (snprintf(path, sizeof(path), "%s%s%s%s", root, folder, *name ? "/" : "", name) >= (int)sizeof(path))
                return false;
        FILE *file = fopen(path, "re");
        if (!file)
                return false;
        size_t n = fread(ret_text, 1, FILE_BYTES - 1, file);
        fclose(file);
        ret_text[n] = 0;
        return true;
}

/* The number of the line that begins with @key, "" for the first; @other when there is none ("max" is none). */
static uint64_t find_number(const char *text, const char *key, uint64_t other)
{
        size_t length = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                const char *number = line + length;
                char *end;

                if (strncmp(line, key, length) != 0 || (length && *number != ' ' && *number != ':'))
                        continue;
                number += strspn(number, " :");
                errno = 0;
                uint64_t value = strtoull(number, &end, 10);
                return errno || end == number ? other : value;
        }
        return other;
}

static uint64_t read_number(const char *root, const char *folder, const char *name, uint64_t other)
{
        char text[FILE_BYTES];

        return name && read_file(root, folder, name, text) ? find_number(text, "", other) : other;
}

static void lower(struct sl_memory_room *room, uint64_t bytes, const char *source)
{
        if (bytes >= room->bytes)
                return;
        room->bytes = bytes;
        snprintf(room->source, sizeof(room->source), "%.*s", (int)sizeof(room->source) - 1, source);
}

static uint64_t working_set(const char *root, const struct controller *controller, const char *folder)
{
        uint64_t used = read_number(root, folder, controller->used, 0), file_pages = 0;
        char text[FILE_BYTES];

        if (read_file(root, folder, "memory.stat", text))
                for (int i = 0; i < 2; i++)
                        file_pages += find_number(text, controller->file_pages[i], 0);
        return used > file_pages ? used - file_pages : 0;
}

/* A limit beyond INT64_MAX less a page is how version 1 says that there is none. */
static void look_at_group(const char *root, const struct controller *controller, const char *folder, struct sl_memory_room *room)
{
        uint64_t limit = UINT64_MAX;

        for (int i = 0; i < 2; i++) {
                uint64_t bytes = read_number(root, folder, controller->limits[i], UINT64_MAX);

                limit = bytes < limit ? bytes : limit;
        }
        if (limit >= INT64_MAX - (1 << 16))
                return;
        uint64_t used = working_set(root, controller, folder);
        lower(room, limit > used ? limit - used : 0, folder);
}

/* From the group to the root. In a container the path may be the host's, and what is mounted is its own group as the root. */
static void look_upwards(const char *root, const struct controller *controller, const char *group, struct sl_memory_room *room)
{
        char folder[PATH_BYTES];
        size_t least = strlen(controller->folder);

        if (snprintf(folder, sizeof(folder), "%s%s", controller->folder, group) >= (int)sizeof(folder))
                return;
        for (;;) {
                look_at_group(root, controller, folder, room);
                char *slash = strrchr(folder, '/');
                if (!slash || (size_t)(slash - folder) < least)
                        return;
                *slash = 0;
        }
}

/* "7:memory:/a/b" or "7:cpu,memory:/a/b" of version 1, "0::/a/b" of version 2. */
static void look_at_line(const char *root, char *line, struct sl_memory_room *room)
{
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        char *context, *name;

        if (!group)
                return;
        *group++ = 0;
        controllers++;
        if (!*controllers)
                look_upwards(root, &version_2, group, room);
        for (name = strtok_r(controllers, ",", &context); name; name = strtok_r(NULL, ",", &context))
                if (strcmp(name, "memory") == 0)
                        look_upwards(root, &version_1, group, room);
}

void sl_memory_room_read(const char *root, struct sl_memory_room *ret_room)
{
        char text[FILE_BYTES], *context;
        uint64_t kib;

        *ret_room = (struct sl_memory_room){.bytes = UINT64_MAX};
        if (read_file(root, "/proc/meminfo", "", text)) {
                kib = find_number(text, "MemAvailable", UINT64_MAX);
                lower(ret_room, kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024, "/proc/meminfo");
        }
        if (!read_file(root, "/proc/self/cgroup", "", text))
                return;
        for (char *line = strtok_r(text, "\n", &context); line; line = strtok_r(NULL, "\n", &context))
                look_at_line(root, line, ret_room);
}

uint64_t sl_memory_room_usable(uint64_t bytes)
{
        return bytes == UINT64_MAX ? bytes : bytes - bytes / 8;
}
