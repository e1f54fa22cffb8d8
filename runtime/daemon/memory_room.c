/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_room.h"

#include "control_groups.h"
#include "host_file.h"

#include <stdio.h>

#define FILE_BYTES 8192

/* The names of one version's files; each has the pages of files under these keys of memory.stat, those of groups below included. */
struct controller {
        const char *limits[2], *used, *file_pages[2];
};

static const struct controller version_1 = {
        .limits = {"memory.limit_in_bytes"},
        .used = "memory.usage_in_bytes",
        .file_pages = {"total_active_file", "total_inactive_file"},
};

static const struct controller version_2 = {
        .limits = {"memory.max", "memory.high"},
        .used = "memory.current",
        .file_pages = {"active_file", "inactive_file"},
};

/* What is looked at, and the least that was found. */
struct look {
        const char *root;
        struct sl_memory_room *room;
};

/* "max" is no number. */
static uint64_t read_number(const char *root, const char *folder, const char *name, uint64_t other)
{
        char text[FILE_BYTES];

        return name && sl_host_file(root, text, sizeof(text), "%s/%s", folder, name) ? sl_host_number(text, "", other) : other;
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

        if (sl_host_file(root, text, sizeof(text), "%s/memory.stat", folder))
                for (int i = 0; i < 2; i++)
                        file_pages += sl_host_number(text, controller->file_pages[i], 0);
        return used > file_pages ? used - file_pages : 0;
}

/* A limit beyond INT64_MAX less a page is how version 1 says that there is none. */
static void look_at_group(void *context, int version, const char *folder)
{
        const struct controller *controller = version == 1 ? &version_1 : &version_2;
        const struct look *look = context;
        uint64_t limit = UINT64_MAX;

        for (int i = 0; i < 2; i++) {
                uint64_t bytes = read_number(look->root, folder, controller->limits[i], UINT64_MAX);

                limit = bytes < limit ? bytes : limit;
        }
        if (limit >= INT64_MAX - (1 << 16))
                return;
        uint64_t used = working_set(look->root, controller, folder);
        lower(look->room, limit > used ? limit - used : 0, folder);
}

void sl_memory_room_read(const char *root, struct sl_memory_room *ret_room)
{
        struct look look = {.root = root, .room = ret_room};
        char text[FILE_BYTES];
        uint64_t kib;

        *ret_room = (struct sl_memory_room){.bytes = UINT64_MAX};
        if (sl_host_file(root, text, sizeof(text), "/proc/meminfo")) {
                kib = sl_host_number(text, "MemAvailable", UINT64_MAX);
                lower(ret_room, kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024, "/proc/meminfo");
        }
        sl_control_groups_visit(root, "memory", look_at_group, &look);
}

uint64_t sl_memory_room_usable(uint64_t bytes)
{
        return bytes == UINT64_MAX ? bytes : bytes - bytes / 8;
}
