/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"

#include "bench.h"
#include "command.h"
#include "command_options.h"

#include <string.h>

#define ROW(id, name, letter, argument, text) {name, letter, argument, text},
#define OPTIONS(command, rows)                                                                                                     \
        static const struct command_option command_##command##_options[] = {                                                       \
                rows(ROW){NULL, 0, NULL, NULL},                                                                                    \
        };

OPTIONS(serve, SERVE_OPTIONS)
OPTIONS(models, MODELS_OPTIONS)
OPTIONS(tasks, TASKS_OPTIONS)
OPTIONS(load, ADMINISTER_OPTIONS)
OPTIONS(unload, ADMINISTER_OPTIONS)
OPTIONS(reload, ADMINISTER_OPTIONS)
OPTIONS(apply, APPLY_OPTIONS)
OPTIONS(stats, STATS_OPTIONS)
OPTIONS(trace, TRACE_OPTIONS)
OPTIONS(exporter, EXPORTER_OPTIONS)
OPTIONS(top, TOP_OPTIONS)
OPTIONS(postmortem, POSTMORTEM_OPTIONS)
OPTIONS(cache, CACHE_OPTIONS)
OPTIONS(allocation, ALLOCATION_OPTIONS)
OPTIONS(lets, LETS_OPTIONS)
OPTIONS(optimize, OPTIMIZE_OPTIONS)
OPTIONS(import_triton, IMPORT_TRITON_OPTIONS)
OPTIONS(fuse, FUSE_OPTIONS)
OPTIONS(inspect, INSPECT_OPTIONS)
OPTIONS(quantize, QUANTIZE_OPTIONS)
OPTIONS(register, REGISTER_OPTIONS)
OPTIONS(offline, OFFLINE_OPTIONS)
OPTIONS(bench, NO_OPTIONS)
OPTIONS(doctor, DOCTOR_OPTIONS)
OPTIONS(profile, PROFILE_OPTIONS)
OPTIONS(compile, COMPILE_OPTIONS)
OPTIONS(compiler, NO_OPTIONS)
OPTIONS(zygote, NO_OPTIONS)
OPTIONS(worker, NO_OPTIONS)
OPTIONS(gpu, NO_OPTIONS)
OPTIONS(version, VERSION_OPTIONS)
OPTIONS(help, NO_OPTIONS)

static const char command_serve_text[] =
        "Compiles the models of the repositories, those of the command line and of the configuration. Then it listens on its "
        "socket and serves until SIGTERM or SIGINT comes; a second signal ends it without grace. SIGHUP reads repositories, "
        "models, model_defaults, allocation and trace again. New models are loaded, changed ones replaced, lost ones unloaded, "
        "while the others serve. Any other change of the configuration is one line of the log, and waits for the next start.\n"
        "\n"
        "A repository has a folder for each model, as Triton's:\n"
        "\n"
        "    NAME/VERSION/model.onnx\n"
        "    NAME/config.yaml           optional; alone in its folder it describes an ensemble\n"
        "    NAME.onnx                  a model without a configuration, called as the file\n"
        "\n"
        "A single .onnx file in VERSION, or in NAME, may have any name. A NAME.onnx, or the folder NAME of one model, may stand in "
        "the place of a repository. What is ambiguous is left out, and the log says what is there and what to move.\n"
        "\n"
        "The log goes to standard error, one line for each event: key=value, or with --log-format json an object with the same "
        "keys. Its last event says why the runtime ended. Started by a service manager, the runtime says when it is ready "
        "(sd_notify).";

static const char command_models_text[] =
        "Lists name, version, state and what each model takes and gives, from the runtime's catalogue; of one that does not serve, "
        "why. "
        "With --why it says of one model what is wanted, by whom and since when, what serves, what it waits for and which step "
        "follows "
        "then, and why the last load failed. That comes from the stats page, so it is there also when the runtime does not answer. "
        "Of a "
        "variant, or of all variants of a task, it also says why it is loaded or not, and which queries choose it now by accuracy "
        "alone, where the runtime answers; starling tasks --explain asks for more.";

static const char command_tasks_text[] =
        "Lists the variants of TASK, or of all tasks (default: all): state, accuracy, cost, what one sample takes, the samples a "
        "second of "
        "all workers together, how long a request that comes now waits, and the memory of the plan. These are the figures by which "
        "queries choose. Of a variant that does not serve it says why.";

static const char command_load_text[] =
        "Loads a model of the repositories that is not served: a new one, one that failed, or one that was "
        "unloaded. Returns when it is ready. Only administrators may: see access.admins in "
        "starling-config(5).";

static const char command_unload_text[] =
        "The model takes no more requests; those in flight are finished. Only administrators may: see access.admins in "
        "starling-config(5).";

static const char command_reload_text[] =
        "Loads the newest version and puts it in the place of the one that serves, which serves until "
        "then. Where nothing but the model's number of workers (instances) has changed, workers join or leave, and "
        "nothing is loaded again. Only administrators may: see access.admins in starling-config(5).";

static const char command_apply_text[] =
        "Changes on which cores the models of the file have workers, and of which batch sizes; models that it does not name keep "
        "theirs. New workers are ready before old ones leave; no request is lost. The memory of all new workers is promised before "
        "the first of them starts: where it does not suffice, or one cannot start, everything stays as it was. Returns when the "
        "old workers have left.\n"
        "\n"
        "It holds for each model until another allocation names it, the configuration is asked for again (--configured), or the "
        "runtime ends. "
        "`starling optimize -o FILE` writes such files, and `allocation: FILE` in starling-config(5), or `starling serve "
        "--allocation FILE`, begins with one:\n"
        "\n"
        "    models: [lenet, resnet]\n"
        "    rows:\n"
        "      - {device: 'cpu:0', batches: [8, 0]}\n"
        "      - {device: 'cpu:1', batches: [0, 1+1+16]}\n"
        "\n"
        "A device is cpu (all cores of workers), a core cpu:2, or a let cpu:0-1+4; for models whose device is a GPU, gpu:1 or a "
        "let "
        "gpu:1/50%. Batch sizes are powers of two up to the model's "
        "batch_max, or that. Only administrators may: see access.admins in starling-config(5).";

static const char command_stats_text[] =
        "Reads the stats page of a runtime, see starling-stats(5). It needs no connection and costs the runtime nothing. After a "
        "crash it shows what was counted until then.\n"
        "\n"
        "--watch prints a line for each interval:\n"
        "\n"
        "    requests/s samples/s       accepted in a second\n"
        "    failed/s                   failed, expired or cancelled in a second\n"
        "    refused/s                  refused in a second\n"
        "    batch                      samples of a batch\n"
        "    waiting                    requests and segments that wait now\n"
        "    in_flight                  requests in flight now\n"
        "    p50 p99 p99.9              time from arrival to completion, of requests that were completed in the interval\n"
        "    busy                       workers that computed, on average\n"
        "\n"
        "When the runtime ends a line says so, and the next one of its name is watched.";

static const char command_trace_text[] =
        "Writes the spans of sampled requests that end while it runs, as JSON for ui.perfetto.dev or chrome://tracing. Each worker "
        "has a lane (computing, combining), and so have the queue of each model (queued) and each queue pair of a client (the "
        "request, and in it queued, batched, computing, combining; waking, where the client had slept). What overlaps has further "
        "lanes.\n"
        "\n"
        "The runtime samples the share trace.sampling of all requests, see starling-config(5). It is 0 unless the configuration "
        "says otherwise. `systemctl reload`, or SIGHUP, changes it while the runtime serves:\n"
        "\n"
        "    trace: {sampling: 0.01}\n"
        "\n"
        "It reads the stats page alone, as every user may who may attach. What it comes too late for is counted on standard error "
        "and in otherData.";

static const char command_exporter_text[] =
        "Answers GET /metrics with what the runtimes of these names count (by default `starling`; at most 16 names). The format is "
        "Prometheus' text format or, where the scraper prefers it, OpenMetrics. The exporter reads the runtimes' stats pages, see "
        "starling-stats(5), and needs no other right. A runtime that has ended keeps its last values, with starling_up 0. One that "
        "starts again is found by the next scrape. The exporter serves until SIGTERM or SIGINT comes, and says when it is ready "
        "(sd_notify). A listening socket that a service manager hands over, of the Internet or Unix, takes the place of --listen.\n"
        "\n"
        "GET / is a page for people: models, rates, percentiles, queues, workers and lets, refusals and memory, with the last ten "
        "minutes. It is one file without anything from elsewhere. Its figures come from /api/stats, each runtime as `starling "
        "stats --json` has it, and from /api/history, a point for each five seconds. For these the exporter looks at the stats "
        "pages even when it is not asked.\n"
        "\n"
        "GET /healthz and /readyz are for probers. Each runtime has a line, and each fault a further one. GET /healthz is 200 when "
        "the "
        "process of every runtime is there. GET /readyz is 200 when every runtime has ended its start and is not stopping, no "
        "model of "
        "it has failed, and each that serves has a worker. Else they are 503. A model that is loaded later, beside others that "
        "serve, counts when it serves or has failed. A reload that fails leaves the version that serves, and does not count.\n"
        "\n"
        "There are no passwords and there is no encryption. On other addresses than the host's own, put a proxy that checks users "
        "in front. A request whose Host is none of an address, localhost, the host's own name and the names of --host is answered "
        "with 421, so that no page of another site reads the exporter under a name of its own (DNS rebinding).\n"
        "\n"
        "    scrape_configs:\n"
        "      - job_name: starling\n"
        "        static_configs: [{targets: [\"127.0.0.1:9464\"]}]";

static const char command_top_text[] =
        "Shows on the terminal what a runtime does: its models, workers, queues, lets, clients and memory, with rates, batch sizes "
        "and "
        "percentiles of the last interval. It reads the stats page alone, see starling-stats(5), and costs the runtime nothing. "
        "When "
        "the runtime ends, what it did last stays, and another one of its name takes its place.\n"
        "\n"
        "    m w u l c y, 1 to 6, Tab   models, workers, queues, lets, clients, memory\n"
        "    arrows, Page Up, ...       choose a row; left and right show other columns\n"
        "    < > r                      the column that rows are sorted by; the other way round\n"
        "    /                          only rows with these letters in them\n"
        "    + - p                      the interval; hold the screen\n"
        "    h q                        help; quit\n"
        "\n"
        "NO_COLOR in the environment leaves out the colours. For a script or a log there is `starling stats --watch`.";

static const char command_postmortem_text[] =
        "Reads the flight recorder of a runtime: the requests in flight, and at least the last 256 of those that have ended, as "
        "far as its records go (4096 with a stats page of 30 MiB). For each it shows client, queue pair, model, samples, the stage "
        "that it was in and since when, the workers that had pieces of it, the time of each stage, and how it ended.\n"
        "\n"
        "It works after any crash, also after SIGKILL. When a runtime of the name serves again, the page of the one that crashed "
        "is kept as NAME~last and shown, until the next one crashes or ends as it should (--live: the one that serves). Copy the "
        "file to keep it longer. A runtime that lives and follows no crash is shown as it is now.\n"
        "\n"
        "A name with a slash is that of a file, see starling-stats(5). A record that was being written when the runtime crashed is "
        "shown as torn. One that cannot be is counted as damaged and left out.";

static const char command_cache_text[] = "`list` prints every file of the cache: its bytes, its last use, and for whom it is kept. "
                                         "`clear` removes them. Runtimes that serve go on, and compile again what they load next.";

static const char command_allocation_text[] =
        "An allocation is a matrix: a row for each device, a column for each model, and in it the batch size of the worker there.\n"
        "\n"
        "    models: [resnet50, resnet101, vgg19]\n"
        "    rows:\n"
        "      - {device: gpu1, batches: [8, 128, 0]}\n"
        "      - {device: gpu2, batches: [0, 0, 8]}\n"
        "\n"
        "`show` prints it as a table. With --costs it computes the memory that each device needs, and what the ensemble would "
        "reach. "
        "`check` says which cell is wrong, and what the limit is: a batch size that is not allowed, a model without a worker, a "
        "device "
        "without enough memory.";

static const char command_lets_text[] =
        "A let is a part of a device: cores, or multiprocessors. The models of a let compute in turns, each a batch in a cycle; "
        "lets of a device do not overlap. The plan bears each model's rate within its objective, as long as its requests come "
        "evenly: one that has just missed its turn waits for a cycle and then computes. For bursts it leaves what room there is. "
        "Where it cannot, it bears what it can, and a line on standard error says which model lacks how much.\n"
        "\n"
        "COSTS.yaml says what batches take, as for starling-optimize(1); of a class with `sizes` also on lets of so many units. "
        "Sizes and batches between those are interpolated, and the plan says where. RATES.yaml has the requests a second of each "
        "model, and the milliseconds within which each has to be answered:\n"
        "\n"
        "    models:\n"
        "      - {name: resnet50, rate: 120, objective_ms: 50}\n"
        "      - {name: lenet, rate: 900, objective_ms: 5}\n"
        "\n"
        "The bound is computed for lets as if they could be packed without loss: no schedule bears more. --simulate lets requests "
        "come as a Poisson process, and lets of a device slow each other down where the costs say by how much. Nothing of that "
        "changes a runtime.";

static const char command_optimize_text[] =
        "Searches for the allocation that serves an ensemble best: worst-fit decreasing first, then the bounded greedy algorithm "
        "and simulated annealing from several starts. It judges an allocation by figures that it computes from the costs. Where "
        "there are few allocations it tries every one. The answer is never below that of the greedy algorithm, is the same for the "
        "same seed, and carries its gap to a bound that no allocation exceeds. At SIGINT or SIGTERM it prints the best so far. "
        "While costs are measured, what is done is kept, and the same command goes on from there.\n"
        "\n"
        "Of a FOLDER of a repository, an ensemble or one model, it first measures what members cost on this host, on --devices and "
        "in --batches (`starling profile`, which keeps it). Then a runtime serves the ensemble under each of the best --confirm "
        "allocations and under what is configured. The answer is the best of those by measurement, with how far computed and "
        "measured are apart.\n"
        "\n"
        "An answer that was measured to be better than what is configured, or with --confirm 0 the computed one, is kept beside "
        "the compiled plans. The next `starling serve` uses it, unless `allocation: none` says otherwise. The same question is "
        "answered from there. Interrupted before all were measured, nothing is kept. A runtime of another user, with another "
        "`cache.directory`, or with `model_defaults`, looks elsewhere (`no-allocation-kept` in its log). For these write a file "
        "with -o, and name it by `allocation: FILE`.\n"
        "\n"
        "COSTS.yaml has devices, models, and for each model, class of devices and batch size its latency, transfer and workspace, "
        "and whether they were measured, published or derived:\n"
        "\n"
        "    batches: [8, 16]\n"
        "    classes: [{name: V100, kind: gpu, copy_engines: 2}]\n"
        "    devices: [{name: gpu, class: V100, memory: 16GiB, count: 4}]\n"
        "    models: [{name: resnet50, weights: 98MiB}]\n"
        "    costs:\n"
        "      - {model: resnet50, class: V100, source: measured, latency_ns: [9000000, 16000000],\n"
        "         workspace: [300MiB, 500MiB]}\n"
        "    pairs: []                  optional: {model: M, beside: N, class: C, slowdown: 1.7}";

static const char command_import_triton_text[] =
        "Reads config.pbtxt of a model folder, or of every model of a repository, and says the same in config.yaml. What has no "
        "counterpart is named: with its line, in comments and on standard error.";

#define MODEL_TEXT                                                                                                                 \
        "A folder is that of a model in a repository: its newest version that is served, with the options of its config.yaml. "    \
        "Options of the command line go before these. A dimension beside the batch that the file leaves open gets a size that "    \
        "the model takes, as a line on standard error says; `-O shapes=NAME=SIZE` gives it another."

static const char command_doctor_text[] =
        "Looks at what a runtime meets on this host. For each thing it says what was found, whether that is ok, could be better or "
        "is wrong, the command or setting that changes it, and what that would gain. Nothing is changed. With --config the "
        "configuration is checked against the host: its processors, its memory, its folders. Run it as the runtime's user and "
        "where the runtime runs, since limits, groups and folders are those of the process.\n"
        "\n"
        "The gain of a change is measured where that takes milliseconds. What a core reaches is shown as it was measured for the "
        "plans (starling version --host).\n"
        "\n"
        "The exit status is that of the worst verdict: 0 all is ok or cannot be told, 5 something could be better, 6 something is "
        "wrong.";

static const char command_fuse_text[] =
        "Copies of one network with weights of their own, fine-tuned for a customer or a camera each, may share workers (`fuse` in "
        "starling-config(5)). This finds out what that gains here. It says which of the models are of one architecture but for "
        "sizes, how many of their nodes merge into one, and where the common part ends and why. It measures three ways to run "
        "them: each in a workspace of its own (separate), one after another in one workspace (one job), and as a merged plan, "
        "which leaves out idle lanes where it can. Merged plans are made and measured as `starling serve` does it, in a child and "
        "with the same checks: their outputs are compared with those of the single plans.\n"
        "\n"
        "A FOLDER is a repository, of which all models are looked at, or one model's. Plans and tables go into the cache of plans, "
        "where a runtime of this user, with the same configuration, finds them.";

static const char command_inspect_text[] =
        "Imports a model, applies the passes and plans its memory, in this process, without running it. Prints its inputs and "
        "outputs, its operators and on which backend each runs, the bytes of weights and activations by batch, and the accuracy "
        "that `starling quantize` stored. Of a plan file it prints inputs and outputs, batches and bytes, and of a merged one the "
        "lanes and the bytes that they share.\n"
        "\n" MODEL_TEXT;

static const char command_quantize_text[] =
        "Makes a variant of a model in int8 (QDQ) or bfloat16, or with its weights in half precision, and writes it as ONNX. It "
        "measures the ranges of activations on some samples, and the accuracy of the variant on the others.";

static const char command_register_text[] =
        "Makes a task of models that answer the same question: queries say how accurate and fast an answer must be, and the "
        "runtime has variants to choose among (`starling tasks`). Of each model it makes variants, in float32, int8 and bfloat16 "
        "and with weights in halves. It measures the accuracy of each, with its 95 % interval, on samples that int8 was not "
        "calibrated on, and profiles batches as `starling profile` does. What another variant dominates throughout is left out: "
        "that one is no less accurate, at no batch slower, and has no more weights. `starling serve REPOSITORY` serves the rest at "
        "once; one that runs already takes it on SIGHUP.\n"
        "\n"
        "The first model sets inputs and outputs. Others that differ get nodes before and behind them: Resize for another height "
        "or width, Transpose for channels first or last, a scale and an offset where --scale and --offset say so, Slice for a "
        "background class in front, Softmax where the first gives probabilities and they give logits. What else differs is "
        "refused.\n"
        "\n"
        "What is most useful comes first: each model in float32, then int8 and the others, each with its time for one sample, then "
        "larger batches. After --budget seconds the task has what is known by then, and the same command goes on from there: what "
        "is known and fresh is not measured again. Everything that was measured, and what was left out and why, is in "
        "REPOSITORY/.register/TASK/record.json. One `register` at a time works on a repository.\n"
        "\n"
        "    starling register mlp.onnx lenet.onnx --task digits --validation images.f32 --labels labels.u8 --into models\n"
        "    starling serve models &";

static const char command_offline_text[] =
        "`submit` has the runtime compute all samples of INPUT, a .npy file or a folder of them, and prints the number of the job. "
        "OUTPUT.npy appears when all of it is there. A process of the user's own reads and writes the files; no runtime opens "
        "them. "
        "It runs on when the command has ended, or with --wait until then. Its requests are behind all priorities, and pause for "
        "others between two steps of a network.\n"
        "\n"
        "`list` shows all jobs: state, samples that are done, samples a second. `pause` ends a job's process and keeps what is "
        "done, "
        "`resume` goes on from there, also when the process or the host's session has died. `cancel` removes the job and what it "
        "has "
        "written; of one that is done the output stays. While its runtime is not there a job waits for it.\n"
        "\n"
        "Axis 0 of a file counts its samples. In a folder, files are read in the order of their names; one with an axis less is "
        "one "
        "sample. The model has one input and one output. Jobs are kept in $XDG_STATE_HOME/starling/offline, else below "
        "~/.local/state.";

static const char command_bench_text[] = "Runs one of the benchmarks. `starling bench BENCHMARK --help` describes it, and so does "
                                         "a page of its own, such as starling-bench-load(1).";

static const char command_profile_text[] =
        "Compiles a model in this process, runs it on one thread, and says where its time goes: by operator, or step by step with "
        "the kernel, its shape and its share of the core's peak.\n"
        "\n" MODEL_TEXT "\n"
        "\n"
        "With --nodes --threads it predicts teams of these sizes: how the plan cuts each step, its longest part's time by that of "
        "one thread, the cost of calling the team, and what is not cut. Sum and speed-up stand beside measurements in turns of one "
        "thread, a team on all cores, and independent instances, one for each core, at once.\n"
        "\n"
        "With one of the options from --devices to --store it profiles workers instead, of models and of the members of ensembles. "
        "For each precision, device or let, and batch size it measures the latency, samples a second, the time of loading from the "
        "model and from the cache of plans, and memory. A worker is one thread, or with --threads a team of as many, each on a "
        "core of its own; of several on one let each has the next cores of it. It repeats until the 95 % interval of the median is "
        "narrow enough, or says that the time is over. Before and after each it looks whether the machine is the same. Batches "
        "above the batch_max of a folder's model are left out. What is stored and not stale is not measured again, so that after "
        "an interruption the same command goes on.\n"
        "\n"
        "With --elastic it finds workers for the policy e_ebird, for one model on one device: it has combinations of workers begin "
        "at "
        "once, in turns, and stores nothing. What the batch sizes alone make look slow is not measured where there are more than "
        "72 "
        "combinations. The output is keys of the model's config.yaml.\n"
        "\n"
        "    list                list what is stored, and what of it is stale and why\n"
        "    show MODEL...       show all that is known of these models, each figure with its origin\n"
        "    export [MODEL...]   write CSV or JSON, or to FILE.yaml costs for `starling optimize`: all, or of these files and "
        "folders what was measured here and is not stale; with --devices or --batches no others\n"
        "    import FILE...      read what export wrote, tables of others, or a store\n"
        "    diff FILE [FILE]    compare two stores, or one with this one, and tell noise by the intervals\n"
        "\n"
        "These words come first. A profile is stale when the model's file, that of a model beside it, the processor, a library or "
        "starling has changed.";

static const char command_compile_text[] =
        "Compiles a model into a plan file, in a child process with the limits that the runtime sets "
        "its compilers: what it refuses, the runtime refuses, too. The plan replaces a file only when it is whole; a link stays "
        "one, "
        "and a device or a pipe is refused.";

static const char command_compiler_text[] =
        "Not for people: the runtime starts it for each model, without files, network or privileges.";

static const char command_zygote_text[] =
        "Not for people: the runtime starts it once, and has it fork a compiler's process for each model.";

static const char command_worker_text[] =
        "Not for people: the runtime starts it for each worker of a model with `isolation: process`, without files, network or "
        "privileges.";

static const char command_gpu_text[] = "Not for people: the runtime starts it for each GPU that a model's `device` names, with the "
                                       "first worker that is to run there.";

static const char command_version_text[] =
        "Prints one line, as `starling --version` does. With --host it prints what it runs on as well: the processor and its "
        "caches, what plans of each backend depend on, and what a core reaches. That is measured the first time that a model is "
        "loaded or this command asks, once for each cache of plans, program and kind of processor. Plans are made for these "
        "figures and depend on them.";

static const char command_help_text[] = "Without a command it lists them all. `starling COMMAND --help` is the same.";

static const struct command_description descriptions[] = {
#define X(name, function, arguments, summary) {name, arguments, summary, function##_text, function##_options},
        COMMANDS(X)
#undef X
};

#define N_DESCRIPTIONS (sizeof(descriptions) / sizeof(*descriptions))

const struct command_description *describe_command(size_t i)
{
        return i < N_DESCRIPTIONS ? &descriptions[i] : NULL;
}

const struct command_description *describe_command_named(const char *name)
{
        for (size_t i = 0; i < N_DESCRIPTIONS; i++)
                if (strcmp(descriptions[i].name, name) == 0)
                        return &descriptions[i];
        return NULL;
}

static void describe_bench(const struct sl_bench_description *bench, struct benchmark_description *ret_benchmark)
{
        snprintf(ret_benchmark->name, sizeof(ret_benchmark->name), "bench %s", bench->name);
        for (size_t i = 0; i < BENCHMARK_OPTIONS_MAX; i++) {
                const struct sl_bench_option *option = &bench->options[i];

                ret_benchmark->options[i] =
                        (struct command_option){.name = option->name, .argument = option->argument, .text = option->text};
                if (!option->name)
                        break;
        }
        ret_benchmark->command = (struct command_description){
                .name = ret_benchmark->name,
                .arguments = bench->arguments,
                .summary = bench->summary,
                .text = bench->text,
                .options = ret_benchmark->options,
        };
}

bool describe_benchmark(size_t i, struct benchmark_description *ret_benchmark)
{
        const struct sl_bench_description *bench = sl_bench_describe(i);

        if (bench)
                describe_bench(bench, ret_benchmark);
        return bench;
}

bool describe_benchmark_named(const char *name, struct benchmark_description *ret_benchmark)
{
        const struct sl_bench_description *bench = sl_bench_describe_named(name);

        if (bench)
                describe_bench(bench, ret_benchmark);
        return bench;
}

bool describe_is_internal(const struct command_description *command)
{
        static const char *const internal[] = {"compiler", "zygote", "worker", "gpu"};

        for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
                if (strcmp(command->name, internal[i]) == 0)
                        return true;
        return false;
}

bool describe_takes_lowering(const struct command_description *command)
{
        for (const struct command_option *option = command->options; option->name; option++)
                if (strcmp(option->name, "option") == 0)
                        return true;
        return false;
}

void describe_option(const struct command_option *option, char *ret_text, size_t bytes)
{
        char letter[8] = "";

        if (option->letter)
                snprintf(letter, sizeof(letter), "-%c, ", option->letter);
        snprintf(ret_text, bytes, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
                option->argument ? option->argument : "");
}

#define LINE_BYTES 100 /* of a line of help, where words allow it */

void describe_words(const char *text, size_t at, size_t indent, FILE *stream)
{
        while (*text) {
                size_t bytes = strcspn(text, " ");

                if (at > indent && at + 1 + bytes > LINE_BYTES) {
                        fprintf(stream, "\n%*s", (int)indent, "");
                        at = indent;
                } else if (at > indent) {
                        fputc(' ', stream);
                        at++;
                }
                fprintf(stream, "%.*s", (int)bytes, text);
                at += bytes;
                text += bytes + strspn(text + bytes, " ");
        }
        fputc('\n', stream);
}

static void print_text(const char *text, FILE *stream)
{
        while (*text) {
                size_t bytes = strcspn(text, "\n");
                char line[2048];

                snprintf(line, sizeof(line), "%.*s", (int)bytes, text);
                if (line[0] == ' ')
                        fprintf(stream, "%s\n", line);
                else
                        describe_words(line, 0, 0, stream);
                text += bytes + (text[bytes] == '\n');
        }
}

#define OPTION_COLUMNS 26

static void print_option(const struct command_option *option, FILE *stream)
{
        char text[128];

        describe_option(option, text, sizeof(text));
        if (strlen(text) + 3 < OPTION_COLUMNS)
                fprintf(stream, "  %-*s", OPTION_COLUMNS - 2, text);
        else
                fprintf(stream, "  %s\n%*s", text, OPTION_COLUMNS, "");
        describe_words(option->text, OPTION_COLUMNS, OPTION_COLUMNS, stream);
}

void describe_print(const struct command_description *command, FILE *stream)
{
        fprintf(stream, "usage: starling %s%s%s\n\n", command->name, *command->arguments ? " " : "", command->arguments);
        fprintf(stream, "starling %s: %s\n\n", command->name, command->summary);
        print_text(command->text, stream);
        if (command->options->name)
                fputc('\n', stream);
        for (const struct command_option *option = command->options; option->name; option++)
                print_option(option, stream);
}
