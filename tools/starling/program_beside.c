/* SPDX-License-Identifier: Apache-2.0 */
#include "program_beside.h"

#include "base/error.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int program_beside(const char *path, char ret_path[PATH_MAX], struct sl_error *error)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0)
                return sl_error_set(error, errno, "/proc/self/exe: %s", strerror(errno));
        self[n] = 0;
        if (snprintf(ret_path, PATH_MAX, "%s/%s", dirname(self), path) >= PATH_MAX)
                return sl_error_set(error, ENAMETOOLONG, "the program beside this one, %s: longer than %d bytes", path, PATH_MAX - 1);
        return 0;
}
