/* SPDX-License-Identifier: Apache-2.0 */
/* Triton's config.pbtxt: what of it becomes config.yaml is what the runtime then reads, and what is left has a note with its line.
 */
#include "base/error.h"
#include "folder.h"
#include "model_config.h"
#include "pbtxt.h"
#include "triton_model.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct folder folder;
static struct triton_model model;
static struct sl_error error;

static void set_up(void)
{
        folder_make(&folder);
}

static void tear_down(void)
{
        triton_model_deinit(&model);
        folder_remove(&folder);
}

TestSuite(import_triton, .init = set_up, .fini = tear_down);

static int translate(const char *text)
{
        char path[128];

        snprintf(path, sizeof(path), "%s", folder_write(&folder, "net/config.pbtxt", text));
        triton_model_deinit(&model);
        return triton_model_translate(path, "net", &model, &error);
}

/* As the daemon reads what was made of @text. */
static struct sl_model_config config_of(const char *text)
{
        struct sl_model_config defaults, config;
        char path[128];

        cr_assert_eq(translate(text), 0, "%s", error.text);
        sl_model_config_init(&defaults);
        snprintf(path, sizeof(path), "%s", folder_write(&folder, "net/config.yaml", model.yaml));
        cr_assert_eq(sl_model_config_read(path, &defaults, &config, &error), 0, "%s\n%s", error.text, model.yaml);
        return config;
}

static void expect_note(const char *note)
{
        cr_expect_not_null(strstr(model.notes, note), "%s is not in:\n%s", note, model.notes);
}

Test(import_triton, what_has_a_counterpart_is_what_the_runtime_reads)
{
        struct sl_model_config config = config_of("name: 'net' platform: \"onnxruntime_onnx\"\n"
                                                  "max_batch_size: 256 # more than a segment\n"
                                                  "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 3, -1 ] } ]\n"
                                                  "output { name: \"y\" data_type: TYPE_FP32 dims: 10 }\n"
                                                  "version_policy: { specific: { versions: [ 1, 3 ] } };\n"
                                                  "instance_group [ { count: 2 kind: KIND_CPU }, { count: 3 } ]\n"
                                                  "dynamic_batching { default_queue_policy < max_queue_size: 50 > }\n");

        cr_expect_str_eq(model.notes, "");
        cr_expect_eq(config.lowering.batch_max, 256);
        cr_expect_eq(config.segment_samples, 256);
        cr_expect_eq(config.instances, 5);
        cr_expect_eq(config.queue_requests, 50);
        cr_expect_eq(config.version_policy.kind, SL_VERSIONS_SPECIFIC);
        cr_expect_eq(config.version_policy.n_specific, 2);
        cr_expect_eq(config.version_policy.specific[1], 3);
}

Test(import_triton, no_batching_is_batches_of_one)
{
        cr_expect_eq(config_of("max_batch_size: 0").lowering.batch_max, 1);
        cr_expect_eq(config_of("").lowering.batch_max, 32);
}

Test(import_triton, every_policy_of_versions_has_its_counterpart)
{
        cr_expect_eq(config_of("version_policy { all { } }").version_policy.kind, SL_VERSIONS_ALL);
        cr_expect_eq(config_of("version_policy { latest { num_versions: 4 } }").version_policy.latest, 4);
}

Test(import_triton, what_is_beyond_a_limit_is_cut_to_it_and_noted)
{
        cr_expect_eq(config_of("max_batch_size: 5000").lowering.batch_max, 1024);
        expect_note("1: max_batch_size: batch_max is at most 1024");
        cr_expect_eq(config_of("\ninstance_group { count: 100 }").instances, 64);
        expect_note("2: instance_group: instances are at most 64");
        cr_expect_eq(config_of("instance_group [ { count: 18446744073709551615 }, { count: 2 } ]").instances, 64);
        cr_expect_eq(
                config_of("\ndynamic_batching { default_queue_policy { max_queue_size: 10000000 } }").queue_requests, 1u << 20);
        expect_note("2: max_queue_size: queue_requests is at most 1048576");
        cr_expect_eq(config_of("version_policy {\nlatest { num_versions: 4294967296 } }").version_policy.latest, 64);
        expect_note("2: latest: version_policy.latest is 1 to 64");
        cr_expect_eq(config_of("version_policy { latest { num_versions: 0 } }").version_policy.latest, 1);
        expect_note("1: latest: version_policy.latest is 1 to 64");
        cr_expect_eq(config_of("version_policy { latest { num_versions: -3 } }").version_policy.latest, 1);
        expect_note("1: latest: version_policy.latest is 1 to 64");
        cr_expect_eq(config_of("version_policy { latest { } }").version_policy.latest, 1);
        cr_expect_str_eq(model.notes, "");
}

/* A version that is left out would be served by nobody, and none at all would be the newest. */
Test(import_triton, versions_that_cannot_be_are_refused_with_their_line)
{
        char many[1024] = "version_policy { specific { versions: [ 1";

        cr_expect_eq(translate("version_policy { specific {\nversions: [ 5, -1 ] } }"), -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "config.pbtxt:2: versions: \"-1\" is not a number from 1 to"), "%s", error.text);
        cr_expect_eq(translate("version_policy { specific { versions: 0 } }"), -ENOTSUP);
        cr_expect_eq(translate("version_policy { specific { versions: 9223372036854775808 } }"), -ENOTSUP);
        cr_expect_eq(translate("\nversion_policy { specific { } }"), -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "config.pbtxt:2: specific: 0 versions, wanted 1 to "), "%s", error.text);
        for (int i = 0; i < SL_SPECIFIC_MAX; i++)
                strcat(many, ", 7");
        strcat(many, " ] } }");
        cr_expect_eq(translate(many), -ENOTSUP);
}

Test(import_triton, what_has_no_counterpart_is_named_with_its_line)
{
        config_of("sequence_batching { max_sequence_idle_microseconds: 5 }\n"
                  "dynamic_batching { preferred_batch_size: [ 4,\n 8 ] max_queue_delay_microseconds: 100 }\n"
                  "instance_group { kind: KIND_GPU gpus: 0 }\n"
                  "input { name: 'x' reshape { shape: [ ] } }\n"
                  "default_model_filename: 'net.onnx'\n"
                  "zebra: 1\n");
        expect_note("1: sequence_batching: no counterpart");
        expect_note("2: preferred_batch_size: a free worker takes what waits, up to batch_max. Triton's: batching: triton, "
                    "batching_sizes");
        expect_note("3: max_queue_delay_microseconds: no worker waits for more while it could compute. Triton's: batching: triton, "
                    "batching_delay_us");
        expect_note("4: kind: workers run on CPU cores, unless device in config.yaml names a GPU");
        expect_note("4: gpus: device: [gpu:N, ...] names GPUs");
        expect_note("5: reshape: ");
        expect_note("6: default_model_filename: ");
        expect_note("7: zebra: not known");
}

#define PORTS                                                                                                                      \
        "platform: 'ensemble' input { name: 'IN' } output [ { name: 'A' }, { name: 'B' } ]\n"                                      \
        "ensemble_scheduling { step [\n"

Test(import_triton, steps_side_by_side_are_an_ensemble)
{
        struct sl_model_config config = config_of(PORTS
                "{ model_name: 'a' model_version: -1 input_map { key: 'x' value: 'IN' } output_map { key: 'y' value: 'A' } },\n"
                "{ model_name: 'b' model_version: 3 input_map { key: 'x' value: 'IN' } output_map { key: 'y' value: 'B' } } ] }");

        cr_assert(config.is_ensemble);
        cr_assert_eq(config.n_members, 2);
        cr_expect_str_eq(config.members->names[0], "a");
        cr_expect_str_eq(config.members->names[1], "b:3");
        cr_expect_eq(config.rule, SL_RULE_NONE);
        sl_model_config_deinit(&config);
}

Test(import_triton, a_pipeline_is_refused_with_the_tensor_between_its_steps)
{
        int result = translate(PORTS
                "{ model_name: 'a' model_version: -1 input_map { key: 'x' value: 'IN' } output_map { key: 'y' value: 'MID' } },\n"
                "{ model_name: 'b' model_version: -1 input_map { key: 'x' value: 'MID' } output_map { key: 'y' value: 'A' } } ] }");

        cr_expect_eq(result, -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "config.pbtxt:3: a pipeline: \"MID\""), "%s", error.text);
}

Test(import_triton, names_that_would_be_something_else_in_yaml_are_refused)
{
        cr_expect_eq(translate(PORTS "{ model_name: 'a\", evil: [\"' } ] }"), -ENOTSUP);
        cr_expect_eq(translate(PORTS "{ model_name: 'a' model_version: x } ] }"), -ENOTSUP);
}

Test(import_triton, what_is_no_onnx_model_is_refused)
{
        cr_expect_eq(translate("backend: \"python\""), -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "config.pbtxt:1: backend \"python\": only ONNX files are served"), "%s", error.text);
}

Test(import_triton, a_file_that_is_no_text_format_is_refused_with_its_line)
{
        static const char *const wrong[] = {
                "a: 1\nb", "a: 1\nb:", "a: 1\nb {", "a: 1\nb: [1", "a: 1\nb: 'x", "a: 1\n}", "a: 1\nb c", "a: 1\n: 3"};

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                cr_expect_eq(translate(wrong[i]), -EINVAL, "%s", wrong[i]);
                cr_expect_not_null(strstr(error.text, "config.pbtxt:2: "), "%s: %s", wrong[i], error.text);
        }
}

Test(import_triton, strings_have_escapes_and_adjacent_ones_are_one)
{
        struct pbtxt *file;
        char path[128];

        snprintf(path, sizeof(path), "%s", folder_write(&folder, "x", "a: \"q\\\"\" 'r\\n' # c\n\"\" b: [ ] c: [1, {d: -2.5e+3}]"));
        cr_assert_eq(pbtxt_read(path, &file, &error), 0, "%s", error.text);
        const struct pbtxt_field *a = pbtxt_first(file), *c = pbtxt_find(a, "c");
        cr_expect_str_eq(a->value, "q\"r\n");
        cr_expect_null(pbtxt_find(a, "b"));
        cr_expect_str_eq(c->value, "1");
        cr_expect_null(c->next->value);
        cr_expect_str_eq(c->next->first->value, "-2.5e+3");
        pbtxt_free(file);
}

Test(import_triton, nesting_has_a_bound)
{
        char text[2 * 40 + 1] = "";

        for (int i = 0; i < 40; i++)
                strcat(text, "a{");
        cr_expect_eq(translate(text), -EINVAL);
        cr_expect_not_null(strstr(error.text, "nested too deeply"), "%s", error.text);
}

/* Under AddressSanitizer this finds reads and writes outside of the text. */
Test(import_triton, damaged_files_are_read_or_refused)
{
        static const char good[] =
                PORTS "{ model_name: 'a' \"b\" model_version: -1 input_map { key: 'x' value: 'IN' } } ] }\n"
                      "instance_group [ { count: 2 }, < kind: KIND_GPU gpus: [ 0, 1 ] > ]; max_batch_size: 8 # c\n";
        static const char bytes[] = " \n\"'\\{}[]<>:,;#a1";
        uint32_t seed = 1, refused = 0;

        for (int round = 0; round < 2000; round++) {
                char text[sizeof(good)];

                memcpy(text, good, sizeof(good));
                for (int i = 0; i < 3; i++) {
                        seed = seed * 1664525u + 1013904223u;
                        text[(seed >> 8) % (sizeof(good) - 1)] = bytes[(seed >> 4) % (sizeof(bytes) - 1)];
                }
                int result = translate(text);
                cr_assert(result == 0 || result == -EINVAL || result == -ENOTSUP, "%d: %s", result, text);
                refused += result < 0;
        }
        cr_expect(refused > 0 && refused < 2000, "%u", refused);
}

Test(import_triton, a_repository_is_written_once_and_what_is_there_is_left_alone)
{
        char command[512];

        folder_write(&folder, "models/a/config.pbtxt", "max_batch_size: 4");
        folder_write(&folder, "models/b/config.pbtxt", "max_batch_size: 8");
        folder_write(&folder, "models/b/config.yaml", "batch_max: 2\n");
        snprintf(command, sizeof(command), "%s import-triton %s/models --write >%s/out 2>&1", STARLING, folder.path, folder.path);
        cr_expect_eq(WEXITSTATUS(system(command)), 1, "one of them was there");
        snprintf(command, sizeof(command),
                "grep -qx 'batch_max: 4' %s/models/a/config.yaml && grep -qx 'batch_max: 2' %s/models/b/config.yaml", folder.path,
                folder.path);
        cr_expect_eq(system(command), 0);
        snprintf(command, sizeof(command), "cd %s/models/a && %s import-triton . | grep -qx 'batch_max: 4'", folder.path, STARLING);
        cr_expect_eq(system(command), 0);
}
