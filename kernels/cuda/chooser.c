/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/chooser.h"

#include "base/error.h"
#include "cuda/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_cuda_chooser {
        struct sl_cuda_chooser_options options;
        struct sl_gpu_choices_facts facts;
        struct sl_gpu_choice *choices; /* [facts.n_choices], with texts of their own */
        uint32_t room;
        uint64_t spent_ns; /* in this process */
        bool news;
};

int sl_cuda_chooser_new(const struct sl_cuda_chooser_options *options, struct sl_cuda_chooser **ret_chooser)
{
        struct sl_cuda_chooser *chooser = calloc(1, sizeof(*chooser));

        if (!chooser)
                return -ENOMEM;
        chooser->options = *options;
        chooser->facts.identity = options->identity;
        memcpy(chooser->facts.plan, options->plan, sizeof(options->plan));
        *ret_chooser = chooser;
        return 0;
}

struct sl_cuda_chooser *sl_cuda_chooser_free(struct sl_cuda_chooser *chooser)
{
        if (!chooser)
                return NULL;
        for (uint32_t i = 0; i < chooser->facts.n_choices; i++)
                free((char *)chooser->choices[i].text);
        free(chooser->choices);
        free(chooser);
        return NULL;
}

static uint32_t at_least_zero(int version)
{
        return version > 0 ? (uint32_t)version : 0;
}

void sl_cuda_chooser_identify(const struct sl_cuda_device *device, const struct sl_cuda_libraries *libraries, uint32_t percent,
        struct sl_gpu_identity *ret_identity)
{
        struct sl_gpu_identity identity = {.capability = (uint32_t)(device->major * 100 + device->minor * 10),
                .n_processors = at_least_zero(device->n_processors),
                .percent = percent,
                .cuda_version = at_least_zero(device->driver->version),
                .cudnn_version = at_least_zero(libraries->cudnn.version),
                .cublaslt_version = at_least_zero(libraries->cublaslt.version)};

        snprintf(identity.device, sizeof(identity.device), "%s", device->name);
        sl_cuda_driver_release(identity.driver);
        *ret_identity = identity;
}

/* ---- what it knows ---- */

static struct sl_gpu_choice *find(const struct sl_cuda_chooser *chooser, const uint64_t key[2])
{
        for (uint32_t i = 0; i < chooser->facts.n_choices; i++)
                if (chooser->choices[i].key[0] == key[0] && chooser->choices[i].key[1] == key[1])
                        return &chooser->choices[i];
        return NULL;
}

const struct sl_gpu_choice *sl_cuda_chooser_find(const struct sl_cuda_chooser *chooser, const uint64_t key[2])
{
        return find(chooser, key);
}

static struct sl_gpu_choice *add_room(struct sl_cuda_chooser *chooser)
{
        uint32_t room = chooser->room ? chooser->room * 2 : 16;
        struct sl_gpu_choice *grown;

        if (chooser->facts.n_choices == SL_GPU_CHOICES_MAX)
                return NULL;
        if (chooser->facts.n_choices == chooser->room) {
                grown = reallocarray(chooser->choices, room, sizeof(*grown));
                if (!grown)
                        return NULL;
                chooser->choices = grown;
                chooser->room = room;
        }
        return &chooser->choices[chooser->facts.n_choices];
}

static int add(struct sl_cuda_chooser *chooser, const struct sl_gpu_choice *choice)
{
        struct sl_gpu_choice *place = find(chooser, choice->key) ? NULL : add_room(chooser);
        char *text = NULL;

        if (!place)
                return -ENOMEM;
        if (choice->text_bytes) {
                text = malloc(choice->text_bytes);
                if (!text)
                        return -ENOMEM;
                memcpy(text, choice->text, choice->text_bytes);
        }
        *place = *choice;
        place->text = text;
        chooser->facts.n_choices++;
        chooser->facts.n_timed += choice->ns != 0;
        return 0;
}

void sl_cuda_chooser_keep(
        struct sl_cuda_chooser *chooser, const struct sl_gpu_choice *choice, uint32_t n_candidates, uint64_t taken_ns)
{
        chooser->spent_ns += taken_ns;
        chooser->facts.timed_ns += taken_ns;
        chooser->facts.n_candidates += n_candidates;
        chooser->news |= add(chooser, choice) == 0;
}

void sl_cuda_chooser_forget(struct sl_cuda_chooser *chooser, const uint64_t key[2])
{
        struct sl_gpu_choice *choice = find(chooser, key);

        if (!choice)
                return;
        free((char *)choice->text);
        chooser->facts.n_timed -= choice->ns != 0;
        *choice = chooser->choices[--chooser->facts.n_choices];
        chooser->news = true;
}

uint64_t sl_cuda_chooser_spent_ns(const struct sl_cuda_chooser *chooser)
{
        return chooser->spent_ns;
}

bool sl_cuda_chooser_has_time(const struct sl_cuda_chooser *chooser)
{
        return chooser->spent_ns < chooser->options.bound_ns;
}

const struct sl_cuda_chooser_options *sl_cuda_chooser_options(const struct sl_cuda_chooser *chooser)
{
        return &chooser->options;
}

bool sl_cuda_chooser_has_news(const struct sl_cuda_chooser *chooser)
{
        return chooser->news;
}

void sl_cuda_chooser_told(struct sl_cuda_chooser *chooser)
{
        chooser->news = false;
}

/* ---- as a file ---- */

int sl_cuda_chooser_read(struct sl_cuda_chooser *chooser, const void *data, uint64_t bytes, struct sl_error *error)
{
        struct sl_gpu_choices_facts facts;
        struct sl_gpu_choice choice;
        bool has_time;
        int r = sl_gpu_choices_check(data, bytes, &facts, error);

        if (r == 0)
                r = sl_gpu_choices_fit(&facts, &chooser->facts, error);
        if (r < 0)
                return r;
        has_time = chooser->options.times && facts.timed_ns < chooser->options.bound_ns;
        for (uint32_t i = 0; i < facts.n_choices; i++) {
                sl_gpu_choices_at(data, i, &choice);
                if (choice.ns || !has_time)
                        (void)add(chooser, &choice); /* what there is no memory for is timed once more */
        }
        chooser->facts.n_candidates = facts.n_candidates;
        chooser->facts.timed_ns = facts.timed_ns;
        return 0;
}

int sl_cuda_chooser_write(const struct sl_cuda_chooser *chooser, void **ret_data, uint64_t *ret_bytes)
{
        return sl_gpu_choices_write(&chooser->facts, chooser->choices, ret_data, ret_bytes);
}
