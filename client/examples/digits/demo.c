/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * digits-demo: sends real images to an ensemble through shared memory and checks every answer.
 *
 *     starling serve client/examples/digits/models &
 *     digits-demo client/examples/digits
 *
 * All images lie in the arena once. A request is a piece of them, [first, first + samples): nothing is copied on the way to the
 * networks. Several requests are in flight, each with an output of its own. One thread.
 *
 * Exit status: 0; 1 a prediction is wrong, the ensemble is worse than its best member, or the runtime failed; 2 wrong usage.
 */
#include <starling.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS      64
#define CLASSES     10
#define SAMPLES_MAX 300 /* of one request */
#define IN_FLIGHT   8
#define PASSES      8 /* over the test split, for each model */
#define TOLERANCE   1e-5
#define NS          1000000000.0

static const char *const names[] = {"lenet", "resnet", "densenet", "mobilenet", "mlp", "digits"};
enum { MODELS = sizeof(names) / sizeof(names[0]), ENSEMBLE = MODELS - 1 };

struct arguments {
        const char *runtime, *folder;
        double seconds;
};

/* One request in flight. */
struct slot {
        struct starling_tensor output; /* SAMPLES_MAX x CLASSES */
        uint32_t first, samples;
        uint64_t sent_ns;
        int busy;
};

struct result {
        double difference; /* to the expected predictions, the largest */
        uint32_t right;    /* of the images, in the last pass */
};

struct latencies {
        uint64_t *ns;
        size_t n, room;
};

struct demo {
        struct arguments arguments;
        uint32_t images;
        unsigned char *labels;
        float *expected[MODELS];
        float *pixels; /* in the arena: images x PIXELS */
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *models[MODELS];
        struct slot slots[IN_FLIGHT];
        uint32_t pattern; /* state of the mix of sizes */
        struct result results[MODELS];
};

static int complain(const char *what, const char *why)
{
        fprintf(stderr, "digits-demo: %s: %s\n", what, why);
        return -1;
}

/* ---- the files ---------------------------------------------------------------------------------------------------------- */

/* A whole file of @bytes, or of any size when that is 0. */
static void *read_file(const char *folder, const char *name, size_t bytes, size_t *ret_bytes)
{
        char path[1024], *data = NULL;
        long size = -1;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "rb");
        if (file && fseek(file, 0, SEEK_END) == 0)
                size = ftell(file);
        if (size > 0 && (bytes == 0 || (size_t)size == bytes)) {
                rewind(file);
                data = malloc((size_t)size);
                if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
                        free(data);
                        data = NULL;
                }
        }
        if (!data)
                complain(path, file ? "not a file of the expected size" : strerror(errno));
        else if (ret_bytes)
                *ret_bytes = (size_t)size;
        if (file)
                fclose(file);
        return data;
}

static int read_expected(struct demo *demo)
{
        char name[64];

        for (int m = 0; m < MODELS; m++) {
                snprintf(name, sizeof(name), "expected/%s.f32", names[m]);
                demo->expected[m] = read_file(demo->arguments.folder, name, (size_t)demo->images * CLASSES * sizeof(float), NULL);
                if (!demo->expected[m])
                        return -1;
        }
        return 0;
}

/* The images go straight into the arena. */
static int read_images(struct demo *demo)
{
        size_t bytes;
        float *pixels = read_file(demo->arguments.folder, "test-images.f32", 0, &bytes);

        if (!pixels)
                return -1;
        demo->images = (uint32_t)(bytes / sizeof(float) / PIXELS);
        demo->pixels = starling_alloc(demo->client, bytes);
        if (demo->pixels)
                memcpy(demo->pixels, pixels, bytes);
        free(pixels);
        if (!demo->pixels)
                return complain("memory for the images", strerror(errno));
        demo->labels = read_file(demo->arguments.folder, "test-labels.u8", demo->images, NULL);
        return demo->labels ? read_expected(demo) : -1;
}

/* ---- the connection ----------------------------------------------------------------------------------------------------- */

static int open_models(struct demo *demo)
{
        struct starling_error error = {""};

        for (int m = 0; m < MODELS; m++)
                if (starling_model_open(demo->client, names[m], &demo->models[m], &error) < 0)
                        return complain(names[m], error.text);
        return 0;
}

static int open_slots(struct demo *demo)
{
        for (int i = 0; i < IN_FLIGHT; i++) {
                int r = starling_tensor_alloc(
                        demo->client, STARLING_F32, 2, (uint32_t[]){SAMPLES_MAX, CLASSES}, &demo->slots[i].output);

                if (r < 0)
                        return complain("memory for predictions", starling_strerror(r));
        }
        return 0;
}

static int attach(struct demo *demo)
{
        const struct starling_options options = {
                .runtime = demo->arguments.runtime, .label = "digits-demo", .timeout_ns = (uint64_t)(10 * NS)};
        struct starling_error error = {""};

        if (starling_connect(&options, &demo->client, &error) < 0)
                return complain("cannot connect", error.text);
        if (starling_queue_open(demo->client, &demo->queue, &error) < 0)
                return complain("no queue pair", error.text);
        return open_models(demo) < 0 ? -1 : open_slots(demo);
}

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

/* 1 to SAMPLES_MAX, in an order that looks mixed and is the same every time. */
static uint32_t next_size(struct demo *demo)
{
        demo->pattern = demo->pattern * 1103515245u + 12345u;
        return 1 + (demo->pattern >> 16) % SAMPLES_MAX;
}

static int submit(struct demo *demo, int model, uint32_t index, uint32_t first, uint32_t samples)
{
        struct slot *slot = &demo->slots[index];
        const struct starling_tensor input = {
                .data = demo->pixels + (size_t)first * PIXELS,
                .bytes = (uint64_t)samples * PIXELS * sizeof(float),
                .dtype = STARLING_F32,
                .rank = 4,
                .dims = {samples, 1, 8, 8},
        };
        const struct starling_request request = {
                .model = demo->models[model],
                .inputs = &input,
                .n_inputs = 1,
                .outputs = &slot->output,
                .n_outputs = 1,
                .user_data = index,
        };

        slot->first = first;
        slot->samples = samples;
        slot->sent_ns = starling_clock_ns();
        if (starling_submit(demo->queue, &request, NULL) < 0)
                return complain(names[model], starling_queue_error(demo->queue));
        slot->busy = 1;
        return 0;
}

/* Waits for one request. Return: its slot, which is free again; -1. */
static int await_one(struct demo *demo, struct starling_completion *ret_completion)
{
        int r = starling_wait(demo->queue, ret_completion, 1, (uint64_t)(30 * NS));

        if (r == 1 && ret_completion->status == 0) {
                demo->slots[ret_completion->user_data].busy = 0;
                return (int)ret_completion->user_data;
        }
        return complain("a request", starling_strerror(r == 1 ? ret_completion->status : r));
}

static int free_slot(const struct demo *demo)
{
        for (int i = 0; i < IN_FLIGHT; i++)
                if (!demo->slots[i].busy)
                        return i;
        return -1;
}

/* ---- are the answers right? --------------------------------------------------------------------------------------------- */

static uint32_t argmax(const float *probabilities)
{
        uint32_t best = 0;

        for (uint32_t c = 1; c < CLASSES; c++)
                if (probabilities[c] > probabilities[best])
                        best = c;
        return best;
}

static void check(struct demo *demo, int model, const struct slot *slot, int last_pass)
{
        const float *got = slot->output.data, *expected = demo->expected[model] + (size_t)slot->first * CLASSES;
        struct result *result = &demo->results[model];

        for (uint32_t i = 0; i < slot->samples * CLASSES; i++) {
                double difference = (double)got[i] - (double)expected[i];

                /* Written so that a NaN counts as the largest difference of all. */
                if (!(difference <= result->difference && -difference <= result->difference))
                        result->difference = difference < 0 ? -difference : difference == difference ? difference : 1e30;
        }
        for (uint32_t i = 0; last_pass && i < slot->samples; i++)
                result->right += argmax(got + (size_t)i * CLASSES) == demo->labels[slot->first + i];
}

/* Once over all images, in pieces of mixed size, several at a time. */
static int send_all(struct demo *demo, int model, int last_pass)
{
        struct starling_completion completion;
        uint32_t first = 0;

        while (first < demo->images || starling_queue_in_flight(demo->queue)) {
                int index = first < demo->images ? free_slot(demo) : -1;

                if (index < 0) {
                        index = await_one(demo, &completion);
                        if (index < 0)
                                return -1;
                        check(demo, model, &demo->slots[index], last_pass);
                        continue;
                }
                uint32_t samples = next_size(demo);

                if (samples > demo->images - first)
                        samples = demo->images - first;
                if (submit(demo, model, (uint32_t)index, first, samples) < 0)
                        return -1;
                first += samples;
        }
        return 0;
}

static int verify(struct demo *demo)
{
        int best = 0, wrong = 0;

        printf("%-12s %10s %10s   %s\n", "model", "right", "accuracy", "largest difference to the expected predictions");
        for (int m = 0; m < MODELS; m++) {
                for (int pass = 0; pass < PASSES; pass++)
                        if (send_all(demo, m, pass == PASSES - 1) < 0)
                                return -1;
                const struct result *result = &demo->results[m];

                wrong |= result->difference > TOLERANCE;
                if (m != ENSEMBLE && result->right > demo->results[best].right)
                        best = m;
                printf("%-12s %5u/%4u %9.2f %%   %.1e%s\n", names[m], result->right, demo->images,
                        100.0 * result->right / demo->images, result->difference,
                        result->difference > TOLERANCE ? "  WRONG: at most 1e-5 is allowed" : "");
        }
        if (demo->results[ENSEMBLE].right < demo->results[best].right)
                return complain(names[ENSEMBLE], "the ensemble is less accurate than its best member");
        printf("The ensemble is at least as accurate as its best member, %s.\n", names[best]);
        return wrong ? complain("predictions", "they differ from the expected ones by more than 1e-5") : 0;
}

/* ---- how fast? ---------------------------------------------------------------------------------------------------------- */

static int note_latency(struct latencies *latencies, uint64_t ns)
{
        if (latencies->n == latencies->room) {
                size_t room = latencies->room ? 2 * latencies->room : 1 << 16;
                uint64_t *larger = realloc(latencies->ns, room * sizeof(*larger));

                if (!larger)
                        return complain("memory for latencies", strerror(ENOMEM));
                latencies->ns = larger;
                latencies->room = room;
        }
        latencies->ns[latencies->n++] = ns;
        return 0;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static double percentile_ms(const struct latencies *latencies, double share)
{
        size_t index = (size_t)(share * (double)latencies->n);

        return latencies->n ? (double)latencies->ns[index < latencies->n ? index : latencies->n - 1] / 1e6 : 0;
}

/* Mixed sizes from anywhere in the images, always IN_FLIGHT of them. */
static int load(struct demo *demo, struct latencies *latencies, uint64_t *ret_samples, double *ret_seconds)
{
        uint64_t start_ns = starling_clock_ns(), until_ns = start_ns + (uint64_t)(demo->arguments.seconds * NS), done = 0;
        struct starling_completion completion;

        for (;;) {
                int index = starling_clock_ns() < until_ns ? free_slot(demo) : -1;

                if (index >= 0) {
                        uint32_t samples = next_size(demo);

                        if (submit(demo, ENSEMBLE, (uint32_t)index, next_size(demo) % (demo->images - samples + 1), samples) < 0)
                                return -1;
                        continue;
                }
                if (starling_queue_in_flight(demo->queue) == 0)
                        break;
                index = await_one(demo, &completion);
                if (index < 0 || note_latency(latencies, starling_clock_ns() - demo->slots[index].sent_ns) < 0)
                        return -1;
                done += demo->slots[index].samples;
        }
        *ret_samples = done;
        *ret_seconds = (double)(starling_clock_ns() - start_ns) / NS;
        return 0;
}

static int measure_load(struct demo *demo)
{
        struct latencies latencies = {0};
        uint64_t samples;
        double seconds;
        int r = load(demo, &latencies, &samples, &seconds);

        if (r == 0) {
                qsort(latencies.ns, latencies.n, sizeof(*latencies.ns), compare);
                printf("\nLoad on %s: requests of 1 to %d samples, %d in flight, %.1f s\n", names[ENSEMBLE], SAMPLES_MAX, IN_FLIGHT,
                        seconds);
                printf("  %.0f samples/s, %.0f requests/s (each sample through %d networks)\n", (double)samples / seconds,
                        (double)latencies.n / seconds, ENSEMBLE);
                printf("  latency p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms\n", percentile_ms(&latencies, 0.5),
                        percentile_ms(&latencies, 0.99), percentile_ms(&latencies, 0.999));
        }
        free(latencies.ns);
        return r;
}

/* ---- what did the runtime itself take? ---------------------------------------------------------------------------------- */

/* Means over requests of one segment, in microseconds. */
struct times {
        double each; /* from one completion to the next */
        double computing, combining;
};

static uint32_t segment(const struct demo *demo)
{
        uint32_t samples = starling_model_describe(demo->models[ENSEMBLE])->segment_samples;

        samples = samples < SAMPLES_MAX ? samples : SAMPLES_MAX;
        return samples < demo->images ? samples : demo->images;
}

/* @in_flight requests at any time; the first ones are not counted. */
static int run_segments(struct demo *demo, int model, uint32_t in_flight, double seconds, struct times *ret_times)
{
        uint64_t start_ns = 0, now_ns, until_ns = starling_clock_ns() + (uint64_t)(seconds * NS);
        struct starling_completion completion;
        double computing_ns = 0, combining_ns = 0, n = 0;
        int index = 0;

        for (uint32_t i = 0; i < in_flight; i++)
                if (submit(demo, model, i, 0, segment(demo)) < 0)
                        return -1;
        for (uint32_t i = 0;; i++) {
                index = await_one(demo, &completion);
                now_ns = starling_clock_ns();
                if (index < 0)
                        return -1;
                if (i == 2 * in_flight)
                        start_ns = now_ns;
                if (i > 2 * in_flight) {
                        computing_ns += (double)completion.computing_ns;
                        combining_ns += (double)completion.combining_ns;
                        n++;
                }
                if (n > 10 && now_ns > until_ns)
                        break;
                if (submit(demo, model, (uint32_t)index, 0, segment(demo)) < 0)
                        return -1;
        }
        while (starling_queue_in_flight(demo->queue))
                if (await_one(demo, &completion) < 0)
                        return -1;
        *ret_times = (struct times){(double)(now_ns - start_ns) / n / 1e3, computing_ns / n / 1e3, combining_ns / n / 1e3};
        return 0;
}

static void print_own_time(uint32_t samples, const struct times *busy, const struct times *alone, const struct times *ensemble)
{
        double own = busy->each - busy->computing + ensemble->combining;

        printf("\nThe runtime's own time beside the networks' compute, requests of %u samples, sums over the %d networks\n",
                samples, ENSEMBLE);
        printf("  two in flight, so that the worker never waits for the client: %.1f us a request, %.1f us of it in the network\n",
                busy->each, busy->computing);
        printf("  own time: %.1f us with %.1f us for combining = %.2f %% of the compute (the ensemble paper: at most 2 %%)\n", own,
                ensemble->combining, 100 * own / busy->computing);
        printf("  a lone request, with all wake-ups: %.1f us, %.1f us of it in the network; the ensemble as one: %.1f us\n",
                alone->each, alone->computing, ensemble->each);
}

/*
 * Own time is what the runtime adds to the time that the networks need: each network is asked by itself, so that no other
 * competes with it for a core, by requests of one segment, so that its compute has no gaps; two are in flight. Then the time from
 * one completion to the next is the network's compute and what the runtime does before the next compute can begin: delivering,
 * harvesting, scheduling, gathering. The ensemble's combining is added.
 */
static int measure_own_time(struct demo *demo)
{
        double seconds = demo->arguments.seconds / 2 / MODELS;
        struct times busy = {0}, alone = {0}, times;

        for (int m = 0; m < ENSEMBLE; m++) {
                if (run_segments(demo, m, 2, seconds, &times) < 0)
                        return -1;
                busy.each += times.each;
                busy.computing += times.computing;
                if (run_segments(demo, m, 1, seconds, &times) < 0)
                        return -1;
                alone.each += times.each;
                alone.computing += times.computing;
        }
        if (run_segments(demo, ENSEMBLE, 1, seconds, &times) < 0)
                return -1;
        print_own_time(segment(demo), &busy, &alone, &times);
        return 0;
}

/* ---- main --------------------------------------------------------------------------------------------------------------- */

static int usage(void)
{
        fprintf(stderr, "usage: digits-demo [--name NAME | --socket PATH] [--seconds SECONDS] FOLDER\n\n"
                        "  FOLDER             read test-images.f32, test-labels.u8 and expected/*.f32 from FOLDER\n"
                        "  --name NAME        ask the runtime NAME (default: starling)\n"
                        "  --socket PATH      ask the runtime at the socket PATH (default: of --name, below $STARLING_SOCKET_DIR,\n"
                        "                     $XDG_RUNTIME_DIR/starling or /run/starling)\n"
                        "  --seconds SECONDS  put load on it for SECONDS seconds (default: 4)\n");
        return 2;
}

static int parse(int argc, char **argv, struct arguments *ret_arguments)
{
        static const struct option options[] = {{"name", required_argument, NULL, 'n'}, {"socket", required_argument, NULL, 'p'},
                {"seconds", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
        struct arguments arguments = {.seconds = 4};
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 's')
                        arguments.seconds = strtod(optarg, NULL);
                else if (option == 'n' || option == 'p')
                        arguments.runtime = optarg;
                else
                        return -1;
        }
        if (optind + 1 != argc || !(arguments.seconds > 0 && arguments.seconds <= 3600))
                return -1;
        arguments.folder = argv[optind];
        *ret_arguments = arguments;
        return 0;
}

int main(int argc, char **argv)
{
        struct demo demo = {.pattern = 1};
        int failed;

        if (parse(argc, argv, &demo.arguments) < 0)
                return usage();
        failed = attach(&demo) < 0 || read_images(&demo) < 0 || verify(&demo) < 0 || measure_load(&demo) < 0 ||
                 measure_own_time(&demo) < 0;
        starling_close(demo.client);
        free(demo.labels);
        for (int m = 0; m < MODELS; m++)
                free(demo.expected[m]);
        return failed;
}
