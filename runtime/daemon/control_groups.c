/* SPDX-License-Identifier: Apache-2.0 */
#include "control_groups.h"

#include "host_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CGROUPS    "/sys/fs/cgroup"
#define FILE_BYTES 8192

struct visit {
        const char *controller;
        sl_control_group_fn *visit;
        void *context;
};

/* From the group to the root of its hierarchy, which is mounted at @mount. */
static void visit_upwards(const struct visit *visit, int version, const char *mount, const char *group)
{
        char folder[PATH_MAX];
        size_t least = strlen(mount);

        if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int)sizeof(folder))
                return;
        for (;;) {
                visit->visit(visit->context, version, folder);
                char *slash = strrchr(folder, '/');
                if (!slash || (size_t)(slash - folder) < least)
                        return;
                *slash = 0;
        }
}

static bool is_listed(const char *controllers, size_t bytes, const char *controller)
{
        size_t length = strlen(controller);

        for (const char *name = controllers; name < controllers + bytes; name += strcspn(name, ",:") + 1)
                if (strcspn(name, ",:") == length && strncmp(name, controller, length) == 0)
                        return true;
        return false;
}

/* "7:memory:/a/b" or "7:cpu,cpuacct:/a/b" of version 1, "0::/a/b" of version 2. */
static void visit_line(const struct visit *visit, const char *line)
{
        const char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        char mount[64];

        if (!group++)
                return;
        controllers++;
        snprintf(mount, sizeof(mount), CGROUPS "/%s", visit->controller);
        if (*controllers == ':')
                visit_upwards(visit, 2, CGROUPS, group);
        else if (is_listed(controllers, (size_t)(group - 1 - controllers), visit->controller))
                visit_upwards(visit, 1, mount, group);
}

void sl_control_groups_visit(const char *root, const char *controller, sl_control_group_fn *visit, void *context)
{
        const struct visit all = {.controller = controller, .visit = visit, .context = context};
        char text[FILE_BYTES], *rest;

        sl_host_file(root, text, sizeof(text), "/proc/self/cgroup");
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                visit_line(&all, line);
}
