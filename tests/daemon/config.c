/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: every option has a default, and every error names file, line and key. */
#include "config.h"
#include "base/error.h"
#include "choice.h"
#include "folder.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct folder folder;

static void set_up(void)
{
        folder_make(&folder);
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(config, .init = set_up, .fini = tear_down);

static struct sl_config *read_config(const char *text)
{
        struct sl_config *config = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_config_read(folder_write(&folder, "starling.yaml", text), &config, &error), 0, "%s", error.text);
        return config;
}

static void expect_defaults(const struct sl_config *config)
{
        cr_assert_str_eq(config->name, "starling");
        cr_assert_null(config->socket_dir);
        cr_assert_eq(config->clients_max, 64);
        cr_assert_eq(config->client_arena_bytes, 1ull << 30);
        cr_assert_eq(config->client_in_flight, 4096);
        cr_assert_eq(config->uid_shapes, 60);
        cr_assert_eq(config->uid_log_lines, 120);
        cr_assert_eq(config->memory_max, 0);
        cr_assert_eq(config->staging_bytes, 0);
        cr_assert_eq(config->fuse_bytes, 64u << 20);
        cr_assert_eq(config->stats_bytes, 30ull << 20);
        cr_assert_eq(config->grace_seconds, 5);
        cr_assert_eq(config->wait, SL_WAIT_ANY);
        cr_assert_eq(config->model_defaults.segment_samples, 128);
        cr_assert_eq(config->model_defaults.lowering.batch_max, 32);
        cr_assert_eq(config->model_defaults.queue_requests, 1024);
        cr_assert_eq(config->model_defaults.worker.warmup_ms, 200);
        cr_assert_eq(config->model_defaults.worker.hang_ms, 120000);
        cr_assert_eq(config->model_defaults.worker.threads, 1);
        cr_assert_eq(config->model_defaults.batch_bytes_max, 64ull << 20);
        cr_assert_not(config->model_defaults.batch_given);
        cr_assert_eq(config->model_defaults.samples_max, 1u << 20);
        cr_assert_not(config->clients.everybody);
}

Test(config, no_file_means_defaults)
{
        struct sl_config *config = NULL;

        cr_assert_eq(sl_config_read(NULL, &config, NULL), 0);
        expect_defaults(config);
        cr_assert_null(sl_config_free(config));
        cr_assert_null(sl_config_free(NULL));
}

Test(config, an_empty_file_and_a_file_of_comments_mean_defaults)
{
        struct sl_config *config = read_config("");

        expect_defaults(config);
        sl_config_free(config);
        config = read_config("# nothing\n\n# here\n");
        expect_defaults(config);
        sl_config_free(config);
}

Test(config, every_option_is_read)
{
        struct sl_config *config = read_config("name: lab-1\n"
                                               "socket_dir: /tmp/lab\n"
                                               "access:\n"
                                               "  allow: [root, 1234, '@root', '@77']\n"
                                               "  admins: [4321]\n"
                                               "  readers: ['*']\n"
                                               "model_repositories: [/a, /b]\n"
                                               "data_folders: [/weights, /mnt/more]\n"
                                               "models: [lenet, digits]\n"
                                               "model_defaults:\n"
                                               "  backend: ref\n"
                                               "  batch_max: 16\n"
                                               "  instances: 2\n"
                                               "  threads: auto\n"
                                               "  segment_samples: 64\n"
                                               "  samples_max: 5000\n"
                                               "  queue_requests: 7\n"
                                               "  warmup_ms: 0\n"
                                               "  batch_bytes_max: 1 MiB\n"
                                               "  without_passes: [fuse-bias]\n"
                                               "  version_policy: {specific: [3, 1]}\n"
                                               "limits:\n"
                                               "  clients: 3\n"
                                               "  client: {arena_bytes: 2 MiB, in_flight: 5}\n"
                                               "  uid: {arena_bytes: 4M, in_flight: 10, shapes: 8, log_lines: 9}\n"
                                               "  memory_max: 3 GiB\n"
                                               "  staging_bytes: 1MiB\n"
                                               "  fuse_bytes: 3MiB\n"
                                               "  stats_bytes: 4194304\n"
                                               "threads:\n"
                                               "  dispatcher_cores: [1]\n"
                                               "  worker_cores: [0, 2-3]\n"
                                               "  numa_node: 0\n"
                                               "  spin_us: 10\n"
                                               "  inline_us: 7\n"
                                               "grace_seconds: 1\n"
                                               "compile: {jobs: 2, memory_bytes: 1 GiB, seconds: 30}\n"
                                               "wait: epoll\n"
                                               "log_level: debug\n"
                                               "log_format: json\n");

        cr_assert_str_eq(config->name, "lab-1");
        cr_assert_str_eq(config->socket_dir, "/tmp/lab");
        cr_assert_eq(config->clients.n_uids, 2);
        cr_assert_eq(config->clients.uids[1], 1234);
        cr_assert_eq(config->clients.n_gids, 2);
        cr_assert_eq(config->clients.gids[1], 77);
        cr_assert_eq(config->admins.uids[0], 4321);
        cr_assert(config->readers.everybody);
        cr_assert_eq(config->n_repositories, 2);
        cr_assert_str_eq(config->repositories[1], "/b");
        cr_assert_eq(config->data_folders.n, 2);
        cr_assert_str_eq(config->data_folders.paths[1], "/mnt/more");
        cr_assert_eq(config->n_models, 2);
        cr_assert_str_eq(sl_lower_options_backend(&config->model_defaults.lowering), "ref");
        cr_assert_eq(config->model_defaults.instances, 2);
        cr_assert_eq(config->model_defaults.worker.threads, 0);
        cr_assert_eq(config->model_defaults.worker.warmup_ms, 0);
        cr_assert_eq(config->model_defaults.batch_bytes_max, 1u << 20);
        cr_assert(config->model_defaults.batch_given);
        cr_assert(config->model_defaults.workers_given);
        cr_assert_eq(config->model_defaults.segment_samples, 64);
        cr_assert_neq(config->model_defaults.lowering.without_passes, 0);
        cr_assert_eq(config->model_defaults.version_policy.kind, SL_VERSIONS_SPECIFIC);
        cr_assert_eq(config->model_defaults.version_policy.n_specific, 2);
        cr_assert_eq(config->clients_max, 3);
        cr_assert_eq(config->client_arena_bytes, 2u << 20);
        cr_assert_eq(config->uid_arena_bytes, 4u << 20);
        cr_assert_eq(config->uid_in_flight, 10);
        cr_assert_eq(config->uid_shapes, 8);
        cr_assert_eq(config->uid_log_lines, 9);
        cr_assert_eq(config->memory_max, 3ull << 30);
        cr_assert_eq(config->staging_bytes, 1u << 20);
        cr_assert_eq(config->fuse_bytes, 3u << 20);
        cr_assert_eq(config->stats_bytes, 4u << 20);
        cr_assert(CPU_ISSET(1, &config->dispatcher_cores));
        cr_assert_eq(CPU_COUNT(&config->worker_cores), 3);
        cr_assert_eq(config->numa_node, 0);
        cr_assert_eq(config->spin_us, 10);
        cr_assert_eq(config->inline_us, 7);
        cr_assert_eq(config->compile_jobs, 2);
        cr_assert_eq(config->compile_memory_bytes, 1u << 30);
        cr_assert_eq(config->wait, SL_WAIT_EPOLL);
        cr_assert_eq(config->log_level, 3);
        cr_assert_eq(config->log_format, 1);
        sl_config_free(config);
}

/* What stands in the file, and what the error has to name. */
struct bad {
        char text[160];
        char place[64];
        char key[48];
        char said[64];
};

static struct bad bad_configs[] = {
        {"name: a\nlimit: 3\n", ":2:", "limit", "unknown key"},
        {"limits:\n  clients: 3\n  client:\n    arena: 1\n", ":4:", "limits.client.arena", "unknown key"},
        {"name: a\nname: b\n", ":2:", "name", "given twice"},
        {"name: a/b\n", ":1:", "name", "\"a/b\" is not a name"},
        {"name: [a]\n", ":1:", "name", "wants one value; got a list"},
        {"limits:\n  clients: 0\n", ":2:", "limits.clients", "\"0\" is not a number from 1 to 1024"},
        {"limits:\n  clients: -1\n", ":2:", "limits.clients", "\"-1\""},
        {"limits:\n  clients: 1e3\n", ":2:", "limits.clients", "\"1e3\""},
        {"limits:\n  clients:\n", ":2:", "limits.clients", "\"\""},
        {"limits: 3\n", ":1:", "limits", "wants keys with values, KEY: VALUE; got "},
        {"\nlimits:\n  client: {arena_bytes: 12 bananas}\n", ":3:", "limits.client.arena_bytes", "12 bananas"},
        {"limits:\n  staging_bytes: 99999999999999999999\n", ":2:", "limits.staging_bytes", "not a size"},
        {"limits:\n  client: {arena_bytes: 8 GiB}\n", ":1:", "limits.uid.arena_bytes", "is below"},
        {"wait: select\n", ":1:", "wait", "not one of auto, io_uring, epoll"},
        {"log_level: loud\n", ":1:", "log_level", "not one of error, warning, info, debug"},
        {"log_format: xml\n", ":1:", "log_format", "not one of text, json"},
        {"socket_dir: here\n", ":1:", "socket_dir", "absolute"},
        {"access:\n  allow: [no-such-user]\n", ":2:", "access.allow", "no user"},
        {"access:\n  readers: ['@no-such-group']\n", ":2:", "access.readers", "no group"},
        {"access:\n  admins: ['*']\n", ":2:", "access.admins", "everybody"},
        {"threads:\n  worker_cores: [0, x]\n", ":2:", "threads.worker_cores", "\"x\""},
        {"threads:\n  worker_cores: [3-1]\n", ":2:", "threads.worker_cores", "\"3-1\""},
        {"model_defaults:\n  batch_sizes: [1, 64]\n", ":2:", "model_defaults.batch_sizes", "64 is above batch_max, 32"},
        {"model_defaults:\n  batch_sizes: [3]\n", ":2:", "model_defaults.batch_sizes",
                "3 is neither a power of two nor batch_max, 32"},
        {"model_defaults:\n  batch_sizes: [0]\n", ":2:", "model_defaults.batch_sizes", "\"0\" is "},
        {"model_defaults:\n  batch_sizes: [1]\n  instances: 2\n", ":2:", "model_defaults.batch_sizes", "so does instances"},
        {"model_defaults:\n  batch_max: 256\n", ":2:", "model_defaults.batch_max", "segment_samples is 128"},
        {"model_defaults:\n  segment_samples: 8\n", ":2:", "model_defaults.segment_samples", "below batch_max, 32"},
        {"model_defaults:\n  ensemble: {members: [a]}\n", ":2:", "model_defaults.ensemble", "unknown key"},
        {"model_defaults:\n  without_passes: [magic]\n", ":2:", "model_defaults.without_passes", "magic"},
        {"model_defaults:\n  version_policy: {latest: 1, all: true}\n", ":2:", "model_defaults.version_policy", "exactly one"},
        {"models: [../etc]\n", ":1:", "models", "../etc"},
        {"model_defaults:\n  fuse: [a, auto]\n", ":2:", "model_defaults.fuse", "\"auto\" stands by itself"},
        {"model_defaults:\n  fuse: a b\n", ":2:", "model_defaults.fuse", "\"a b\" is not a name"},
        {"model_defaults:\n  fuse: {a: b}\n", ":2:", "model_defaults.fuse", "wants a list, [A, B]; got "},
        {"model_defaults:\n  fuse: |\n    auto\n", ":2:", "model_defaults.fuse", "wants a list, [A, B]; got "},
        {"model_defaults:\n  batch_sizes: 8\n", ":2:", "model_defaults.batch_sizes", "wants a list, [A, B]; got "},
        {"a: [\n", ":2:", "", ""},
        {"name: a\n\tx: 1\n", ":2:", "", ""},
        {"name: a\n---\nname: b\n", ":3:", "", "second document"},
        {"- a\n", ":1:", "", "wants keys with values, KEY: VALUE; got a list"},
        {"limits:\n  memory_max: 16 MiB\n", ":2:", "limits.memory_max", "limits.stats_bytes is 31457280"},
        {"limits:\n", ":1:", "limits", "wants keys with values, KEY: VALUE; got one value or nothing"},
        {"name: &x a\nsocket_dir: *x\n", ":2:", "socket_dir", "aliases"},
};

ParameterizedTestParameters(config, an_error_names_file_line_and_key)
{
        return cr_make_param_array(struct bad, bad_configs, sizeof(bad_configs) / sizeof(*bad_configs));
}

ParameterizedTest(struct bad *bad, config, an_error_names_file_line_and_key)
{
        struct sl_config *config = NULL;
        struct sl_error error = {""};
        const char *path = folder_write(&folder, "starling.yaml", bad->text);
        char place[640];

        cr_assert_eq(sl_config_read(path, &config, &error), -EINVAL, "accepted: %s", bad->text);
        cr_assert_null(config);
        snprintf(place, sizeof(place), "%s%s %s%s", path, bad->place, bad->key, bad->key[0] ? ": " : "");
        cr_assert_eq(strncmp(error.text, place, strlen(place)), 0, "wanted %s..., got %s", place, error.text);
        cr_assert(strstr(error.text, bad->said), "wanted \"%s\" in: %s", bad->said, error.text);
        cr_assert_null(strchr(error.text, '\n'));
}

/*
 * The least and the most of every number, and what lies beside them. @around has a %s for the value.
 */
struct bounds {
        char around[96];
        char below[24], least[24], most[24], above[24];
};

static struct bounds all_bounds[] = {
        {"limits: {clients: %s}", "0", "1", "1024", "1025"},
        {"limits: {client: {arena_bytes: %s}, uid: {arena_bytes: 16 TiB}}", "65535", "64 KiB", "16 TiB", "17592186044417"},
        {"limits: {client: {in_flight: %s}, uid: {in_flight: 1048576}}", "0", "1", "65536", "65537"},
        {"limits: {client: {arena_bytes: 64 KiB}, uid: {arena_bytes: %s}}", "65535", "64 KiB", "16 TiB", "17592186044417"},
        {"limits: {client: {in_flight: 1}, uid: {in_flight: %s}}", "0", "1", "1048576", "1048577"},
        {"limits: {uid: {shapes: %s}}", "0", "1", "1000000", "1000001"},
        {"limits: {uid: {log_lines: %s}}", "0", "1", "1000000", "1000001"},
        {"limits: {stats_bytes: 4 MiB, memory_max: %s}", "16777215", "16 MiB", "1024 TiB", "1125899906842625"},
        {"limits: {staging_bytes: %s}", "65535", "64 KiB", "1 TiB", "1099511627777"},
        {"limits: {models_max_loaded: %s}", "-1", "0", "4096", "4097"},
        {"limits: {load_wait_s: %s}", "0", "1", "86400", "86401"},
        {"limits: {fuse_bytes: %s}", "-1", "0", "1 TiB", "1099511627777"},
        {"limits: {stats_bytes: %s}", "4194303", "4 MiB", "1 GiB", "1073741825"},
        {"threads: {numa_node: %s}", "-1", "0", "1023", "1024"},
        {"threads: {spin_us: %s}", "-1", "0", "1000000", "1000001"},
        {"threads: {inline_us: %s}", "-1", "0", "50", "51"},
        {"grace_seconds: %s", "-1", "0", "3600", "3601"},
        {"compile: {jobs: %s}", "0", "1", "64", "65"},
        {"compile: {memory_bytes: %s}", "16777215", "16 MiB", "1 TiB", "1099511627777"},
        {"compile: {seconds: %s}", "0", "1", "86400", "86401"},
        {"cache: {bytes: %s}", "-1", "0", "1024 TiB", "1125899906842625"},
        {"model_defaults: {batch_max: %s, segment_samples: 65536}", "0", "1", "1024", "1025"},
        {"model_defaults: {instances: %s}", "0", "1", "64", "65"},
        {"model_defaults: {threads: %s}", "0", "1", "64", "65"},
        {"model_defaults: {segment_samples: %s, batch_max: 1}", "0", "1", "65536", "65537"},
        {"model_defaults: {samples_max: %s}", "0", "1", "1073741824", "1073741825"},
        {"model_defaults: {queue_requests: %s}", "0", "1", "1048576", "1048577"},
        {"model_defaults: {warmup_ms: %s}", "-1", "0", "60000", "60001"},
        {"model_defaults: {hang_ms: %s}", "-1", "0", "86400000", "86400001"},
        {"model_defaults: {shapes_max: %s}", "0", "1", "64", "65"},
        {"model_defaults: {idle_unload_s: %s}", "-1", "0", "31536000", "31536001"},
        {"model_defaults: {idle_standby_s: %s}", "-1", "0", "31536000", "31536001"},
        {"model_defaults: {version_policy: {latest: %s}}", "0", "1", "64", "65"},
        {"model_defaults: {version_policy: {specific: [%s]}}", "0", "1", "9223372036854775807", "9223372036854775808"},
        {"model_defaults: {tune_seconds: %s}", "0", "1", "3600", "3601"},
        {"model_defaults: {max_relative_error: %s}", "-1e-9", "0", "1", "1.001"},
        {"model_defaults: {nodes_max: %s}", "0", "1", "10000000", "10000001"},
        {"model_defaults: {model_bytes_max: %s}", "0", "1", "16 TiB", "17592186044417"},
        {"model_defaults: {tensor_bytes_max: %s}", "0", "1", "16 TiB", "17592186044417"},
        {"model_defaults: {plan_seconds: %s}", "0", "1", "86400", "86401"},
        {"model_defaults: {plan_bytes_max: %s}", "0", "1", "16 TiB", "17592186044417"},
        {"model_defaults: {workspace_bytes_max: %s}", "0", "1", "16 TiB", "17592186044417"},
        {"model_defaults: {dynamic_bytes_max: %s}", "0", "1", "16 TiB", "17592186044417"},
        {"model_defaults: {work_max: %s}", "0.9", "1", "1e18", "1.1e18"},
        {"model_defaults: {dynamic_steps_max: %s}", "0", "1", "4000000000", "4000000001"},
};

ParameterizedTestParameters(config, a_number_is_taken_from_its_least_to_its_most)
{
        return cr_make_param_array(struct bounds, all_bounds, sizeof(all_bounds) / sizeof(*all_bounds));
}

static void expect_value(const struct bounds *bounds, const char *value, bool taken)
{
        struct sl_config *config = NULL;
        struct sl_error error = {""};
        char text[160], wanted[48];

        snprintf(text, sizeof(text), bounds->around, value);
        int r = sl_config_read(folder_write(&folder, "starling.yaml", text), &config, &error);

        snprintf(wanted, sizeof(wanted), "\"%s\" is not", value);
        cr_expect_eq(r, taken ? 0 : -EINVAL, "%s: %s", text, error.text);
        cr_expect(taken || strstr(error.text, wanted), "%s: %s", text, error.text);
        sl_config_free(config);
}

ParameterizedTest(struct bounds *bounds, config, a_number_is_taken_from_its_least_to_its_most)
{
        expect_value(bounds, bounds->below, false);
        expect_value(bounds, bounds->least, true);
        expect_value(bounds, bounds->most, true);
        expect_value(bounds, bounds->above, false);
}

Test(config, a_file_that_is_not_there_is_named)
{
        struct sl_config *config = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_config_read("/nowhere/starling.yaml", &config, &error), -ENOENT);
        cr_assert(strstr(error.text, "/nowhere/starling.yaml"));
        cr_assert_eq(sl_config_read(folder.path, &config, &error), -EINVAL);
        cr_assert(strstr(error.text, "not a regular file"), "%s", error.text);
}

Test(config, a_file_above_the_limit_is_refused)
{
        struct sl_config *config = NULL;
        struct sl_error error = {""};
        const char *path = folder_write(&folder, "big.yaml", "");

        cr_assert_eq(truncate(path, 2 << 20), 0);
        cr_assert_eq(sl_config_read(path, &config, &error), -EFBIG);
        cr_assert(strstr(error.text, "the limit is 1048576"), "%s", error.text);
}

Test(config, a_key_that_is_no_text_is_named_by_its_line)
{
        static const char *const texts[] = {"name: x\n[a, b]: 1\n", "name: x\nlimits: {[a]: 1}\n", "name: x\n? {a: b}\n: 1\n"};

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                struct sl_config *config = NULL;
                struct sl_error error = {""};

                cr_assert_eq(sl_config_read(folder_write(&folder, "keys.yaml", texts[i]), &config, &error), -EINVAL);
                cr_expect(strstr(error.text, "keys.yaml:2: a key is no text"), "%s", error.text);
        }
}

/* A million bytes of @piece, which may have a %u for its number. */
static void expect_refused(const char *piece, const char *said)
{
        static char text[(1 << 20) + 64];
        struct sl_config *config = NULL;
        struct sl_error error = {""};
        size_t used = 0;

        for (unsigned i = 0; used < (1 << 20) - 64; i++)
                used += (size_t)snprintf(text + used, 64, piece, i);
        cr_assert_eq(sl_config_read(folder_write(&folder, "deep.yaml", text), &config, &error), -EINVAL);
        cr_assert(strstr(error.text, said) && !strchr(error.text, '\n'), "%s", error.text);
}

/* As libyaml reads them they would take minutes. */
Test(config, what_is_nested_deep_or_has_many_anchors_is_refused_at_once, .timeout = 20)
{
        expect_refused("[", ":1: nested deeper than 32");
        expect_refused("{a: ", ":1: nested deeper than 32");
        expect_refused("- ", ":1: nested deeper than 32");
        expect_refused("- &a%u x\n", ":257: more than 256 anchors");
}

static struct sl_model_config defaults(void)
{
        struct sl_model_config config;

        sl_model_config_init(&config);
        return config;
}

Test(config, a_models_own_file_overrides_the_defaults_that_it_names)
{
        struct sl_model_config base = defaults(), config;

        base.instances = 5;
        const char *path = folder_write(&folder, "config.yaml", "batch_max: 8\nversion_policy: {latest: 3}\n");
        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert_eq(config.lowering.batch_max, 8);
        cr_assert(config.batch_given);
        cr_assert_not(config.workers_given);
        cr_assert_eq(config.instances, 5);
        cr_assert_eq(config.version_policy.latest, 3);
        cr_assert_not(config.is_ensemble);
}

/* Of the defaults, and of options of the command line. */
Test(config, a_model_fits_what_the_defaults_say_beside_it)
{
        struct sl_model_config base = defaults(), config;
        struct sl_error error = {""};

        base.batch_sizes[0] = 32;
        base.n_batch_sizes = 1;
        cr_expect_eq(sl_model_config_check(&base, &error), 0, "%s", error.text);
        cr_expect_eq(sl_model_config_read(folder_write(&folder, "config.yaml", "batch_max: 8\n"), &base, &config, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "32 is above batch_max, 8"), "%s", error.text);
        cr_expect_eq(sl_model_config_read(
                             folder_write(&folder, "config.yaml", "batch_max: 8\nbatch_sizes: [4, 8]\n"), &base, &config, &error),
                0, "%s", error.text);
        base.lowering.batch_max = 16;
        cr_expect_eq(sl_model_config_check(&base, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "batch_sizes of model_defaults: 32 is above batch_max, 16"), "%s", error.text);
        base.lowering.batch_max = 512;
        cr_expect_eq(sl_model_config_check(&base, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "above segment_samples, 128"), "%s", error.text);
        base = defaults();
        base.n_prepared = 2;
        cr_expect_eq(
                sl_model_config_read(folder_write(&folder, "config.yaml", "shapes_max: 1\n"), &base, &config, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "prepare 2 combinations"), "%s", error.text);
}

Test(config, fuse_is_a_word_or_names)
{
        static const struct {
                const char *text;
                uint32_t fuse, n;
        } rows[] = {{"fuse: auto\n", SL_SHARING_AUTO, 0}, {"fuse: 'never'\n", SL_SHARING_NEVER, 0},
                {"fuse: [auto]\n", SL_SHARING_AUTO, 0},
                {"# \xc3\xbc, two bytes\nfuse:   auto # \xc3\xbc\nbatch_max: 8\n", SL_SHARING_AUTO, 0},
                {"{batch_max: 8, fuse: auto}\n", SL_SHARING_AUTO, 0}, {"fuse: other\n", SL_SHARING_AUTO, 1},
                {"fuse: [one, 'two:3']\n", SL_SHARING_AUTO, 2}, {"fuse:\n  - one\n  - two\n", SL_SHARING_AUTO, 2}};
        struct sl_model_config base = defaults(), config;
        struct sl_error error = {""};

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const char *path = folder_write(&folder, "config.yaml", rows[i].text);

                cr_assert_eq(sl_model_config_read(path, &base, &config, &error), 0, "%s%s", rows[i].text, error.text);
                cr_expect_eq(config.fuse, rows[i].fuse, "%s", rows[i].text);
                cr_expect_eq(config.fuse_names ? config.fuse_names->n : 0, rows[i].n, "%s", rows[i].text);
                if (i + 1 == sizeof(rows) / sizeof(*rows))
                        cr_expect_str_eq(config.fuse_names->names[1], "two");
                sl_model_config_deinit(&config);
        }
}

Test(config, an_ensemble_has_members_a_rule_and_weights)
{
        struct sl_model_config base = defaults(), config;
        const char *path = folder_write(
                &folder, "config.yaml", "ensemble:\n  members: [a, 'b:2']\n  rule: weighted_mean\n  weights: [0.25, 3]\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert(config.is_ensemble);
        cr_assert_eq(config.n_members, 2);
        cr_assert_str_eq(config.members->names[1], "b:2");
        cr_assert_eq(config.rule, SL_RULE_WEIGHTED_MEAN);
        cr_assert_float_eq(config.weights[1], 3, 0);
        sl_model_config_deinit(&config);
}

Test(config, weights_may_be_rows_of_one_for_each_class)
{
        struct sl_model_config base = defaults(), config, copy;
        const char *path = folder_write(
                &folder, "config.yaml", "ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: ['1, 0,2', '0,3 ,4']\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert_eq(config.combining->n_classes, 3);
        cr_assert_arr_eq(config.combining->class_weights, ((float[]){1, 0, 2, 0, 3, 4}), 6 * sizeof(float));
        copy = config;
        sl_model_config_hold(&copy);
        sl_model_config_deinit(&config);
        cr_assert_eq(copy.combining->class_weights[5], 4);
        sl_model_config_deinit(&copy);
}

Test(config, members_may_be_asked_until_and_have_a_quorum)
{
        struct sl_model_config base = defaults(), config;
        const char *path =
                folder_write(&folder, "config.yaml", "ensemble:\n  members: [a, b, c]\n  until: {margin: 0.25}\n  quorum: 2\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert_eq(config.combining->agree, 0);
        cr_assert_float_eq(config.combining->margin, 0.25, 0);
        cr_assert_eq(config.combining->quorum, 2);
        sl_model_config_deinit(&config);
}

Test(config, rules_of_boxes_have_outputs_and_limits)
{
        struct sl_model_config base = defaults(), config;
        const char *path = folder_write(
                &folder, "config.yaml", "ensemble:\n  members: [a, b]\n  rule: soft_nms\n  detection: {scores: s, sigma: 0.25}\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert_eq(config.rule, SL_RULE_SOFT_NMS);
        cr_assert_str_eq(config.combining->outputs[SL_BOX_SCORES], "s");
        cr_assert_str_eq(config.combining->outputs[SL_BOX_BOXES], "");
        cr_assert_float_eq(config.combining->sigma, 0.25, 0);
        cr_assert_float_eq(config.combining->score_min, 0.001, 1e-9);
        cr_assert_not(config.has_weights);
        sl_model_config_deinit(&config);
}

Test(config, a_task_has_variants_with_accuracies_and_costs)
{
        struct sl_model_config base = defaults(), config;
        const char *path = folder_write(&folder, "config.yaml",
                "task:\n  variants: [a, 'b:2']\n  accuracy: [0.5, 1]\n  cost: [2, 0.25]\n  choice: infaas\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_assert(config.task && !config.is_ensemble);
        cr_assert_eq(config.task->n, 2);
        cr_assert_str_eq(config.task->variants[1], "b:2");
        cr_assert_float_eq(config.task->accuracies[0], 0.5, 0);
        cr_assert_float_eq(config.task->costs[1], 0.25, 0);
        cr_assert_eq(config.task->policy, SL_CHOICE_infaas);
        sl_model_config_deinit(&config);
        path = folder_write(&folder, "config.yaml", "task:\n  variants: [a]\n  accuracy: [1]\n");
        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        cr_expect_null(config.task->costs);
        cr_expect_null(config.task->batches_ms);
        cr_expect_null(config.task->files);
        cr_expect_null(config.task->processor);
        cr_expect_null(config.task->version);
        cr_expect_eq(config.task->policy, SL_CHOICE_starling);
        sl_model_config_deinit(&config);
}

Test(config, a_task_has_what_was_measured_of_its_variants)
{
        struct sl_model_config base = defaults(), config;
        const char *path = folder_write(&folder, "config.yaml",
                "task:\n  variants: [a, b]\n  accuracy: [0.5, 1]\n  latency_ms: [0.5, 2]\n  batches_ms: ['0.5 0.75 1 2 3 4 5', "
                "'2']\n"
                "  files: [0123456789abcdef0123456789abcdef, '']\n  processor: 'some, family 1'\n  version: 1.2.3\n");

        cr_assert_eq(sl_model_config_read(path, &base, &config, NULL), 0);
        for (uint32_t i = 0; i < 7; i++)
                cr_expect_float_eq(config.task->batches_ms[i], ((const double[]){0.5, 0.75, 1, 2, 3, 4, 5})[i], 0);
        cr_expect_float_eq(config.task->batches_ms[7], 2, 0);
        cr_expect_float_eq(config.task->batches_ms[8], 0, 0);
        cr_expect_float_eq(config.task->latencies_ms[1], 2, 0);
        cr_expect_str_eq(config.task->files[0], "0123456789abcdef0123456789abcdef");
        cr_expect_str_eq(config.task->files[1], "");
        cr_expect_str_eq(config.task->processor, "some, family 1");
        cr_expect_str_eq(config.task->version, "1.2.3");
        cr_expect_str_eq(config.task->variants[1], "b");
        sl_model_config_deinit(&config);
}

static struct bad bad_models[] = {
        {"batch_max: 8\nbatching: triton\nbatching_sizes: [4, 16]\n", ":3:", "batching_sizes", "16 is above batch_max, 8"},
        {"batch: 1\n", ":1:", "batch", "unknown key"},
        {"backend: gpu\n", ":1:", "backend", "not one of cpu, ref"},
        {"batch_max: 4\ndevice: [gpu:0, gpu:0]\n", ":2:", "device", "gpu:0 is listed twice"},
        {"device: [gpu:0, gpu:1, gpu:2]\ninstances: 22\n", ":1:", "device", "22 workers on each of 3 GPUs"},
        {"device: gpu:x\n", ":1:", "device", "its number \"x\""},
        {"ensemble:\n  rule: mean\n", ":1:", "ensemble.members", "0 members"},
        {"ensemble:\n  members: [a]\n  rule: average\n", ":3:", "ensemble.rule", "average"},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: [1]\n", ":4:", "ensemble.weights",
                "1 weights for 2 members"},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: [0, 0]\n", ":4:", "ensemble.weights", "all are 0"},
        {"ensemble:\n  members: [a]\n  rule: weighted_mean\n  weights: [nan]\n", ":4:", "ensemble.weights", "nan"},
        {"ensemble:\n  members: [a]\n  rule: weighted_mean\n  weights: [-1]\n", ":4:", "ensemble.weights", "-1"},
        {"ensemble:\n  members: [a]\n  weights: [1]\n", ":3:", "ensemble.weights", "the rule is mean"},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: ['1,2', '1,2,3']\n", ":4:", "ensemble.weights",
                "of member 1 are for 3 classes, those of member 0 for 2"},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: ['1,0', '1,0']\n", ":4:", "ensemble.weights",
                "all are 0 of class 1"},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: ['1,inf', '1,0']\n", ":4:", "ensemble.weights",
                "\"inf\""},
        {"ensemble:\n  members: [a, b]\n  rule: weighted_mean\n  weights: ['1 2,3', '1,0']\n", ":4:", "ensemble.weights",
                "a comma"},
        {"ensemble:\n  members: [a, b]\n  rule: nms\n  weights: ['1,2', '1,2']\n", ":4:", "ensemble.weights", "the rule is nms"},
        {"ensemble:\n  members: [a]\n  rule: nms\n  detection: {overlap: 1.5}\n", ":4:", "ensemble.detection.overlap", "\"1.5\""},
        {"ensemble:\n  members: [a]\n  rule: nms\n  detection: {sigma: 1}\n", ":4:", "ensemble.detection.sigma", "the rule is nms"},
        {"ensemble:\n  members: [a]\n  rule: mean\n  detection: {overlap: 0.5}\n", ":4:", "ensemble.detection", "the rule is mean"},
        {"ensemble:\n  members: [a, b]\n  until: {agree: 3}\n", ":3:", "ensemble.until.agree",
                "3 members have to agree, the ensemble has 2"},
        {"ensemble:\n  members: [a, b]\n  until: {agree: 1}\n", ":3:", "ensemble.until.agree", "\"1\""},
        {"ensemble:\n  members: [a, b]\n  until: {margin: 0}\n", ":3:", "ensemble.until.margin", "\"0\""},
        {"ensemble:\n  members: [a, b]\n  until: {margin: nan}\n", ":3:", "ensemble.until.margin", "\"nan\""},
        {"ensemble:\n  members: [a, b]\n  until: {margin: 0.1, agree: 2}\n", ":3:", "ensemble.until", "exactly one"},
        {"ensemble:\n  members: [a, b]\n  rule: nms\n  until: {agree: 2}\n", ":4:", "ensemble.until", "the rule is nms"},
        {"ensemble:\n  members: [a, b]\n  rule: majority_vote\n  until: {margin: 0.5}\n", ":4:", "ensemble.until.margin",
                "majority_vote"},
        {"ensemble:\n  members: [a, b]\n  quorum: 3\n", ":3:", "ensemble.quorum", "\"3\""},
        {"ensemble:\n  members: [a, b]\n  quorum: 0\n", ":3:", "ensemble.quorum", "\"0\""},
        {"ensemble:\n  members: [a, b]\n  rule: none\n  quorum: 1\n", ":4:", "ensemble.quorum", "rule none"},
        {"ensemble:\n  members: [a, b]\n  rule: soft_nms\n  quorum: 1\n", ":4:", "ensemble.quorum", "rule soft_nms"},
        {"ensemble:\n  members: [a]\n  rule: stacking\n", ":1:", "ensemble.combiner", "is missing"},
        {"ensemble:\n  members: [a]\n  rule: stacking\n  combiner: ../b\n", ":4:", "ensemble.combiner", "../b"},
        {"ensemble:\n  members: [a]\n  rule: mean\n  combiner: b\n", ":4:", "ensemble.combiner", "the rule is mean"},
        {"ensemble:\n  members: [a, b]\n  rule: stacking\n  combiner: c\n  quorum: 1\n", ":5:", "ensemble.quorum", "rule stacking"},
        {"ensemble:\n  members: ['a:b']\n", ":2:", "ensemble.members", "a:b"},
        {"ensemble:\n  members: [../a]\n", ":2:", "ensemble.members", "../a"},
        {"task:\n  accuracy: [1]\n", ":1:", "task.variants", "0 variants"},
        {"task:\n  variants: [a, b]\n  accuracy: [1]\n", ":3:", "task.accuracy", "1 values for 2 variants"},
        {"task:\n  variants: [a, b]\n", ":1:", "task.accuracy", "0 values for 2 variants"},
        {"task:\n  variants: [a]\n  accuracy: [98.5]\n", ":3:", "task.accuracy", "\"98.5\""},
        {"task:\n  variants: [a]\n  accuracy: [nan]\n", ":3:", "task.accuracy", "nan"},
        {"task:\n  variants: [a, a]\n  accuracy: [1, 1]\n", ":2:", "task.variants", "\"a\" is there twice"},
        {"task:\n  variants: [../a]\n  accuracy: [1]\n", ":2:", "task.variants", "../a"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  cost: [-1]\n", ":4:", "task.cost", "-1"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  cost: [1, 2]\n", ":4:", "task.cost", "2 values for 1 variants"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  batches_ms: ['1', '2']\n", ":4:", "task.batches_ms",
                "2 values for 1 variants"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  batches_ms: ['1 x']\n", ":4:", "task.batches_ms", "\"x\""},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  batches_ms: ['1 2 3 4 5 6 7 8']\n", ":4:", "task.batches_ms", "more than 7"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  files: ['12ab']\n", ":4:", "task.files", "\"12ab\""},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  files: ['12', '']\n", ":4:", "task.files", "2 values for 1 variants"},
        {"task:\n  variants: [a]\n  accuracy: [1]\n  choice: best\n", ":4:", "task.choice", "\"best\""},
        {"task:\n  variants: [a]\n  accuracy: [1]\nensemble:\n  members: [a]\n", ":1:", "task", "stands by itself"},
        {"batching: greedy\n", ":1:", "batching", "\"greedy\""},
        {"batching: opt_wait\n", ":1:", "batching", "batching_delay_us"},
        {"batching: aimd\nbatching_sizes: [4]\n", ":1:", "batching", "batching_sizes"},
        {"batching: triton\nbatching_sizes: [4, 4]\n", ":1:", "batching", "ascend"},
        {"batching: triton\nbatching_sizes: [0]\n", ":2:", "batching_sizes", "\"0\""},
        {"batching: triton\nbatching_in_order: maybe\n", ":2:", "batching_in_order", "\"maybe\""},
        {"batching: n_ebird\n", ":1:", "batching", "batch_sizes"},
        {"batching: e_ebird\n", ":1:", "batching", "batching_rows"},
        {"batching: e_ebird\nbatching_rows: ['4']\n", ":2:", "batching_rows", "1 rows"},
        {"batching: e_ebird\nbatching_rows: ['4', '0,,1', '0', '0']\n", ":2:", "batching_rows", "\"0,,1\""},
        {"batching: e_ebird\nbatching_rows: ['4', '0,0,0,1', '0,0,2,1', '0,0,0,2']\n", ":1:", "batching", "4, 8, 16 and 32"},
        {"batch_sizes: [1, 2, 4, 8, 16]\nbatching: e_ebird\nbatching_rows: ['4', '8', '16', '32']\n", ":2:", "batching",
                "want 32 workers of 1, batch_sizes has 1"},
        {"version_policy:\n  latest: 0\n", ":2:", "version_policy.latest", "\"0\""},
        {"version_policy:\n  all: false\n", ":2:", "version_policy.all", "not true"},
        {"version_policy:\n  specific: [one]\n", ":2:", "version_policy.specific", "one"},
};

ParameterizedTestParameters(config, an_error_of_a_model_names_file_line_and_key)
{
        return cr_make_param_array(struct bad, bad_models, sizeof(bad_models) / sizeof(*bad_models));
}

ParameterizedTest(struct bad *bad, config, an_error_of_a_model_names_file_line_and_key)
{
        struct sl_model_config base = defaults(), config;
        struct sl_error error = {""};
        const char *path = folder_write(&folder, "config.yaml", bad->text);
        char place[640];

        cr_assert_eq(sl_model_config_read(path, &base, &config, &error), -EINVAL, "accepted: %s", bad->text);
        snprintf(place, sizeof(place), "%s%s %s: ", path, bad->place, bad->key);
        cr_assert_eq(strncmp(error.text, place, strlen(place)), 0, "wanted %s..., got %s", place, error.text);
        cr_assert(strstr(error.text, bad->said), "wanted \"%s\" in: %s", bad->said, error.text);
}
