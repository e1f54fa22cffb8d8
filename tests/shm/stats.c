/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted in the stats page, and what its readers see, of a damaged page too.
 */
#include "base/error.h"
#include "stats_bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(stats, .init = stats_bench_init, .fini = stats_bench_deinit);

Test(stats, a_reader_sees_what_was_counted)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting counting;
        struct sl_client_stats *client, client_copy;
        struct sl_worker_stats *worker, worker_copy;
        struct sl_model_stats model;
        struct sl_dispatcher_stats dispatcher;
        struct sl_stats_header header;
        struct sl_histogram histogram;

        cr_assert_eq(sl_stats_model_add(stats, "resnet", &counting, NULL), 0);
        cr_assert_eq(sl_stats_client_add(
                             stats, &(struct sl_client_stats){.id = 77, .uid = 1000, .pid = 4242, .label = "camera"}, &client),
                0);
        cr_assert_eq(sl_stats_worker_add(stats,
                             &(struct sl_worker_stats){.model = "resnet", .executor = "thread", .core = 3, .batch_max = 16}, false,
                             &worker),
                0);
        sl_model_count(&counting, completed, 5);
        sl_model_record(&counting, SL_STAGE_QUEUED, 1000);
        sl_counter_add(&client->requests, 9);
        sl_counter_add(&worker->busy_ns, 123);
        sl_counter_add(&sl_stats_dispatcher(stats, 1)->passes, 8);
        sl_counter_add(&sl_stats_dispatcher(stats, 1)->refusals[SL_REFUSAL_QUOTA], 2);
        sl_stats_dispatcher_pinned(stats, 1, 1);
        sl_stats_set_state(stats, SL_RUNTIME_READY);

        sl_stats_read_header(v, &header);
        cr_expect_str_eq(header.runtime_name, "demo");
        cr_expect_str_eq(header.wait_name, "epoll");
        cr_expect_eq(header.pid, (uint32_t)getpid());
        cr_expect_eq(atomic_load(&header.state), SL_RUNTIME_READY);
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_str_eq(model.name, "resnet");
        cr_expect_eq(sl_counter_read(&model.completed), 5);
        histogram = stats_histogram(v, model.histograms, SL_STAGE_QUEUED);
        cr_expect_eq(sl_histogram_quantile(&histogram, 0.5), 1000);
        cr_assert_eq(sl_stats_read_client(v, 0, &client_copy), 0);
        cr_expect_str_eq(client_copy.label, "camera");
        cr_expect(client_copy.id == 77 && client_copy.uid == 1000 && client_copy.pid == 4242);
        cr_expect_eq(sl_counter_read(&client_copy.requests), 9);
        cr_assert_eq(sl_stats_read_worker(v, 0, &worker_copy), 0);
        cr_expect(worker_copy.core == 3 && worker_copy.batch_max == 16 && sl_counter_read(&worker_copy.busy_ns) == 123);
        cr_assert_eq(sl_stats_read_dispatcher(v, 1, &dispatcher), 0);
        cr_expect(dispatcher.core == 1 && sl_counter_read(&dispatcher.passes) == 8);
        cr_expect_eq(sl_counter_read(&dispatcher.refusals[SL_REFUSAL_QUOTA]), 2);
        cr_expect_eq(sl_stats_count(v, SL_STATS_DISPATCHERS), 2);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, the_page_is_for_all_to_read_and_goes_with_the_runtime)
{
        struct sl_stats *stats = stats_create();
        struct stat status;

        umask(0777); /* must not matter */
        cr_assert_eq(stat(stats_path(), &status), 0);
        cr_expect_eq(status.st_mode & 07777, 0644);
        cr_expect_eq(status.st_size, MIB);
        cr_expect_null(sl_stats_free(stats));
        cr_expect_lt(stat(stats_path(), &status), 0);
        cr_expect_null(sl_stats_free(NULL));
}

static void add_sizes(
        struct sl_stats *stats, const char *name, enum sl_stats_model_kind kind, struct sl_model_counting *ret_counting)
{
        cr_assert_eq(sl_stats_model_add(stats, name, ret_counting, NULL), 0);
        sl_stats_model_show(ret_counting, &(struct sl_model_stats){.kind = kind});
}

/* Only when the last one has left who counts there, and nobody else's. */
Test(stats, what_sizes_have_counted_stays_with_their_model)
{
        struct sl_stats *stats = stats_create();
        struct sl_model_counting open, sizes, again, plain, other;
        const struct sl_model_stats *shown;

        add_sizes(stats, "net", SL_STATS_MODEL_OPEN, &open);
        add_sizes(stats, "net[64]", SL_STATS_MODEL_SIZES, &sizes);
        add_sizes(stats, "net[64]", SL_STATS_MODEL_SIZES, &again);
        add_sizes(stats, "net[1]", SL_STATS_MODEL_PLAIN, &plain);
        add_sizes(stats, "gone[64]", SL_STATS_MODEL_SIZES, &other);
        shown = open.counters;
        sl_model_count(&sizes, requests, 5);
        sl_model_count(&plain, requests, 1);
        sl_model_count(&other, requests, 2);
        sl_stats_model_remove(stats, &sizes);
        cr_expect_eq(sl_counter_read(&shown->left_requests), 0);
        sl_model_count(&again, requests, 3);
        sl_model_count(&again, lost, 4);
        sl_model_count(&again, in_flight, 1);
        sl_stats_model_remove(stats, &again);
        sl_stats_model_remove(stats, &plain);
        sl_stats_model_remove(stats, &other);
        cr_expect_eq(sl_counter_read(&shown->left_requests), 8);
        cr_expect_eq(sl_counter_read(&shown->left_lost), 4);
        cr_expect_eq(sl_counter_read(&shown->requests), 0);
        add_sizes(stats, "net[64]", SL_STATS_MODEL_SIZES, &sizes);
        sl_model_count(&sizes, requests, 10);
        sl_stats_model_remove(stats, &sizes);
        cr_expect_eq(sl_counter_read(&shown->left_requests), 18);
        sl_stats_model_remove(stats, &open);
        add_sizes(stats, "net", SL_STATS_MODEL_OPEN, &open);
        cr_expect_eq(sl_counter_read(&open.counters->left_requests), 0);
        sl_stats_free(stats);
}

Test(stats, slots_are_used_again)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_client_stats *first, *second, copy;
        struct sl_model_counting a, b;
        struct sl_model_stats model;

        sl_stats_client_add(stats, &(struct sl_client_stats){.id = 1, .label = "one"}, &first);
        sl_counter_add(&first->requests, 100);
        sl_stats_client_remove(stats, first);
        cr_expect_eq(sl_stats_read_client(v, 0, &copy), -ENOENT);
        sl_stats_client_add(stats, &(struct sl_client_stats){.id = 2, .label = "two"}, &second);
        cr_expect_eq(first, second);
        cr_expect_eq(sl_counter_read(&second->requests), 0, "a slot starts from zero");

        sl_stats_model_add(stats, "a", &a, NULL);
        sl_model_record(&a, SL_STAGE_TOTAL, 5);
        struct sl_histogram_set *set = a.histograms;
        sl_stats_model_remove(stats, &a);
        cr_expect_null(a.counters);
        cr_expect_eq(sl_stats_read_model(v, 1, &model), -ENOENT);
        sl_stats_model_add(stats, "b", &b, NULL);
        cr_expect_eq(b.histograms, set);
        cr_expect_eq(b.number, 1);
        cr_expect_eq(sl_counter_read(&b.histograms->stages[SL_STAGE_TOTAL].count), 0);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_name_goes_on_counting_while_what_it_serves_is_replaced)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting old, new;
        struct sl_model_stats model;

        cr_assert_eq(sl_stats_model_add(stats, "resnet", &old, NULL), 0);
        sl_model_count(&old, completed, 5);
        cr_assert_eq(sl_stats_model_add(stats, "resnet", &new, NULL), 0);
        sl_model_count(&new, completed, 2);
        sl_model_record(&new, SL_STAGE_TOTAL, 10);
        sl_stats_model_remove(stats, &old);
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_eq(sl_counter_read(&model.completed), 7);
        cr_expect_eq(sl_stats_read_model(v, 2, &model), -ENOENT, "one slot");
        sl_stats_model_remove(stats, &new);
        cr_expect_eq(sl_stats_read_model(v, 1, &model), -ENOENT);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, what_is_shown_changes_and_leaves_counters_and_name_alone)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting counting;
        struct sl_worker_stats *slot, worker;
        struct sl_model_stats model;

        cr_assert_eq(sl_stats_model_add(stats, "resnet", &counting, NULL), 0);
        sl_model_count(&counting, requests, 3);
        sl_counter_set(&counting.counters->left_lost, 5);
        sl_stats_model_show(&counting, &(struct sl_model_stats){.state = SL_STATS_MODEL_FAILED,
                                               .why = "no",
                                               .requests = 99,
                                               .left_lost = 98,
                                               .want = 7,
                                               .awaits = "its load",
                                               .cause = "no file"});
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect(model.state == SL_STATS_MODEL_FAILED && sl_counter_read(&model.requests) == 3 && model.histograms == 1);
        cr_expect_str_eq(model.name, "resnet");
        cr_expect_str_eq(model.why, "no");
        cr_expect(model.want == 7 && sl_counter_read(&model.left_lost) == 5, "what stands behind the counters is shown as well");
        cr_expect_str_eq(model.awaits, "its load");
        cr_expect_str_eq(model.cause, "no file");
        sl_stats_model_shown(&counting, &model);
        cr_expect(model.want == 7 && model.state == SL_STATS_MODEL_FAILED && !model.requests);

        cr_assert_eq(sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "resnet", .pid = 7}, false, &slot), 0);
        sl_counter_add(&slot->batches, 4);
        sl_stats_worker_shown(slot, &worker);
        cr_expect_eq(worker.pid, 7);
        worker.restarts++;
        worker.state = SL_STATS_WORKER_BACKING_OFF;
        sl_stats_worker_show(slot, &worker);
        cr_assert_eq(sl_stats_read_worker(v, 0, &worker), 0);
        cr_expect(worker.restarts == 1 && worker.pid == 7 && sl_counter_read(&worker.batches) == 4);
        cr_expect_str_eq(sl_stats_worker_state_name(worker.state), "backing off");
        sl_stats_close(v);
        sl_stats_free(stats);
}

static void fill_name(char name[SL_STATS_MODEL_BYTES], char end)
{
        memset(name, 'n', SL_STATS_MODEL_BYTES - 1);
        name[SL_STATS_MODEL_BYTES - 2] = end;
        name[SL_STATS_MODEL_BYTES - 1] = 0;
}

/* As long as any that is served: with its sizes, two that differ in their last byte, of workers and queues, too. */
Test(stats, names_of_any_length_are_read_whole)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting one, other, again;
        struct sl_worker_stats worker = {.executor = "thread"}, *slot;
        struct sl_queue_stats queue, *queue_slot;
        char name[SL_STATS_MODEL_BYTES], open[SL_STATS_MODEL_BYTES];
        struct sl_model_stats model;

        fill_name(name, '1');
        cr_assert_eq(sl_stats_model_add(stats, name, &one, NULL), 0);
        strcpy(worker.model, name);
        cr_assert_eq(sl_stats_worker_add(stats, &worker, false, &slot), 0);
        cr_assert_eq(sl_stats_queue_add(stats, name, SL_STATS_QUEUE_REQUESTS, &queue_slot), 0);
        name[SL_STATS_MODEL_BYTES - 2] = '2';
        cr_assert_eq(sl_stats_model_add(stats, name, &other, NULL), 0);
        cr_assert_eq(sl_stats_model_add(stats, name, &again, NULL), 0);
        cr_expect(one.number == 1 && other.number == 2 && again.number == 2);
        cr_assert_eq(sl_stats_read_model(v, 2, &model), 0);
        cr_expect_str_eq(model.name, name);
        cr_assert_eq(sl_stats_read_worker(v, 0, &worker), 0);
        cr_assert_eq(sl_stats_read_queue(v, 0, &queue), 0);
        name[SL_STATS_MODEL_BYTES - 2] = '1';
        cr_expect_str_eq(worker.model, name);
        cr_expect_str_eq(queue.model, name);
        memset(model.name, 'n', 1024);
        strcpy(model.name + 1024, "[480x640]");
        model.kind = SL_STATS_MODEL_SIZES;
        cr_expect(sl_stats_sizes_of(&model, open));
        cr_expect_eq(strlen(open), 1024);
        sl_stats_close(v);
        sl_stats_free(stats);
}

/* Whoever wrote the page. */
Test(stats, a_name_without_an_end_ends_with_its_slot)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting counting;
        struct sl_queue_stats queue, *slot;
        struct sl_model_stats model;

        cr_assert_eq(sl_stats_model_add(stats, "net", &counting, NULL), 0);
        cr_assert_eq(sl_stats_queue_add(stats, "net", SL_STATS_QUEUE_SEGMENTS, &slot), 0);
        memset(counting.counters->name, '\xff', sizeof(counting.counters->name));
        memset(counting.counters->why, 'w', sizeof(counting.counters->why));
        memset(counting.counters->cause, 'w', sizeof(counting.counters->cause));
        memset(slot->model, '\xe5', sizeof(slot->model));
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_eq(strnlen(model.name, sizeof(model.name)), sizeof(model.name) - 1);
        cr_expect_eq(strnlen(model.why, sizeof(model.why)), sizeof(model.why) - 1);
        cr_expect_eq(strnlen(model.cause, sizeof(model.cause)), sizeof(model.cause) - 1);
        cr_assert_eq(sl_stats_read_queue(v, 0, &queue), 0);
        cr_expect_eq(strnlen(queue.model, sizeof(queue.model)), sizeof(queue.model) - 1);
        sl_stats_close(v);
        sl_stats_free(stats);
}

/* A hole is nobody's: a page of the usual size takes no memory for slots that nobody has. */
Test(stats, memory_for_slots_comes_with_who_gets_them)
{
        struct sl_stats_options o = stats_options();
        struct sl_model_counting counting;
        struct sl_stats_view *v;
        struct sl_stats *stats;
        struct sl_model_stats model;
        struct stat status;
        long long before;

        memset(o.counts, 0, sizeof(o.counts));
        o.bytes = 0;
        cr_assert_eq(sl_stats_create(&o, &stats, NULL), 0);
        cr_assert_eq(stat(stats_path(), &status), 0);
        before = status.st_blocks * 512ll;
        cr_expect_lt(before, (long long)sl_stats_bytes_at_once(o.bytes ? o.bytes : SL_STATS_BYTES_DEFAULT) + 64 * KIB);
        cr_expect_lt(before, SL_STATS_BYTES_DEFAULT / 8);
        v = stats_view();
        for (uint32_t i = 1; i < sl_stats_count(v, SL_STATS_MODELS); i++)
                cr_assert_eq(sl_stats_read_model(v, i, &model), -ENOENT);
        cr_assert_eq(sl_stats_model_add(stats, "net", &counting, NULL), 0);
        cr_assert_eq(stat(stats_path(), &status), 0);
        cr_expect_lt(status.st_blocks * 512ll, before + 72 * (long long)KIB);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, queues_lets_and_memory_are_read_as_they_were_counted)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_queue_stats *queue, queue_copy;
        struct sl_let_stats *let, *second, let_copy;
        struct sl_memory_stats *memory, memory_copy;
        struct sl_step_stats *step, step_copy;

        cr_assert_eq(sl_stats_queue_add(stats, "resnet", SL_STATS_QUEUE_SEGMENTS, &queue), 0);
        cr_assert_eq(sl_stats_let_add(stats, &(struct sl_let_stats){.name = "core 1", .cores = "1"}, &let), 0);
        cr_assert_eq(sl_stats_let_add(stats, &(struct sl_let_stats){.name = "core 2", .cores = "2"}, &second), 0);
        cr_assert_eq(sl_stats_memory_add(stats, "plans", &memory), 0);
        sl_counter_set(&queue->depth, 5);
        sl_counter_add(&second->turns, 2);
        sl_stats_let_workers(second, 3);
        sl_counter_set(&memory->bytes, 1000);
        cr_assert_eq(sl_stats_step_add(stats, "load", &step), 0);
        cr_assert_eq(sl_stats_step_add(stats, "serve", &step), 0);
        sl_counter_add(&step->taken, 3);

        cr_expect_eq(sl_stats_let_index(stats, second), 1);
        cr_assert_eq(sl_stats_read_queue(v, 0, &queue_copy), 0);
        cr_expect(sl_counter_read(&queue_copy.depth) == 5 && queue_copy.kind == SL_STATS_QUEUE_SEGMENTS);
        cr_assert_eq(sl_stats_read_let(v, 1, &let_copy), 0);
        cr_expect(let_copy.workers == 3 && sl_counter_read(&let_copy.turns) == 2);
        cr_expect_str_eq(let_copy.cores, "2");
        cr_assert_eq(sl_stats_read_memory(v, 0, &memory_copy), 0);
        cr_expect_str_eq(memory_copy.name, "plans");
        cr_expect_eq(sl_counter_read(&memory_copy.bytes), 1000);
        cr_assert_eq(sl_stats_read_step(v, 1, &step_copy), 0);
        cr_expect_str_eq(step_copy.name, "serve");
        cr_expect_eq(sl_counter_read(&step_copy.taken), 3);
        sl_stats_queue_remove(stats, queue);
        cr_expect_eq(sl_stats_read_queue(v, 0, &queue_copy), -ENOENT);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_worker_has_histograms_of_its_own_when_it_is_added_with_them)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_worker_stats *with, *without, worker;
        struct sl_histogram histogram;

        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "a"}, true, &with);
        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "a"}, false, &without);
        cr_assert_not_null(sl_stats_worker_histograms(stats, with));
        cr_expect_null(sl_stats_worker_histograms(stats, without));
        sl_histogram_record(&sl_stats_worker_histograms(stats, with)->stages[SL_STAGE_COMPUTING], 50);
        cr_assert_eq(sl_stats_read_worker(v, 0, &worker), 0);
        histogram = stats_histogram(v, worker.histograms, SL_STAGE_COMPUTING);
        cr_expect_eq(sl_histogram_quantile(&histogram, 1), 50);
        cr_assert_eq(sl_stats_read_worker(v, 1, &worker), 0);
        cr_expect_eq(sl_stats_read_histogram(v, worker.histograms, SL_STAGE_COMPUTING, &histogram), -ENOENT);
        sl_stats_worker_remove(stats, with);
        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "b"}, true, &with);
        cr_expect_eq(sl_counter_read(&sl_stats_worker_histograms(stats, with)->stages[SL_STAGE_COMPUTING].count), 0);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_model_without_room_is_told_so_and_counted_in_the_common_histograms)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting counting[42];
        struct sl_model_stats model;
        struct sl_stats_header header;
        struct sl_histogram histogram;
        struct sl_error error = {""};
        int n = 0;

        while (sl_stats_model_add(stats, stats_name(n), &counting[n], &error) == 0)
                n++;
        cr_assert(n > 3 && n < 40, "%d sets of histograms in 1 MiB", n);
        cr_expect_not_null(strstr(error.text, stats_name(n)));
        cr_expect_eq(sl_stats_model_add(stats, "late", &counting[n + 1], &error), -ENOSPC);
        sl_model_record(&counting[n], SL_STAGE_TOTAL, 10);
        sl_model_record(&counting[n + 1], SL_STAGE_TOTAL, 20);
        sl_model_count(&counting[n + 1], completed, 1);
        cr_assert_eq(sl_stats_read_model(v, 0, &model), 0);
        cr_expect_str_eq(model.name, "(others)");
        histogram = stats_histogram(v, model.histograms, SL_STAGE_TOTAL);
        cr_expect_eq(sl_counter_read(&histogram.count), 2);
        cr_assert_eq(sl_stats_read_model(v, (uint32_t)n + 2, &model), 0);
        cr_expect_str_eq(model.name, "late", "its counters are its own");
        cr_expect_eq(sl_counter_read(&model.completed), 1);
        sl_stats_read_header(v, &header);
        cr_expect_eq(sl_counter_read(&header.crowded), 2);
        sl_stats_model_remove(stats, &counting[0]);
        cr_expect_eq(sl_stats_model_add(stats, "next", &counting[0], &error), 0, "room that came back is given again");
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_model_without_a_slot_counts_in_the_common_one)
{
        struct sl_stats_options o = stats_options();
        struct sl_stats *stats;
        struct sl_model_counting counting[3];
        struct sl_error error = {""};

        o.counts[SL_STATS_MODELS] = 3;
        cr_assert_eq(sl_stats_create(&o, &stats, NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "a", &counting[0], NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "b", &counting[1], NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "c", &counting[2], &error), -ENOSPC);
        sl_model_count(&counting[2], requests, 1);
        sl_model_record(&counting[2], SL_STAGE_TOTAL, 1);
        cr_expect(counting[2].shared_counters && counting[2].shared_histograms);
        cr_expect(counting[0].number == 1 && counting[1].number == 2 && counting[2].number == 0);
        sl_stats_model_remove(stats, &counting[2]);
        sl_stats_free(stats);
}

Test(stats, clients_beyond_the_slots_are_served_uncounted)
{
        struct sl_stats_options o = stats_options();
        struct sl_stats *stats;
        struct sl_client_stats *slots[3];

        o.counts[SL_STATS_CLIENTS] = 2;
        cr_assert_eq(sl_stats_create(&o, &stats, NULL), 0);
        cr_expect_eq(sl_stats_client_add(stats, &(struct sl_client_stats){.id = 1, .label = "a"}, &slots[0]), 0);
        cr_expect_eq(sl_stats_client_add(stats, &(struct sl_client_stats){.id = 2, .label = "b"}, &slots[1]), 0);
        cr_expect_eq(sl_stats_client_add(stats, &(struct sl_client_stats){.id = 3, .label = "c"}, &slots[2]), -ENOSPC);
        sl_counter_add(&slots[2]->requests, 1);
        sl_stats_client_remove(stats, slots[2]);
        sl_stats_free(stats);
}

/* ---- damaged pages -------------------------------------------------------------------------------------------------- */

static void write_page(const void *bytes, size_t n)
{
        int fd = open(stats_path(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, bytes, n), n);
        close(fd);
}

static void read_all(const struct sl_stats_view *v)
{
        struct sl_stats_header header;
        struct sl_histogram histogram;
        struct sl_dispatcher_stats dispatcher;
        struct sl_model_stats model;
        struct sl_client_stats client;
        struct sl_worker_stats worker;
        struct sl_queue_stats queue;
        struct sl_let_stats let;
        struct sl_memory_stats memory;

        sl_stats_read_header(v, &header);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_DISPATCHERS) && i < 100; i++)
                sl_stats_read_dispatcher(v, i, &dispatcher);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_MODELS) && i < 100; i++)
                if (sl_stats_read_model(v, i, &model) == 0 &&
                        sl_stats_read_histogram(v, model.histograms, SL_STAGES - 1, &histogram) == 0)
                        sl_histogram_quantile(&histogram, 0.5);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_CLIENTS) && i < 100; i++)
                sl_stats_read_client(v, i, &client);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_WORKERS) && i < 100; i++)
                if (sl_stats_read_worker(v, i, &worker) == 0 && sl_stats_read_histogram(v, worker.histograms, 0, &histogram) == 0)
                        sl_histogram_quantile(&histogram, 0.5);
        for (uint32_t i = 0; i < 100; i++) {
                sl_stats_read_queue(v, i, &queue);
                sl_stats_read_let(v, i, &let);
                sl_stats_read_memory(v, i, &memory);
        }
}

Test(stats, what_was_cut_off_is_not_read_and_its_reader_lives)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct sl_model_counting counting;
        struct sl_histogram histogram;
        struct sl_stats_header header;
        struct sl_model_stats model;
        struct sl_error error;

        cr_assert_eq(sl_stats_model_add(stats, "lenet", &counting, NULL), 0);
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_assert_eq(sl_stats_check(v, &error), 0);
        for (off_t bytes = 8192; bytes >= 0; bytes -= 4096) {
                cr_assert_eq(truncate(stats_path(), bytes), 0);
                read_all(v);
                cr_expect_eq(sl_stats_read_histogram(v, model.histograms, SL_STAGE_TOTAL, &histogram), -EBADMSG);
                cr_expect_eq(sl_stats_check(v, &error), -EBADMSG);
                cr_expect_not_null(strstr(error.text, stats_path()), "%s", error.text);
        }
        cr_expect_eq(sl_stats_read_model(v, 1, &model), -EBADMSG);
        sl_stats_read_header(v, &header);
        cr_expect_eq(header.pid, 0);
        sl_stats_close(v);
        _exit(0); /* the writer cannot go on */
}

Test(stats, a_damaged_page_is_refused_or_read_without_harm)
{
        struct sl_stats *stats = stats_create();
        char *good = malloc(MIB), *bad = malloc(MIB);
        int fd = open(stats_path(), O_RDONLY), refused = 0;
        unsigned seed = 1;

        cr_assert_eq(pread(fd, good, MIB, 0), MIB);
        close(fd);
        sl_stats_free(stats);
        for (int round = 0; round < 300; round++) {
                struct sl_stats_view *v = NULL;
                size_t bytes = round % 5 ? MIB : (size_t)rand_r(&seed) % MIB;

                memcpy(bad, good, MIB);
                for (int i = 0; i < 1 + round % 8; i++)
                        bad[(unsigned)rand_r(&seed) % (round % 2 ? sizeof(struct sl_stats_header) : 64 * KIB)] ^= (char)(1 << i);
                write_page(bad, bytes);
                int r = sl_stats_open("demo", stats_folder, &v, NULL);
                cr_assert(r == 0 || r == -EBADMSG);
                refused += r < 0;
                if (v)
                        read_all(v);
                sl_stats_close(v);
        }
        cr_expect_gt(refused, 20);
        free(good);
        free(bad);
}

/* Another 32-bit word at @offset of the page. */
static void change_page(size_t offset, uint32_t value)
{
        int fd = open(stats_path(), O_WRONLY | O_CLOEXEC);

        cr_assert_eq(pwrite(fd, &value, sizeof(value), (off_t)offset), sizeof(value));
        close(fd);
}

static uint32_t histograms_of(const char *name)
{
        uint32_t histograms = SL_STATS_NONE - 1;
        struct sl_model_stats model;
        struct sl_stats_view *v;

        cr_assert_eq(sl_stats_open("demo", stats_folder, &v, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_MODELS); i++)
                if (sl_stats_read_model(v, i, &model) == 0 && strcmp(model.name, name) == 0)
                        histograms = model.histograms;
        sl_stats_close(v);
        return histograms;
}

Test(stats, a_model_that_was_unloaded_keeps_its_histograms_until_another_needs_them)
{
        struct sl_model_counting shown, first, others[42], late;
        struct sl_stats *stats = stats_create();
        uint32_t set, n = 0;

        cr_assert_eq(sl_stats_model_add_shown(stats, "a", &shown, NULL), 0);
        cr_expect_eq(histograms_of("a"), SL_STATS_NONE, "it is not loaded");
        cr_assert_eq(sl_stats_model_add(stats, "a", &first, NULL), 0);
        set = histograms_of("a");
        cr_expect(set > 0 && set < SL_STATS_NONE);
        while (n < 41 && sl_stats_model_add(stats, stats_name((int)n), &others[n], NULL) == 0)
                n++;
        cr_expect_eq(histograms_of(stats_name((int)n)), 0, "all sets are recorded in: it has the common one");
        sl_stats_model_remove(stats, &others[n]);
        sl_model_record(&first, SL_STAGE_TOTAL, 1000);
        sl_stats_model_remove(stats, &first);
        cr_expect_eq(histograms_of("a"), set, "it is shown as before");
        cr_assert_eq(sl_stats_model_add(stats, "a", &first, NULL), 0);
        cr_expect_eq(sl_counter_read(&first.histograms->stages[SL_STAGE_TOTAL].count), 1, "and goes on");
        sl_stats_model_remove(stats, &first);
        cr_assert_eq(sl_stats_model_add(stats, "late", &late, NULL), 0);
        cr_expect_eq(histograms_of("late"), set);
        cr_expect_eq(histograms_of("a"), SL_STATS_NONE);
        cr_expect_eq(sl_counter_read(&late.histograms->stages[SL_STAGE_TOTAL].count), 0, "what another had counted is gone");
        sl_stats_free(stats);
}

Test(stats, a_page_of_another_version_is_refused_with_both_numbers_and_still_claims_the_name)
{
        struct sl_stats *stats = stats_create();
        struct sl_error error = {""};
        struct sl_stats_view *v;

        change_page(offsetof(struct sl_stats_header, version), SL_STATS_VERSION - 1);
        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, "has version 3, wants 4"), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "older"), "%s", error.text);
        change_page(offsetof(struct sl_stats_header, version), SL_STATS_VERSION + 1);
        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, "newer"), "%s", error.text);
        cr_expect(sl_stats_is_claimed("demo", stats_folder));
        sl_stats_free(stats);
        cr_expect_not(sl_stats_is_claimed("demo", stats_folder));
}

Test(stats, a_page_with_fewer_sections_shows_those_that_it_has)
{
        struct sl_stats *stats = stats_create();
        struct sl_model_counting counting;
        struct sl_queue_stats *queue, copy;
        struct sl_model_stats model;

        sl_stats_model_add(stats, "resnet", &counting, NULL);
        sl_stats_queue_add(stats, "resnet", SL_STATS_QUEUE_SEGMENTS, &queue);
        change_page(offsetof(struct sl_stats_header, n_sections), SL_STATS_QUEUES);
        struct sl_stats_view *v = stats_view();
        cr_expect_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_eq(sl_stats_count(v, SL_STATS_QUEUES), 0);
        cr_expect_eq(sl_stats_read_queue(v, 0, &copy), -ENOENT);
        sl_stats_close(v);
        change_page(offsetof(struct sl_stats_header, n_sections), UINT32_MAX);
        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, NULL), -EBADMSG, "more than the header has room for");
        sl_stats_free(stats);
}

Test(stats, what_is_no_page_is_refused)
{
        struct sl_stats_view *v = NULL;

        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, NULL), -ENOENT);
        write_page("", 0);
        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, NULL), -EBADMSG);
        write_page("x", 1);
        cr_expect_eq(sl_stats_open("demo", stats_folder, &v, NULL), -EBADMSG);
        cr_expect_eq(sl_stats_open("../demo", stats_folder, &v, NULL), -EINVAL);
        cr_expect_null(sl_stats_close(v));
}

/* ---- names of codes ------------------------------------------------------------------------------------------------- */

Test(stats, every_refusal_and_stage_has_its_text)
{
        for (int i = 0; i < SL_REFUSAL_LIMIT; i++)
                cr_expect_gt(strlen(sl_refusal_text(i)), 3);
        for (int i = 0; i < SL_STAGES; i++)
                cr_expect_gt(strlen(sl_stage_name(i)), 3);
        for (int i = 0; i < SL_STATS_WORKER_STATE_LIMIT; i++)
                cr_expect_gt(strlen(sl_stats_worker_state_name(i)), 3);
        for (int i = 0; i < SL_STATS_MODEL_STATE_LIMIT; i++)
                cr_expect_gt(strlen(sl_stats_model_state_name(i)), 3);
        cr_expect_str_eq(sl_refusal_text(SL_REFUSAL_LIMIT), "unknown");
}

struct counting {
        struct sl_dispatcher_stats *slot;
        atomic_bool stop;
};

static void *count_on(void *context)
{
        struct counting *counting = context;

        while (!atomic_load(&counting->stop)) {
                sl_counter_add(&counting->slot->requests, 1);
                sl_counter_add(&counting->slot->completions, 1);
        }
        return NULL;
}

Test(stats, counters_are_read_while_they_change_and_never_fall)
{
        struct sl_stats *stats = stats_create();
        struct sl_stats_view *v = stats_view();
        struct counting counting = {.slot = sl_stats_dispatcher(stats, 0)};
        struct sl_dispatcher_stats copy;
        pthread_t thread;
        uint64_t last = 0;

        cr_assert_eq(pthread_create(&thread, NULL, count_on, &counting), 0);
        for (int i = 0; i < 20000; i++) {
                cr_assert_eq(sl_stats_read_dispatcher(v, 0, &copy), 0);
                cr_assert_geq(sl_counter_read(&copy.requests), last);
                last = sl_counter_read(&copy.requests);
        }
        atomic_store(&counting.stop, true);
        pthread_join(thread, NULL);
        sl_stats_close(v);
        sl_stats_free(stats);
}
