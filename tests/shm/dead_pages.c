/* SPDX-License-Identifier: Apache-2.0 */
#include "dead_pages.h"

#include "stats_claim.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OLD_SECONDS 3600 /* six times what a test may take; a postmortem wants its page */

static void remove_if_dead(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* it may be a pipe: another test's idea of a page */
        struct stat status;

        if (fd < 0)
                return;
        if (fstat(fd, &status) == 0 && time(NULL) - status.st_ctime > OLD_SECONDS && !sl_claim_is_held(fd))
                unlink(path);
        close(fd);
}

void dead_pages_remove(const char *prefix)
{
        char pattern[96];
        glob_t found;

        snprintf(pattern, sizeof(pattern), "/dev/shm/starling.%s*", prefix);
        if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
                return;
        for (size_t i = 0; i < found.gl_pathc; i++)
                remove_if_dead(found.gl_pathv[i]);
        globfree(&found);
}
