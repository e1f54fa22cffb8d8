/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The experiments of NetFuse, section 5, on cores instead of a GPU: copies of one network with weights and heads of their own,
 * computed one after the other (sequential), by a process each (concurrent), by some processes of several each (hybrid), and as one
 * merged plan (fused), or several where a plan has no ports for all.
 *
 *     bench-netfuse [OPTIONS] MODEL.onnx|mlp:64,128,10|conv:CHANNELS,SIDE        --help lists them
 *
 * Prints one JSON object for each number of lanes. Whatever computes is a process of its own, so that memory can be told: its
 * proportional share of what it maps, the weights among it, read once its runs are over. Processes run as often as --seconds asks
 * for without waiting for each other; the time is that of one run of every copy, the median of the turns. All are where this
 * process is: `taskset -c 0` for one core. What would take longer than --longest or more than --bytes of memory is not tried, and
 * says so. With --copies what would have more of the weights a second time than that share stays apart.
 *
 * Sources: Jeong, Kim, Yu, Lee, Chun, Accelerating Multi-Model Inference by Merging DNNs of Different Weights, 2020, section 5.
 */
#include "backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/processor.h"
#include "copies.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"
#include "merge/merge.h"
#include "node_alone.h"
#include "option_table.h"
#include "pass.h"
#include "plan.h"
#include "share.h"
#include "ways.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS_MAX 16
#define TURNS_MAX   25

struct options {
        const char *model, *backend;
        uint32_t lanes[NUMBERS_MAX], batches[NUMBERS_MAX], n_lanes, n_batches, turns;
        double seconds, longest;
        uint64_t bytes_max;
        double copies; /* share of the weights that the merged plan may have in other forms; negative: whatever it takes */
        bool neighbours, hybrid, own_head;
};

/* What the process that compiles says to this one: memory of both. */
struct made {
        double load_seconds, single_seconds, merge_seconds, laying_seconds, merged_seconds, off_by;
        uint64_t single_bytes, merged_bytes, member_bytes;
        uint32_t n_common, n_merged, block_lanes;
        char cause[SL_ERROR_TEXT_BYTES]; /* why nothing is merged; "" */
};

struct bench {
        struct options options;
        struct ways_plans plans; /* empty until they are made */
        struct made *made;
};

/* ---- plans, in a process that ends ---- */

static int memory_file(void)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);

        if (fd < 0)
                copies_die("memory file", strerror(errno));
        return fd;
}

static int compile(const struct bench *b, const struct sl_graph *graph, bool single, int fd, struct sl_error *error)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered = NULL;
        struct sl_graph *copy = NULL;
        int r;

        sl_lower_options_init(&options);
        if (sl_lower_options_parse(&options, b->options.backend, error) < 0)
                copies_die("--backend", error->text);
        options.batch_max = b->options.batches[b->options.n_batches - 1];
        options.laned = single;
        if (sl_graph_copy(graph, &copy) < 0)
                copies_die("memory", "none left");
        r = sl_lower_finish(copy, &options, error);
        if (r == 0)
                r = sl_lowered_new_in(copy, &options, NULL, fd, &lowered, error);
        if (r == 0)
                r = sl_lowered_write(lowered, fd, error);
        sl_lowered_free(lowered);
        sl_graph_free(copy);
        return r;
}

static bool is_empty(int fd)
{
        struct stat status;

        return fstat(fd, &status) == 0 && status.st_size == 0;
}

static void copy_file(int from, int to)
{
        struct stat status;
        off_t at = 0;

        if (fstat(from, &status) < 0 || ftruncate(to, status.st_size) < 0 || lseek(to, 0, SEEK_SET) < 0)
                copies_die("plan", strerror(errno));
        while (at < status.st_size)
                if (sendfile(to, from, &at, (size_t)(status.st_size - at)) <= 0)
                        copies_die("plan", strerror(errno));
}

/* The largest difference between what the merged plan gives and what the single ones do, in parts of the largest value. */
static double difference(const float *got, const float *wanted, uint64_t n)
{
        double off = 0, largest = 1e-30;

        for (uint64_t i = 0; i < n; i++) {
                off = fmax(off, isnan(got[i]) ? INFINITY : fabs((double)got[i] - wanted[i]));
                largest = fmax(largest, fabs((double)wanted[i]));
        }
        return off / largest;
}

static double check(struct sl_plan *const *members, uint32_t lanes, struct sl_plan *merged)
{
        struct loaded all = {.plan = merged}, one;
        uint32_t in = 0, out = 0;
        double off = 0;

        ways_load(&all, 1, 1);
        for (uint32_t l = 0; l < lanes; l++) {
                one = (struct loaded){.plan = members[l]};
                ways_load(&one, 1, l + 1);
                for (uint32_t i = 0; i < sl_plan_info(one.plan)->n_inputs; i++)
                        all.inputs[in++] = one.inputs[i];
        }
        ways_run(&all, 1);
        for (uint32_t l = 0; l < lanes; l++) {
                one = (struct loaded){.plan = members[l]};
                ways_load(&one, 1, l + 1);
                ways_run(&one, 1);
                for (uint32_t i = 0; i < sl_plan_info(one.plan)->n_outputs; i++, out++)
                        off = fmax(off, difference(all.outputs[out], one.outputs[i],
                                                copies_port_bytes(&sl_plan_info(one.plan)->outputs[i], 1) / sizeof(float)));
        }
        return off;
}

/* What the singles have is theirs. */
static void share(struct bench *b, uint32_t first, uint32_t lanes, int whole)
{
        struct sl_plan *members[COPIES_MAX], *merged = ways_open(whole);
        int to = b->plans.merged[first / b->made->block_lanes], fd = whole;
        struct sl_error error = {""};

        for (uint32_t l = 0; l < lanes; l++)
                members[l] = ways_open(b->plans.singles[first + l]);
        if (sl_plan_share(merged, members, lanes, &fd, &error) < 0)
                fd = whole;
        sl_plan_free(merged);
        copy_file(fd, to);
        if (sl_plan_open_merged(to, members, lanes, true, &merged, &error) < 0)
                copies_die("merged plan", error.text);
        b->made->merged_bytes += sl_plan_info(merged)->weights_bytes;
        b->made->member_bytes += sl_plan_info(merged)->member_bytes;
        for (uint32_t l = 0; l < lanes; l++)
                b->made->single_bytes += sl_plan_info(members[l])->weights_bytes;
        b->made->off_by = fmax(b->made->off_by, check(members, lanes, merged));
}

/* As many lanes in each as a plan has ports for, or nearly. */
static uint32_t lanes_of_block(const struct sl_graph *graph, uint32_t lanes)
{
        uint32_t ports = graph->n_inputs > graph->n_outputs ? graph->n_inputs : graph->n_outputs, most = SL_PLAN_PORTS_MAX / ports;
        uint32_t blocks = most ? (lanes + most - 1) / most : lanes;

        return (lanes + blocks - 1) / blocks;
}

static void merge(struct bench *b, const struct sl_graph *const *graphs, uint32_t first, uint32_t lanes)
{
        struct sl_node_host host = {sl_backend_find(strchr(b->options.backend, '=') + 1), sl_target_typical,
                b->options.batches[b->options.n_batches - 1]};
        const struct sl_merge_copies copies = {.bytes = sl_node_alone_copies, .context = &host, .share_max = b->options.copies};
        const struct sl_merge_options asked = {
                .neighbours = b->options.neighbours, .copies = b->options.copies < 0 ? NULL : &copies};
        struct sl_merge_report report = {0};
        struct sl_graph *merged = NULL;
        struct sl_error error = {""};
        uint64_t from = sl_clock_ns();
        int whole = memory_file(), r;

        if (sl_graph_new(&merged) < 0)
                copies_die("memory", "none left");
        r = sl_merge(graphs + first, lanes, &asked, merged, &report, &error);
        b->made->merge_seconds += (double)(sl_clock_ns() - from) / SL_NS_PER_SECOND;
        b->made->laying_seconds += report.laying_seconds;
        b->made->n_common = report.n_common;
        b->made->n_merged = report.n_merged;
        if (r <= 0) {
                snprintf(b->made->cause, sizeof(b->made->cause), "%s", r < 0 ? error.text : "no node of theirs merges");
                return;
        }
        from = sl_clock_ns();
        r = compile(b, merged, false, whole, &error);
        b->made->merged_seconds += (double)(sl_clock_ns() - from) / SL_NS_PER_SECOND;
        sl_graph_free(merged);
        if (r < 0)
                snprintf(b->made->cause, sizeof(b->made->cause), "%s", error.text);
        else
                share(b, first, lanes, whole);
}

/* Widths of heads as tasks have them: no two alike. */
static int64_t head_of(const struct options *options, uint32_t lane)
{
        return options->own_head ? 2 + 3 * (int64_t)lane : 0;
}

static void make_plans(struct bench *b, uint32_t lanes)
{
        const struct sl_graph *graphs[COPIES_MAX];
        struct sl_error error = {""};

        for (uint32_t l = 0; l < lanes; l++) {
                uint64_t from = sl_clock_ns();

                graphs[l] = copies_load(b->options.model, l, head_of(&b->options, l));
                b->made->load_seconds += (double)(sl_clock_ns() - from) / SL_NS_PER_SECOND;
                if (!is_empty(b->plans.singles[l]))
                        continue;
                from = sl_clock_ns();
                if (compile(b, graphs[l], true, b->plans.singles[l], &error) < 0)
                        copies_die(b->options.model, error.text);
                b->made->single_seconds += (double)(sl_clock_ns() - from) / SL_NS_PER_SECOND;
        }
        b->made->block_lanes = lanes_of_block(graphs[0], lanes);
        for (uint32_t first = 0; first + 1 < lanes && !b->made->cause[0]; first += b->made->block_lanes)
                merge(b, graphs, first, lanes - first < b->made->block_lanes ? lanes - first : b->made->block_lanes);
}

/* Return: whether the process that makes them has ended well. */
static bool make_apart(struct bench *b, uint32_t lanes)
{
        int status = 0;
        pid_t child;

        memset(b->made, 0, sizeof(*b->made));
        for (uint32_t i = 0; i < COPIES_MAX; i++)
                if (ftruncate(b->plans.merged[i], 0) < 0)
                        copies_die("merged plan", strerror(errno));
        fflush(stdout);
        child = fork();
        if (child == 0) {
                make_plans(b, lanes);
                fflush(stdout);
                _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0)
                copies_die("process", strerror(errno));
        b->plans.block_lanes = b->made->block_lanes;
        if (status && !b->made->cause[0])
                snprintf(b->made->cause, sizeof(b->made->cause), "its compiler ended with status %d", status);
        return status == 0;
}

/* ---- the table ---- */

static int compare_seconds(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

struct row {
        struct way way;
        const char *name;
        uint64_t bytes;
        double seconds[TURNS_MAX];
};

/* Sequential first; the others beside it. Return: rows. */
static uint32_t list_ways(const struct bench *b, uint32_t lanes, uint32_t batch, struct row *rows)
{
        uint32_t n = 0;

        rows[n++] = (struct row){.way = {1, lanes, batch, false}, .name = "sequential"};
        if (lanes > 1)
                rows[n++] = (struct row){.way = {lanes, lanes, batch, false}, .name = "concurrent"};
        for (uint32_t a = 2; b->options.hybrid && a < lanes && n + 1 < NUMBERS_MAX; a *= 2)
                if (lanes % a == 0)
                        rows[n++] = (struct row){.way = {a, lanes, batch, false}, .name = "hybrid"};
        if (lanes > 1 && !b->made->cause[0])
                rows[n++] = (struct row){.way = {1, lanes, batch, true}, .name = "fused"};
        return n;
}

static void print_ways(struct row *rows, uint32_t n, uint32_t turns, uint32_t batch)
{
        printf("{\"batch\": %u, \"ways\": [", batch);
        for (uint32_t i = 0; i < n; i++) {
                qsort(rows[i].seconds, turns, sizeof(double), compare_seconds);
                printf("%s{\"way\": \"%s\", \"processes\": %u, \"seconds\": %.9f, \"least_seconds\": %.9f, \"bytes\": %llu}",
                        i ? ", " : "", rows[i].name, rows[i].way.processes, rows[i].seconds[turns / 2], rows[i].seconds[0],
                        (unsigned long long)rows[i].bytes);
        }
        printf("]}");
}

static void print_cell(const struct bench *b, uint32_t lanes, uint32_t batch, double one_seconds)
{
        struct row rows[NUMBERS_MAX];
        uint32_t n = list_ways(b, lanes, batch, rows), turns = b->options.turns;

        if (one_seconds * lanes * batch > b->options.longest) {
                printf("{\"batch\": %u, \"cause\": \"a round takes about %.1f s, above the bound of %.1f\"}", batch,
                        one_seconds * lanes * batch, b->options.longest);
                return;
        }
        for (uint32_t t = 0; t < turns; t++)
                for (uint32_t i = 0; i < n; i++)
                        rows[i].seconds[t] = ways_measure(&b->plans, &rows[i].way, b->options.seconds, &rows[i].bytes);
        print_ways(rows, n, turns, batch);
}

static uint64_t memory_available(void)
{
        char line[256];
        unsigned long long kib = 0;
        FILE *file = fopen("/proc/meminfo", "r");

        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
                        break;
        if (file)
                fclose(file);
        return kib << 10;
}

/* Weights of all copies at most so often at once: the graphs', the single plans', those laid together, and the merged plan's. */
#define TIMES_WEIGHTS 4

/* Return: whether there is memory for so many. */
static bool fits(const struct bench *b, uint32_t lanes)
{
        struct stat status;
        uint64_t bytes = stat(b->options.model, &status) < 0 ? 0 : TIMES_WEIGHTS * lanes * (uint64_t)status.st_size;
        uint64_t most = memory_available();

        most = b->options.bytes_max && b->options.bytes_max < most ? b->options.bytes_max : most;
        if (bytes > most)
                snprintf(b->made->cause, sizeof(b->made->cause), "%u copies take about %.1f GB to make, of %.1f that there are",
                        lanes, (double)bytes * 1e-9, (double)most * 1e-9);
        return bytes <= most;
}

static double time_one(const struct bench *b)
{
        uint64_t bytes;

        return ways_measure(&b->plans, &(struct way){.processes = 1, .lanes = 1, .batch = 1}, b->options.seconds, &bytes);
}

static void print_lanes(struct bench *b, uint32_t lanes)
{
        const struct made *made = b->made;
        double one;

        memset(b->made, 0, sizeof(*b->made));
        if (!fits(b, lanes) || !make_apart(b, lanes)) {
                printf("{\"model\": \"%s\", \"lanes\": %u, \"cause\": \"%s\"}\n", b->options.model, lanes, made->cause);
                return;
        }
        one = time_one(b);
        printf("{\"model\": \"%s\", \"lanes\": %u, \"cause\": \"%s\", \"common\": %u, \"merged\": %u, \"load_seconds\": %.3f, "
               "\"single_seconds\": %.3f, \"merge_seconds\": %.6f, \"laying_seconds\": %.6f, \"merged_seconds\": %.3f, "
               "\"single_bytes\": %llu, \"merged_bytes\": %llu, \"member_bytes\": %llu, \"off_by\": %.1e, \"cells\": [",
                b->options.model, lanes, made->cause, made->n_common, made->n_merged, made->load_seconds, made->single_seconds,
                made->merge_seconds, made->laying_seconds, made->merged_seconds, (unsigned long long)made->single_bytes,
                (unsigned long long)made->merged_bytes, (unsigned long long)made->member_bytes, made->off_by);
        for (uint32_t i = 0; i < b->options.n_batches; i++) {
                printf("%s", i ? ", " : "");
                print_cell(b, lanes, b->options.batches[i], one);
        }
        printf("]}\n");
        fflush(stdout);
}

static uint32_t read_list(const char *text, uint32_t most, uint32_t *ret_numbers)
{
        uint32_t n = 0;

        for (char *end; *text; text = *end ? end + 1 : end) {
                unsigned long number = strtoul(text, &end, 10);

                if (end == text || number < 1 || number > most || n == NUMBERS_MAX || (n && number <= ret_numbers[n - 1]))
                        copies_die(text, "ascending numbers are wanted, up to 64 lanes and a batch of 1024");
                ret_numbers[n++] = (uint32_t)number;
        }
        return n;
}

#define OPTIONS(X)                                                                                                                 \
        X('l', "lanes", "N,...", "merge N copies, ascending, up to 64 (default: 1)")                                               \
        X('b', "batches", "N,...", "run batches of N samples, ascending, up to 1024 (default: 1)")                                 \
        X('t', "turns", "N", "take medians of N turns, up to 25 (default: 3)")                                                     \
        X('s', "seconds", "SECONDS", "run each process for SECONDS seconds in a turn (default: 0.2)")                              \
        X('L', "longest", "SECONDS", "leave out what should take longer than SECONDS seconds (default: 4)")                        \
        X('m', "bytes", "BYTES", "leave out what takes more than BYTES bytes of memory (default: 0, what the host has)")           \
        X('w', "way", "paper|neighbours", "merge by Algorithm 1, or with lanes as neighbours (default: paper)")                    \
        X('c', "copies", "X", "keep apart what has more than the share X of the weights a second time (default: no bound)")        \
        X('B', "backend", "cpu|cuda", "compile for this backend (default: cpu)")                                                   \
        X('h', "hybrid", NULL, "measure some processes of several copies each as well")                                            \
        X('o', "own-head", NULL, "give each copy a head of its own")                                                               \
        X('H', "help", NULL, "print this")

static void print_help(void)
{
        puts("usage: bench-netfuse [OPTIONS] MODEL.onnx|mlp:64,128,10|conv:CHANNELS,SIDE\n");
        OPTIONS(SL_OPTION_PRINT)
        exit(0);
}

static void read_options(int argc, char **argv, struct options *o)
{
        static const struct option known[] = {OPTIONS(SL_OPTION_GETOPT){0}};
        int which;

        *o = (struct options){.backend = "backend=cpu",
                .copies = -1,
                .turns = 3,
                .seconds = 0.2,
                .longest = 4,
                .lanes = {1},
                .n_lanes = 1,
                .batches = {1},
                .n_batches = 1};
        while ((which = getopt_long(argc, argv, "", known, NULL)) != -1) {
                if (which == 'l')
                        o->n_lanes = read_list(optarg, COPIES_MAX, o->lanes);
                else if (which == 'b')
                        o->n_batches = read_list(optarg, 1024, o->batches);
                else if (which == 't')
                        o->turns = (uint32_t)strtoul(optarg, NULL, 10);
                else if (which == 's')
                        o->seconds = strtod(optarg, NULL);
                else if (which == 'L')
                        o->longest = strtod(optarg, NULL);
                else if (which == 'm')
                        o->bytes_max = strtoull(optarg, NULL, 10);
                else if (which == 'w')
                        o->neighbours = !strcmp(optarg, "neighbours");
                else if (which == 'c')
                        o->copies = strtod(optarg, NULL);
                else if (which == 'B')
                        o->backend = strcmp(optarg, "cuda") ? "backend=cpu" : "backend=cuda";
                else if (which == 'h')
                        o->hybrid = true;
                else if (which == 'o')
                        o->own_head = true;
                else if (which == 'H')
                        print_help();
                else
                        exit(2);
        }
        if (optind + 1 != argc || o->turns < 1 || o->turns > TURNS_MAX)
                copies_die("usage", "bench-netfuse [OPTIONS] MODEL, with 1 to 25 turns; see --help");
        o->model = argv[optind];
}

int main(int argc, char **argv)
{
        struct bench b = {0};

        read_options(argc, argv, &b.options);
        b.made = mmap(NULL, sizeof(*b.made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (b.made == MAP_FAILED)
                copies_die("memory", strerror(errno));
        for (uint32_t i = 0; i < COPIES_MAX; i++) {
                b.plans.singles[i] = memory_file();
                b.plans.merged[i] = memory_file();
        }
        for (uint32_t i = 0; i < b.options.n_lanes; i++)
                print_lanes(&b, b.options.lanes[i]);
        return 0;
}
