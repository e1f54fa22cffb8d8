/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of control share: what is wanted (control_wants.c), what becomes of it (control.c), how converge sees it
 * (control_view.c). */
#pragma once

#include "control.h"

/* No two are the same. */
uint64_t sl_sim_control_number(struct sl_sim_control *control);

/* What serves under a name; NULL: nothing, or an ensemble. */
struct sl_sim_control_model *sl_sim_control_model_of(struct sl_sim_control *control, uint32_t i);

/* Its workers change alone from now on. */
void sl_sim_control_leave_group(struct sl_sim_control *control, uint32_t i);

/* The name wants @file, or sizes that the model of @file itself serves: both have one model. */
bool sl_sim_control_is_of_file(const struct sl_sim_control *control, uint32_t i, uint64_t file);

/* The user has had as many loads as its rate allows. */
bool sl_sim_control_is_late(const struct sl_sim_control *control, uint32_t user);
