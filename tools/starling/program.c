/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that are programs of their own, so that their libraries are mapped into no runtime, and a runtime's into none of them:
 * HTTP's of the exporter, the terminal's of top, the database's of profiles.
 */
#include "command.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "../libexec/starling/" /* from the folder of this program */

int become(const char *program, char **argv)
{
        char self[2048], path[sizeof(self) + sizeof(FOLDER) + 64];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0)
                return complain(STATUS_FAILED, argv[0], "/proc/self/exe: %s", strerror(errno));
        self[n] = 0;
        snprintf(path, sizeof(path), "%s/" FOLDER "%s", dirname(self), program);
        execv(path, argv);
        return complain(STATUS_FAILED, argv[0], "%s: %s", path, strerror(errno));
}

int command_exporter(int argc, char **argv)
{
        (void)argc;
        return become("starling-exporter", argv);
}

int command_top(int argc, char **argv)
{
        (void)argc;
        return become("starling-top", argv);
}
