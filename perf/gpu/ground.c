/* SPDX-License-Identifier: Apache-2.0 */
#include "ground.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "cuda/libraries.h"
#include "graph.h"
#include "host_region.h"
#include "import.h"
#include "lower.h"
#include "seeded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int ground_open(struct ground *ground, struct sl_error *error)
{
        int r;

        (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* as the process of a GPU has it */
        r = sl_cuda_driver_open(NULL, &ground->driver, error);

        if (r == 0)
                r = sl_cuda_device_open(&ground->driver, 0, &ground->device, error);
        if (r == 0)
                r = sl_gpu_init(&ground->gpu, &ground->device, 0, error);
        if (r == 0)
                r = sl_greens_init(&ground->greens, &ground->device, error);
        ground->can_cut = r == 0 && ground->greens.map.n_atoms;
        return r;
}

static int lend(void *context, uint64_t bytes, CUdeviceptr *ret_address)
{
        struct ground *ground = context;

        if (ground->lent)
                ground->driver.mem_free(ground->lent);
        ground->lent = 0;
        if (ground->driver.mem_alloc(&ground->lent, bytes) != CUDA_SUCCESS)
                return -ENOMEM;
        *ret_address = ground->lent;
        return 0;
}

int ground_tune(struct ground *ground, const struct sl_plan *plan, double seconds, struct sl_error *error)
{
        struct sl_plan_identity identity = sl_plan_identity(plan);
        struct sl_cuda_chooser_options options = {.plan = {identity.checksum, identity.bytes},
                .times = true,
                .bound_ns = (uint64_t)(seconds * 1e9),
                .room = lend,
                .context = ground};
        const struct sl_cuda_libraries *libraries;
        int r = sl_cuda_libraries_hold(&ground->driver, &libraries, error);

        if (r < 0)
                return r;
        sl_cuda_chooser_identify(&ground->device, libraries, 0, &options.identity);
        r = sl_cuda_chooser_new(&options, &ground->chooser);
        sl_cuda_libraries_release();
        return r < 0 ? sl_error_set(error, -r, "no memory to choose candidates") : 0;
}

void ground_close(struct ground *ground)
{
        sl_cuda_chooser_free(ground->chooser);
        if (ground->lent)
                ground->driver.mem_free(ground->lent);
        sl_cuda_device_close(&ground->device);
        sl_cuda_driver_close(&ground->driver);
}

static int write_plan(struct sl_graph *graph, const struct sl_lower_options *options, int fd, struct sl_error *error)
{
        struct sl_lowered *lowered;
        int r = sl_lower_rewrite(graph, options, error);

        if (r == 0)
                r = sl_lowered_new_in(graph, options, NULL, fd, &lowered, error);
        if (r < 0)
                return r;
        r = sl_lowered_write(lowered, fd, error);
        sl_lowered_free(lowered);
        return r;
}

struct sl_plan *ground_plan(const char *skeleton, const struct sl_lower_options *options, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        struct sl_graph *graph = NULL;
        struct sl_plan *plan = NULL;
        void *bytes;
        size_t n;
        int r = sl_seeded_model(skeleton, 1, &bytes, &n, error);

        if (r < 0)
                return NULL;
        r = sl_import_onnx_bytes_bound(bytes, n, &limits, &options->shapes, &graph, error);
        free(bytes);
        if (r == 0)
                r = write_plan(graph, options, fd, error);
        sl_graph_free(graph);
        return r == 0 && sl_plan_open(fd, &plan, error) == 0 ? plan : NULL;
}

/* ---- requests ---- */

static void fill_input(const struct sl_port *port, uint32_t n_tokens, void *data, uint64_t bytes, uint64_t state)
{
        bool mask = strstr(port->name, "mask"), type = strstr(port->name, "type");
        uint64_t most = mask ? 1 : type ? 2 : n_tokens;

        if (port->dtype == SL_DTYPE_F32)
                for (uint64_t i = 0; i < bytes / 4; i++)
                        ((float *)data)[i] = (float)(int64_t)sl_split_mix_next(&state) * 0x1p-63f * 1.7f;
        else if (port->dtype == SL_DTYPE_I64)
                for (uint64_t i = 0; i < bytes / 8; i++)
                        ((int64_t *)data)[i] = mask ? 1 : (int64_t)(sl_split_mix_next(&state) % most);
        else if (port->dtype == SL_DTYPE_I32)
                for (uint64_t i = 0; i < bytes / 4; i++)
                        ((int32_t *)data)[i] = mask ? 1 : (int32_t)(sl_split_mix_next(&state) % most);
        else /* bytes, halves: small numbers of any type */
                memset(data, 1, bytes);
}

static uint64_t room_of(const struct sl_port *ports, uint32_t n, uint32_t samples)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint64_t port = sl_gpu_port_bytes(&ports[i], samples);

                if (port == UINT64_MAX)
                        return UINT64_MAX;
                bytes += sl_align_up(port, SL_GPU_PORT_ALIGNMENT);
        }
        return bytes;
}

static void lay_ports(struct request *request, char *at)
{
        const struct sl_plan_info *info = request->info;

        for (uint32_t i = 0; i < info->n_inputs; i++) {
                uint64_t bytes = sl_gpu_port_bytes(&info->inputs[i], request->samples);

                fill_input(&info->inputs[i], request->ground->n_tokens, at, bytes, i + 1);
                request->inputs[i] = at;
                at += sl_align_up(bytes, SL_GPU_PORT_ALIGNMENT);
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                request->outputs[i] = at;
                at += sl_align_up(sl_gpu_port_bytes(&info->outputs[i], request->samples), SL_GPU_PORT_ALIGNMENT);
        }
}

static void lay_pieces(struct request *request)
{
        const struct sl_plan_info *info = request->info;
        uint32_t each = request->samples / request->n_pieces;

        for (uint32_t p = 0; p < request->n_pieces; p++) {
                const void **inputs = &request->piece_inputs[p * info->n_inputs];
                void **outputs = &request->piece_outputs[p * info->n_outputs];

                for (uint32_t i = 0; i < info->n_inputs; i++)
                        inputs[i] = (const char *)request->inputs[i] + sl_gpu_port_bytes(&info->inputs[i], each) * p;
                for (uint32_t i = 0; i < info->n_outputs; i++)
                        outputs[i] = (char *)request->outputs[i] + sl_gpu_port_bytes(&info->outputs[i], each) * p;
                request->pieces[p] = (struct sl_gpu_piece){.inputs = inputs, .outputs = outputs, .reached = request->region.reached};
                request->piece_samples[p] = each;
        }
}

/* Inputs are read in a second mapping of the memory, where nothing can be written. */
static int lay_view(struct request *request, int fd)
{
        const struct sl_host_region *region = &request->region;
        char *view = mmap(NULL, region->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);

        if (view == MAP_FAILED)
                return -errno;
        sl_host_region_init(&request->view, &request->ground->driver, view, region->bytes, false);
        for (uint32_t i = 0; i < request->info->n_inputs; i++)
                request->inputs[i] = view + ((const char *)request->inputs[i] - (const char *)region->base);
        return 0;
}

void request_reset(struct request *request)
{
        request->job = (struct sl_gpu_job){.pieces = request->pieces,
                .samples = request->piece_samples,
                .statuses = request->statuses,
                .n_pieces = request->n_pieces};
}

int request_init(struct request *request, struct ground *ground, const struct sl_plan *plan, uint32_t samples, uint32_t n_pieces)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        uint64_t in = room_of(info->inputs, info->n_inputs, samples), out = room_of(info->outputs, info->n_outputs, samples);
        uint64_t bytes = sl_align_up(in + out + 1, SL_PAGE_BYTES);
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("request", MFD_CLOEXEC);
        void *room = MAP_FAILED;
        int r = 0;

        *request = (struct request){.ground = ground, .info = info, .samples = samples, .n_pieces = n_pieces};
        if (in == UINT64_MAX || out == UINT64_MAX)
                return -ENOTSUP;
        if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
                room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        request->pieces = calloc(n_pieces, sizeof(*request->pieces));
        request->piece_inputs = calloc((size_t)n_pieces * info->n_inputs + 1, sizeof(void *));
        request->piece_outputs = calloc((size_t)n_pieces * info->n_outputs + 1, sizeof(void *));
        request->piece_samples = calloc(n_pieces, sizeof(*request->piece_samples));
        request->statuses = calloc(n_pieces, sizeof(*request->statuses));
        if (room == MAP_FAILED || !request->pieces || !request->piece_inputs || !request->piece_outputs ||
                !request->piece_samples || !request->statuses) {
                request_deinit(request);
                return -ENOMEM;
        }
        sl_host_region_init(&request->region, &ground->driver, room, bytes, true);
        lay_ports(request, room);
        r = ground->reads_only ? lay_view(request, fd) : 0;
        if (r < 0) {
                request_deinit(request);
                return r;
        }
        lay_pieces(request);
        request_reset(request);
        return 0;
}

static void drop_region(struct sl_host_region *region, const struct sl_cuda_driver *driver)
{
        const struct sl_host_region was = *region;

        sl_host_region_deinit(region, driver);
        if (was.base)
                munmap(was.base, was.bytes);
}

void request_deinit(struct request *request)
{
        if (request->region.base)
                drop_region(&request->region, &request->ground->driver);
        if (request->view.base)
                drop_region(&request->view, &request->ground->driver);
        free(request->pieces);
        free(request->piece_inputs);
        free(request->piece_outputs);
        free(request->piece_samples);
        free(request->statuses);
        *request = (struct request){.ground = NULL};
}
