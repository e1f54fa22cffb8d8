/* SPDX-License-Identifier: Apache-2.0 */
#include "task_page.h"

#include "seqlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the sequence number guards in the head. */
struct counts {
        uint32_t n_tasks, n_rows, texts_bytes, padding;
};
#define COUNTS_OFFSET offsetof(struct sl_task_page, n_tasks)
static_assert(offsetof(struct sl_task_page, texts_bytes) == COUNTS_OFFSET + 8, "the counts lie side by side");
#define COUNTS_BYTES 12u

/* Words of four bytes: what is left of the last one is zero. */
static void store_texts(char *to, const char *texts, uint32_t bytes)
{
        uint32_t whole = bytes & ~7u;
        char last[8] = {0};

        sl_seqlock_store(to, texts, whole);
        memcpy(last, texts + whole, bytes - whole);
        if (whole < bytes)
                sl_seqlock_store(to + whole, last, sizeof(last));
}

void sl_task_page_write(struct sl_task_page *page, const struct sl_task_content *content)
{
        struct counts counts = {content->n_tasks, content->n_rows, content->texts_bytes, 0};

        sl_seqlock_begin(&page->seq);
        sl_seqlock_store((char *)page + COUNTS_OFFSET, &counts, COUNTS_BYTES);
        sl_seqlock_store(page->tasks, content->tasks, content->n_tasks * sizeof(*content->tasks));
        sl_seqlock_store(page->rows, content->rows, content->n_rows * sizeof(*content->rows));
        store_texts(page->texts, content->texts, content->texts_bytes);
        sl_seqlock_end(&page->seq);
}

static int read_counts(const struct sl_task_page *page, struct counts *ret_counts)
{
        return sl_seqlock_read(&page->seq, ret_counts, (const char *)page + COUNTS_OFFSET, COUNTS_BYTES);
}

static bool is_possible(const struct counts *counts)
{
        return counts->n_tasks <= SL_TASKS_MAX && counts->n_rows <= SL_VARIANTS_MAX && counts->texts_bytes <= SL_TASK_TEXTS_BYTES;
}

uint32_t sl_task_page_count(const struct sl_task_page *page)
{
        struct counts counts;

        return read_counts(page, &counts) == 0 && is_possible(&counts) ? counts.n_tasks : 0;
}

static bool is_sound(const struct sl_task_copy *copy, uint32_t texts_bytes)
{
        for (uint32_t i = 0; i < copy->task.n; i++)
                if (copy->rows[i].name >= texts_bytes || copy->rows[i].reason >= texts_bytes)
                        return false;
        return true;
}

/* One block: the head, the rows, the texts, which end. */
static int copy_rows(const struct sl_task_page *page, const struct counts *counts, const struct sl_task_head *task,
        const char *texts, struct sl_task_copy **ret_copy)
{
        size_t rows_bytes = task->n * sizeof(struct sl_variant_row);
        struct sl_task_copy *copy;

        if (task->n > SL_TASK_VARIANTS_MAX || !sl_range_inside(task->first, task->n, counts->n_rows))
                return -EPROTO;
        copy = malloc(sizeof(*copy) + rows_bytes + counts->texts_bytes + 1u);
        if (!copy)
                return -ENOMEM;
        copy->task = *task;
        copy->texts = (char *)copy->rows + rows_bytes;
        sl_seqlock_load(copy->rows, page->rows + task->first, rows_bytes);
        memcpy((char *)copy->rows + rows_bytes, texts, counts->texts_bytes);
        ((char *)copy->rows)[rows_bytes + counts->texts_bytes] = 0;
        *ret_copy = copy;
        return 0;
}

static int find(const struct sl_task_page *page, const struct counts *counts, const char *texts, const char *name, uint32_t number,
        struct sl_task_head *ret_task)
{
        for (uint32_t i = name ? 0 : number; i < counts->n_tasks; i++) {
                sl_seqlock_load(ret_task, &page->tasks[i], sizeof(*ret_task));
                if (ret_task->name >= counts->texts_bytes)
                        return -EPROTO;
                if (!name || strcmp(texts + ret_task->name, name) == 0)
                        return 0;
        }
        return -ENOENT;
}

/* One try: what is impossible may come of a change in between, which the caller looks for. */
static int try_copy(const struct sl_task_page *page, const char *name, uint32_t number, struct sl_task_copy **ret_copy)
{
        struct sl_task_copy *copy = NULL;
        struct sl_task_head task;
        struct counts counts;
        char *texts;
        int r;

        sl_seqlock_load(&counts, (const char *)page + COUNTS_OFFSET, COUNTS_BYTES);
        if (!is_possible(&counts))
                return -EPROTO;
        texts = calloc(1, sl_align_up(counts.texts_bytes, 8) + 8);
        if (!texts)
                return -ENOMEM;
        sl_seqlock_load(texts, page->texts, sl_align_up(counts.texts_bytes, 8));
        texts[counts.texts_bytes] = 0;
        r = find(page, &counts, texts, name, number, &task);
        if (r == 0)
                r = copy_rows(page, &counts, &task, texts, &copy);
        if (r == 0 && !is_sound(copy, counts.texts_bytes)) {
                free(copy);
                r = -EPROTO;
        }
        free(texts);
        if (r == 0)
                *ret_copy = copy;
        return r;
}

int sl_task_page_copy(const struct sl_task_page *page, const char *name, uint32_t number, struct sl_task_copy **ret_copy)
{
        for (int i = 0; i < SL_SEQLOCK_TRIES; i++) {
                uint32_t before = atomic_load_explicit(&page->seq, memory_order_acquire);
                struct sl_task_copy *copy = NULL;
                int r = before & 1 ? -EAGAIN : try_copy(page, name, number, &copy);

                if (r == -ENOMEM)
                        return r;
                if (!(before & 1) && atomic_load_explicit(&page->seq, memory_order_relaxed) == before) {
                        if (r == 0) {
                                copy->seq = before;
                                *ret_copy = copy;
                        }
                        return r;
                }
                free(copy);
                if (i % SL_SEQLOCK_SPINS == SL_SEQLOCK_SPINS - 1)
                        nanosleep(&(struct timespec){.tv_nsec = SL_SEQLOCK_PAUSE_NS}, NULL);
        }
        return -EAGAIN;
}

/* FNV-1a over what two models must have in common. */
static uint64_t mix(uint64_t seed, uint64_t value)
{
        for (uint32_t i = 0; i < 8; i++)
                seed = (seed ^ (value >> 8 * i & 0xff)) * 0x100000001b3u;
        return seed;
}

uint64_t sl_task_signature(const struct sl_catalogue_port *ports, uint32_t n_inputs, uint32_t n_outputs)
{
        uint64_t signature = mix(mix(0xcbf29ce484222325u, n_inputs), n_outputs);

        for (uint32_t i = 0; i < n_inputs + n_outputs; i++) {
                const struct sl_catalogue_port *port = &ports[i];

                signature = mix(signature, (uint64_t)port->dtype << 24 | (uint64_t)port->rank << 16 |
                                                   (uint64_t)port->batch_axis << 8 | port->optional);
                for (uint32_t k = 0; k < SL_WIRE_RANK_MAX; k++)
                        signature = mix(signature, (uint32_t)port->dims[k]);
        }
        return signature ? signature : 1;
}
