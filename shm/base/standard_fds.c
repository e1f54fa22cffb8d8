/* SPDX-License-Identifier: Apache-2.0 */
#include "base/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

/* An open() takes the lowest number that is free. */
void sl_standard_fds_fill(void)
{
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void)open("/dev/null", O_RDWR);
}
