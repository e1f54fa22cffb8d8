/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be done next, of what is wanted and what is there: a pure function, the same for the runtime and the simulator.
 * Everything that happens to a model is one of these steps.
 *
 *     (none) --LOAD--> loading --SERVE--> serving --WITHDRAW--> draining --> (none)
 *        |                |                  |
 *        +--SHARE---------|----------------->+  (another name of the file serves)
 *        +--COMPOSE-------|----------------->+  (an ensemble of its members)
 *        |                |                  +--REST--> resting (on request: inputs and outputs alone) --LOAD--> loading
 *        |                +--STANDBY--> standby <--STANDBY-- serving   (resting, and the plan is there) --LOAD--> loading
 *                         +--FAIL, CANCEL--> as before
 *
 * A later want takes the place of an earlier one at once: what is under way for that is cancelled, or let come to its end and
 * discarded. What serves goes on until its successor does.
 */
#pragma once

#include "fleet.h"

#define SL_STEPS_MAX 64u

/* As a man page says them. What `from` is: struct sl_step. */
#define SL_STEP_KINDS(X)                                                                                                           \
        X(LOAD, "load", "begins to load a model, the workers of one whose plan is on standby, or a plan for standby")              \
        X(CANCEL, "cancel", "ends a load that is of no more use, or drops what came of it, also to try it again")                  \
        X(TURN, "turn", "lets other loads go ahead of one that waits for a process or a file, and lets that one go on later")      \
        X(SERVE, "serve", "gives the name to the model that has been loaded")                                                      \
        X(FAIL, "fail", "gives up a want, with its cause, and lets what serves go on")                                             \
        X(REST, "rest", "unloads a model that is not used, or its plan on standby, until the next request")                        \
        X(STANDBY, "standby",                                                                                                      \
                "keeps a plan without workers: of a model that is not used, one that was loaded for that, or another name's")      \
        X(REFUSE, "refuse", "answers those who wait for a load that they wait no longer")                                          \
        X(SHARE, "share", "serves the model that another name of the file has")                                                    \
        X(COMPOSE, "compose", "makes an ensemble of its members")                                                                  \
        X(WORKERS, "workers", "begins to go over to the wanted set of workers")                                                    \
        X(SETTLE, "settle",                                                                                                        \
                "ends an allocation: old workers leave as all new ones are ready, all stay as they were, or it is over")           \
        X(WITHDRAW, "withdraw", "takes no more requests for a name")                                                               \
        X(FORGET, "forget", "frees a name of which nothing is left")

enum sl_step_kind {
#define X(id, name, text) SL_STEP_##id,
        SL_STEP_KINDS(X)
#undef X
                SL_STEP_KIND_COUNT,
};

enum sl_load_part {
        SL_LOAD_PART_ALL,
        SL_LOAD_PART_WORKERS, /* the plan is there, on standby: it is not among those under way, and waits for none of them */
        SL_LOAD_PART_PLAN,    /* for standby */
};

enum sl_cancel_cause {
        SL_CANCEL_UNWANTED, /* another is wanted, or none */
        SL_CANCEL_RETRY,    /* it lacked memory, and some has been given back: it begins again */
};

enum sl_turn {
        SL_TURN_ASIDE, /* others go ahead */
        SL_TURN_ON,    /* it counts among those under way again */
};

enum sl_settle_part {
        SL_SETTLE_RELEASE, /* all new workers of all models are ready: old ones leave */
        SL_SETTLE_UNDO,    /* one cannot start: all stay as they were */
        SL_SETTLE_END,     /* it has come about, or as far as it can */
};

enum sl_refusal_cause {
        SL_REFUSED_LATE,   /* they have waited as long as they may */
        SL_REFUSED_PLACES, /* as many models are loaded as may be, and all are in use or not on request */
};

struct sl_step {
        enum sl_step_kind kind;
        uint32_t name; /* SL_FLEET_NONE: of a group */
        uint64_t from; /* SHARE, STANDBY: index of a name; LOAD, CANCEL, TURN, REFUSE, SETTLE: one of the enums above */
        uint64_t want; /* for which want; of a group: its number */
        uint64_t composition; /* COMPOSE, and FAIL of an ensemble: of what */
};

/* What a name waits for when nothing can be done for it. */
#define SL_AWAITS(X)                                                                                                               \
        X(NOTHING, "nothing")                                                                                                      \
        X(LOAD, "its load")                                                                                                        \
        X(OLD_LOAD, "the end of a load that is not wanted any more")                                                               \
        X(SLOT, "the end of other loads")                                                                                          \
        X(RATE, "its user's next load of this minute")                                                                             \
        X(TWIN, "the load of another name of its file")                                                                            \
        X(BASE, "the plan of other sizes")                                                                                         \
        X(OPEN, "the model whose sizes these are")                                                                                 \
        X(MEMBERS, "its members")                                                                                                  \
        X(TOLD, "the dispatcher")                                                                                                  \
        X(DRAIN, "requests that have been accepted")                                                                               \
        X(REQUEST, "a request for it")                                                                                             \
        X(ROOM, "the end of what leaves room for it")                                                                              \
        X(WORKERS, "workers that start or leave")                                                                                  \
        X(FAILED, "another want: this one has failed")

enum sl_await {
#define X(id, text) SL_AWAIT_##id,
        SL_AWAITS(X)
#undef X
                SL_AWAIT_COUNT,
};

const char *sl_step_name(enum sl_step_kind kind);

/* Why this one is taken, as the log says it. */
const char *sl_step_cause(const struct sl_step *step);

const char *sl_await_text(enum sl_await await);

/* What is done for the name once that has come; SL_STEP_KIND_COUNT: nothing, or it depends. */
enum sl_step_kind sl_await_step(enum sl_await await);

/*
 * The next steps, at most SL_STEPS_MAX; whoever carries them out asks again, until there are none. A step that follows one of
 * another name may have become pointless by that one: sl_step_is_wide(). @ret_awaits: [fleet->n] what each name waits for; NULL: it
 * is of no interest.
 * @ret_due_ns: when to ask again though nothing has happened; UINT64_MAX: never. Return: how many steps.
 */
uint32_t sl_converge(
        const struct sl_fleet *fleet, struct sl_step steps[SL_STEPS_MAX], enum sl_await *ret_awaits, uint64_t *ret_due_ns);

/* It may change what other names can do: the steps behind it are asked for anew. */
bool sl_step_is_wide(const struct sl_step *step);
