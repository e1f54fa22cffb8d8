/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: the compiled form of one model, for a ladder of batch sizes that share one copy of the packed weights. A plan lives
 * in a plan file (format.h): versioned, checksummed, position-independent, mapped read-only by every executor.
 *
 *     model.onnx -> [child: import, passes, specialise, lower, pack] -> plan file -> sl_plan (mapped) -> sl_instance (per worker)
 *
 * Threads: a sl_plan is immutable, any thread may read it. A sl_instance belongs to one thread at a time.
 */
#pragma once

#include "plan_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_plan;
struct sl_instance;
struct sl_step_choice;
struct sl_device;
struct sl_draw_key;
struct sl_packed_lender;
struct sl_pool_grant;
struct sl_residence;
struct sl_stop;
struct sl_team;

/* Some step of the plan is data-dependent: it may fail for some inputs that have the right shapes. */
bool sl_plan_is_dynamic(const struct sl_plan *plan);

/*
 * Elementary steps of a run of @batch that the data decide on, of all its steps together (sl_op_data_work()): how long a run takes
 * is known from another one but for so many. UINT64_MAX: no bound is known, some step is data-dependent, or there is no such batch.
 */
uint64_t sl_plan_data_work(const struct sl_plan *plan, uint32_t batch);

/*
 * Maps a plan file read-only and checks it: magic, version, checksum (which finds damage, so not of a sealed memory file),
 * processor and library, every offset. The fd may be closed afterwards. Return: 0; -EBADMSG damaged; -EPROTONOSUPPORT another
 * version, processor or library; -ENOMEM; the text says which.
 */
int sl_plan_open(int fd, struct sl_plan **ret_plan, struct sl_error *error);

/*
 * The same for a plan that may be derived from @base (NULL: none is there), which it then holds as long as it lives; a plan that
 * stands alone does not. Return: as above; -ESTALE it is derived from another plan, or there is no @base; -EINVAL @base is derived.
 */
int sl_plan_open_on(int fd, struct sl_plan *base, struct sl_plan **ret_plan, struct sl_error *error);

/* The same for a file that has not changed since its checksum was found right: it is walked, but not read for damage. */
int sl_plan_open_intact(int fd, struct sl_plan *base, struct sl_plan **ret_plan, struct sl_error *error);

/*
 * The same for a merged plan that may have left constants where they are, in the plans of its members, which stand alone: it holds
 * those as long as it lives, unless it has none of theirs. @intact: as sl_plan_open_intact(). Return: as sl_plan_open(); -ESTALE
 * its members are others; -EINVAL one of them does not stand alone.
 */
int sl_plan_open_merged(
        int fd, struct sl_plan *const *members, uint32_t n_members, bool intact, struct sl_plan **ret_plan, struct sl_error *error);

/*
 * What a plan file says of itself, for people, also of one that refers to plans which are not here. The caller deinits it.
 * Return: as sl_plan_open().
 */
int sl_plan_read_info(int fd, struct sl_plan_info *ret_info, struct sl_error *error);

/* One more holder; returns @plan. Each of them frees it; the last ends it. NULL is fine. Returns NULL. */
struct sl_plan *sl_plan_hold(struct sl_plan *plan);
struct sl_plan *sl_plan_free(struct sl_plan *plan);

const struct sl_plan_info *sl_plan_info(const struct sl_plan *plan);

/* What tells the file from others. Of one that has no checksum the first call reads all of it. */
struct sl_plan_identity sl_plan_identity(const struct sl_plan *plan);

/* Its checksum, of a file that has none: as somebody else has computed it. */
void sl_plan_know_sum(struct sl_plan *plan, uint64_t sum);

/* Of the file. */
uint64_t sl_plan_bytes(const struct sl_plan *plan);

/* The plan from which it is derived; NULL. The plan's. */
struct sl_plan *sl_plan_base(const struct sl_plan *plan);

/*
 * @ended is called once, when the last holder frees the plan and on its thread, with the plan that is about to go. One watcher per
 * plan; the thread that watches is the only one that may hold the plan last.
 */
void sl_plan_watch_end(struct sl_plan *plan, void (*ended)(void *context, const struct sl_plan *plan), void *context);
bool sl_plan_is_watched(const struct sl_plan *plan);

/*
 * Weights that instances of a plan of any size pack while they run, once for all of them, are taken from @lender (packed_store.h),
 * at most half of dynamic_bytes_max. The last holder gives them back. Before the first instance; nothing of another plan.
 */
void sl_plan_lend_packed(struct sl_plan *plan, const struct sl_packed_lender *lender);

/* What is packed now, without what is the base's; and the most that may be. Any thread. */
uint64_t sl_plan_packed_bytes(const struct sl_plan *plan);
uint64_t sl_plan_packed_bytes_max(const struct sl_plan *plan);

/* The file, for who compiles against it. Owned by the plan. */
int sl_plan_fd(const struct sl_plan *plan);

/* One step of a plan at one batch size, for people: what it is and what it has to move and compute. */
struct sl_step_info {
        const char *name;   /* of the node, "" for a copy; the plan's */
        const char *around; /* of the If, Loop or Scan in whose body it is; "" */
        uint32_t depth;     /* of that body; 0: it is in none */
        const char *operator_name, *backend;
        const char *algorithm; /* "direct", "winograd-4"; the library, of a backend of several; "" where there is no choice */
        const struct sl_step_choice *choice;
        uint64_t multiply_adds;
        uint64_t bytes;        /* read and written, each operand once; constants as they are stored */
        uint64_t weight_bytes; /* of them those of constants */
        struct sl_tensor out;  /* output 0 */
};

/* Steps at @batch, those of bodies behind the others; 0 when it is no size of the ladder. */
uint64_t sl_plan_steps(const struct sl_plan *plan, uint32_t batch);
/* Return: 0; -EINVAL there is no such step; -EBADMSG its shapes contradict each other; -ENOMEM. */
int sl_plan_step_info(const struct sl_plan *plan, uint32_t batch, uint64_t step, struct sl_step_info *ret_info);

/*
 * An executable instance for the ladder's sizes up to @batch_max: kernels compiled, workspace mapped, and faulted for the smallest
 * size; nothing more is allocated afterwards. The plan must outlive it. Load time, may take milliseconds per kernel.
 * Return: 0; -ENOMEM (the text says how much was wanted); -ENOTSUP; -EINVAL @batch_max below the ladder; -EBADMSG the steps of the
 * file contradict what the kernels say.
 */
int sl_instance_new(const struct sl_plan *plan, uint32_t batch_max, struct sl_instance **ret_instance, struct sl_error *error);
struct sl_instance *sl_instance_free(struct sl_instance *instance);

/*
 * The constants of a plan whose backend has memory of its own (kernels/runner.h), copied to @device; NULL: the backend's own. The
 * instances on a device share them, and they end after those. One thread at a time; the plan outlives them. @base: those of the
 * plan's base on the same device, which outlive them; NULL: there is none, or it is copied too. Load time. Return: 0; -ENOMEM;
 * -EIO; -ENODEV; -ENOTSUP the backend has no such memory.
 */
int sl_residence_new(const struct sl_plan *plan, struct sl_device *device, const struct sl_residence *base,
        struct sl_residence **ret_residence, struct sl_error *error);
struct sl_residence *sl_residence_free(struct sl_residence *residence);

/*
 * On what an instance runs whose backend has memory of its own. Zeros: on the backend's own device, with constants of its own, and
 * each run copies its inputs there and its outputs back.
 */
struct sl_instance_ground {
        struct sl_device *device;
        const struct sl_residence *constants; /* there */
        bool ports_there;                     /* inputs and outputs of a run are addresses there: nothing is copied */
};

/* sl_instance_new() on such a ground; NULL: zeros. The device and the constants outlive it. */
int sl_instance_new_on(const struct sl_plan *plan, uint32_t batch_max, const struct sl_instance_ground *ground,
        struct sl_instance **ret_instance, struct sl_error *error);

/*
 * From now on runs compute with @team, whose owner is the thread that runs: steps are cut as the plan says for its size, each
 * output has the same bits as without. NULL, or a team of one: alone again. The team lives as long as the instance uses it; several
 * instances may use it in turns. Between runs; takes scratch for each member. Return: 0; -ENOMEM; -EBADMSG the plan contradicts the
 * kernels: the instance is alone then.
 */
int sl_instance_use_team(struct sl_instance *instance, struct sl_team *team, struct sl_error *error);

/*
 * From now on runs use @room for activations and scratch, sl_plan_workspace_bytes() of it, which others may use between runs; the
 * instance's own workspace is given up. The room lives as long as the instance, is aligned to 64 bytes, and its owner faults it.
 * Between runs.
 */
void sl_instance_move(struct sl_instance *instance, void *room);

/*
 * From now on runs of a merged plan need not compute lanes in @idle, as bits: their outputs are undefined. Between runs. Return:
 * whether there is a step that leaves them out; if there is none a run takes as long as ever.
 */
bool sl_instance_idle(struct sl_instance *instance, uint64_t idle);

/* How a team computes a step. */
struct sl_step_split {
        uint32_t axis, members; /* enum sl_axis, and how many parts there are; NONE: one member computes all of it, 0 or 1 */
        uint32_t first;         /* the member that has the first part, or all of it */
        int64_t units, stages; /* along the axis, of which each part has some; calls of the team, 0: within that of a step before */
};

/*
 * That of every step at @batch, as sl_plan_steps() counts them, for a team of @members. Between runs, and the instance computes
 * as before. Return: 0; -EINVAL it has no such batch; -EBADMSG the plan contradicts the kernels.
 */
int sl_instance_splits(
        struct sl_instance *instance, uint32_t batch, uint32_t members, struct sl_step_split *ret_splits, struct sl_error *error);

/*
 * Faults at most @bytes_max of what the workspace lacks for sizes up to @batch; what is not faulted is so by the first run that
 * touches it. Return: 1 there was something to do; 0; -ENOMEM.
 */
int sl_instance_populate(struct sl_instance *instance, uint32_t batch, uint64_t bytes_max);

/* Memory that a team of @members takes beside: scratch for each. Pure. */
uint64_t sl_instance_team_bytes(const struct sl_plan *plan, uint32_t batch_max, uint32_t members);

/* Memory that an instance takes, weights not included (they are shared): its workspace, and the tables of its steps. Pure. */
uint64_t sl_instance_bytes(const struct sl_plan *plan, uint32_t batch_max);

/* Activations and scratch alone, of the ladder's sizes up to @batch_max. Pure. */
uint64_t sl_plan_workspace_bytes(const struct sl_plan *plan, uint32_t batch_max);

/*
 * What ends the runs that follow before they are done (kernels/stop.h); NULL: nothing does. It is copied, what its verdict points
 * to must live until the next call. A run looks before each of its steps, and inside of those that `ref` computes, and returns the
 * verdict, -ETIME or -EAGAIN: outputs are then undefined and the instance is as good as before.
 */
void sl_instance_watch(struct sl_instance *instance, const struct sl_stop *stop);

/*
 * By which keys the runs that follow draw random numbers (kernels/draw.h): one for each sample of the batch, or one for all that
 * has no batch; they live until the next call. NULL, as at first: by those of nobody's samples, the same in each run.
 */
void sl_instance_draw(struct sl_instance *instance, const struct sl_draw_key *keys);

/*
 * Of a plan of any size (plan_info.h): the shapes of the inputs of the runs that follow, [n_inputs], of the ports' ranks and known
 * dimensions; they live until the next call. NULL, as at first: 1 stands where a request says the size.
 */
void sl_instance_give(struct sl_instance *instance, const struct sl_shape *shapes);

/* For how many sizes its runs are replayed (run_replays.h), for tests. */
uint32_t sl_instance_replays(const struct sl_instance *instance);

/* As long as @meets each node gets a kernel when it first comes, so that it is known what those cost. Between runs. */
void sl_instance_meet(struct sl_instance *instance, bool meets);

/* No run waits from now on for a kernel that is not quickly made, as far as earlier runs have shown (kernel_cache.h). Between runs.
 */
void sl_instance_be_quick(struct sl_instance *instance);

/*
 * From now on what data-dependent steps take is taken out of @grant (ref/live.h), whose lender is asked where that is not enough;
 * dynamic_bytes_max stays the bound of one run. The grant lives as long as the instance. NULL, as at first: nobody is asked.
 */
void sl_instance_lend(struct sl_instance *instance, struct sl_pool_grant *grant);

/*
 * Computes one batch. @batch is a size of the ladder, not above batch_max. inputs[i] and outputs[i] are element-aligned buffers in
 * PLAIN layout of exactly batch samples; they are read and written in place, no copy is made where the backend allows it.
 * An input that may be left out (plan_info.h, fallback) may be NULL. Never waits, and never allocates but for data-dependent steps.
 * Inputs may be client memory that changes while it is read (dense floats): results are then undefined but nothing is read or
 * written outside the buffers. Return: 0; -EINVAL a batch that is not in the ladder, or an output is open; -ERANGE an index in the
 * data is out of bounds (outputs undefined); -E2BIG over work_max; what sl_instance_watch() says.
 */
int sl_instance_run(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs);

/*
 * The same as far as it comes without waiting for a backend that completes later (kernels/runner.h): one thread drives several
 * instances. sl_instance_poll() goes on from there; sl_instance_wait() sleeps until the run is over. Buffers, and the arrays of
 * their addresses, are in use until one of them has returned something else than -EINPROGRESS; a verdict of sl_instance_watch() is
 * one when what is in flight has ended. sl_instance_free() waits for that. Return: as sl_instance_run(), of the run; -EINPROGRESS;
 * -EBUSY the one before is not over.
 */
int sl_instance_start(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs);
int sl_instance_poll(struct sl_instance *instance);
int sl_instance_wait(struct sl_instance *instance);

/*
 * Launches all steps of a run on a ground with ports_there, and waits for nothing: it ends in the order of the device's stream,
 * whose owner sees that, or has captured it. Further runs may be launched behind it. Return: 0; -EINVAL; -ENOTSUP it is on no such
 * ground; what a launch says, when those before it were launched.
 */
int sl_instance_launch(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs);

/* An output whose shape is data-dependent: the room that there is, and what it was. */
struct sl_open_output {
        uint64_t capacity_bytes;
        struct sl_shape shape;
        /* Asked for @bytes when they are more than that. True: there are as many, and the capacity says so. NULL: nobody is asked.
         */
        bool (*more)(struct sl_open_output *open, uint64_t bytes);
        void *context; /* of who answers */
};

/*
 * Why the last run failed with @status, unless @error has a text already: the node, its operator, and what the status means there.
 * Return:
 * @status.
 */
int sl_instance_explain(const struct sl_instance *instance, int status, struct sl_error *error);

/*
 * The same for a plan with open outputs: @open has an entry for each output, of which those of open ones are read and filled. What
 * is data-dependent lies in memory that is taken as it is needed, at most dynamic_bytes_max of the plan's options; it gives all
 * back. Return: as sl_instance_run(); -EMSGSIZE a capacity is too small: all open shapes are known, nothing is written beyond it;
 * -ENOMEM over dynamic_bytes_max, or more than is granted; -E2BIG over dynamic_steps_max or work_max. The text says which operator,
 * and the limit; NULL is fine.
 */
int sl_instance_run_open(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error);

/* One of several requests to a plan of any size that are computed together. */
struct sl_instance_part {
        int64_t rows; /* that it has of the leading dimension of all inputs and outputs; 1 or more */
        const void *const *inputs;
        void *const *outputs;        /* NULL: nobody wants that one */
        struct sl_open_output *open; /* as of sl_instance_run_open(), of this part */
        bool is_too_small;           /* of a run that returned 0: a capacity of it is; nothing is written there */
};

/*
 * sl_instance_run_open() of all parts at once, whose inputs differ in nothing but their rows. sl_instance_give() has said the
 * shapes with the rows of all together, which sum up to them. Inputs are copied first. Return: the same, but -EMSGSIZE; -EINVAL not
 * all ports are open; -EIO an output has other rows than the inputs: its samples are not computed apart from each other.
 */
int sl_instance_run_parts(
        struct sl_instance *instance, uint32_t batch, struct sl_instance_part *parts, uint32_t n, struct sl_error *error);

/* As sl_instance_run(), without writing outputs that are open, with the time that each of the sl_plan_steps() took, for profiles:
 * one in a body in all rounds together, one with bodies without them. It allocates nothing either. */
int sl_instance_run_timed(
        struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs, uint64_t *ret_step_ns);

/* The largest size of the ladder (up to batch_max of the instance) that is not above @samples: a tail of 12 runs as 8 + 4. */
uint32_t sl_instance_step(const struct sl_instance *instance, uint32_t samples);
