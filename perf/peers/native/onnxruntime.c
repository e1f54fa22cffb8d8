/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime in the process, through its C library: one or several models with one input and one output, asked in turn with the
 * same input, and the mean of their answers.
 *
 *     bench-onnxruntime LIBRARY --input FILE --shape 1x3x224x224 --outputs N --seconds S --cpu C MODEL...     one JSON object
 *
 * FILE has floats, N is how many floats an answer has. One thread, which is bound and computes. The library is opened at run time;
 * it hands out a table of functions whose order never changes, so that their numbers in it are all that is needed here.
 */
#include "cores.h"
#include "latencies.h"
#include "ticks.h"

#include <dlfcn.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODELS_MAX  16
#define RANK_MAX    8
#define API_VERSION 13
#define WARM_UP_NS  (SL_NS_PER_SECOND / 2)
#define FLOAT       1 /* as ONNX numbers types */
#define ALL_PASSES  99

/* clang-format off */
enum { GET_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_OPTIONS = 10, SET_OPTIMISATION = 23, SET_THREADS = 24,
       GET_INPUT_NAME = 36, GET_OUTPUT_NAME = 37, CREATE_TENSOR = 49, GET_DATA = 51, CREATE_CPU_MEMORY = 69, GET_ALLOCATOR = 78,
       RELEASE_VALUE = 96 };
/* clang-format on */

struct session {
        void *handle;
        char *input, *output; /* names, of the library's allocator; they live as long as the process */
};

struct bench {
        void *const *api;
        void *options, *env, *memory, *allocator, *tensor;
        struct session sessions[MODELS_MAX];
        int n_sessions;
        float *values, *mean;
        int64_t shape[RANK_MAX];
        size_t rank, n_values, n_outputs;
};

/* What a function of the table returned: NULL is success. */
static void check(const struct bench *b, void *status)
{
        if (!status)
                return;
        fprintf(stderr, "bench-onnxruntime: %s\n", ((const char *(*)(void *))b->api[GET_MESSAGE])(status));
        exit(1);
}

#define CALL(b, number, types, ...) check(b, ((void *(*)types)(b)->api[number])(__VA_ARGS__))

static void open_library(struct bench *b, const char *path)
{
        struct base {
                const void *(*api)(uint32_t version);
                const char *(*version)(void);
        };
        void *handle = dlopen(path, RTLD_NOW);
        const struct base *(*base)(void) = NULL;

        if (handle)
                *(void **)&base = dlsym(handle, "OrtGetApiBase");
        if (!base || !(b->api = base()->api(API_VERSION))) {
                fprintf(stderr, "bench-onnxruntime: %s: %s\n", path, handle ? "no API" : dlerror());
                exit(1);
        }
        CALL(b, CREATE_ENV, (int, const char *, void **), 3, "bench", &b->env);
        CALL(b, CREATE_OPTIONS, (void **), &b->options);
        CALL(b, SET_THREADS, (void *, int), b->options, 1);
        CALL(b, SET_OPTIMISATION, (void *, int), b->options, ALL_PASSES);
        CALL(b, CREATE_CPU_MEMORY, (int, int, void **), 1, 0, &b->memory);
        CALL(b, GET_ALLOCATOR, (void **), &b->allocator);
}

static void open_session(struct bench *b, const char *path)
{
        struct session *session = &b->sessions[b->n_sessions++];

        CALL(b, CREATE_SESSION, (void *, const char *, void *, void **), b->env, path, b->options, &session->handle);
        CALL(b, GET_INPUT_NAME, (void *, size_t, void *, char **), session->handle, 0, b->allocator, &session->input);
        CALL(b, GET_OUTPUT_NAME, (void *, size_t, void *, char **), session->handle, 0, b->allocator, &session->output);
}

static void read_shape(struct bench *b, const char *text)
{
        b->n_values = 1;
        for (char *end = NULL; b->rank < RANK_MAX; text = end + 1) {
                b->shape[b->rank] = strtol(text, &end, 10);
                b->n_values *= (size_t)b->shape[b->rank++];
                if (*end != 'x')
                        break;
        }
}

static bool read_values(struct bench *b, const char *path)
{
        FILE *file = fopen(path, "rb");

        b->values = calloc(b->n_values, sizeof(float));
        b->mean = calloc(b->n_outputs, sizeof(float));
        bool read = file && b->values && b->mean && fread(b->values, sizeof(float), b->n_values, file) == b->n_values;

        if (file)
                fclose(file);
        return read;
}

static void run_session(struct bench *b, struct session *session)
{
        void *answer = NULL;
        float *values;

        CALL(b, RUN, (void *, void *, char **, void **, size_t, char **, size_t, void **), session->handle, NULL, &session->input,
                &b->tensor, 1, &session->output, 1, &answer);
        CALL(b, GET_DATA, (void *, void *), answer, &values);
        for (size_t i = 0; i < b->n_outputs; i++)
                b->mean[i] += values[i] / (float)b->n_sessions;
        ((void (*)(void *))b->api[RELEASE_VALUE])(answer);
}

static void ask(struct bench *b)
{
        memset(b->mean, 0, b->n_outputs * sizeof(float));
        for (int i = 0; i < b->n_sessions; i++)
                run_session(b, &b->sessions[i]);
}

static void measure(struct bench *b, double seconds, struct sl_latencies *samples)
{
        uint64_t begin_ns = sl_clock_ns(), now_ns = begin_ns, until_ns = begin_ns + WARM_UP_NS + (uint64_t)(seconds * 1e9);

        CALL(b, CREATE_TENSOR, (void *, void *, size_t, const int64_t *, size_t, int, void **), b->memory, b->values,
                b->n_values * sizeof(float), b->shape, b->rank, FLOAT, &b->tensor);
        while (now_ns < until_ns) {
                uint64_t start_ns = sl_clock_ns();

                ask(b);
                now_ns = sl_clock_ns();
                if (start_ns - begin_ns >= WARM_UP_NS)
                        sl_latencies_add(samples, now_ns - start_ns);
        }
}

static void print_figures(const struct bench *b, const struct sl_latencies *samples)
{
        json_t *answer = json_array();

        for (size_t i = 0; i < b->n_outputs; i++)
                json_array_append_new(answer, json_real((double)b->mean[i]));
        json_t *report = json_pack("{s:f, s:f, s:f, s:I, s:o}", "p50_ns", sl_latencies_at(samples, 0.5), "p99_ns",
                sl_latencies_at(samples, 0.99), "per_second", 1e9 * (double)samples->n / samples->sum, "n", (json_int_t)samples->n,
                "answer", answer);

        json_dumpf(report, stdout, JSON_COMPACT);
        json_decref(report);
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"input", required_argument, NULL, 'i'}, {"shape", required_argument, NULL, 's'},
                {"outputs", required_argument, NULL, 'o'}, {"seconds", required_argument, NULL, 't'},
                {"cpu", required_argument, NULL, 'c'}, {0}};
        static struct bench b;
        struct sl_latencies samples;
        const char *input = NULL;
        double seconds = 2;
        int option, r = sl_latencies_init(&samples);

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
                switch (option) {
                case 'i':
                        input = optarg;
                        break;
                case 's':
                        read_shape(&b, optarg);
                        break;
                case 'o':
                        b.n_outputs = strtoul(optarg, NULL, 10);
                        break;
                case 't':
                        seconds = strtod(optarg, NULL);
                        break;
                case 'c':
                        r = sl_cores_pin(atoi(optarg));
                        break;
                default:
                        return 2;
                }
        if (r < 0 || argc - optind < 2 || argc - optind > MODELS_MAX || !input || !b.rank || !b.n_outputs ||
                !read_values(&b, input)) {
                fprintf(stderr,
                        "bench-onnxruntime: wants LIBRARY MODEL..., --shape and --outputs, and an --input with as many floats\n");
                return 2;
        }
        open_library(&b, argv[optind++]);
        while (optind < argc)
                open_session(&b, argv[optind++]);
        measure(&b, seconds, &samples);
        print_figures(&b, &samples);
        sl_latencies_deinit(&samples);
        free(b.values);
        free(b.mean);
        return 0;
}
