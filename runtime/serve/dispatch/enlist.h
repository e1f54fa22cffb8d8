/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher keeps of each worker that it knows: who hears of it, the let that it counts on, its bundle, its number in
 * records. Dispatcher only.
 */
#pragma once

struct sl_dispatcher;
struct sl_executor;
struct sl_model;

/* Of a model that is among the dispatcher's, in its bundle if it has one. */
void sl_worker_joins(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker);

/* Before it is control's again. */
void sl_worker_leaves(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker);
