/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of the exporter once it listens.
 */
#pragma once

#include "call_list.h"

void exporter_calls_init(struct sl_call_list *list);
