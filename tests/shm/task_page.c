/* SPDX-License-Identifier: Apache-2.0 */
/* The page of tasks: what is copied is whole and of one moment, and an impossible page is refused. */
#include "task_page.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS  3u
#define ROWS   250u
#define COPIES 2000

static struct sl_task_page *new_page(void)
{
        struct sl_task_page *page = aligned_alloc(128, sl_align_up(sizeof(*page), 128));

        cr_assert_not_null(page);
        memset(page, 0, sizeof(*page));
        return page;
}

/* Tasks "a", "b" ... of ROWS - number % 5 variants; every field of a row says the number. */
struct content {
        struct sl_task_head tasks[TASKS];
        struct sl_variant_row rows[TASKS * ROWS];
        char texts[16384];
        struct sl_task_content content;
};

static void make_number(struct content *c, uint32_t number)
{
        uint32_t n_rows = 0, used = 1;

        memset(c, 0, sizeof(*c));
        for (uint32_t t = 0; t < TASKS; t++) {
                c->tasks[t] = (struct sl_task_head){.name = used, .first = n_rows, .n = ROWS - number % 5, .signature = number};
                used += (uint32_t)sprintf(c->texts + used, "%c", 'a' + (int)t) + 1;
                for (uint32_t i = 0; i < c->tasks[t].n; i++) {
                        c->rows[n_rows] = (struct sl_variant_row){
                                .index = number, .generation = number + t, .accuracy = number, .name = used};
                        used += (uint32_t)sprintf(c->texts + used, "%c-%u-%u", 'a' + (int)t, i, number) + 1;
                        n_rows++;
                }
        }
        c->content = (struct sl_task_content){
                .tasks = c->tasks, .rows = c->rows, .texts = c->texts, .n_tasks = TASKS, .n_rows = n_rows, .texts_bytes = used};
}

static void write_number(struct sl_task_page *page, uint32_t number)
{
        static struct content content;

        make_number(&content, number);
        sl_task_page_write(page, &content.content);
}

static void check_number(const struct sl_task_copy *copy, char letter, uint32_t t)
{
        uint32_t number = (uint32_t)copy->task.signature;

        cr_assert_eq(copy->task.n, ROWS - number % 5);
        for (uint32_t i = 0; i < copy->task.n; i++) {
                char name[32];

                snprintf(name, sizeof(name), "%c-%u-%u", letter, i, number);
                cr_assert_eq(copy->rows[i].index, number);
                cr_assert_eq(copy->rows[i].generation, number + t);
                cr_assert_eq((uint32_t)copy->rows[i].accuracy, number);
                cr_assert_str_eq(copy->texts + copy->rows[i].name, name);
        }
}

Test(task_page, a_task_is_found_by_name_and_by_number)
{
        struct sl_task_page *page = new_page();
        struct sl_task_copy *copy;

        cr_expect_eq(sl_task_page_count(page), 0);
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -ENOENT);
        write_number(page, 7);
        cr_expect_eq(sl_task_page_count(page), TASKS);
        cr_assert_eq(sl_task_page_copy(page, "b", 0, &copy), 0);
        check_number(copy, 'b', 1);
        cr_expect_not(sl_task_copy_is_old(copy, page));
        write_number(page, 8);
        cr_expect(sl_task_copy_is_old(copy, page));
        free(copy);
        cr_assert_eq(sl_task_page_copy(page, NULL, 2, &copy), 0);
        check_number(copy, 'c', 2);
        free(copy);
        cr_expect_eq(sl_task_page_copy(page, NULL, TASKS, &copy), -ENOENT);
        cr_expect_eq(sl_task_page_copy(page, "d", 0, &copy), -ENOENT);
        free(page);
}

Test(task_page, an_impossible_page_is_refused)
{
        struct sl_task_page *page = new_page();
        struct sl_task_copy *copy;
        struct sl_task_head whole;

        write_number(page, 4);
        whole = page->tasks[0];
        page->tasks[0].first = UINT32_MAX - 1;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->tasks[0] = whole;
        page->tasks[0].n = SL_TASK_VARIANTS_MAX + 1;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->tasks[0] = whole;
        page->tasks[0].name = page->texts_bytes;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->tasks[0] = whole;
        page->rows[0].reason = page->texts_bytes;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->rows[0].reason = 0;
        uint32_t name = page->rows[0].name;
        page->rows[0].name = page->texts_bytes;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->rows[0].name = name;
        cr_assert_eq(sl_task_page_copy(page, "a", 0, &copy), 0);
        free(copy);
        page->texts_bytes = UINT32_MAX;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        page->texts_bytes = 10;
        page->n_tasks = SL_TASKS_MAX + 1;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EPROTO);
        cr_expect_eq(sl_task_page_count(page), 0);
        page->n_tasks = TASKS;
        page->seq |= 1;
        cr_expect_eq(sl_task_page_copy(page, "a", 0, &copy), -EAGAIN, "its writer died inside a change");
        free(page);
}

#define NUMBERS 5u

struct writing {
        struct sl_task_page *page;
        struct content contents[NUMBERS];
        atomic_bool stop;
};

/* Made before, so that a writer which is taken off its core is most often inside of a change. */
static void *write_on(void *context)
{
        struct writing *writing = context;

        for (uint32_t i = 0; !atomic_load(&writing->stop); i++) {
                sl_task_page_write(writing->page, &writing->contents[i % NUMBERS].content);
                sched_yield();
        }
        return NULL;
}

Test(task_page, a_copy_is_of_one_moment)
{
        static struct writing writing;
        struct sl_task_copy *copy;
        pthread_t thread;
        int whole = 0;

        writing.page = new_page();
        for (uint32_t i = 0; i < NUMBERS; i++)
                make_number(&writing.contents[i], i);
        sl_task_page_write(writing.page, &writing.contents[0].content);
        cr_assert_eq(pthread_create(&thread, NULL, write_on, &writing), 0);
        while (whole < COPIES) {
                int r = sl_task_page_copy(writing.page, whole % 2 ? "b" : NULL, 2, &copy);

                cr_assert(r == 0 || r == -EAGAIN, "%d", r);
                if (r < 0)
                        continue;
                check_number(copy, whole % 2 ? 'b' : 'c', whole % 2 ? 1 : 2);
                free(copy);
                whole++;
        }
        atomic_store(&writing.stop, true);
        pthread_join(thread, NULL);
        free(writing.page);
}

Test(task_page, a_signature_is_of_types_dimensions_and_axes_alone)
{
        struct sl_catalogue_port ports[2] = {
                {.name = 3, .dtype = 1, .rank = 2, .dims = {-1, 64}}, {.name = 9, .dtype = 1, .rank = 2, .dims = {-1, 10}}};
        uint64_t signature = sl_task_signature(ports, 1, 1);

        ports[0].name = 5;
        ports[1].labels = 77;
        cr_expect_eq(sl_task_signature(ports, 1, 1), signature);
        ports[0].dims[1] = 65;
        cr_expect_neq(sl_task_signature(ports, 1, 1), signature);
        ports[0].dims[1] = 64;
        ports[1].dtype = 7;
        cr_expect_neq(sl_task_signature(ports, 1, 1), signature);
        ports[1].dtype = 1;
        ports[0].batch_axis = 1;
        cr_expect_neq(sl_task_signature(ports, 1, 1), signature);
        ports[0].batch_axis = 0;
        cr_expect_neq(sl_task_signature(ports, 2, 0), signature);
        cr_expect_eq(sl_task_signature(ports, 1, 1), signature);
}

Test(task_page, a_word_says_whether_it_serves_and_how_long_it_waits)
{
        cr_expect_not(sl_variant_word_serves(0));
        cr_expect_not(sl_variant_word_serves(SL_VARIANT_WITHDRAWN));
        cr_expect(sl_variant_word_serves(sl_variant_word(false, 0)));
        cr_expect_not(sl_variant_word_full(sl_variant_word(false, UINT64_MAX)));
        cr_expect(sl_variant_word_full(sl_variant_word(true, 0)));
        cr_expect_eq(sl_variant_word_wait_ns(sl_variant_word(true, 6400)), 6400);
        cr_expect_geq(sl_variant_word_wait_ns(sl_variant_word(false, UINT64_MAX)), 60000000000ull, "it saturates");
}
