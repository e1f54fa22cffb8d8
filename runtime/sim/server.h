/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher as the simulator has it: requests, turns among clients, segments, queues, policies, and the jobs that workers
 * have. No clock and no device: whoever drives it says when it is, what arrives and what has been answered, and is told which job a
 * worker has got. sim.c drives it by a virtual clock, replay.c by what a dispatcher wrote down. What decides is serve/decide.
 *
 * One thread. Nothing is allocated after it is made.
 */
#pragma once

#include "sim.h"

struct sl_sim_server;

struct sl_sim_piece {
        uint32_t segment, samples;
        bool is_answered;
        int status; /* its driver's: what it will be answered with */
};

struct sl_sim_job {
        uint32_t priority, n_pieces, unanswered;
        uint32_t padding;
        uint32_t samples;           /* the driver's: that are computed */
        uint64_t begun_ns, took_ns; /* the driver's */
        struct sl_sim_piece pieces[SL_POLICY_TASKS_MAX];
};

struct sl_sim_server_calls {
        void *context;
        void (*gave)(void *context, const struct sl_sim_decided *decided);
        void (*broadcast)(void *context, uint32_t ensemble, uint64_t number, uint32_t samples); /* NULL: nobody asks */
        void (*ended)(void *context, const struct sl_sim_request *request, uint64_t number, int status);
};

/* The world is checked. Return: 0; -ENOMEM. */
int sl_sim_server_new(const struct sl_sim_world *world, const struct sl_sim_server_calls *calls, struct sl_sim_server **ret_server);
struct sl_sim_server *sl_sim_server_free(struct sl_sim_server *server);

/* @ret_record: whose it is until it has ended. Return: 0; -EBUSY: there is no room, or nothing is asked for. */
int sl_sim_server_arrive(
        struct sl_sim_server *server, const struct sl_sim_request *request, uint64_t now_ns, uint64_t number, uint32_t *ret_record);

/* Nothing more of it is broadcast; it ends when what was has been answered. */
void sl_sim_server_give_up(struct sl_sim_server *server, uint32_t record, int status);

/* Broadcasts and decides. Return: when to do so again although nothing has changed; UINT64_MAX: never. */
uint64_t sl_sim_server_pass(struct sl_sim_server *server, uint64_t now_ns);

/* The @i-th oldest of the jobs that a worker has; how many those are. */
struct sl_sim_job *sl_sim_server_job(struct sl_sim_server *server, uint32_t worker, uint32_t i);
uint32_t sl_sim_server_jobs(const struct sl_sim_server *server, uint32_t worker);

/* Of the request that the piece is of; 0: none. */
uint64_t sl_sim_server_deadline_ns(const struct sl_sim_server *server, const struct sl_sim_piece *piece);

/* A job of @samples took a worker @ns. */
void sl_sim_server_learn(struct sl_sim_server *server, uint32_t worker, uint32_t samples, uint64_t ns);

/* What is known of the jobs of its model is doubted, as no job has confirmed it for long. */
void sl_sim_server_doubt(struct sl_sim_server *server, uint32_t worker);

/* What is known of a model's jobs before any. */
void sl_sim_server_know(struct sl_sim_server *server, uint32_t model, const struct sl_service_time *times);

/* A piece of the worker's oldest job is answered. */
void sl_sim_server_answer(struct sl_sim_server *server, uint32_t worker, uint32_t piece, int status);
