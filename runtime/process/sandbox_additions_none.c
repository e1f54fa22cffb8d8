/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox_additions.h"

const struct sl_sandbox_additions sl_sandbox_additions = {0};
