/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker costs, as far as the planner and the simulator know: a fleet of devices, models, and for each model on each class
 * of devices in each batch size its time and memory. A profile store fills it, or a file (costs_file.h); nothing here measures.
 *
 *     classes    kinds of devices that cost the same: "V100", "EPYC core". What is measured on one holds for all of its devices
 *     devices    rows of the allocation matrix: one device, or one let of it, each of one class
 *     models     columns
 *     batches    allowed batch sizes, ascending
 *     sizes      of a class: how many of its units a let has whose times are known, ascending, below all of its units
 *     cells      classes x models x batches, of the whole device and of each size; a cell whose latency is 0 is not known, and no
 *                worker is placed there
 *
 * Time is in nanoseconds, memory in bytes. Times are those of a whole batch, not of a sample.
 *
 * The co-run model. A worker that computes while others compute on the same device is slower by
 *
 *     slowdown(a beside S) = 1 + sum over b in S of (pair(a, b) - 1)
 *
 * where pair(a, b) is how much longer a batch of a takes while one worker of b computes: measured, or the class's @pair_default
 * where it is 0. A @pair_default of 2 is a device shared by time: k busy workers take k times as long each, nothing is won or lost.
 * Below 2 workers fill each other's gaps, 1 is a device large enough for all of them; above 2 they are in each other's way. Batch
 * sizes of a pair are not looked at: the limit of this model.
 *
 * A let of a CPU with several cores (@units of its class at least 2) has a core for each of that many workers. There a pair is what
 * memory and caches make it, 1 where it was not measured, and more workers than cores share those by time:
 *
 *     slowdown(a beside S) = (1 + sum over b in S of (pair(a, b) - 1)) * max(1, (1 + |S|) / units)
 *
 * Lets of one device that compute side by side are in each other's way by caches and memory alone. Where the class has
 * coefficients, a batch of a on a share s(a) of the device is slower beside one of b on s(b) by (Choi et al., 2022, section 4.4)
 *
 *     c1 * l2(a) s(a) + c2 * l2(b) s(b) + c3 * memory(a) s(a) + c4 * memory(b) s(b) + c5, at least 1
 *
 * where l2 and memory are the shares of L2 cache and memory bandwidth that the batch uses on the whole device. A class of cores
 * without them has the measured pair there. Sizes of other lets than those measured lie between these, or have no cost.
 *
 * Ownership: one block with everything in it, the caller's. Once filled and checked it is immutable, and any thread may read it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;

#define SL_COST_NAME_BYTES  1184  /* of a name, terminated: of a model with its version, sizes and precision */
#define SL_COST_CLASSES_MAX 1024u /* profiles have one for each core */
#define SL_COST_DEVICES_MAX 4096u
#define SL_COST_MODELS_MAX  1024u
#define SL_COST_BATCHES_MAX 16u
#define SL_COST_SIZES_MAX   16u                       /* of lets of a class, beside the whole device */
#define SL_COST_CELLS_MAX   (1u << 20)                /* devices x models, classes x models x batches, classes x models x models */
#define SL_COST_BATCH_MAX   65536u                    /* samples of a batch */
#define SL_COST_NS_MAX      (3600ull * 1000000000ull) /* of a batch: an hour */
#define SL_COST_BYTES_MAX   (1ull << 50)
#define SL_COST_PAIR_MAX    1000.0 /* of a slow-down by one other worker */
#define SL_COST_NONE        UINT32_MAX

enum sl_device_kind { SL_DEVICE_CPU, SL_DEVICE_GPU };

/* Where a figure comes from. Whoever prints one says it. */
enum sl_cost_source {
        SL_COST_UNKNOWN,
        SL_COST_MEASURED,  /* on this device, by starling */
        SL_COST_PUBLISHED, /* by somebody else, who is named in the file's header */
        SL_COST_DERIVED,   /* by a formula, which stands in the file's header */
};

struct sl_cost_class {
        char name[SL_COST_NAME_BYTES];
        enum sl_device_kind kind;
        uint32_t units;        /* workers that compute at once on a CPU, SMs of a GPU; 0: not known */
        uint32_t copy_engines; /* 0: a worker copies, then computes; else it copies a batch while it computes another */
        double pair_default;   /* 2: shared by time */
        uint32_t n_sizes;      /* 0: only what the whole device takes is known */
        uint32_t sizes[SL_COST_SIZES_MAX];
        double interference[5]; /* c1 to c5; all 0: not known */
};

struct sl_cost_device {
        char name[SL_COST_NAME_BYTES];
        uint32_t class_index;
        uint32_t memory_of;    /* the row whose memory it draws on: its own, but for a let that of its device or of the first let */
        uint64_t memory_bytes; /* for workers; of a row that draws on another one not used */
};

struct sl_cost_model {
        char name[SL_COST_NAME_BYTES];
        uint64_t weights_bytes; /* resident, once for all workers of the model on one device */
};

/* One batch of one model on a device of one class that nobody else uses. */
struct sl_cost_cell {
        uint64_t latency_ns;       /* of computing, p50; 0: not known, or it does not run there */
        uint64_t transfer_ns;      /* inputs there and outputs back */
        uint64_t workspace_bytes;  /* of one worker, beside the weights */
        double l2_use, memory_use; /* shares, 0 to 1; of the whole device's cells */
        enum sl_cost_source source;
};

/* What a let of some size takes. */
struct sl_cost_let {
        double latency_ns, transfer_ns; /* as a cell's */
        uint64_t workspace_bytes;
        bool interpolated; /* nobody has measured this size, or this batch */
};

/* A batch that computes on a let. */
struct sl_cost_running {
        uint32_t model, batch, units;
};

struct sl_costs {
        uint32_t n_classes, n_devices, n_models, n_batches;
        uint32_t n_sizes; /* for which there is room, in each class */
        struct sl_cost_class *classes;
        struct sl_cost_device *devices;
        struct sl_cost_model *models;
        uint32_t *batches;
        struct sl_cost_cell *cells; /* sl_costs_cell() */
        double *pairs;              /* sl_costs_pair(); 0: the class's default */
};

/*
 * All zero but @memory_of (each row its own) and @pair_default (2), and no sizes. Return: 0; -E2BIG above a limit, -EINVAL none of
 * something, -ENOMEM.
 */
int sl_costs_new(uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches, struct sl_costs **ret_costs,
        struct sl_error *error);

/* The same with room for @n_sizes sizes of lets in each class. */
int sl_costs_new_sized(uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches, uint32_t n_sizes,
        struct sl_costs **ret_costs, struct sl_error *error);
struct sl_costs *sl_costs_free(struct sl_costs *costs);

/*
 * What everybody else relies on: names are there and different, indices and figures are inside of their limits, batch sizes ascend.
 * That a model runs nowhere is no error here. Return: 0; -EINVAL with the thing, the value and the limit.
 */
int sl_costs_check(const struct sl_costs *costs, struct sl_error *error);

/* The cell of a class, a model and the index of a batch size; to be written while it is filled. */
struct sl_cost_cell *sl_costs_cell(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t batch_index);

/* The same of a let of the class's size @size; @n_sizes of the class is the whole device. */
struct sl_cost_cell *sl_costs_size_cell(
        const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model, uint32_t batch_index);

/*
 * A batch of any number of samples on a let of any number of units of the class. A size between two whose cells are known is
 * interpolated in 1 / units, which is right for what has a part that more units shorten and one that they do not; a batch size in
 * proportion. Below the smallest and above the largest that are known nothing is. Return: false: not known.
 */
bool sl_costs_let(const struct sl_costs *costs, uint32_t class_index, uint32_t units, uint32_t model, uint32_t batch,
        struct sl_cost_let *ret_let);

/* How much longer @a takes while @b computes on another let of the same device. At least 1; 1 where nothing is known. */
double sl_costs_let_slowdown(
        const struct sl_costs *costs, uint32_t class_index, const struct sl_cost_running *a, const struct sl_cost_running *b);

/* How much longer @model takes beside one worker of @other, as it is given: 0 the class's default. */
double *sl_costs_pair(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t other);

/* Their index by name or size; SL_COST_NONE when there is none. */
uint32_t sl_costs_find_class(const struct sl_costs *costs, const char *name);
uint32_t sl_costs_find_device(const struct sl_costs *costs, const char *name);
uint32_t sl_costs_find_model(const struct sl_costs *costs, const char *name);
uint32_t sl_costs_find_batch(const struct sl_costs *costs, uint32_t batch);

/* The cell of a worker; NULL when the batch size is not allowed, or the cell not known. */
const struct sl_cost_cell *sl_costs_worker(const struct sl_costs *costs, uint32_t device, uint32_t model, uint32_t batch);

/* Nanoseconds from one batch of a busy worker to its next, alone on its device: copies run beside where there are copy engines. */
uint64_t sl_costs_period_ns(const struct sl_costs *costs, uint32_t device, const struct sl_cost_cell *cell);

/* Workers of a device of the class that are not in turns on a core: units of a CPU; 1 where all of it is shared, or it is not
 * known. */
uint32_t sl_costs_cores(const struct sl_costs *costs, uint32_t class_index);

/* Of a worker of @model beside @n busy workers of the models @beside on one device of the class. At least 1: below is noise. */
double sl_costs_slowdown(const struct sl_costs *costs, uint32_t class_index, uint32_t model, const uint32_t *beside, uint32_t n);

/*
 * Another fleet and other models out of the same costs: rows and columns in the order given. A row that is given again is one more
 * device like it, "NAME.2" or the next number that is free; lets whose device is not among the rows share its memory, which the
 * first of them has. Return: 0; -EINVAL; -E2BIG; -ENOMEM.
 */
int sl_costs_select(const struct sl_costs *costs, const uint32_t *devices, uint32_t n_devices, const uint32_t *models,
        uint32_t n_models, struct sl_costs **ret_costs, struct sl_error *error);
