/* SPDX-License-Identifier: Apache-2.0 */
/* The public header alone, compiled once for each C standard that it promises. */
#include "starling.h"

int header_compiles_alone(void);

int header_compiles_alone(void)
{
        return STARLING_RANK_MAX;
}
