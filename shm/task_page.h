/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of tasks, behind the catalogue in its memfd where both sides know SL_FEATURE_TASKS: which variants answer a task, how
 * accurate each is said to be, how it stands, and what it takes just now.
 *
 *     tasks, rows, texts   the control thread writes them as a whole, under one sequence lock (seqlock.h); any reader copies
 *     lines                the dispatcher writes each word by itself, relaxed: a reader wants the figure of now, and what it reads
 *                          orders nothing else. One line a place of the catalogue, so that no two variants share one
 *
 * The runtime reads nothing back. Offsets into the texts, indices and counts are checked by whoever copies them.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 3.1 (tasks and variants) and 3.2 (the metadata store).
 */
#pragma once

#include "layout.h"
#include "segment.h"

#include <stdbool.h>

#define SL_TASKS_MAX          128u
#define SL_TASK_VARIANTS_MAX  256u  /* of one task */
#define SL_VARIANTS_MAX       4096u /* rows of all tasks */
#define SL_TASK_TEXTS_BYTES   (512u << 10)
#define SL_TASK_REASON_BYTES  384u
#define SL_VARIANT_NOWHERE    UINT32_MAX
#define SL_VARIANT_SIZES      13u /* jobs of 1, 2, 4 ... 4,096 samples */
#define SL_VARIANT_BATCHES    6u
#define SL_VARIANT_WORK_ONE   256u
#define SL_VARIANT_UNIT_NS    64u /* of times in a line */
#define SL_VARIANT_WAIT_UNITS ((1u << 30) - 1)

enum sl_variant_state {
        SL_VARIANT_ABSENT,    /* no model of that name has been listed */
        SL_VARIANT_SERVES,    /* it takes requests */
        SL_VARIANT_AVAILABLE, /* it is loaded on request, and has ports: a request waits for its load */
        SL_VARIANT_UNLOADED,  /* it is loaded on request, and has never been: only opening it loads it */
        SL_VARIANT_LOADING,
        SL_VARIANT_FAILED,  /* or it is being unloaded */
        SL_VARIANT_DIFFERS, /* other inputs or outputs than the task's, or not the file that was measured: it is left out */
};

/* One variant of a task. */
struct sl_variant_row {
        uint32_t state;        /* enum sl_variant_state */
        uint32_t index;        /* of its model in the catalogue; SL_VARIANT_NOWHERE */
        uint32_t generation;   /* of that model */
        uint32_t samples_max;  /* of one request */
        uint32_t name, reason; /* where they begin in the texts, terminated there; reason: "" or why it does not serve */
        double accuracy;       /* 0 to 1, as its task says */
        double cost;           /* as its task says, if that has costs */
        uint64_t memory_bytes; /* of its plan; 0: nothing is loaded */
        uint64_t load_ns;      /* what its last load took, or start where its plan is on standby; 0: not known */
        uint64_t service_ns;   /* of one sample, as its task says; counts until it is measured. 0: not known */
        uint32_t batch_units[SL_VARIANT_BATCHES]; /* of 2, 4 ... 64 samples, likewise, in SL_VARIANT_UNIT_NS; 0: not known */
        uint64_t reserved[4];
};
static_assert(sizeof(struct sl_variant_row) == 120, "");

struct sl_task_head {
        uint32_t name; /* where it begins in the texts */
        uint32_t first, n;
        uint32_t policy;    /* enum sl_choice_policy */
        uint32_t has_costs; /* 1: rows have costs */
        uint32_t reference; /* the variant whose inputs and outputs are the task's */
        uint64_t signature; /* of those (sl_task_signature()); 0: no variant has any yet */
};
static_assert(sizeof(struct sl_task_head) == 32, "");

/* What a model takes just now. Times in units of SL_VARIANT_UNIT_NS. */
struct sl_variant_line {
        alignas(64) _Atomic uint32_t word; /* sl_variant_word(), SL_VARIANT_WITHDRAWN; 0: the dispatcher has not heard of it */
        _Atomic uint32_t workers;          /* sl_variant_workers() */
        _Atomic uint32_t work;             /* that all members of an ensemble compute, by that of the longest, times WORK_ONE */
        _Atomic uint32_t jobs[SL_VARIANT_SIZES]; /* what one of 2^i samples takes, as learned; 0: not known */
};
static_assert(sizeof(struct sl_variant_line) == 64, "a model has its own line");

/*
 * What is not served any more, or not yet again, though its row may say so: the dispatcher knows first. Of what it has not heard
 * that it is a variant, the row alone speaks: lines become known one after the other.
 */
#define SL_VARIANT_WITHDRAWN 1u

/* Bit 31: it serves; bit 30: its queue is full; below: how long a request that comes now is expected to wait. */
static inline uint32_t sl_variant_word(bool full, uint64_t wait_ns)
{
        uint64_t units = wait_ns / SL_VARIANT_UNIT_NS;

        return 1u << 31 | (uint32_t)full << 30 | (uint32_t)(units < SL_VARIANT_WAIT_UNITS ? units : SL_VARIANT_WAIT_UNITS);
}

static inline bool sl_variant_word_serves(uint32_t word)
{
        return word >> 31;
}

static inline bool sl_variant_word_full(uint32_t word)
{
        return word >> 30 & 1;
}

static inline uint64_t sl_variant_word_wait_ns(uint32_t word)
{
        return (uint64_t)(word & SL_VARIANT_WAIT_UNITS) * SL_VARIANT_UNIT_NS;
}

/*
 * What was learned while others had the cores, and keeps all queries away, no job would ever correct. So what jobs take is doubted
 * of a variant that has had no request for so long: once more with each such time, at most so often. A query with a latency takes
 * its jobs to take half as long for each doubt. The first that comes ends the doubt, and its job says anew what they take: of what
 * is as slow as was learned, one query in so long at most is answered late. What rests is not doubted, as a load costs more.
 */
#define SL_VARIANT_DOUBT_NS  2000000000ull
#define SL_VARIANT_DOUBT_MAX 31u

/* @idle_ns: since its last request; 0: some are in flight. */
static inline uint32_t sl_variant_doubt(uint64_t idle_ns)
{
        uint64_t doubt = idle_ns / SL_VARIANT_DOUBT_NS;

        return (uint32_t)(doubt < SL_VARIANT_DOUBT_MAX ? doubt : SL_VARIANT_DOUBT_MAX);
}

#define SL_VARIANT_WORKERS_MAX 0xffffu

/* How many workers it has, 0: the dispatcher alone computes it, or nobody does; above bit 16 how often what its jobs take is
 * doubted; above bit 24 in which state they are (enum sl_condition of the runtime; the header's enum starling_condition). */
static inline uint32_t sl_variant_workers(uint32_t workers, uint32_t condition, uint32_t doubt)
{
        return (workers < SL_VARIANT_WORKERS_MAX ? workers : SL_VARIANT_WORKERS_MAX) | doubt << 16 | condition << 24;
}

static inline uint32_t sl_variant_workers_count(uint32_t word)
{
        return word & SL_VARIANT_WORKERS_MAX;
}

static inline uint32_t sl_variant_workers_doubt(uint32_t word)
{
        return word >> 16 & 0xff;
}

static inline uint32_t sl_variant_workers_condition(uint32_t word)
{
        return word >> 24;
}

struct sl_task_page {
        alignas(128) _Atomic uint32_t seq;
        uint32_t n_tasks, n_rows, texts_bytes;
        struct sl_task_head tasks[SL_TASKS_MAX];
        struct sl_variant_row rows[SL_VARIANTS_MAX];
        char texts[SL_TASK_TEXTS_BYTES];
        alignas(128) struct sl_variant_line lines[SL_CATALOGUE_MODELS];
};
static_assert(offsetof(struct sl_task_page, tasks) == 16, "");

/* Bytes that the page takes behind the catalogue, whatever that has: it ends with the memfd. */
#define SL_TASK_PAGE_BYTES sl_align_up(sizeof(struct sl_task_page), SL_PAGE_BYTES)

/* Of a mapping of both; NULL: it has no room for both. */
static inline struct sl_task_page *sl_task_page_in(const struct sl_mapping *catalogue)
{
        if (catalogue->bytes < sizeof(struct sl_catalogue) + SL_TASK_PAGE_BYTES)
                return NULL;
        return (struct sl_task_page *)((char *)catalogue->base + catalogue->bytes - SL_TASK_PAGE_BYTES);
}

/* What is to be on the page, or was; of one's own memory. Texts begin with "". */
struct sl_task_content {
        struct sl_task_head *tasks;
        struct sl_variant_row *rows;
        char *texts;
        uint32_t n_tasks, n_rows, texts_bytes;
};

/* Replaces all. Control thread; the content keeps to the limits above. */
void sl_task_page_write(struct sl_task_page *page, const struct sl_task_content *content);

/* A task as it was at one moment: its head, its rows, and all texts. */
struct sl_task_copy {
        uint32_t seq;
        struct sl_task_head task;
        const char *texts;
        struct sl_variant_row rows[]; /* [task.n] */
};

/* The number of tasks; below it, @number names one for sl_task_page_copy(). */
uint32_t sl_task_page_count(const struct sl_task_page *page);

/*
 * Copies the task called @name, or, where that is NULL, number @number. The caller frees the copy. Return: 0; -ENOENT there is
 * none; -EAGAIN the writer was in the middle of a change all the time; -EPROTO what the page says is impossible; -ENOMEM.
 */
int sl_task_page_copy(const struct sl_task_page *page, const char *name, uint32_t number, struct sl_task_copy **ret_copy);

/* Has the page changed since it was copied? One load, acquire: what is read afterwards is no older. */
static inline bool sl_task_copy_is_old(const struct sl_task_copy *copy, const struct sl_task_page *page)
{
        return atomic_load_explicit(&page->seq, memory_order_acquire) != copy->seq;
}

/* Inputs, then outputs, by types, dimensions and batch axes; names and labels do not count. Never 0. Pure. */
uint64_t sl_task_signature(const struct sl_catalogue_port *ports, uint32_t n_inputs, uint32_t n_outputs);
