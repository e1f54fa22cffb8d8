/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"
#include "seqlock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static uint32_t pauses;

/* The program is linked with --wrap=nanosleep, which no test of it calls. */
int __wrap_nanosleep(const struct timespec *asked, struct timespec *left);

int __wrap_nanosleep(const struct timespec *asked, struct timespec *left)
{
        (void)asked, (void)left;
        pauses++;
        sched_yield();
        return 0;
}

/* As sparse as the one that clients map. */
static struct sl_catalogue *new_catalogue(void)
{
        struct sl_catalogue *catalogue = mmap(NULL, sizeof(*catalogue), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        cr_assert_neq((void *)catalogue, MAP_FAILED);
        return catalogue;
}

#define OUTPUTS 40

/* Room for a part that is written. */
struct part {
        struct sl_catalogue_port ports[OUTPUTS];
        char text[2048];
};

/* A model in which every field says the same number, with outputs that do, and a name that is as long as the number wants. */
static struct sl_catalogue_part fill(struct sl_catalogue_model *model, struct part *part, uint32_t number)
{
        size_t length = 1 + number * 37 % 1024;

        memset(model, 0, sizeof(*model));
        memset(part, 0, sizeof(*part));
        model->state = SL_MODEL_READY;
        model->generation = number;
        model->version = number;
        model->segment_samples = number;
        model->n_outputs = 1 + number % OUTPUTS;
        snprintf(model->name, sizeof(model->name), "model-%u", number);
        memset(part->text, 'a' + (int)(number % 26), length);
        for (uint32_t i = 0; i < model->n_outputs; i++) {
                part->ports[i].dims[7] = (int32_t)number;
                part->ports[i].name = i ? (uint32_t)length : 0;
        }
        return (struct sl_catalogue_part){part->ports, part->text, (uint32_t)length + 1};
}

static bool agrees(const struct sl_catalogue_model *model, const struct sl_catalogue_part *got)
{
        struct sl_catalogue_model wanted;
        uint32_t number = model->generation;
        struct part part;

        fill(&wanted, &part, number);
        if (model->version != number || model->segment_samples != number || strcmp(wanted.name, model->name))
                return false;
        for (uint32_t i = 0; i < model->n_outputs; i++)
                if (got->ports[i].dims[7] != (int32_t)number || strcmp(got->texts + got->ports[i].name, i ? "" : part.text))
                        return false;
        return model->n_outputs == wanted.n_outputs;
}

static void write_number(struct sl_catalogue *catalogue, uint32_t index, uint32_t number)
{
        struct sl_catalogue_model model;
        struct part part;
        const struct sl_catalogue_part given = fill(&model, &part, number);

        cr_assert_eq(sl_catalogue_write(catalogue, index, &model, &given), 0);
}

static void expect_number(const struct sl_catalogue *catalogue, uint32_t index, uint32_t number)
{
        struct sl_catalogue_model got;
        struct sl_catalogue_part part;

        cr_assert_eq(sl_catalogue_open(catalogue, index, &got, &part), 0);
        cr_expect_eq(got.generation, number);
        cr_expect(agrees(&got, &part), "model %u at %u", number, index);
        free(part.ports);
}

Test(catalogue, what_was_written_is_read_and_found_by_name)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model got;
        uint32_t index;

        write_number(catalogue, 5, 12);
        cr_expect_eq(sl_catalogue_read(catalogue, 5, &got), 0);
        cr_expect_str_eq(got.name, "model-12");
        expect_number(catalogue, 5, 12);
        cr_expect_eq(sl_catalogue_generation(catalogue, 5, &index), 0);
        cr_expect_eq(index, 12);
        cr_expect_eq(sl_catalogue_find(catalogue, "model-12", &index, NULL), 0);
        cr_expect_eq(index, 5);
        cr_expect_eq(atomic_load(&catalogue->changes), 1);
        munmap(catalogue, sizeof(*catalogue));
}

Test(catalogue, what_is_not_there_is_enoent)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model got, gone = {.state = SL_MODEL_ABSENT, .name = "model-1"};
        uint32_t index = 99;

        cr_expect_eq(sl_catalogue_read(catalogue, 0, &got), -ENOENT);
        cr_expect_eq(sl_catalogue_read(catalogue, SL_CATALOGUE_MODELS, &got), -ENOENT);
        cr_expect_eq(sl_catalogue_generation(catalogue, 0, &index), -ENOENT);
        cr_expect_eq(sl_catalogue_generation(catalogue, SL_CATALOGUE_MODELS, &index), -ENOENT);
        write_number(catalogue, 0, 1);
        cr_expect_eq(sl_catalogue_find(catalogue, "model", &index, NULL), -ENOENT, "a prefix is no name");
        cr_expect_eq(sl_catalogue_write(catalogue, 0, &gone, NULL), 0);
        cr_expect_eq(
                sl_catalogue_find(catalogue, "model-1", &index, NULL), -ENOENT, "a removed model keeps its bytes, not its name");
        cr_expect_eq(index, 99);
        munmap(catalogue, sizeof(*catalogue));
}

/* As long as any name that is served. */
Test(catalogue, names_that_differ_in_their_last_byte_are_two)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model = {.state = SL_MODEL_READY}, got;
        uint32_t index;

        memset(model.name, 'n', SL_MODEL_NAME_BYTES - 1);
        for (uint32_t i = 0; i < 3; i++) {
                model.name[SL_MODEL_NAME_BYTES - 2] = (char)('a' + i);
                model.version = i;
                cr_assert_eq(sl_catalogue_write(catalogue, 7 * i, &model, NULL), 0);
        }
        for (uint32_t i = 0; i < 4; i++) {
                model.name[SL_MODEL_NAME_BYTES - 2] = (char)('a' + i);
                cr_assert_eq(sl_catalogue_find(catalogue, model.name, &index, &got), i < 3 ? 0 : -ENOENT);
                cr_expect(i == 3 || (index == 7 * i && got.version == i && !strcmp(got.name, model.name)));
        }
        munmap(catalogue, sizeof(*catalogue));
}

Test(catalogue, a_name_without_an_end_ends)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model = {.state = SL_MODEL_READY}, got;
        uint32_t index;

        memset(model.name, 'n', sizeof(model.name));
        cr_assert_eq(sl_catalogue_write(catalogue, 3, &model, NULL), 0);
        cr_assert_eq(sl_catalogue_read(catalogue, 3, &got), 0);
        cr_expect_eq(strnlen(got.name, sizeof(got.name)), sizeof(got.name) - 1);
        cr_expect_eq(sl_catalogue_find(catalogue, got.name, &index, NULL), -ENOENT, "no name is as long as that");
        munmap(catalogue, sizeof(*catalogue));
}

/* Tries are counted once, and not those of a part for each of the whole. */
static void expect_one_wait(void)
{
        cr_expect(pauses > 0 && pauses <= SL_SEQLOCK_TRIES / SL_SEQLOCK_SPINS, "%u pauses", pauses);
        pauses = 0;
}

Test(catalogue, a_writer_that_died_inside_a_change_does_not_hang_readers)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model got;
        struct sl_catalogue_part part;
        uint32_t index;

        write_number(catalogue, 0, 0);
        write_number(catalogue, 3, 3);
        atomic_store(&catalogue->models[0].seq, 1);
        cr_expect_eq(sl_catalogue_read(catalogue, 0, &got), -EAGAIN);
        expect_one_wait();
        cr_expect_eq(sl_catalogue_open(catalogue, 0, &got, &part), -EAGAIN);
        expect_one_wait();
        cr_expect_eq(sl_catalogue_generation(catalogue, 0, &index), -EAGAIN);
        expect_one_wait();
        cr_expect_eq(sl_catalogue_find(catalogue, "model-3", &index, NULL), 0, "the others stay readable");
        cr_expect_eq(sl_catalogue_find(catalogue, "model-0", &index, NULL), -EAGAIN, "it may be the one that is being changed");
        expect_one_wait();
        cr_expect_eq(sl_catalogue_find(catalogue, "model-9", &index, NULL), -ENOENT);
        atomic_store(&catalogue->names_seq, 1);
        cr_expect_eq(sl_catalogue_find(catalogue, "model-3", &index, NULL), 0, "what is found is there");
        cr_expect_eq(sl_catalogue_find(catalogue, "model-9", &index, NULL), -EAGAIN, "its slot may be moving");
        expect_one_wait();
        munmap(catalogue, sizeof(*catalogue));
}

/* Names come and go until the index has been full and empty of each; a plain list says what is there. */
Test(catalogue, each_name_is_found_and_no_other_whatever_has_come_and_gone)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model = {.state = SL_MODEL_READY}, gone = {.state = SL_MODEL_ABSENT};
        static uint32_t numbers[SL_CATALOGUE_MODELS];
        uint32_t index, found = 0, seed = 1;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                snprintf(model.name, sizeof(model.name), "%u", numbers[i] = i + 1);
                cr_assert_eq(sl_catalogue_write(catalogue, i, &model, NULL), 0);
        }
        for (uint32_t number = SL_CATALOGUE_MODELS + 1; number < 4 * SL_CATALOGUE_MODELS; number++) {
                uint32_t i = (seed = seed * 1664525u + 1013904223u) >> 20;

                snprintf(model.name, sizeof(model.name), "%u", number);
                cr_assert_eq(sl_catalogue_write(catalogue, i, number % 2 ? &model : &gone, NULL), 0);
                numbers[i] = number % 2 ? number : 0;
        }
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                snprintf(model.name, sizeof(model.name), "%u", numbers[i]);
                if (numbers[i])
                        cr_expect(sl_catalogue_find(catalogue, model.name, &index, NULL) == 0 && index == i, "%s", model.name);
        }
        for (uint32_t number = 0; number < 4 * SL_CATALOGUE_MODELS; number++) {
                snprintf(model.name, sizeof(model.name), "%u", number);
                found += sl_catalogue_find(catalogue, model.name, &index, NULL) == 0;
        }
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                found -= numbers[i] != 0;
        cr_expect_eq(found, 0, "and nothing else is");
        cr_expect_eq(sl_catalogue_count(catalogue), SL_CATALOGUE_MODELS);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                cr_assert_eq(sl_catalogue_write(catalogue, i, &gone, NULL), 0);
        for (uint32_t i = 0; i < SL_CATALOGUE_NAMES; i++)
                cr_assert_eq(atomic_load(&catalogue->names[i]), 0, "the index is empty again");
        munmap(catalogue, sizeof(*catalogue));
}

/* Nothing that a writer says leads a reader out of the part. */
Test(catalogue, texts_that_begin_outside_the_part_are_no_model)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model, got;
        struct sl_catalogue_part part, given;
        struct part room;

        given = fill(&model, &room, 3);
        room.ports[1].labels = given.texts_bytes - 1;
        cr_assert_eq(sl_catalogue_write(catalogue, 0, &model, &given), 0);
        cr_assert_eq(sl_catalogue_open(catalogue, 0, &got, &part), 0);
        free(part.ports);
        room.ports[1].labels = given.texts_bytes + 8;
        cr_assert_eq(sl_catalogue_write(catalogue, 0, &model, &given), 0);
        cr_expect_eq(sl_catalogue_open(catalogue, 0, &got, &part), -EPROTO);
        room.ports[1].labels = 0;
        room.ports[1].name = given.texts_bytes + 8;
        cr_assert_eq(sl_catalogue_write(catalogue, 0, &model, &given), 0);
        cr_expect_eq(sl_catalogue_open(catalogue, 0, &got, &part), -EPROTO);
        munmap(catalogue, sizeof(*catalogue));
}

/* Models come, go and grow; each keeps what is its own, and the room of what went is found again. */
Test(catalogue, parts_of_any_size_share_the_room_and_never_overlap)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model gone = {.state = SL_MODEL_ABSENT};
        uint32_t numbers[256] = {0};

        for (uint32_t number = 1; number < 3000; number++) {
                uint32_t index = number * 2654435761u % 256;

                if (number % 5 == 0)
                        cr_assert_eq(sl_catalogue_write(catalogue, index, &gone, NULL), 0);
                else
                        write_number(catalogue, index, number);
                numbers[index] = number % 5 ? number : 0;
        }
        for (uint32_t i = 0; i < 256; i++) {
                if (numbers[i])
                        expect_number(catalogue, i, numbers[i]);
                cr_expect_leq(catalogue->models[i].part, 2u << 20, "the lowest room is taken");
        }
        munmap(catalogue, sizeof(*catalogue));
}

Test(catalogue, what_has_no_room_changes_nothing)
{
        struct sl_catalogue *catalogue = new_catalogue();
        char *texts = calloc(1, SL_CATALOGUE_PARTS_BYTES);
        struct sl_catalogue_model model = {.state = SL_MODEL_READY, .name = "large"};
        struct sl_catalogue_part large = {NULL, texts, SL_CATALOGUE_PARTS_BYTES - 4096};

        write_number(catalogue, 7, 7);
        cr_expect_eq(sl_catalogue_write(catalogue, 1, &model, &large), 0);
        cr_expect_eq(sl_catalogue_write(catalogue, 2, &model, &large), -ENOSPC);
        cr_expect_eq(sl_catalogue_write(catalogue, 7, &model, &large), -ENOSPC);
        expect_number(catalogue, 7, 7);
        cr_expect_eq(catalogue->models[2].state, SL_MODEL_ABSENT);
        free(texts);
        munmap(catalogue, sizeof(*catalogue));
}

Test(catalogue, an_impossible_part_is_refused_and_not_followed)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model *model = &catalogue->models[4], whole, got;
        struct sl_catalogue_part part;
        struct sl_catalogue_port *ports;

        write_number(catalogue, 4, 30);
        whole = *model;
        ports = (void *)(catalogue->parts + model->part);
        model->part = SL_CATALOGUE_PARTS_BYTES - 8;
        cr_expect_eq(sl_catalogue_open(catalogue, 4, &got, &part), -EPROTO);
        model->part = whole.part;
        model->n_inputs = UINT32_MAX;
        cr_expect_eq(sl_catalogue_open(catalogue, 4, &got, &part), -EPROTO);
        model->n_inputs = whole.n_inputs;
        ports[3].name = model->part_bytes;
        cr_expect_eq(sl_catalogue_open(catalogue, 4, &got, &part), -EPROTO);
        ports[3].name = 0;
        memset(catalogue->parts + model->part + model->n_outputs * sizeof(*ports), 'x',
                model->part_bytes - model->n_outputs * sizeof(*ports));
        cr_expect_eq(sl_catalogue_open(catalogue, 4, &got, &part), -EPROTO, "a text without an end");
        munmap(catalogue, sizeof(*catalogue));
}

#define WHOLE_COPIES 1000

struct writing {
        struct sl_catalogue *catalogue;
        atomic_bool stop;
};

static void *write_on(void *context)
{
        struct writing *writing = context;

        for (uint32_t number = 1; !atomic_load(&writing->stop); number++) {
                write_number(writing->catalogue, number % 2, number);
                for (int pause = 0; pause < 20; pause++)
                        sched_yield();
        }
        return NULL;
}

Test(catalogue, a_copy_is_whole_or_refused)
{
        struct writing writing = {.catalogue = new_catalogue()};
        struct sl_catalogue_model got;
        struct sl_catalogue_part part;
        pthread_t thread;
        int whole = 0;

        cr_assert_eq(pthread_create(&thread, NULL, write_on, &writing), 0);
        while (whole < WHOLE_COPIES) {
                int r = sl_catalogue_open(writing.catalogue, 0, &got, &part);

                cr_assert(r == 0 || r == -EAGAIN || (r == -ENOENT && whole == 0));
                if (r < 0)
                        continue;
                cr_assert(agrees(&got, &part));
                free(part.ports);
                whole++;
        }
        atomic_store(&writing.stop, true);
        pthread_join(thread, NULL);
        munmap(writing.catalogue, sizeof(*writing.catalogue));
}
