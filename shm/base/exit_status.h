/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of this project exit with when they cannot attach to a runtime. Pure; any thread. */
#pragma once

#include <errno.h>

/* @result: of starling_connect(). Return: 0; 3 no runtime of that name is there; 4 it refuses this user; 1. */
static inline int sl_exit_status_of(int result)
{
        switch (-result) {
        case 0:
                return 0;
        case ENOENT:
        case ECONNREFUSED:
        case ETIMEDOUT:
                return 3;
        case EACCES:
        case EPERM:
                return 4;
        default:
                return 1;
        }
}
