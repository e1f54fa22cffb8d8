/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of well-known networks, one node at a time, by every algorithm that the `cpu` backend has for them: oneDNN's
 * and the own ones in turns, best of many short runs, beside the peak of one core measured in the same run. Before each launch the
 * weights are put out of the caches and the input into them, as a network that is larger than the caches leaves them; `hot` leaves
 * both in.
 *
 * One thread. Not part of `starling bench`: it looks at kernels, not at the runtime.
 */
#include "backend.h"
#include "base/error.h"
#include "cpu/base/threads.h"
#include "op.h"

#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 15
#define RUN_NS 2000000

struct shape {
        const char *network;
        int64_t channels, filters, size, kernel, stride, groups;
        bool line; /* size and kernel are those of a height of 1 */
};

static const struct shape shapes[] = {
        {"resnet, vgg", 64, 64, 56, 3, 1, 1, false},
        {"resnet", 128, 128, 28, 3, 1, 1, false},
        {"resnet", 256, 256, 14, 3, 1, 1, false},
        {"resnet", 512, 512, 7, 3, 1, 1, false},
        {"vgg", 64, 64, 224, 3, 1, 1, false},
        {"vgg", 256, 256, 56, 3, 1, 1, false},
        {"vgg", 512, 512, 28, 3, 1, 1, false},
        {"squeezenet", 16, 64, 55, 3, 1, 1, false},
        {"densenet", 128, 32, 28, 3, 1, 1, false},
        {"yolo", 32, 64, 104, 3, 1, 1, false},
        {"resnet", 3, 64, 224, 7, 2, 1, false},
        {"mobilenet", 3, 32, 224, 3, 2, 1, false},
        {"resnet", 128, 128, 56, 3, 2, 1, false},
        {"resnet", 256, 256, 28, 3, 2, 1, false},
        {"resnet", 64, 256, 56, 1, 1, 1, false},
        {"resnet", 256, 64, 56, 1, 1, 1, false},
        {"resnet", 1024, 256, 14, 1, 1, 1, false},
        {"resnet", 512, 2048, 7, 1, 1, 1, false},
        {"resnet", 512, 1024, 28, 1, 2, 1, false},
        {"mobilenet", 16, 96, 112, 1, 1, 1, false},
        {"mobilenet", 24, 144, 56, 1, 1, 1, false},
        {"mobilenet", 144, 24, 56, 1, 1, 1, false},
        {"mobilenet", 960, 160, 7, 1, 1, 1, false},
        {"shufflenet", 58, 58, 28, 1, 1, 1, false},
        {"lenet", 1, 6, 28, 5, 1, 1, false},
        {"lenet", 6, 16, 14, 5, 1, 1, false},
        {"resnext", 128, 128, 56, 3, 1, 32, false},
        {"resnext", 256, 256, 28, 3, 1, 32, false},
        {"resnext", 512, 512, 14, 3, 1, 32, false},
        {"resnext", 256, 256, 56, 3, 2, 32, false},
        {"regnet", 192, 192, 28, 3, 1, 8, false},
        {"mobilenet", 32, 32, 112, 3, 1, 32, false},
        {"mobilenet", 96, 96, 112, 3, 2, 96, false},
        {"mobilenet", 144, 144, 56, 3, 1, 144, false},
        {"mobilenet", 384, 384, 14, 3, 1, 384, false},
        {"mobilenet", 960, 960, 7, 3, 1, 960, false},
        {"shufflenet", 58, 58, 28, 3, 1, 58, false},
        {"efficientnet", 240, 240, 28, 5, 1, 240, false},
        {"efficientnet", 672, 672, 14, 5, 2, 672, false},
        {"wav2vec2", 1, 512, 16000, 10, 5, 1, true},
        {"wav2vec2", 512, 512, 3199, 3, 2, 1, true},
        {"wav2vec2", 512, 512, 99, 2, 2, 1, true},
        {"wav2vec2", 768, 768, 249, 128, 1, 16, true},
        {"whisper", 384, 384, 1500, 3, 2, 1, true},
        {"magika", 256, 512, 512, 5, 1, 1, true},
        {"quartznet", 256, 256, 400, 33, 1, 1, true},
        {"regnet", 448, 448, 14, 3, 1, 8, false},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const char *const names[SL_ALGORITHM_COUNT] = {"auto", "onednn", "own", "F(2x2)", "F(4x4)"};

/* One node, ready to run by one algorithm. */
struct run {
        struct sl_kernel *kernel;
        float *x, *weights, *bias, *y;
        void *packed, *scratch;
        size_t x_floats, weights_bytes;
        double best_ns;
};

static double now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *take(size_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 127) / 64 * 64);

        if (!data)
                exit(1);
        memset(data, 0, bytes);
        return data;
}

static float *take_floats(uint64_t n)
{
        float *floats = take(n * sizeof(float));
        uint32_t seed = 1;

        for (uint64_t i = 0; i < n; i++) {
                seed = seed * 1664525u + 1013904223u;
                floats[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
        }
        return floats;
}

static struct sl_tensor tensor(uint32_t layout, int64_t a, int64_t b, int64_t c, int64_t d)
{
        return (struct sl_tensor){SL_DTYPE_F32, layout, {4, {a, b, c, d}}};
}

static void make_node(const struct shape *s, int64_t batch, uint32_t activation, struct sl_node_desc *ret_node)
{
        int64_t pad = s->kernel / 2, down = s->line ? 0 : pad, pads[] = {down, pad, down, pad};
        int64_t strides[] = {s->line ? 1 : s->stride, s->stride};
        struct sl_node_desc node = {
                .op = SL_OP_CONV, .n_inputs = 3, .n_outputs = 1, .epilogue = {.activation = activation, .act_a = 1}};
        /* Images of three channels come as the client has them. */
        uint32_t first = s->channels == 3 ? SL_LAYOUT_PLAIN : SL_LAYOUT_CHANNELS_LAST;
        struct sl_error error;

        node.inputs[0] = tensor(first, batch, s->channels, s->line ? 1 : s->size, s->size);
        node.inputs[1] = tensor(SL_LAYOUT_PLAIN, s->filters, s->channels / s->groups, s->line ? 1 : s->kernel, s->kernel);
        node.inputs[2] = (struct sl_tensor){SL_DTYPE_F32, SL_LAYOUT_PLAIN, {1, {s->filters}}};
        sl_attrs_set_ints(&node.attrs, SL_ATTR_PADS, pads, 4);
        sl_attrs_set_ints(&node.attrs, SL_ATTR_STRIDES, strides, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, s->groups);
        if (sl_op_infer(&node, &error))
                exit(1);
        node.inputs[0].layout = first;
        node.outputs[0].layout = SL_LAYOUT_CHANNELS_LAST;
        *ret_node = node;
}

static bool make_run(const struct sl_node_desc *node, struct run *run)
{
        const struct sl_backend *cpu = &sl_backend_cpu;
        struct sl_packed packed[SL_NODE_INPUTS_MAX] = {0};
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_error error;

        *run = (struct run){.best_ns = INFINITY};
        if (cpu->planner->pack(NULL, node, 1, &packed[1]))
                return false;
        run->x = take_floats(sl_shape_elements(&node->inputs[0].shape));
        run->x_floats = sl_shape_elements(&node->inputs[0].shape);
        run->weights_bytes = packed[1].data_bytes ? packed[1].data_bytes : sl_tensor_bytes(&node->inputs[1]);
        run->weights = take_floats(sl_shape_elements(&node->inputs[1].shape));
        run->bias = take_floats(sl_shape_elements(&node->inputs[2].shape));
        run->y = take_floats(sl_shape_elements(&node->outputs[0].shape));
        run->packed = take(packed[1].data_bytes);
        if (packed[1].data_bytes && cpu->planner->repack(NULL, node, 1, &packed[1], run->weights, run->packed))
                return false;
        constants[1] = packed[1].data_bytes ? run->packed : run->weights;
        if (cpu->runner->compile(
                    NULL, &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants}, &run->kernel, &error))
                return false;
        if (!packed[1].data_bytes) {
                free(run->packed);
                run->packed = NULL;
        }
        run->scratch = take(cpu->runner->scratch_bytes(run->kernel));
        return true;
}

static void launch(const struct run *run)
{
        const void *inputs[] = {run->x, run->packed ? run->packed : run->weights, run->bias};
        void *outputs[] = {run->y};

        sl_backend_cpu.runner->launch(
                run->kernel, &(struct sl_binding){.inputs = inputs, .outputs = outputs, .scratch = run->scratch});
}

static void free_run(struct run *run)
{
        sl_backend_cpu.runner->kernel_free(run->kernel);
        free(run->x);
        free(run->weights);
        free(run->bias);
        free(run->y);
        free(run->packed);
        free(run->scratch);
}

/* Products of registers: what a core can do at most. */
static __attribute__((target("avx512f"))) double measure_peak(void)
{
        typedef float vector __attribute__((vector_size(64)));
        vector sums[24] = {{0}}, a = {1}, b = {2};
        double best = INFINITY;

        for (int round = 0; round < 20; round++) {
                double start = now_ns();

                for (int i = 0; i < 20000; i++)
#pragma GCC unroll 24
                        for (int k = 0; k < 24; k++) {
                                __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(sums[k]) : "v"(a), "v"(b));
                        }
                best = fmin(best, now_ns() - start);
        }
        return 20000 * 24 * 32 / best;
}

/* As within a network: the weights come from memory, the input was written just now. */
static __attribute__((target("clflushopt"))) void settle(const struct run *run)
{
        const char *weights = run->packed ? run->packed : (const char *)run->weights;

        for (size_t i = 0; i < run->weights_bytes; i += 64)
                _mm_clflushopt((void *)(weights + i));
        _mm_mfence();
        for (size_t i = 0; i < run->x_floats; i += 16)
                ((volatile float *)run->x)[i] = run->x[i];
}

static void measure(struct run runs[SL_ALGORITHM_COUNT], const uint32_t *algorithms, uint32_t n, bool hot)
{
        for (int round = 0; round < ROUNDS; round++)
                for (uint32_t i = 0; i < n; i++) {
                        struct run *run = &runs[algorithms[i]];
                        double spent = 0;

                        for (int count = 0; spent < RUN_NS && count < 40; count++) {
                                double start, ns;

                                if (!hot)
                                        settle(run);
                                start = now_ns();
                                launch(run);
                                ns = now_ns() - start;
                                spent += ns;
                                run->best_ns = fmin(run->best_ns, ns);
                        }
                }
}

static void bench(const struct shape *s, int64_t batch, uint32_t activation, bool hot, double peak)
{
        struct sl_node_desc node;
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;
        struct run runs[SL_ALGORITHM_COUNT] = {0};

        make_node(s, batch, activation, &node);
        n = sl_backend_cpu.planner->algorithms(NULL, &node, algorithms, NULL);
        if (!n)
                algorithms[n++] = SL_ALGORITHM_DIRECT;
        for (uint32_t i = 0; i < n; i++) {
                sl_attrs_set_int(&node.attrs, SL_ATTR_ALGORITHM, algorithms[i]);
                if (!make_run(&node, &runs[algorithms[i]]))
                        exit(1);
        }
        measure(runs, algorithms, n, hot);
        printf("%-13s %4d -> %4d  %3dx%-3d k%d s%d g%-3d b%d ", s->network, (int)s->channels, (int)s->filters,
                s->line ? 1 : (int)s->size, (int)s->size, (int)s->kernel, (int)s->stride, (int)s->groups, (int)batch);
        for (uint32_t i = 0; i < n; i++) {
                double gflops = 2.0 * (double)sl_op_multiply_adds(&node) / runs[algorithms[i]].best_ns;

                printf("  %s %.1f us %.0f GF (%.2f)", names[algorithms[i]], runs[algorithms[i]].best_ns / 1e3, gflops,
                        gflops / peak);
                free_run(&runs[algorithms[i]]);
        }
        printf("\n");
        fflush(stdout);
}

/* bench-conv [hot] [swish] [BATCH [FIRST [LAST]]] */
int main(int argc, char **argv)
{
        int64_t numbers[3] = {1, 0, N_SHAPES - 1};
        uint32_t activation = SL_ACT_RELU;
        bool hot = false;
        double peak;

        for (int i = 1, n = 0; i < argc; i++) {
                if (!strcmp(argv[i], "hot"))
                        hot = true;
                else if (!strcmp(argv[i], "swish"))
                        activation = SL_ACT_SWISH;
                else if (n < 3)
                        numbers[n++] = atoll(argv[i]);
        }
        sl_cpu_use_one_thread();
        peak = measure_peak();
        printf("peak of one core %.0f GFLOP/s; best guess first\n", peak);
        for (int64_t i = numbers[1]; i <= numbers[2] && i < (int64_t)N_SHAPES; i++)
                bench(&shapes[i], numbers[0], activation, hot, peak);
        return 0;
}
