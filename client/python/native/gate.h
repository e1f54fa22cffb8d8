/* SPDX-License-Identifier: Apache-2.0 */
/* Gate: lets calls pass side by side, and a reconnect alone, as the C library asks. As starling.gate.Gate. */
#pragma once

#include "bell.h"

struct gate {
        PyObject ob_base;
        struct bell changed;
        uint32_t inside;
        bool is_shut;
};

extern PyType_Spec sl_gate_spec;

/* Waits while somebody is alone. Return: 0; -1 with an exception, outside. */
int sl_gate_enter(struct gate *gate);
void sl_gate_leave(struct gate *gate);
