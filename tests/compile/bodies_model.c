/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies_model.h"

#include "backend.h"
#include "format.h"
#include "lower.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

void model_import(struct model *m)
{
        sl_lower_options_init(&m->options);
        m->graph = builder_import(m->b);
        cr_assert_eq(sl_passes_run(m->graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &m->error), 0, "%s",
                m->error.text);
}

int model_plan_fd(struct model *m)
{
        struct sl_lowered *lowered = NULL;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        cr_assert_eq(sl_lowered_new(m->graph, &m->options, &lowered, &m->error), 0, "%s", m->error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &m->error), 0, "%s", m->error.text);
        sl_lowered_free(lowered);
        return fd;
}

void model_compile(struct model *m)
{
        int fd = model_plan_fd(m);

        cr_assert_eq(sl_plan_open(fd, &m->plan, &m->error), 0, "%s", m->error.text);
        cr_assert_eq(sl_instance_new(m->plan, 1, &m->instance, &m->error), 0, "%s", m->error.text);
        close(fd);
}

void model_end(struct model *m)
{
        sl_instance_free(m->instance);
        sl_plan_free(m->plan);
        sl_graph_free(m->graph);
        for (int i = 0; i < MODEL_BODIES_MAX; i++)
                builder_free(m->bodies[i]);
        builder_free(m->b);
}

void plan_seal(uint8_t *bytes, uint64_t n_bytes)
{
        struct sl_plan_header *header = (void *)bytes;

        header->checksum = XXH3_64bits(bytes + SL_PLAN_CHECKED_FROM, n_bytes - SL_PLAN_CHECKED_FROM);
}

int plan_open_bytes(const uint8_t *bytes, uint64_t n_bytes, struct sl_plan **ret_plan)
{
        int fd = memfd_create("forged", MFD_CLOEXEC), r;

        cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        r = sl_plan_open(fd, ret_plan, NULL);
        close(fd);
        return r;
}

uint8_t *plan_read(int fd, uint64_t *ret_bytes)
{
        struct stat status;
        uint8_t *bytes;

        cr_assert_eq(fstat(fd, &status), 0);
        bytes = malloc((size_t)status.st_size);
        cr_assert_eq(pread(fd, bytes, (size_t)status.st_size, 0), status.st_size);
        *ret_bytes = (uint64_t)status.st_size;
        return bytes;
}
