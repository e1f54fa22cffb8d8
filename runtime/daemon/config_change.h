/* SPDX-License-Identifier: Apache-2.0 */
/* What of a configuration that has changed a runtime that serves does not follow. Pure; any thread. */
#pragma once

#include <stdbool.h>

struct sl_config;

#define SL_CONFIG_KEYS_BYTES 512

/*
 * Keys that @said has other values of than @is, and that are read at a start alone: "access.allow, limits.clients". What is read
 * again (repositories, models, model_defaults, allocation, trace) is none of them. Return: there are some.
 */
bool sl_config_wants_restart(const struct sl_config *is, const struct sl_config *said, char ret_keys[SL_CONFIG_KEYS_BYTES]);
