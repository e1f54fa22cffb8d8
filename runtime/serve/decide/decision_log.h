/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What entered a dispatcher, and what it decided, in the order in which it did: enough to decide all of it once more. Models and
 * ensembles as they were when they came; then entries. Bounded: what finds no room is not written, and counted; so is nothing that
 * comes once workers have changed, which cannot be replayed.
 *
 *     ARRIVAL, GIVEN_UP, ANSWER    entered
 *     PASS                         the clock, when something had entered since the last one, or something is decided
 *     BROADCAST, DECISION          were decided in that pass
 *
 * One thread writes, the dispatcher's; whoever reads has waited for its end. The caller's memory.
 */
#pragma once

#include "batching.h"
#include "service_time.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_LOGGED_MODELS_MAX    32u
#define SL_LOGGED_ENSEMBLES_MAX 32u
#define SL_LOGGED_WORKERS_MAX   64u
#define SL_LOGGED_NONE          UINT32_MAX

enum sl_logged_kind {
        SL_LOGGED_ARRIVAL,
        SL_LOGGED_GIVEN_UP,
        SL_LOGGED_ANSWER,
        SL_LOGGED_PASS,
        SL_LOGGED_BROADCAST,
        SL_LOGGED_DECISION
};

struct sl_logged {
        enum sl_logged_kind kind;
        int32_t status;      /* ANSWER, GIVEN_UP */
        bool is_doubted;     /* ANSWER: what was known of its model's times, before it */
        const void *request; /* ARRIVAL, GIVEN_UP, BROADCAST: as long as it has not ended it is this one */
        uint32_t of;         /* DECISION, ANSWER: its model; ARRIVAL: its ensemble */
        uint32_t worker;     /* DECISION, ANSWER: its number in the model; ARRIVAL: the client */
        uint32_t samples;    /* ANSWER: of the job, with its first answer; 0: with others */
        uint32_t extra;      /* DECISION: padding; ANSWER: the piece */
        uint32_t priority;
        uint64_t at_ns; /* ARRIVAL, PASS */
        uint64_t ns;    /* ARRIVAL: the deadline; ANSWER: what the job took */
};

struct sl_logged_worker {
        const void *let;
        uint32_t batch_max, at_once;
        bool for_one;
};

struct sl_logged_model {
        const void *is;
        struct sl_batching batching;
        struct sl_service_time service_time;
        uint64_t slice_ns;
        uint32_t slice_samples;
        bool whole;
        uint32_t n_workers;
        struct sl_logged_worker workers[SL_LOGGED_WORKERS_MAX];
};

struct sl_logged_ensemble {
        const void *is;
        uint32_t segment_samples, n_members;
        uint32_t members[64]; /* models */
};

struct sl_decision_log {
        struct sl_logged *entries;
        uint32_t room, n, lost, clients_max;
        bool has_changed;         /* workers, or something that this does not hold: no more is written */
        bool has_entered, passed; /* something, since the last PASS; the PASS of now is written */
        uint64_t now_ns;
        uint32_t n_models, n_ensembles;
        struct sl_logged_model models[SL_LOGGED_MODELS_MAX];
        struct sl_logged_ensemble ensembles[SL_LOGGED_ENSEMBLES_MAX];
};

/* The next one, which is filled by the caller; NULL: there is no room, and the log ends here. */
struct sl_logged_model *sl_decision_log_model(struct sl_decision_log *log);
struct sl_logged_ensemble *sl_decision_log_ensemble(struct sl_decision_log *log);

/* Their numbers; SL_LOGGED_NONE. */
uint32_t sl_decision_log_find_model(const struct sl_decision_log *log, const void *is);
uint32_t sl_decision_log_find_ensemble(const struct sl_decision_log *log, const void *is);

void sl_decision_log_enter(struct sl_decision_log *log, const struct sl_logged *entry);
void sl_decision_log_pass(struct sl_decision_log *log, uint64_t now_ns);
void sl_decision_log_decide(struct sl_decision_log *log, const struct sl_logged *entry);
