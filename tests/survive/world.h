/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of survival stand in: a runtime as a process of its own (`starling serve` with the digits networks), in a folder
 * and with a name of its own, that can be stopped, killed, and looked at from outside.
 *
 *     world_init() -> options, models -> world_start() -> clients -> world_stop() or world_kill() -> world_free()
 *
 * Threads: one. What a test must never leave behind is checked by world_stop(): see world_expect_nothing_left().
 */
#pragma once

#include "starling.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Rounds are fewer where every instruction costs many times as much. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WORLD_SLOW 1
#else
#define WORLD_SLOW 0
#endif

struct world {
        char folder[64];
        char name[64];        /* of the runtime */
        char socket_path[96]; /* folder/NAME.sock */
        char config_path[96];
        char log_path[96];
        char repository[96]; /* folder/models: links to the digits networks, and what a test adds */
        char config[2048];
        const char *arguments[8]; /* more of the command line, NULL-terminated */
        uint64_t log_offset;      /* where the log of the running process begins */
        bool compiles;            /* at each start: else plans come from the cache that tests share, where there is one */
        uid_t uid;                /* of the runtime; 0: the test's own */
        char program[256];        /* the starling command */
        void (*before_exec)(void *context);
        void *context;
        pid_t pid; /* 0: not running */
};

/* Makes the folder and the repository. Fails the test when it cannot. The second: compilers run at each start, for who looks at them. */
void world_init(struct world *world);
void world_init_compiling(struct world *world);

/* Of the digits networks these alone are served, separated by spaces: each costs every start a load. Before anything else is there. */
void world_keep(const struct world *world, const char *names);

/* The runtime will run as @uid: it gets copies of the program and of @model, as it may not be able to read the source tree. */
void world_move_to_user(struct world *world, uid_t uid, const char *model);

/* Lines for the configuration. */
void world_configure(struct world *world, const char *yaml);

/* Starts the process, and waits until it is ready. */
void world_start(struct world *world);

/* Starts it without waiting. */
void world_launch(struct world *world);
void world_expect_ready(struct world *world);

/* Waits for the end of the process. Return: its wait status. */
int world_wait(struct world *world);

/* SIGTERM, exit status 0, nothing left. As the next, nothing where it does not run. */
void world_stop(struct world *world);

/* SIGKILL. */
void world_kill(struct world *world);

/* Removes the folder and the stats page that a crash left. */
void world_free(struct world *world);

/* No socket (unless @crashed), no stats page (unless @crashed), no child process of the runtime. */
void world_expect_nothing_left(struct world *world, bool crashed);

/* The log of the process that runs, as a string that the next call overwrites. The latter waits until it says so. */
const char *world_log(struct world *world);
void world_expect_log(struct world *world, const char *text);
uint32_t world_count_log(struct world *world, const char *text);

/* The children of all threads of a process, those that have ended among them: numbers with a space behind each. */
void world_read_children(pid_t pid, char *ret_text, size_t bytes);

/* Processes of the runtime that it has started as PROGRAM COMMAND [ARGUMENT]. Return: how many; of more than @max the first. */
struct world_child {
        pid_t pid;
        char argument[32]; /* "": none */
};
uint32_t world_find_children(const struct world *world, const char *command, struct world_child *ret_children, uint32_t max);

/* What the runtime holds: it must be the same before and after clients came and went. */
struct footprint {
        uint32_t fds, mappings, clients, in_flight;
};
struct footprint world_footprint(const struct world *world);

/* Waits until the runtime holds no more than @before. */
void world_expect_footprint(const struct world *world, const struct footprint *before);

/* A client of this world; fails the test when it cannot connect. */
struct starling_client *world_connect(const struct world *world, enum starling_role role);

/* A model folder NAME/1/model.onnx of the repository with these bytes, or NAME/config.yaml with a text. */
void world_add_model(const struct world *world, const char *name, const void *bytes, size_t size);
void world_add_model_config(const struct world *world, const char *name, const char *yaml);
/* The network @of of the digits under another name, with a NAME/config.yaml of its own. */
void world_copy_model(const struct world *world, const char *of, const char *name, const char *yaml);
/* The same in int8, as the program under test quantizes it. */
void world_copy_int8_model(const struct world *world, const char *of, const char *name, const char *yaml);
void world_remove_model(const struct world *world, const char *name);

/* $variable as a number, or @normal (a tenth of it, at least one, under sanitizers). */
uint32_t world_rounds(const char *variable, uint32_t normal);

/* Rounds go on for so long; a machine that is slow does fewer of them, one at least, and says so, unless @variable asks for a
 * number. */
#define WORLD_ROUNDS_SECONDS 12
bool world_has_time(const char *variable, uint32_t round, uint64_t begun_ns);

/* Starts an executable with arguments (NULL-terminated). Return: its pid. */
pid_t world_spawn(const char *const *argv);

void world_pause_us(uint64_t us);

/* For what must come, however busy the machine is: less than a test may take, which would say nothing. */
#define WORLD_PATIENCE_NS (150 * 1000000000ull)

/* Waits until @condition holds, or it is a hang: an assertion of the same condition behind it says which. */
#define WORLD_AWAIT(condition)                                                                                                     \
        for (uint64_t await_ns = starling_clock_ns(); !(condition) && starling_clock_ns() - await_ns < WORLD_PATIENCE_NS;)         \
        world_pause_us(1000)
