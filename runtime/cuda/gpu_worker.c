/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_worker.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "batch_graph.h"
#include "flight.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Completions by the device: its event is looked at so often. */
#define LOOKS_PER_QUERY 32

/* A launch that is on its way. */
struct slot {
        CUevent computed, done;
        struct sl_gpu_job *job;
        struct sl_job_walk walk; /* of the job, to its first sample */
        uint32_t samples, looks;
        bool staged; /* its results come by way of pinned memory */
        struct sl_pool_batch batch;
        CUdeviceptr results[SL_GRAPH_PORTS_MAX];
        unsigned char *pinned; /* the same for the host, one port behind the other */
};

struct sl_gpu_worker {
        struct sl_gpu_worker_options options;
        struct sl_gpu *gpu;
        const struct sl_cuda_driver *driver;
        const struct sl_plan_info *info;
        struct sl_pool *pool;
        CUstream stream, results;
        struct sl_device ground;
        struct sl_error said; /* why it launched nothing */
        struct sl_instance *instance;
        uint64_t workspace_bytes; /* in the book */
        CUdeviceptr ports;        /* inputs and outputs of the steps, then the results of each slot */
        uint64_t ports_bytes, result_bytes;
        uint64_t input_bytes[SL_GRAPH_PORTS_MAX], output_bytes[SL_GRAPH_PORTS_MAX]; /* of a sample */
        uint32_t n_batches;
        struct sl_batch_graph graphs[SL_PLAN_BATCHES_MAX];
        unsigned char *pinned;
        _Atomic uint64_t *words; /* [n_slots], in memory that the device writes to; NULL: by events */
        CUdeviceptr words_there;
        struct sl_flight flight;
        struct slot slots[SL_FLIGHT_SLOTS_MAX];
        uint32_t n_jobs;
        struct sl_gpu_job *jobs[SL_FLIGHT_SLOTS_MAX]; /* in the order in which they came */
        CUresult lost;
};

SL_DEFINE_CLEANUP(struct sl_gpu_worker *, sl_gpu_worker_free)

/* ---- what it is made of ---- */

static CUdeviceptr lay_out(const struct sl_port *ports, uint32_t n, uint32_t batch, CUdeviceptr at, CUdeviceptr *ret_places)
{
        for (uint32_t i = 0; i < n; i++) {
                ret_places[i] = at;
                at += sl_align_up(sl_gpu_port_bytes(&ports[i], batch), SL_GPU_PORT_ALIGNMENT);
        }
        return at;
}

/* The word behind the outputs. */
static CUdeviceptr lay_out_results(const struct sl_plan_info *info, uint32_t batch, CUdeviceptr at, CUdeviceptr *ret_places)
{
        ret_places[info->n_outputs] = lay_out(info->outputs, info->n_outputs, batch, at, ret_places);
        return ret_places[info->n_outputs] + SL_GPU_PORT_ALIGNMENT;
}

static int make_streams(struct sl_gpu_worker *w, struct sl_error *error)
{
        const struct sl_gpu_worker_options *o = &w->options;
        int r = sl_green_stream(o->greens, o->green, o->priority, &w->stream, error);

        if (r == 0)
                r = sl_green_stream(o->greens, o->green, o->priority, &w->results, error);
        return r;
}

static int make_instance(struct sl_gpu_worker *w, CUdeviceptr finding, struct sl_error *error)
{
        const struct sl_plan *plan = sl_gpu_program_plan(w->options.program);
        const struct sl_instance_ground ground = {
                .device = &w->ground, .constants = sl_gpu_program_constants(w->options.program), .ports_there = true};
        uint64_t bytes = sl_plan_workspace_bytes(plan, w->options.batch_max);
        int r = sl_gpu_promise(w->gpu, SL_GPU_WORKSPACES, bytes, w->info->name, error);

        if (r < 0)
                return r;
        w->workspace_bytes = bytes;
        w->ground = (struct sl_device){.cuda = w->gpu->device,
                .stream = w->stream,
                .finding = finding,
                .said = &w->said,
                .n_processors = w->options.green ? (int)sl_green_processors(w->options.green) : 0,
                .chooser = w->options.chooser};
        return sl_instance_new_on(plan, w->options.batch_max, &ground, &w->instance, error);
}

/* Device memory of the ports, and pinned memory of as much for the results of each slot. */
static int make_ports(struct sl_gpu_worker *w, struct sl_batch_places *places, struct sl_error *error)
{
        const struct sl_plan_info *info = w->info;
        uint32_t batch = w->options.batch_max, n_slots = w->options.n_slots;
        uint64_t bytes = sl_gpu_ports_bytes(info, batch, n_slots);
        CUdeviceptr at;
        int r;

        w->result_bytes = sl_gpu_results_bytes(info, batch);
        r = sl_gpu_allocate(w->gpu, SL_GPU_PORTS, bytes, info->name, &w->ports, error);
        if (r < 0)
                return r;
        w->ports_bytes = bytes;
        /* What a first run reads is there. */
        r = sl_cuda_check(w->driver, w->driver->memset_d8_async(w->ports, 0, bytes, w->stream), error, "the ports of a worker");
        if (r < 0)
                return r;
        at = lay_out(info->inputs, info->n_inputs, batch, w->ports, places->inputs);
        at = lay_out_results(info, batch, at, places->outputs);
        for (uint32_t i = 0; i < n_slots; i++)
                at = lay_out_results(info, batch, at, w->slots[i].results);
        for (uint32_t i = 0; i < info->n_inputs; i++)
                places->sources[i] = sl_pool_address(w->pool, i);
        memcpy(places->results, w->slots[0].results, sizeof(places->results));
        memcpy(places->far_results, w->slots[n_slots - 1].results, sizeof(places->far_results));
        r = sl_cuda_check(w->driver, w->driver->mem_host_alloc((void **)&w->pinned, w->result_bytes * n_slots, 0), error,
                "%llu bytes of pinned memory", (unsigned long long)(w->result_bytes * n_slots));
        for (uint32_t i = 0; i < n_slots && r == 0; i++)
                w->slots[i].pinned = w->pinned + i * w->result_bytes;
        return r;
}

static int make_graphs(struct sl_gpu_worker *w, struct sl_batch_places *places, struct sl_error *error)
{
        int r = 0;

        while (w->n_batches < w->info->n_batches && w->info->batches[w->n_batches] <= w->options.batch_max && r == 0) {
                uint32_t batch = w->info->batches[w->n_batches];

                for (uint32_t i = 0; i < w->info->n_inputs; i++)
                        places->far_sources[i] = sl_pool_last_address(w->pool, i, batch);
                r = sl_batch_graph_init(&w->graphs[w->n_batches++], &w->ground, w->instance, w->info, batch, places, error);
        }
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\"", w->info->name) : 0;
}

static int make_events(struct sl_gpu_worker *w, struct sl_error *error)
{
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < w->options.n_slots && result == CUDA_SUCCESS; i++) {
                result = w->driver->event_create(&w->slots[i].computed, CU_EVENT_DISABLE_TIMING);
                if (result == CUDA_SUCCESS)
                        result = w->driver->event_create(&w->slots[i].done, CU_EVENT_DISABLE_TIMING);
        }
        return sl_cuda_check(w->driver, result, error, "the events of a worker");
}

/* Where the device cannot write words, nothing is lost: events say the same. */
static int make_words(struct sl_gpu_worker *w, struct sl_error *error)
{
        size_t bytes = w->options.n_slots * sizeof(*w->words);
        void *words = NULL;
        int able = 0;
        CUresult result = CUDA_SUCCESS;

        if (w->options.writes_done)
                result = w->driver->device_get_attribute(
                        &able, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, w->gpu->device->number);
        if (!able || result != CUDA_SUCCESS)
                return sl_cuda_check(w->driver, result, error, "what %s can write", w->gpu->memory.device);
        result = w->driver->mem_host_alloc(&words, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
        if (result == CUDA_SUCCESS) {
                w->words = words;
                for (uint32_t i = 0; i < w->options.n_slots; i++)
                        atomic_init(&w->words[i], 0);
                result = w->driver->mem_host_get_device_pointer(&w->words_there, words, 0);
        }
        return sl_cuda_check(w->driver, result, error, "%zu bytes that the device writes to", bytes);
}

static int worker_init(struct sl_gpu_worker *w, struct sl_error *error)
{
        struct sl_batch_places places;
        int r;

        if (sl_flight_init(&w->flight, w->options.n_slots) < 0)
                return sl_error_set(
                        error, EINVAL, "a worker with %u launches on their way: 1 to %d", w->options.n_slots, SL_FLIGHT_SLOTS_MAX);
        if (!w->pool)
                return sl_error_set(error, EINVAL, "model \"%s\" has no pool on %s", w->info->name, w->gpu->memory.device);
        for (uint32_t i = 0; i < w->info->n_inputs; i++)
                w->input_bytes[i] = sl_gpu_port_bytes(&w->info->inputs[i], 1);
        for (uint32_t i = 0; i < w->info->n_outputs; i++)
                w->output_bytes[i] = sl_gpu_port_bytes(&w->info->outputs[i], 1);
        r = make_streams(w, error);
        if (r == 0)
                r = make_ports(w, &places, error);
        if (r == 0)
                r = make_instance(w, places.outputs[w->info->n_outputs], error);
        if (r == 0)
                r = make_graphs(w, &places, error);
        if (r == 0)
                r = make_events(w, error);
        return r == 0 ? make_words(w, error) : r;
}

int sl_gpu_worker_new(const struct sl_gpu_worker_options *options, struct sl_gpu_worker **ret_worker, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_gpu_worker_free) struct sl_gpu_worker *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return sl_error_set(error, ENOMEM, "no memory for a worker");
        w->options = *options;
        w->options.program = sl_gpu_program_hold(options->program);
        w->gpu = sl_gpu_program_gpu(options->program);
        w->driver = w->gpu->device->driver;
        w->info = sl_plan_info(sl_gpu_program_plan(options->program));
        w->pool = sl_gpu_program_pool(options->program);
        r = worker_init(w, error);
        if (r == 0)
                *ret_worker = sl_take(w);
        return r;
}

static void free_slot(struct sl_gpu_worker *w, struct slot *slot)
{
        if (w->flight.busy & 1u << (slot - w->slots))
                sl_pool_give_back(w->pool, &slot->batch);
        if (slot->computed)
                w->driver->event_destroy(slot->computed);
        if (slot->done)
                w->driver->event_destroy(slot->done);
}

struct sl_gpu_worker *sl_gpu_worker_free(struct sl_gpu_worker *w)
{
        if (!w)
                return NULL;
        if (w->stream)
                w->driver->stream_synchronize(w->stream);
        if (w->results)
                w->driver->stream_synchronize(w->results);
        for (uint32_t i = 0; i < SL_FLIGHT_SLOTS_MAX; i++)
                free_slot(w, &w->slots[i]);
        if (w->pool)
                sl_pool_end_turn(w->pool, w);
        for (uint32_t i = 0; i < w->n_batches; i++)
                sl_batch_graph_deinit(&w->graphs[i]);
        sl_instance_free(w->instance);
        sl_gpu_memory_give_back(&w->gpu->memory, SL_GPU_WORKSPACES, w->workspace_bytes);
        sl_gpu_release(w->gpu, SL_GPU_PORTS, w->ports_bytes, w->ports);
        if (w->pinned)
                w->driver->mem_free_host(w->pinned);
        if (w->words)
                w->driver->mem_free_host((void *)w->words);
        sl_green_end_stream(w->options.greens, w->options.green, w->results);
        sl_green_end_stream(w->options.greens, w->options.green, w->stream);
        sl_gpu_program_free(w->options.program);
        free(w);
        return NULL;
}

uint64_t sl_gpu_worker_bytes(const struct sl_gpu_worker *w)
{
        return w->workspace_bytes + w->ports_bytes;
}

/* ---- launches ---- */

static bool take_samples(struct sl_gpu_worker *w, struct slot *slot)
{
        const struct sl_gpu_job *job = slot->job;
        struct sl_job_walk walk = slot->walk;
        struct sl_job_fragment fragment = {.samples = 0};
        uint64_t position;
        int r = 0;

        while (r == 0 && sl_job_walk_next(&walk, job->samples, slot->samples, &fragment)) {
                const struct sl_gpu_piece *piece = &job->pieces[fragment.piece];
                const void *inputs[SL_GRAPH_PORTS_MAX];

                for (uint32_t i = 0; i < w->info->n_inputs; i++)
                        inputs[i] = (const char *)piece->inputs[i] + fragment.in_piece * w->input_bytes[i];
                r = sl_pool_put(w->pool, inputs, fragment.samples, &position, NULL);
                slot->staged |= !piece->reached && !piece->stays;
        }
        if (r == 0)
                r = sl_pool_take(w->pool, slot->samples, w->stream, &slot->batch, NULL);
        return r == (int)slot->samples;
}

/* Where an output lies among a slot's results, there and in pinned memory. */
static uint64_t result_offset(const struct slot *slot, uint32_t output)
{
        return slot->results[output] - slot->results[0];
}

static CUresult return_whole(struct sl_gpu_worker *w, const struct slot *slot)
{
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < w->info->n_outputs && result == CUDA_SUCCESS; i++)
                result = w->driver->memcpy_dtoh_async(
                        slot->pinned + result_offset(slot, i), slot->results[i], slot->samples * w->output_bytes[i], w->results);
        return result;
}

static CUresult return_fragment(struct sl_gpu_worker *w, const struct slot *slot, const struct sl_job_fragment *f, uint32_t output)
{
        const struct sl_gpu_piece *piece = &slot->job->pieces[f->piece];
        char *to = (char *)piece->outputs[output] + f->in_piece * w->output_bytes[output];
        CUdeviceptr from = slot->results[output] + f->in_launch * w->output_bytes[output];
        size_t bytes = f->samples * w->output_bytes[output];

        return piece->stays ? w->driver->memcpy_dtod_async((CUdeviceptr)to, from, bytes, w->results)
                            : w->driver->memcpy_dtoh_async(to, from, bytes, w->results);
}

/* Of a launch that is staged, those that stay on the device. */
static CUresult return_fragments(struct sl_gpu_worker *w, const struct slot *slot)
{
        struct sl_job_walk walk = slot->walk;
        struct sl_job_fragment fragment = {.samples = 0};
        CUresult result = CUDA_SUCCESS;

        while (result == CUDA_SUCCESS && sl_job_walk_next(&walk, slot->job->samples, slot->samples, &fragment))
                for (uint32_t i = 0; i < w->info->n_outputs && result == CUDA_SUCCESS; i++)
                        if (!slot->staged || slot->job->pieces[fragment.piece].stays)
                                result = return_fragment(w, slot, &fragment, i);
        return result;
}

static struct sl_batch_graph *graph_of(struct sl_gpu_worker *w, uint32_t batch)
{
        uint32_t i = 0;

        while (w->graphs[i].batch != batch)
                i++;
        return &w->graphs[i];
}

static CUresult enqueue(struct sl_gpu_worker *w, const struct slot *slot)
{
        const struct sl_cuda_driver *driver = w->driver;
        uint32_t number = (uint32_t)(slot - w->slots);
        uint64_t sources[SL_GRAPH_PORTS_MAX], results[SL_GRAPH_PORTS_MAX];
        CUresult result;

        for (uint32_t i = 0; i < w->info->n_inputs; i++)
                sources[i] = slot->batch.inputs[i];
        for (uint32_t i = 0; i <= w->info->n_outputs; i++)
                results[i] = slot->results[i];
        result = sl_batch_graph_launch(graph_of(w, slot->samples), w->stream, sources, results);
        if (result == CUDA_SUCCESS)
                result = driver->event_record(slot->computed, w->stream);
        if (result == CUDA_SUCCESS)
                result = driver->stream_wait_event(w->results, slot->computed, 0);
        if (result == CUDA_SUCCESS)
                result = slot->staged ? return_whole(w, slot) : CUDA_SUCCESS;
        if (result == CUDA_SUCCESS)
                result = return_fragments(w, slot);
        if (result == CUDA_SUCCESS)
                result = driver->memcpy_dtoh_async(slot->pinned + result_offset(slot, w->info->n_outputs),
                        slot->results[w->info->n_outputs], sizeof(uint32_t), w->results);
        if (result == CUDA_SUCCESS && w->words)
                result = driver->stream_write_value64(w->results, w->words_there + number * sizeof(*w->words),
                        w->flight.numbers[number], CU_STREAM_WRITE_VALUE_DEFAULT); /* D1 */
        return result == CUDA_SUCCESS ? driver->event_record(slot->done, w->results) : result;
}

/* What failed half way leaves streams in a state that nobody knows: the worker is lost with it. */
static void launch(struct sl_gpu_worker *w, struct slot *slot, struct sl_gpu_job *job, uint32_t samples)
{
        CUresult result;

        slot->job = job;
        slot->walk = job->walk;
        slot->samples = samples;
        slot->looks = 0;
        slot->staged = false;
        result = take_samples(w, slot) ? enqueue(w, slot) : sl_pool_failed(w->pool);
        if (result != CUDA_SUCCESS)
                w->lost = result;
        if (!job->first_ns)
                job->first_ns = sl_clock_ns();
        job->launches++;
        job->launched += samples;
        for (struct sl_job_fragment f = {.samples = 0}; sl_job_walk_next(&job->walk, job->samples, samples, &f);)
                ;
}

/* The largest launch that the job, the pool and the graphs allow; 0: not now. */
static uint32_t next_cut(const struct sl_gpu_worker *w, struct sl_gpu_job *job)
{
        uint32_t most = job->alone ? sl_job_walk_left(&job->walk, job->samples) : job->total - job->launched,
                 run = sl_pool_run(w->pool), room = sl_pool_room(w->pool);

        most = run < most ? run : most;
        return sl_job_cut(w->info->batches, w->n_batches, room < most ? room : most);
}

static void launch_what_fits(struct sl_gpu_worker *w)
{
        for (uint32_t i = 0; i < w->n_jobs && !w->lost; i++)
                while (w->jobs[i]->launched < w->jobs[i]->total && !w->lost) {
                        int slot = sl_flight_begin(&w->flight);
                        uint32_t samples = slot >= 0 && sl_pool_is_turn_of(w->pool, w) ? next_cut(w, w->jobs[i]) : 0;

                        if (slot < 0)
                                return;
                        if (!samples) {
                                sl_flight_end(&w->flight, (uint32_t)slot);
                                sl_pool_want_turn(w->pool, w);
                                return;
                        }
                        launch(w, &w->slots[slot], w->jobs[i], samples);
                        sl_pool_end_turn(w->pool, w);
                }
}

static void begin_job(struct sl_gpu_job *job, bool alone)
{
        job->walk = (struct sl_job_walk){0};
        job->launched = job->ended = 0;
        job->found = false;
        job->alone = alone;
        memset(job->statuses, 0, job->n_pieces * sizeof(job->statuses[0]));
}

int sl_gpu_worker_give(struct sl_gpu_worker *w, struct sl_gpu_job *job)
{
        if (w->lost)
                return -EIO;
        if (w->n_jobs == w->options.n_slots)
                return -EAGAIN;
        job->total = job->launches = 0;
        job->first_ns = 0;
        job->status = 0;
        for (uint32_t i = 0; i < job->n_pieces; i++)
                job->total += job->samples[i];
        begin_job(job, false);
        w->jobs[w->n_jobs++] = job;
        launch_what_fits(w);
        return 0;
}

/* ---- ends ---- */

static bool is_done(struct sl_gpu_worker *w, struct slot *slot)
{
        uint32_t number = (uint32_t)(slot - w->slots);
        CUresult result;

        if (w->words && atomic_load_explicit(&w->words[number], memory_order_acquire) == w->flight.numbers[number]) /* D2 */
                return true;
        if (w->words && ++slot->looks % LOOKS_PER_QUERY)
                return false;
        result = w->driver->event_query(slot->done);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
                w->lost = result;
        return result == CUDA_SUCCESS;
}

static void scatter(const struct sl_gpu_worker *w, const struct slot *slot)
{
        struct sl_job_walk walk = slot->walk;
        struct sl_job_fragment f = {.samples = 0};

        while (sl_job_walk_next(&walk, slot->job->samples, slot->samples, &f))
                for (uint32_t i = 0; i < w->info->n_outputs && !slot->job->pieces[f.piece].stays; i++)
                        memcpy((char *)slot->job->pieces[f.piece].outputs[i] + f.in_piece * w->output_bytes[i],
                                slot->pinned + result_offset(slot, i) + f.in_launch * w->output_bytes[i],
                                f.samples * w->output_bytes[i]);
}

/* Whose index it was is known of a launch of one piece; else each is computed alone. */
static void note_finding(const struct sl_gpu_worker *w, struct slot *slot)
{
        struct sl_gpu_job *job = slot->job;
        uint32_t word;

        memcpy(&word, slot->pinned + result_offset(slot, w->info->n_outputs), sizeof(word));
        if (!word)
                return;
        if (sl_job_walk_left(&slot->walk, job->samples) >= slot->samples)
                job->statuses[slot->walk.piece] = -ERANGE;
        else
                job->found = true;
}

static void look_at_slots(struct sl_gpu_worker *w)
{
        for (int i = sl_flight_next(&w->flight, -1), next; i >= 0 && !w->lost; i = next) {
                struct slot *slot = &w->slots[i];

                next = sl_flight_next(&w->flight, i);
                if (!is_done(w, slot))
                        continue;
                if (slot->staged)
                        scatter(w, slot);
                note_finding(w, slot);
                slot->job->ended += slot->samples;
                if (slot->job->found && slot->job->ended == slot->job->total)
                        begin_job(slot->job, true);
                sl_pool_give_back(w->pool, &slot->batch);
                sl_flight_end(&w->flight, (uint32_t)i);
        }
}

static struct sl_gpu_job *remove_job(struct sl_gpu_worker *w, uint32_t index)
{
        struct sl_gpu_job *job = w->jobs[index];

        w->n_jobs--;
        memmove(&w->jobs[index], &w->jobs[index + 1], (w->n_jobs - index) * sizeof(w->jobs[0]));
        return job;
}

struct sl_gpu_job *sl_gpu_worker_poll(struct sl_gpu_worker *w)
{
        look_at_slots(w);
        launch_what_fits(w);
        for (uint32_t i = 0; i < w->n_jobs; i++) {
                if (w->jobs[i]->ended < w->jobs[i]->total && !w->lost)
                        continue;
                if (w->jobs[i]->ended < w->jobs[i]->total)
                        w->jobs[i]->status = -EIO;
                return remove_job(w, i);
        }
        return NULL;
}

uint32_t sl_gpu_worker_jobs(const struct sl_gpu_worker *w)
{
        return w->n_jobs;
}

int sl_gpu_worker_lost(const struct sl_gpu_worker *w, struct sl_error *error)
{
        if (!w->lost)
                return 0;
        (void)sl_cuda_check(w->driver, w->lost, error, "%s is lost", w->gpu->memory.device);
        return -EIO;
}

/* ---- for measurements ---- */

static bool has_graph(const struct sl_gpu_worker *w, uint32_t batch)
{
        for (uint32_t i = 0; i < w->n_batches; i++)
                if (w->graphs[i].batch == batch)
                        return true;
        return false;
}

static CUresult launch_between(struct sl_gpu_worker *w, uint32_t batch, uint32_t n, CUevent begin, CUevent end)
{
        struct sl_batch_graph *graph = graph_of(w, batch);
        CUresult result = w->driver->event_record(begin, w->stream);

        for (uint32_t i = 0; i < n && result == CUDA_SUCCESS; i++)
                result = sl_batch_graph_launch(graph, w->stream, graph->places.sources, graph->places.results);
        if (result == CUDA_SUCCESS)
                result = w->driver->event_record(end, w->stream);
        return result == CUDA_SUCCESS ? w->driver->stream_synchronize(w->stream) : result;
}

int sl_gpu_worker_time(struct sl_gpu_worker *w, uint32_t batch, uint32_t n, uint64_t *ret_ns, struct sl_error *error)
{
        CUevent begin = NULL, end = NULL;
        CUresult result;
        float ms = 0;

        if (!has_graph(w, batch) || !n)
                return sl_error_set(error, EINVAL, "a worker has no graph of batch %u, or %u launches are none", batch, n);
        if (w->n_jobs)
                return sl_error_set(error, EBUSY, "a worker with %u jobs is not timed", w->n_jobs);
        result = w->driver->event_create(&begin, CU_EVENT_DEFAULT);
        if (result == CUDA_SUCCESS)
                result = w->driver->event_create(&end, CU_EVENT_DEFAULT);
        if (result == CUDA_SUCCESS)
                result = launch_between(w, batch, n, begin, end);
        if (result == CUDA_SUCCESS)
                result = w->driver->event_elapsed_time(&ms, begin, end);
        if (begin)
                w->driver->event_destroy(begin);
        if (end)
                w->driver->event_destroy(end);
        *ret_ns = (uint64_t)((double)ms * 1e6 / n);
        return sl_cuda_check(w->driver, result, error, "%u launches of batch %u on %s", n, batch, w->gpu->memory.device);
}
