/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What control asks of the dispatcher (message.h), done. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;

/* Does what control asks. Return: commands done. */
uint32_t sl_commands(struct sl_dispatcher *dispatcher);
