/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sentence for each key of the configuration, for starling-config(5). A key without one, or a sentence without a key, fails the
 * build. Ranges, choices and defaults are not said here: they come from the tables that parse.
 */
#pragma once

#define SL_RUNTIME_WORDS(X)                                                                                                        \
        X("name", "Of the socket and of the stats page.")                                                                          \
        X("socket_dir", "The folder of the socket, an absolute path. The default is $STARLING_SOCKET_DIR, else "                   \
                        "$XDG_RUNTIME_DIR/starling, else /run/starling.")                                                          \
        X("grace_seconds", "How long requests may go on that run when the runtime is told to stop.")                               \
        X("wait", "What the control thread waits with; auto takes io_uring where the host allows it.")                             \
        X("log_level", "The least important that is logged.")                                                                      \
        X("log_format", "Of the log: text, key=value; json, one object in each line with the same keys. Read at the start.")       \
        X("model_repositories", "Folders of models, or .onnx files; those of the command line come first.")                        \
        X("models", "Names of the models to serve; without it all that the repositories have.")                                    \
        X("allocation",                                                                                                            \
                "On which cores models have workers of which batch sizes, over what their own configurations say: auto, what "     \
                "`starling optimize` has found for them on this host, if it was asked; none; or the absolute path of a file, "     \
                "which a reload reads again.")                                                                                     \
        X("access", "Who may attach, as what: a user (\"alice\", 1000), a group (\"@video\"), or \"*\" for everybody. The "        \
                    "runtime's own user and root always may.")                                                                     \
        X("access.allow", "Clients, which submit requests.")                                                                       \
        X("access.admins", "Administrators, which load, unload, reload and apply; \"*\" is refused.")                              \
        X("access.readers", "Readers of the catalogue and of the statistics, which clients may read as well.")                     \
        X("model_defaults", "The keys of a model, but ensemble, for models that do not say otherwise.")                            \
        X("limits", "What clients together, one client and one user may take.")                                                    \
        X("limits.clients", "Clients that are attached at once.")                                                                  \
        X("limits.memory_max", "Of all that the runtime takes, compilers included. The default is seven eighths of what is "       \
                               "available at the start.")                                                                          \
        X("limits.staging_bytes", "Of predictions that wait to be combined. The default is 64 MiB, at most an eighth of "          \
                                  "memory_max.")                                                                                   \
        X("limits.fuse_bytes", "Of a merged plan of models that share workers, beside what it reads of theirs. 0: none is made.")  \
        X("limits.stats_bytes", "Of the stats page.")                                                                              \
        X("limits.client", "Of one client.")                                                                                       \
        X("limits.client.arena_bytes", "Of all regions of its arena.")                                                             \
        X("limits.client.in_flight", "Requests that are accepted and not completed.")                                              \
        X("limits.uid", "Of all clients of one user.")                                                                             \
        X("limits.uid.arena_bytes", "Of their arenas; at least limits.client.arena_bytes.")                                        \
        X("limits.uid.in_flight", "Requests that are accepted and not completed; at least limits.client.in_flight.")               \
        X("limits.uid.shapes", "Sizes of open models that are compiled for its requests in a minute; more wait.")                  \
        X("limits.uid.log_lines", "Lines of the log in a minute on its behalf; then one line says how many were left out.")        \
        X("threads", "Where the threads run.")                                                                                     \
        X("threads.dispatcher_cores", "Cores of the dispatcher, numbers and ranges (2-5); without it one is chosen.")              \
        X("threads.worker_cores", "Cores of the workers; without it all others.")                                                  \
        X("threads.numa_node", "Only cores and memory of this node; the default is all of them.")                                  \
        X("threads.spin_us", "How long a thread looks for work before it sleeps, in microseconds.")                                \
        X("threads.inline_us",                                                                                                     \
                "The dispatcher computes itself what takes no longer, in microseconds; up to 100 where an only request leaves "    \
                "no core to a worker; 0: nothing.")                                                                                \
        X("compile", "The child processes that compile models.")                                                                   \
        X("compile.jobs", "How many run at once.")                                                                                 \
        X("compile.memory_bytes", "Memory of one; 24 MiB and four times the model's files are enough for most.")                   \
        X("compile.seconds", "Processor time of one.")                                                                             \
        X("cache", "Where compiled plans are kept.")                                                                               \
        X("cache.directory", "An absolute path, a folder of the runtime's user alone. The default is $XDG_CACHE_HOME/starling, "   \
                             "else ~/.cache/starling.")                                                                            \
        X("cache.bytes", "Of all plans; what was used longest ago goes. 0 keeps none.")                                            \
        X("stats", "What the stats page shows beside what it always does, see starling-stats(5).")                                 \
        X("stats.worker_histograms",                                                                                               \
                "Whether each worker has histograms of its own, beside those of its model: about 50 KB of stats_bytes each.")      \
        X("trace", "What `starling trace` can show of requests.")                                                                  \
        X("trace.sampling", "The share of requests that are traced: 0 none, 1 all. A reload changes it while the runtime serves.")

#define SL_MODEL_WORDS(X)                                                                                                          \
        X("backend", "Where operators run: cpu (what it lacks, ref runs), ref, or cuda, which refuses what it lacks.")             \
        X("batch_max", "The largest batch of a worker; smaller powers of two are compiled, too.")                                  \
        X("without_passes", "Graph passes that are left out.")                                                                     \
        X("precision", "Of weights and activations. bf16 is computed as fp32 on a processor without products of bfloat16.")        \
        X("weights", "What constant weights lie in: f16 and bf16 take half the memory and are widened where they are used.")       \
        X("tune", "Whether algorithms and layouts are timed on this host, or guessed.")                                            \
        X("tune_seconds", "Processor time that the timing may take.")                                                              \
        X("merge_copies", "Share of the weights of models that share workers which their merged plan may have a second time, in "  \
                          "another form, where that is faster (fuse).")                                                            \
        X("merge_seconds", "For timing nodes when models that share workers are merged (fuse); 0: nothing is timed.")              \
        X("winograd", "Whether approximate algorithms may be taken.")                                                              \
        X("max_relative_error", "Of an approximate algorithm, as a part of the output's range.")                                   \
        X("random_seed", "The seed of nodes that draw random numbers and have none in the file; 0: each request draws anew.")      \
        X("optional_inputs",                                                                                                       \
                "Whether a request may give the inputs that have an initializer in the file, which it is by default.")             \
        X("batch_invariant", "Whether a sample has the same bits in any batch; then each is computed by itself.")                  \
        X("nodes_max", "Nodes of a model; of values there may be twice as many.")                                                  \
        X("model_bytes_max", "Of the file, and of all its constants.")                                                             \
        X("tensor_bytes_max", "Of one tensor.")                                                                                    \
        X("plan_seconds", "Processor time of a compilation, its tuning apart.")                                                    \
        X("plan_bytes_max", "Of the plan file.")                                                                                   \
        X("workspace_bytes_max", "Of an instance at the largest batch.")                                                           \
        X("dynamic_bytes_max", "Of what one run makes of shapes that depend on data.")                                             \
        X("work_max", "Elementary steps of one run; a core does 1e13 in about two minutes.")                                       \
        X("dynamic_steps_max", "Nodes and rounds of loops that one run may take.")                                                 \
        X("teams", "Whether the steps of a plan are cut for workers with several threads; with `threads: 1` they never are.")      \
        X("team_size",                                                                                                             \
                "Of the team for which tuning times the parts of steps; by default `threads`, or as many as there are CPUs.")      \
        X("gpu", "What backend cuda plans for: auto (the model's own GPU), h100, h200, or a file of JSON with all figures of a "   \
                 "GPU.")                                                                                                           \
        X("tf32", "Whether backend cuda may round the factors of float32 products to 10 bits, as PyTorch's convolutions do.")      \
        X("laned", "Whether products of matrices are packed as merged plans have them, so that weights are there once; with "      \
                   "`fuse` they are.")                                                                                             \
        X("core_measured", "Whether what a core reaches is measured once for each cache and program, where core says nothing.")    \
        X("core",                                                                                                                  \
                "What a core reaches, as `starling version --host` prints it; algorithms are guessed by it. What is left out is "  \
                "typical.")                                                                                                        \
        X("shapes", "Sizes of open dimensions of the inputs, NAME=SIZE; without it each request brings its own.")                  \
        X("shapes_known",                                                                                                          \
                "Whether a name in shapes that no input has is an error. Where a model's own file says shapes it is; those of "    \
                "model_defaults may be another model's: a name that no model has is one line of the log.")                         \
        X("batch_bytes_max", "Of a worker's workspace and pool: where batch_max is not given, it is the largest that keeps this.") \
        X("instances", "Workers of the model, over which its requests are spread. A reload changes their number while it serves.") \
        X("batch_sizes", "A worker for each, which takes batches up to that, instead of instances; powers of two, or batch_max.")  \
        X("threads",                                                                                                               \
                "Cores that a worker computes each batch with, of those that it may run on; auto takes all of them. The answers "  \
                "are the same to the bit. Workers with isolation: process have one.")                                              \
        X("segment_samples", "A request is worked on in pieces of so many samples; at least batch_max.")                           \
        X("slice_ms", "A worker computes no longer before it looks for what is more urgent, but for a single sample.")             \
        X("samples_max", "Of one request.")                                                                                        \
        X("queue_requests", "Accepted and not completed; more are refused.")                                                       \
        X("warmup_ms", "How long an idle worker of a model that just became ready may run larger batches.")                        \
        X("batching",                                                                                                              \
                "Which idle worker takes how many samples when: work_conserving and starling hold nothing back, starling batches " \
                "only where that pays; single never batches; no_wait, opt_wait and static are TensorFlow Serving's (what static "  \
                "pads, only a simulation does), triton and aimd Triton's and Clipper's; n_ebird and e_ebird run batches of "       \
                "batch_sizes beside each other.")                                                                                  \
        X("batching_delay_us", "opt_wait, static, triton: how long what does not fill a batch waits for more.")                    \
        X("batching_latency_ms", "aimd: what a batch may take; batches grow until they take longer.")                              \
        X("batching_in_order", "triton: one batch is computed at a time, so that answers keep the order of the requests.")         \
        X("batching_sizes", "triton: preferred batches, ascending.")                                                               \
        X("batching_rows", "e_ebird: the workers of 1, 2, 4, ... that compute best at a load of 4, 8, 16 and 32 samples, four "    \
                           "rows such as \"0,0,2,1\".")                                                                            \
        X("fuse",                                                                                                                  \
                "auto: the model shares workers with others of its architecture that say so, and what waits for any of them when " \
                "one is idle is computed together; [NAME, ...]: with those alone whose fuse names the same models, each with "     \
                "itself; never: its workers are its own. With threads and isolation: process they always are.")                    \
        X("device",                                                                                                                \
                "cpu; or gpu:0, or a let of it such as gpu:0/50%: the model's workers are in the process of that GPU, which "      \
                "starts with the first of them. Of several, [gpu:0, gpu:1], each has as many as instances or batch_sizes say, "    \
                "and all of them share the model's queue. Where one is not there, or cannot be used, the model is refused, and "   \
                "others are served; gpu:* is every GPU that can be used.")                                                         \
        X("gpu_completions",                                                                                                       \
                "On a GPU, how the end of a launch is seen: events are asked for; words are written by the GPU itself, "           \
                "where it says that it can.")                                                                                      \
        X("gpu_fallback",                                                                                                          \
                "What becomes of a model with a node that the GPU's backend cannot run: refuse says which node it is; cpu "        \
                "serves it by workers of the CPU, as if it had no device.")                                                        \
        X("gpu_tune",                                                                                                              \
                "timed: at the first load on a GPU what there is to choose from, plans of cuDNN and algorithms of cuBLASLt, is "   \
                "timed "                                                                                                           \
                "there, and what was chosen is kept in the cache, so that later starts time nothing; compiled: engines that "      \
                "are compiled at run time are among that, each of which takes up to a second once; off: the first ones are "       \
                "taken.")                                                                                                          \
        X("gpu_tune_seconds", "What is timed for a model on a GPU takes so long at most; the rest are the first ones.")            \
        X("gpu_results",                                                                                                           \
                "On a GPU, where predictions of a model by itself go: to a staging from which the runtime copies them; or "        \
                "to the client's arena, and then the GPU's process can write to all that this client has in it.")                  \
        X("isolation", "none: workers are threads of the runtime; process: each is a process of its own, without files and "       \
                       "network, and a crash of the model ends nobody else.")                                                      \
        X("on_crash", "What a worker's process was computing when it died: fail, or rerun it once, alone, in another one.")        \
        X("hang_ms",                                                                                                               \
                "A worker's process that has a job and answers nothing for so long, and ten times as long as its slowest answer "  \
                "took, is killed as if it had crashed; so is one that starts for ten times as long. 0: never.")                    \
        X("predictions", "fake: zeros, computed by nobody, while all else is as with real ones; shows what the system itself "     \
                         "takes. Not of models whose outputs say only afterwards how large they are.")                             \
        X("shapes_max", "Combinations of sizes, of those that requests bring, that are kept compiled.")                            \
        X("prepared_shapes", "Combinations that are compiled before anybody asks, such as \"sequence=64,height=224\".")            \
        X("version_policy", "Which versions are served, by exactly one of its keys.")                                              \
        X("version_policy.latest", "How many, the highest numbers.")                                                               \
        X("version_policy.all", "All of them: true.")                                                                              \
        X("version_policy.specific", "These numbers.")                                                                             \
        X("ensemble", "The folder has no versions: the model is made of others.")                                                  \
        X("ensemble.members", "Names of models: NAME, the newest version that is served, or NAME:VERSION.")                        \
        X("ensemble.rule", "How their predictions are combined: none (side by side), mean, weighted_mean, majority_vote, "         \
                           "geometric_mean or maximum.")                                                                           \
        X("ensemble.weights", "Of weighted_mean, one for each member.")
