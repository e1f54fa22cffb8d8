/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter is a program of its own, so that HTTP's library is mapped into no runtime, and a runtime's libraries into no
 * exporter.
 */
#include "command.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "../libexec/starling/starling-exporter" /* from the folder of this one */

int command_exporter(int argc, char **argv)
{
        char self[2048], path[sizeof(self) + sizeof(PROGRAM)];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        (void)argc;
        if (n < 0)
                return complain(STATUS_FAILED, "exporter", "/proc/self/exe: %s", strerror(errno));
        self[n] = 0;
        snprintf(path, sizeof(path), "%s/" PROGRAM, dirname(self));
        execv(path, argv);
        return complain(STATUS_FAILED, "exporter", "%s: %s", path, strerror(errno));
}
