/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each key of the configuration is, for starling-config(5): it begins with a noun, and a number's unit. "true:" says what a
 * flag does. A key without words, or words without a key, fail the build. Ranges, choices and defaults are not said here: they come
 * from the tables that parse.
 */
#pragma once

#define SL_RUNTIME_WORDS(X)                                                                                                        \
        X("name", "Name of the runtime, of its socket and of its stats page.")                                                     \
        X("socket_dir", "Folder of the socket, an absolute path. The default is $STARLING_SOCKET_DIR, else "                       \
                        "$XDG_RUNTIME_DIR/starling, else /run/starling.")                                                          \
        X("grace_seconds", "Seconds that running requests may go on when the runtime is told to stop.")                            \
        X("wait", "Call that the control thread waits with; auto takes io_uring where the host allows it.")                        \
        X("log_level", "Least important level that is logged.")                                                                    \
        X("log_format",                                                                                                            \
                "Format of the log: text is key=value, json one object on each line with the same keys. Read at the start.")       \
        X("model_repositories", "Folders of models, or .onnx files; those of the command line come first.")                        \
        X("data_folders", "Folders into which links of models' external data may lead, beside the models' own.")                   \
        X("models", "Names of the models to serve; without it all that the repositories have.")                                    \
        X("allocation", "Cores and batch sizes of the workers, which go before each model's own configuration. auto takes what "   \
                        "`starling optimize` has found on this host, if it was asked; none takes nothing; the absolute path of a " \
                        "file is read again by a reload.")                                                                         \
        X("autoscale",                                                                                                             \
                "Workers of models and variants of tasks by their load, while they serve: on gives models what they need, advise " \
                "says in the log what that would be. Workers that are placed on cores or GPUs stay as they are.")                  \
        X("scaling", "Rule and prices by which autoscale decides.")                                                                \
        X("scaling.rule",                                                                                                          \
                "Rule: starling looks ahead by rate, trend and burst; infaas is the greedy of that paper, once a second.")         \
        X("scaling.headroom_percent", "Capacity above the load, in percent, at least.")                                            \
        X("scaling.lambda", "Cost of a second of loading, in the units of prices a second.")                                       \
        X("scaling.idle_least_ms", "Milliseconds without a query, at least, before a variant that came by load leaves.")           \
        X("scaling.prices", "Prices of workers a second, in any unit.")                                                            \
        X("scaling.prices.core", "Price of a core.")                                                                               \
        X("scaling.prices.gib", "Price of a GiB of memory.")                                                                       \
        X("access", "Users who may attach, and as what: a user (\"alice\", 1000), a group (\"@video\"), or \"*\" for everybody. "  \
                    "The runtime's own user and root always may.")                                                                 \
        X("access.allow", "Clients, which submit requests.")                                                                       \
        X("access.admins", "Administrators, who load, unload, reload and apply; \"*\" is refused.")                                \
        X("access.readers", "Readers of the catalogue and of the statistics, which clients may read as well.")                     \
        X("model_defaults", "Keys of a model, but ensemble and task, for models that do not say otherwise.")                       \
        X("limits", "Bounds for all clients together, one client and one user.")                                                   \
        X("limits.clients", "Clients that are attached at once.")                                                                  \
        X("limits.memory_max", "Bytes of all that the runtime takes, compilers included. The default is seven eighths of what is " \
                               "available at the start.")                                                                          \
        X("limits.models_max_loaded",                                                                                              \
                "Models that are loaded at a time. Of those with load: on_request the one used longest ago makes room, if no "     \
                "request is in flight for it; where none can, a load is refused. 0: any number.")                                  \
        X("limits.load_wait_s", "Seconds that a request, or a client that opens a model with load: on_request, waits for its "     \
                                "load. The load goes on when they are refused.")                                                   \
        X("limits.staging_bytes",                                                                                                  \
                "Bytes of predictions that wait to be combined. The default is 64 MiB, at most an eighth of memory_max.")          \
        X("limits.fuse_bytes",                                                                                                     \
                "Bytes of a merged plan of models that share workers, beside what it reads of theirs. 0: none is made.")           \
        X("limits.stats_bytes",                                                                                                    \
                "Bytes of the stats page, at most: memory is taken as models and clients come. A loaded model has 50 KB.")         \
        X("limits.client", "Bounds for one client.")                                                                               \
        X("limits.client.arena_bytes", "Bytes of all regions of its arena.")                                                       \
        X("limits.client.in_flight", "Requests that are accepted and not completed.")                                              \
        X("limits.uid", "Bounds for all clients of one user.")                                                                     \
        X("limits.uid.arena_bytes", "Bytes of their arenas; at least limits.client.arena_bytes.")                                  \
        X("limits.uid.in_flight", "Requests that are accepted and not completed; at least limits.client.in_flight.")               \
        X("limits.uid.shapes", "Sizes of open models that are compiled for its requests in a minute; more wait.")                  \
        X("limits.uid.log_lines", "Lines of the log in a minute on its behalf; then one line says how many were left out.")        \
        X("threads", "Cores and waiting of the runtime's threads.")                                                                \
        X("threads.dispatcher_cores", "Cores of the dispatcher, numbers and ranges (2-5); without it one is chosen.")              \
        X("threads.worker_cores", "Cores of the workers; without it all others.")                                                  \
        X("threads.numa_node", "NUMA node whose cores and memory alone are used; the default is all of them.")                     \
        X("threads.spin_us", "Microseconds that a thread looks for work before it sleeps.")                                        \
        X("threads.inline_us", "Microseconds that a computation may take which the dispatcher runs itself; up to 100 where an "    \
                               "only request leaves no core to a worker; 0: none.")                                                \
        X("compile", "Bounds for the child processes that compile models.")                                                        \
        X("compile.jobs", "Compilations that run at once.")                                                                        \
        X("compile.memory_bytes", "Bytes of one compilation; 24 MiB and four times the model's files are enough for most.")        \
        X("compile.seconds", "Seconds of processor time of one compilation.")                                                      \
        X("cache", "Folder and size of the cache of compiled plans.")                                                              \
        X("cache.directory", "Folder of the runtime's user alone, an absolute path. The default is $XDG_CACHE_HOME/starling, "     \
                             "else ~/.cache/starling.")                                                                            \
        X("cache.bytes", "Bytes of all plans; what was used longest ago goes. 0 keeps none.")                                      \
        X("stats", "Additions to the stats page, see starling-stats(5).")                                                          \
        X("stats.worker_histograms",                                                                                               \
                "true: each worker has histograms of its own, beside those of its model, for about 50 KB of stats_bytes each.")    \
        X("trace", "Choice of requests for `starling trace`.")                                                                     \
        X("trace.sampling", "Share of requests that are traced: 0 none, 1 all. A reload changes it while the runtime serves.")

#define SL_MODEL_WORDS(X)                                                                                                          \
        X("backend", "Backend of the operators: cpu (what it lacks, ref runs), ref, or cuda, which refuses what it lacks.")        \
        X("batch_max", "Samples of a worker's largest batch; smaller powers of two are compiled as well.")                         \
        X("without_passes", "Graph passes that are left out.")                                                                     \
        X("precision",                                                                                                             \
                "Precision of weights and activations. bf16 is computed as fp32 on a processor without products of bfloat16.")     \
        X("weights", "Type in which constant weights are stored: f16 and bf16 take half the memory and are widened where they "    \
                     "are used.")                                                                                                  \
        X("tune", "off: algorithms and layouts are guessed; quick, full: they are timed on this host.")                            \
        X("tune_seconds", "Seconds of processor time that the timing may take.")                                                   \
        X("merge_copies", "Share of the weights that a merged plan of models that share workers may have a second time, in "       \
                          "another form, where that is faster (fuse).")                                                            \
        X("merge_seconds", "Seconds for timing nodes when models that share workers are merged (fuse); 0: nothing is timed.")      \
        X("winograd", "true: approximate algorithms may be taken.")                                                                \
        X("max_relative_error", "Largest error of an approximate algorithm, as a part of the output's range.")                     \
        X("random_seed", "Seed of nodes that draw random numbers and have none in the file; 0: each request draws anew.")          \
        X("optional_inputs", "Inputs with an initializer. auto: a request that gives any has a plan of its own; true: all do; "    \
                             "false: constants.")                                                                                  \
        X("any_size", "Open dimensions. auto: requests of sizes without a plan of their own are computed by one plan for all "     \
                      "sizes, where the model allows it; true: that is the plan; false: each size is compiled.")                   \
        X("batch_invariant", "true: a sample has the same bits in any batch, and each is computed by itself.")                     \
        X("nodes_max", "Nodes of a model; there may be twice as many values.")                                                     \
        X("model_bytes_max", "Bytes of the file, and of all its constants.")                                                       \
        X("tensor_bytes_max", "Bytes of one tensor.")                                                                              \
        X("plan_seconds", "Seconds of processor time of a compilation, its tuning apart.")                                         \
        X("plan_bytes_max", "Bytes of the plan file.")                                                                             \
        X("workspace_bytes_max", "Bytes of an instance's workspace at the largest batch.")                                         \
        X("dynamic_bytes_max", "Bytes that one run makes of shapes that depend on data.")                                          \
        X("work_max", "Elementary steps of one run; a core does 1e13 in about two minutes.")                                       \
        X("dynamic_steps_max", "Nodes and rounds of loops that one run may take.")                                                 \
        X("teams", "true: the steps of a plan are cut for workers with several threads; with `threads: 1` they never are.")        \
        X("team_size", "Threads of the team for which tuning times the parts of steps; by default `threads`, or as many as there " \
                       "are CPUs.")                                                                                                \
        X("gpu", "GPU that backend cuda plans for: auto (the model's own), h100, h200, or a file of JSON with all figures of a "   \
                 "GPU.")                                                                                                           \
        X("tf32", "true: backend cuda may round the factors of float32 products to 10 bits, as PyTorch's convolutions do.")        \
        X("laned", "true: products of matrices are packed as merged plans have them, so that weights are stored once; with "       \
                   "`fuse` they always are.")                                                                                      \
        X("core_measured", "true: what a core reaches is measured once for each cache and program, where core says nothing.")      \
        X("core", "Figures that a core reaches, as `starling version --host` prints them; algorithms are guessed by them. What "   \
                  "is left out is typical.")                                                                                       \
        X("shapes", "Sizes of open dimensions of the inputs, NAME=SIZE; without it each request brings its own.")                  \
        X("shapes_known", "true: a name in shapes that no input has is an error. That is so where a model's own file says "        \
                          "shapes; in model_defaults a name that no model has is one line of the log.")                            \
        X("batch_bytes_max",                                                                                                       \
                "Bytes of a worker's workspace and pool: where batch_max is not given, it is the largest that keeps this.")        \
        X("instances", "Workers of the model, over which its requests are spread. A reload changes their number while it serves. " \
                       "Without it a plan of any size has one for each core, all else one.")                                       \
        X("batch_sizes", "Largest batches of the workers, one for each, in the place of instances; powers of two, or batch_max.")  \
        X("threads", "Cores that a worker computes each batch with, of those that it may run on; auto takes all of them. The "     \
                     "answers are the same to the bit. Workers with isolation: process have one.")                                 \
        X("segment_samples", "Samples of the pieces in which a request is worked on; at least batch_max.")                         \
        X("slice_ms", "Milliseconds that a worker computes before it looks for what is more urgent, unless a single sample takes " \
                      "longer.")                                                                                                   \
        X("samples_max", "Samples of one request.")                                                                                \
        X("queue_requests", "Requests that are accepted and not completed; more are refused.")                                     \
        X("warmup_ms", "Milliseconds that an idle worker of a model that just became ready may run larger batches.")               \
        X("batching", "Policy that gives waiting samples to idle workers. work_conserving and starling hold nothing back, and "    \
                      "starling batches only where that pays; single never batches; no_wait, opt_wait and static are TensorFlow "  \
                      "Serving's (only a simulation does what static pads); triton is Triton's, aimd Clipper's; n_ebird and "      \
                      "e_ebird run batches of batch_sizes beside each other. What the dispatcher computes itself goes by "         \
                      "threads.inline_us, and none of these holds it; inline_us: 0 leaves all to the policy.")                     \
        X("batching_delay_us", "Microseconds that what does not fill a batch waits for more (opt_wait, static, triton).")          \
        X("batching_latency_ms", "Milliseconds that a batch may take; batches grow until they take longer (aimd).")                \
        X("batching_in_order", "true: one batch is computed at a time, so that answers keep the order of the requests (triton).")  \
        X("batching_sizes", "Preferred batches, ascending (triton).")                                                              \
        X("batching_rows", "Workers of 1, 2, 4, ... that compute best at a load of 4, 8, 16 and 32 samples, four rows such as "    \
                           "\"0,0,2,1\" (e_ebird).")                                                                               \
        X("fuse", "Models that this one shares workers with. auto: others of its architecture that say so; what waits for any of " \
                  "them when a worker is idle is computed together. [NAME, ...]: those alone whose fuse names the same models, "   \
                  "each with itself. never: none, as always with threads and isolation: process.")                                 \
        X("device", "Device of the workers: cpu, gpu:0, or a let of it such as gpu:0/50%. A GPU has one process, which starts "    \
                    "with the first worker. With several, [gpu:0, gpu:1], each has as many workers as instances or batch_sizes "   \
                    "say, and all share the model's queue. Where one cannot be used the model is refused, and others are served. " \
                    "gpu:* is every GPU that can be used.")                                                                        \
        X("gpu_completions", "Sign of a launch's end on a GPU: events are polled; words are written by the GPU itself, where it "  \
                             "says that it can.")                                                                                  \
        X("gpu_fallback", "Place of a model with a node that the GPU's backend cannot run: refuse names the node; cpu serves it "  \
                          "by workers of the CPU, as if it had no device.")                                                        \
        X("gpu_tune", "Timing of candidates, cuDNN's plans and cuBLASLt's algorithms, at the first load on a GPU. timed: they "    \
                      "are timed once, and the choice is kept in the cache. compiled: engines that are compiled at run time are "  \
                      "among them, each of which takes up to a second once. off: the first ones are taken.")                       \
        X("gpu_tune_seconds",                                                                                                      \
                "Seconds that the timing of a model on a GPU takes at most; what is left untimed is the first candidate.")         \
        X("gpu_results", "Place of a single model's predictions on a GPU. staging: the runtime copies them from there. arena: "    \
                         "the client's arena, and then the GPU's process can write to all that this client has in it.")            \
        X("isolation", "Place of the workers. none: threads of the runtime. process: each is a process of its own, without files " \
                       "and network, and a crash of the model ends nothing else.")                                                 \
        X("on_crash",                                                                                                              \
                "Fate of what a worker's process was computing when it died: fail, or rerun it once, alone, in another one.")      \
        X("hang_ms", "Milliseconds after which a worker's process with a job is killed as if it had crashed, if it has answered "  \
                     "nothing for ten times its slowest answer as well. One that starts may take ten times as long. 0: never.")    \
        X("predictions", "real, or fake: zeros that are not computed, while all else is as ever; shows what the system itself "    \
                         "takes. Not of models whose outputs say only afterwards how large they are.")                             \
        X("load", "Time of the load. at_start: when the runtime starts or reads the repository. on_request: when a "               \
                  "client opens the model for the first time, or a request comes for one that has been unloaded since; "           \
                  "it waits for that. standby: its plan is loaded at the start and stays in memory; its workers start "            \
                  "when a request comes. Members of an ensemble are loaded at the start. A reload changes it while the "           \
                  "model serves.")                                                                                                 \
        X("idle_unload_s", "Seconds without a request after which a model with load: on_request is unloaded. Its handles stay "    \
                           "good, and the next request has it loaded again. With load: standby its workers leave, and its "        \
                           "plan stays. 0: it stays until it has to make room.")                                                   \
        X("idle_standby_s",                                                                                                        \
                "Seconds without a request after which the workers of a model with load: standby or on_request leave, "            \
                "and its plan stays in memory for the next request. 0: they stay until the model has to make room.")               \
        X("shapes_max", "Combinations of sizes, of those that requests bring, that are kept compiled.")                            \
        X("prepared_shapes",                                                                                                       \
                "Combinations of sizes that are compiled before the first request, such as \"sequence=64,height=224\".")           \
        X("version_policy", "Versions that are served, by exactly one of its keys.")                                               \
        X("version_policy.latest", "Number of versions, the highest ones.")                                                        \
        X("version_policy.all", "true: all versions.")                                                                             \
        X("version_policy.specific", "Numbers of the versions.")                                                                   \
        X("name", "Name that the model is served under instead of its folder's, 1 to 1,024 bytes of UTF-8.")                       \
        X("ensemble", "Members and rule of a model that is made of others; its folder has no versions.")                           \
        X("ensemble.members", "Names of models: NAME, the newest version that is served, or NAME:VERSION.")                        \
        X("ensemble.rule", "Combination of their predictions: none (side by side), mean, weighted_mean, majority_vote, "           \
                           "geometric_mean or maximum; of detectors' boxes weighted_boxes_fusion, nms or soft_nms; stacking, "     \
                           "by a combiner.")                                                                                       \
        X("ensemble.combiner",                                                                                                     \
                "Model of rule stacking, computed by threads: it takes one input, the members' outputs side by side "              \
                "in their order, or one for each of them.")                                                                        \
        X("ensemble.weights", "Weights of the members: one for each, of weighted_mean and rules of boxes; or of weighted_mean a "  \
                              "row for each, such as \"0.5,1,0\", with a weight for each class.")                                  \
        X("ensemble.detection", "Outputs and limits of rules of boxes. Members may have different numbers of places; the "         \
                                "ensemble has those of the first.")                                                                \
        X("ensemble.detection.boxes", "Output with the boxes, float32 [places,4], two corners each (default: boxes).")             \
        X("ensemble.detection.scores", "Output with their scores, float32 [places] (default: scores).")                            \
        X("ensemble.detection.labels", "Output with their labels, float32, int32 or int64 [places] (default: labels, if there "    \
                                       "is one): boxes of different labels are apart.")                                            \
        X("ensemble.detection.count", "Output with how many places count, of the same types (default: count, if there is one).")   \
        X("ensemble.detection.overlap", "Intersection over union above which two boxes are one, 0 to 1 (default: 0.55; nms 0.5).") \
        X("ensemble.detection.score_min", "Least score of a box that counts, 0 to 1 (default: 0; soft_nms 0.001).")                \
        X("ensemble.detection.sigma",                                                                                              \
                "Reach of an overlap in soft_nms: a box loses by exp(-overlap^2 / sigma), 0.001 to 100 (default: 0.5).")           \
        X("ensemble.until", "Condition under which no further member is asked about a sample, in the order of the members: by "    \
                            "exactly one of its keys. Of rules that combine classes.")                                             \
        X("ensemble.until.agree", "Members whose largest class is the same; so many are asked at once, 2 to all of them.")         \
        X("ensemble.until.margin", "Lead of the combined result's largest class over the next one, above 0, up to 1.")             \
        X("ensemble.quorum", "Members that have to answer by a request's deadline, 1 to all (default: all). Others may be late, "  \
                             "or fail; the completion says who took part.")                                                        \
        X("task", "A name for a need that several models answer, and nothing else: clients say what they need, and one of its "    \
                  "variants answers. Its folder has no versions.")                                                                 \
        X("task.variants", "Names of models or ensembles with the same inputs and outputs: NAME, or NAME:VERSION.")                \
        X("task.accuracy", "Accuracy of each variant, a share from 0 to 1.")                                                       \
        X("task.cost", "Cost of each variant, in any unit. Without it, the time that a request computes.")                         \
        X("task.latency_ms", "Milliseconds that each variant takes for one sample, until that has been measured.")                 \
        X("task.batches_ms", "Milliseconds that each variant takes for batches of 1, 2, 4 ... 64, until they have been measured: " \
                             "a text of numbers for each.")                                                                        \
        X("task.files", "Digest of each variant's model file as it was measured, or nothing; another file is left out.")           \
        X("task.processor", "Processor on which latencies were measured; on another one they do not count.")                       \
        X("task.version", "Version by which latencies were measured; with another one they do not count.")                         \
        X("task.load", "Variants that are loaded at the start: accurate, the most accurate alone, or all (default: accurate). A "  \
                       "load of their own counts first; the others are loaded when a query chooses them, or by autoscale.")        \
        X("task.choice", "Rule by which a variant is chosen: starling, infaas, cheapest or accurate (default: starling).")
