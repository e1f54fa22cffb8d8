/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <stdio.h>

const char *sl_cores_text(const cpu_set_t *cores, char *ret_text, size_t bytes)
{
        size_t used = 0;

        ret_text[0] = 0;
        for (int first = 0; first < CPU_SETSIZE; first++) {
                int last = first;

                if (!CPU_ISSET(first, cores))
                        continue;
                while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cores))
                        last++;
                if (used < bytes && last == first)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s%d", used ? "," : "", first);
                else if (used < bytes)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s%d-%d", used ? "," : "", first, last);
                first = last;
        }
        return ret_text;
}
