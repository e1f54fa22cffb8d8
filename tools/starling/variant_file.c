/* SPDX-License-Identifier: Apache-2.0 */
#include "variant_file.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int variant_file_new(void)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("variant", MFD_CLOEXEC);

        return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}
