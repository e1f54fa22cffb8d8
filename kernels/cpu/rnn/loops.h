/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_lstm;
extern const struct sl_cpu_loop sl_cpu_recurrent; /* GRU, RNN, and the LSTM that sl_cpu_lstm declines */
