#include "sandbox_additions.h"

const struct sl_sandbox_additions sl_sandbox_additions = {0};
