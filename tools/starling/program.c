/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that are programs of their own, so that their libraries are mapped into no runtime, and a runtime's into none of them:
 * HTTP's of the exporter, the terminal's of top, the database's of profiles and of register.
 */
#include "base/error.h"
#include "command.h"
#include "program_beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "../libexec/starling/" /* from the folder of this program */

int become(const char *program, char **argv)
{
        char from_here[sizeof(FOLDER) + 64], path[PATH_MAX];
        struct sl_error error;

        snprintf(from_here, sizeof(from_here), FOLDER "%s", program);
        if (program_beside(from_here, path, &error) < 0)
                return complain(STATUS_FAILED, argv[0], "%s", error.text);
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

int command_register(int argc, char **argv)
{
        (void)argc;
        return become("starling-register", argv);
}
