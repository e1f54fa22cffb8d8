/* SPDX-License-Identifier: Apache-2.0 */
/* The rules behind sl_scaler_look(); each fills @room->change, which begins with zeros, and the verdicts. Return: how many lack. */
#pragma once

#include "room.h"
#include "scaler.h"

uint32_t sl_starling_scale(struct sl_scale_room *room, double since_s, struct sl_scaler_memory *memory);
uint32_t sl_infaas_scale(struct sl_scale_room *room, double since_s, struct sl_scaler_memory *memory);
