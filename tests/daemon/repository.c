/* SPDX-License-Identifier: Apache-2.0 */
/* Model repositories: which names are served, and that what is broken is reported and hides nothing else. */
#include "repository.h"
#include "base/error.h"
#include "choice.h"
#include "folder.h"
#include "model_stamp.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct folder folder;
static char reports[4096];

static void set_up(void)
{
        folder_make(&folder);
        reports[0] = 0;
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(repository, .init = set_up, .fini = tear_down);

static void on_report(void *context, const char *text)
{
        (void)context;
        strncat(reports, text, sizeof(reports) - strlen(reports) - 2);
        strcat(reports, "\n");
}

static int scan_of(const char *const *models, uint32_t n_models, struct sl_repository_scan **ret_scan, struct sl_error *error)
{
        static struct sl_model_config defaults;
        const char *repository = folder.path;

        sl_model_config_init(&defaults);
        struct sl_repository_query query = {
                .repositories = &repository, .n_repositories = 1, .models = models, .n_models = n_models, .defaults = &defaults};
        return sl_repository_scan(&query, on_report, NULL, ret_scan, error);
}

static struct sl_repository_scan *scan(void)
{
        struct sl_repository_scan *result = NULL;
        struct sl_error error = {""};

        cr_assert_eq(scan_of(NULL, 0, &result, &error), 0, "%s", error.text);
        return result;
}

/* Those that can be served: "a a:1 a:2". */
static const char *names(const struct sl_repository_scan *result)
{
        static char text[1024];
        uint32_t n;
        const struct sl_model_spec *specs = sl_repository_specs(result, &n);

        text[0] = 0;
        for (uint32_t i = 0; i < n; i++) {
                if (specs[i].refused)
                        continue;
                strcat(text, text[0] ? " " : "");
                strcat(text, specs[i].name);
        }
        return text;
}

static void model(const char *path)
{
        folder_write(&folder, path, "onnx");
}

Test(repository, a_name_serves_its_newest_version_by_default)
{
        model("a/1/model.onnx");
        model("a/9/model.onnx");
        model("a/10/model.onnx");
        struct sl_repository_scan *result = scan();
        uint32_t n;
        const struct sl_model_spec *specs = sl_repository_specs(result, &n);
        char path[128];

        cr_assert_str_eq(names(result), "a");
        snprintf(path, sizeof(path), "%s/a/10/model.onnx", folder.path);
        cr_assert_str_eq(specs[0].path, path);
        cr_assert_eq(specs[0].version, 10);
        cr_assert_eq(specs[0].lowering.batch_max, 32);
        cr_assert_eq(specs[0].n_members, 0);
        cr_assert_str_eq(reports, "");
        sl_repository_scan_free(result);
}

/* In whatever order the file system lists them. */
Test(repository, of_more_versions_than_there_may_be_the_newest_are_kept)
{
        struct sl_repository_scan *result;

        for (uint32_t i = 1; i <= 300; i++) {
                char path[64];

                snprintf(path, sizeof(path), "a/%u/model.onnx", i * 7919 % 301);
                model(path);
        }
        result = scan();
        cr_expect_str_eq(names(result), "a");
        cr_expect(strstr(sl_repository_specs(result, &(uint32_t){0})->path, "/300/model.onnx"), "%s",
                sl_repository_specs(result, &(uint32_t){0})->path);
        cr_expect(strstr(reports, "44 versions more than 256: the oldest are left out"), "%s", reports);
        sl_repository_scan_free(result);
}

Test(repository, a_configuration_that_is_a_link_to_nothing_is_not_none)
{
        struct sl_repository_scan *result;
        char path[512];

        model("a/1/model.onnx");
        model("b/1/model.onnx");
        snprintf(path, sizeof(path), "%s/a/config.yaml", folder.path);
        cr_assert_eq(symlink("/nowhere/config.yaml", path), 0);
        result = scan();
        cr_expect_str_eq(names(result), "b");
        cr_expect(strstr(reports, "config.yaml"), "%s", reports);
        sl_repository_scan_free(result);
}

Test(repository, the_policy_picks_versions)
{
        for (int version = 1; version <= 4; version++) {
                char path[64];

                snprintf(path, sizeof(path), "latest/%d/model.onnx", version);
                model(path);
                snprintf(path, sizeof(path), "all/%d/model.onnx", version);
                model(path);
                snprintf(path, sizeof(path), "specific/%d/model.onnx", version);
                model(path);
        }
        folder_write(&folder, "latest/config.yaml", "version_policy: {latest: 2}\n");
        folder_write(&folder, "all/config.yaml", "version_policy: {all: true}\n");
        folder_write(&folder, "specific/config.yaml", "version_policy: {specific: [3, 1, 77]}\n");
        struct sl_repository_scan *result = scan();

        cr_assert_str_eq(names(result), "all all:1 all:2 all:3 all:4 latest latest:3 latest:4 specific specific:1 specific:3");
        sl_repository_scan_free(result);
}

Test(repository, names_are_sorted_whatever_the_order_on_disk)
{
        model("b/1/model.onnx");
        model("ab/1/model.onnx");
        model("a-b/1/model.onnx");
        model("a/1/model.onnx");
        struct sl_repository_scan *result = scan();

        cr_assert_str_eq(names(result), "a a-b ab b");
        sl_repository_scan_free(result);
}

Test(repository, an_ensemble_comes_after_its_members)
{
        model("x/1/model.onnx");
        model("y/2/model.onnx");
        folder_write(&folder, "all/config.yaml", "ensemble:\n  members: [y, 'x:1']\n  rule: maximum\nqueue_requests: 9\n");
        struct sl_repository_scan *result = scan();
        uint32_t n;
        const struct sl_model_spec *specs = sl_repository_specs(result, &n);

        cr_assert_str_eq(names(result), "x y all");
        cr_assert_null(specs[2].path);
        cr_assert_eq(specs[2].version, 0);
        cr_assert_eq(specs[2].n_members, 2);
        cr_assert_str_eq(specs[2].members[0], "y");
        cr_assert_str_eq(specs[2].members[1], "x");
        cr_assert_eq(specs[2].rule, SL_RULE_MAXIMUM);
        cr_assert_null(specs[2].weights);
        cr_assert_eq(specs[2].queue_requests, 9);
        sl_repository_scan_free(result);
}

Test(repository, a_member_may_name_the_version)
{
        model("one/7/model.onnx");
        model("two/1/model.onnx");
        model("two/2/model.onnx");
        folder_write(&folder, "two/config.yaml", "version_policy: {all: true}\n");
        folder_write(&folder, "right/config.yaml", "ensemble: {members: ['one:7', 'two:1']}\n");
        folder_write(&folder, "wrong/config.yaml", "ensemble: {members: ['one:8']}\n");
        struct sl_repository_scan *result = scan();
        uint32_t n;
        const struct sl_model_spec *specs = sl_repository_specs(result, &n);

        cr_assert_str_eq(names(result), "one two two:1 two:2 right");
        cr_assert_str_eq(specs[4].members[0], "one");
        cr_assert_str_eq(specs[4].members[1], "two:1");
        cr_assert(strstr(reports, "member \"one:8\" is not served"), "%s", reports);
        sl_repository_scan_free(result);
}

Test(repository, models_that_name_the_same_ones_share_workers)
{
        static const struct {
                const char *name, *yaml;
        } rows[] = {{"a", "fuse: [b, c]\n"}, {"b", "fuse: [c, a, b]\n"}, {"c", "fuse: [a]\n"}, {"d", "fuse: auto\n"},
                {"e", "fuse: [a, b, c]\n"}, {"f", "fuse: never\n"}};
        const struct sl_model_spec *specs;
        struct sl_repository_scan *result;
        char path[64];
        uint32_t n;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                snprintf(path, sizeof(path), "%s/1/model.onnx", rows[i].name);
                model(path);
                snprintf(path, sizeof(path), "%s/config.yaml", rows[i].name);
                folder_write(&folder, path, rows[i].yaml);
        }
        result = scan();
        specs = sl_repository_specs(result, &n);
        cr_assert_str_eq(names(result), "a b c d e f");
        cr_expect_neq(specs[0].fuse_circle, 0);
        cr_expect_eq(specs[0].fuse_circle, specs[1].fuse_circle, "each with itself, in any order");
        cr_expect_neq(specs[2].fuse_circle, specs[0].fuse_circle, "c does not name b");
        cr_expect_eq(specs[3].fuse_circle, 0);
        cr_expect_neq(specs[4].fuse_circle, specs[0].fuse_circle, "nobody names e");
        cr_expect_eq(specs[5].fuse, SL_SHARING_NEVER);
        sl_repository_scan_free(result);
}

Test(repository, who_shares_workers_with_a_stranger_is_refused)
{
        const struct sl_model_spec *specs;
        struct sl_repository_scan *result;
        uint32_t n;

        model("a/1/model.onnx");
        model("b/1/model.onnx");
        folder_write(&folder, "a/config.yaml", "fuse: [b, nowhere]\n");
        folder_write(&folder, "b/config.yaml", "fuse: [a]\n");
        folder_write(&folder, "c/config.yaml", "ensemble: {members: [b]}\n");
        model("d/1/model.onnx");
        folder_write(&folder, "d/config.yaml", "fuse: [c]\n");
        result = scan();
        specs = sl_repository_specs(result, &n);
        cr_assert_str_eq(names(result), "b c");
        cr_expect_not_null(strstr(reports, "model \"a\": fuse: \"nowhere\" is neither never nor auto nor a model that is served"),
                "%s", reports);
        cr_expect_not_null(strstr(reports, "model \"d\": fuse: \"c\" is an ensemble"), "%s", reports);
        cr_expect_str_eq(specs[0].name, "a");
        cr_expect_not_null(strstr(specs[0].refused, "nowhere"));
        sl_repository_scan_free(result);
}

Test(repository, hidden_and_foreign_entries_are_ignored)
{
        model(".git/1/model.onnx");
        model("a/.tmp/model.onnx");
        model("a/1/model.onnx");
        model("a/01/model.onnx");
        model("a/notes/model.onnx");
        folder_write(&folder, "README.md", "hello");
        struct sl_repository_scan *result = scan();

        cr_assert_str_eq(names(result), "a");
        cr_assert_str_eq(reports, "");
        sl_repository_scan_free(result);
}

Test(repository, what_is_broken_is_reported_and_hides_nothing_else)
{
        model("good/1/model.onnx");
        folder_write(&folder, "empty/readme", "");
        folder_write(&folder, "hollow/3/weights.bin", "");
        model("typo/1/model.onnx");
        folder_write(&folder, "typo/config.yaml", "batchmax: 3\n");
        model("bad name/1/model.onnx");
        model("picky/1/model.onnx");
        folder_write(&folder, "picky/config.yaml", "version_policy: {specific: [5]}\n");
        folder_write(&folder, "lost/config.yaml", "ensemble: {members: [good, nowhere]}\n");
        folder_write(&folder, "nested/config.yaml", "ensemble: {members: [good, fine]}\n");
        folder_write(&folder, "fine/config.yaml", "ensemble: {members: [good, 'good:1']}\n");
        struct sl_repository_scan *result = scan();

        cr_assert_str_eq(names(result), "good fine");
        cr_assert(strstr(reports, "/empty: no VERSION/model.onnx"), "%s", reports);
        cr_assert(strstr(reports, "/hollow/3: no model.onnx"), "%s", reports);
        cr_assert(strstr(reports, "/typo/config.yaml:1: batchmax: unknown key"), "%s", reports);
        cr_assert(strstr(reports, "/bad name: the folder is not a name"), "%s", reports);
        cr_assert(strstr(reports, "/picky: the version policy picks none"), "%s", reports);
        cr_assert(strstr(reports, "ensemble \"lost\": member \"nowhere\" is not served"), "%s", reports);
        cr_assert(strstr(reports, "ensemble \"nested\": member \"fine\" is an ensemble"), "%s", reports);
        sl_repository_scan_free(result);
}

Test(repository, only_listed_models_are_served)
{
        static const char *const wanted[] = {"b"};
        struct sl_repository_scan *result = NULL;

        model("a/1/model.onnx");
        model("b/1/model.onnx");
        cr_assert_eq(scan_of(wanted, 1, &result, NULL), 0);
        cr_assert_str_eq(names(result), "b");
        sl_repository_scan_free(result);
}

Test(repository, a_listed_model_that_is_nowhere_is_an_error)
{
        static const char *const wanted[] = {"ghost"};
        struct sl_repository_scan *result = NULL;
        struct sl_error error = {""};

        cr_assert_eq(scan_of(wanted, 1, &result, &error), -ENOENT);
        cr_assert(strstr(error.text, "\"ghost\""));
        cr_assert_null(result);
}

Test(repository, a_repository_that_cannot_be_read_is_named)
{
        struct sl_repository_scan *result = NULL;
        struct sl_error error = {""};

        strcat(folder.path, "/gone");
        cr_assert_eq(scan_of(NULL, 0, &result, &error), -ENOENT);
        cr_assert(strstr(error.text, folder.path), "%s", error.text);
        *strrchr(folder.path, '/') = 0;
}

Test(repository, links_are_followed)
{
        char from[128], to[128];

        model(".store/7/model.onnx");
        snprintf(from, sizeof(from), "%s/.store", folder.path);
        snprintf(to, sizeof(to), "%s/linked", folder.path);
        cr_assert_eq(symlink(from, to), 0);
        struct sl_repository_scan *result = scan();

        cr_assert_str_eq(names(result), "linked");
        sl_repository_scan_free(result);
}

static uint64_t stamp(void)
{
        struct sl_repository_scan *result = scan();
        uint32_t n;
        uint64_t stamp = sl_repository_specs(result, &n)[0].stamp;

        sl_repository_scan_free(result);
        return stamp;
}

Test(repository, the_stamp_changes_with_the_file_and_with_its_configuration_only)
{
        model("a/1/model.onnx");
        uint64_t first = stamp();

        cr_assert_eq(stamp(), first);
        folder_write(&folder, "a/config.yaml", "batch_max: 4\n");
        uint64_t configured = stamp();
        cr_assert_neq(configured, first);
        folder_write(&folder, "a/config.yaml", "batch_max: 4\ninstances: 3\n");
        cr_assert_eq(stamp(), configured, "workers come and go while it serves");
        folder_write(&folder, "a/1/model.onnx", "another model");
        cr_assert_neq(stamp(), configured);
}

/* The record has a word for each. */
Test(repository, the_stamp_changes_with_each_option_of_a_worker)
{
        struct sl_model_config config;
        uint64_t first;

        sl_model_config_init(&config);
        first = sl_model_stamp(&config, NULL, NULL);
        for (size_t i = 0; i < sizeof(config.worker) / sizeof(uint32_t); i++) {
                struct sl_model_config other = config;

                ((uint32_t *)&other.worker)[i]++;
                cr_expect_neq(sl_model_stamp(&other, NULL, NULL), first, "option %zu", i);
        }
}

static uint64_t stamp_of(const char *repository)
{
        struct sl_repository_scan *result;
        struct sl_error complaint, error;

        cr_assert_eq(sl_repository_scan_plain(repository, &complaint, &result, &error), 0, "%s", error.text);
        uint64_t stamp = sl_repository_find(result, "lenet")->stamp;
        sl_repository_scan_free(result);
        return stamp;
}

Test(repository, the_stamp_is_the_same_however_the_repository_is_named)
{
        model("models/lenet/1/model.onnx");
        cr_assert_eq(chdir(folder.path), 0);
        cr_assert_eq(symlink("models", "linked"), 0);
        char path[128];

        snprintf(path, sizeof(path), "%s/models", folder.path);
        cr_expect_eq(stamp_of("models"), stamp_of(path));
        cr_expect_eq(stamp_of("linked"), stamp_of(path));
        cr_expect_eq(stamp_of("./models/"), stamp_of(path));
}

/* Of one model, as its configuration has them. */
static struct sl_worker_set workers_of(const char *yaml)
{
        struct sl_repository_scan *result;
        struct sl_worker_set workers;
        uint32_t n;

        folder_write(&folder, "a/config.yaml", yaml);
        result = scan();
        workers = sl_repository_specs(result, &n)[0].workers;
        sl_repository_scan_free(result);
        return workers;
}

/* A worker on each for every one that there would be on one, the largest batches first; which GPUs they are is as their number. */
Test(repository, a_model_has_workers_on_each_of_its_gpus)
{
        struct sl_worker_set workers;

        model("a/1/model.onnx");
        workers = workers_of("batch_max: 4\ndevice: [gpu:1, gpu:0/50%]\nbatch_sizes: [1, 4]\n");
        uint64_t first = stamp();

        cr_assert_eq(workers.n, 4);
        for (uint32_t i = 0; i < 4; i++) {
                cr_expect_eq(workers.wishes[i].batch_size, i < 2 ? 4 : 1);
                cr_expect_str_eq(workers.wishes[i].gpu.name, i % 2 ? "gpu:0/50%" : "gpu:1");
        }
        workers = workers_of("batch_max: 4\ndevice: gpu:1\n");
        cr_expect_eq(workers.n, 1);
        cr_expect_eq(stamp(), first, "workers come and go while it serves");
        workers = workers_of("batch_max: 4\ndevice: gpu:*\n");
        cr_expect_eq(workers.n, 1, "how many there are is found out at the load");
        cr_expect_eq(workers.wishes[0].gpu.gpu, SL_GPU_EACH);
        cr_expect_neq(stamp(), first);
        workers = workers_of("batch_max: 4\n");
        cr_expect_neq(stamp(), first, "a plan for another kind of device");
        cr_expect_str_eq(workers.wishes[0].gpu.name, "");
}

/* ---- layouts beside the usual one ---- */

/* Every name that is served, with what of its path lies in the folder, and its version: "a=a/1/net.onnx:1". */
static const char *layout_of(const char *repository)
{
        static char text[2048];
        struct sl_repository_scan *result = NULL;
        static struct sl_model_config defaults;
        struct sl_error error = {""};
        const struct sl_model_spec *specs;
        uint32_t n;

        reports[0] = 0;
        sl_model_config_init(&defaults);
        struct sl_repository_query query = {.repositories = &repository, .n_repositories = 1, .defaults = &defaults};
        cr_assert_eq(sl_repository_scan(&query, on_report, NULL, &result, &error), 0, "%s", error.text);
        specs = sl_repository_specs(result, &n);
        text[0] = 0;
        for (uint32_t i = 0; i < n; i++) {
                size_t used = strlen(text), folder_bytes = strlen(folder.path) + 1;
                bool inside = specs[i].path && strncmp(specs[i].path, folder.path, folder_bytes - 1) == 0;

                if (!specs[i].refused)
                        snprintf(text + used, sizeof(text) - used, "%s%s=%s:%lld", used ? " " : "", specs[i].name,
                                !specs[i].path ? "" : specs[i].path + (inside ? folder_bytes : 0), (long long)specs[i].version);
        }
        sl_repository_scan_free(result);
        return text;
}

static const char *path_of(const char *name)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", folder.path, name);
        return path;
}

Test(repository, may_be_a_file_that_is_the_only_model)
{
        model("net.onnx");
        model("other.onnx");
        cr_expect_str_eq(layout_of(path_of("net.onnx")), "net=net.onnx:1");
        cr_expect_str_eq(reports, "");
        cr_assert_eq(chdir(folder.path), 0);
        cr_expect_str_eq(layout_of("net.onnx"), "net=./net.onnx:1");
}

Test(repository, may_be_a_folder_of_files_called_as_their_models_are)
{
        model("flat/a.onnx");
        model("flat/b-2.onnx");
        folder_write(&folder, "flat/a.onnx_data", "");
        folder_write(&folder, "flat/notes.txt", "");
        model("flat/c/1/model.onnx");
        cr_expect_str_eq(layout_of(path_of("flat")), "a=flat/a.onnx:1 b-2=flat/b-2.onnx:1 c=flat/c/1/model.onnx:1");
        cr_expect_str_eq(reports, "");
}

Test(repository, may_be_the_folder_of_one_model)
{
        model("net/1/model.onnx");
        model("net/3/model.onnx");
        folder_write(&folder, "net/config.yaml", "version_policy: {latest: 2}\n");
        folder_write(&folder, "net/docs/readme", "");
        cr_expect_str_eq(layout_of(path_of("net")), "net=net/3/model.onnx:3 net:1=net/1/model.onnx:1 net:3=net/3/model.onnx:3");
        cr_expect_str_eq(layout_of(path_of("net/")), "net=net//3/model.onnx:3 net:1=net//1/model.onnx:1 net:3=net//3/model.onnx:3");
        cr_expect_str_eq(reports, "");
        cr_assert_eq(chdir(path_of("net")), 0);
        cr_expect_str_eq(layout_of("."), "net=./3/model.onnx:3 net:1=./1/model.onnx:1 net:3=./3/model.onnx:3");
}

/* A model may be called as versions are. */
Test(repository, a_number_may_be_the_name_of_a_model)
{
        model("usual/2024/1/model.onnx");
        model("usual/net/1/model.onnx");
        cr_expect_str_eq(layout_of(path_of("usual")), "2024=usual/2024/1/model.onnx:1 net=usual/net/1/model.onnx:1");
        cr_expect_str_eq(reports, "");
}

Test(repository, the_only_file_of_a_version_may_have_any_name)
{
        model("r/a/1/net.onnx");
        model("r/b/1/model.onnx");
        model("r/b/1/unused.onnx");
        model("r/c/model.onnx");
        model("r/d/net.onnx");
        cr_expect_str_eq(layout_of(path_of("r")), "a=r/a/1/net.onnx:1 b=r/b/1/model.onnx:1 c=r/c/model.onnx:1 d=r/d/net.onnx:1");
        cr_expect_str_eq(reports, "");
}

Test(repository, what_is_not_plain_says_what_is_there_and_what_to_move)
{
        static const struct {
                const char *files[4], *said;
        } rows[] = {
                {{"a/1/x.onnx", "a/1/y.onnx"}, "/r/a/1: two .onnx files, \"x.onnx\" and \"y.onnx\": call the one that this version "
                                               "is model.onnx, and move the "
                                               "other to a folder NAME/1 of its own\n"},
                {{"a/x.onnx", "a/y.onnx", "a/z.onnx"}, "/r/a: no VERSION/model.onnx, but 3 .onnx files, \"x.onnx\", \"y.onnx\" and "
                                                       "others: move each to NAME/1/model.onnx, "
                                                       "or serve this folder itself\n"},
                {{"a/onnx/model.onnx", "a/config.json"},
                        "/r/a: no VERSION/model.onnx: there is onnx/model.onnx: move it to 1/model.onnx\n"},
                {{"a/1/saved/deep/net.onnx"},
                        "/r/a/1: no model.onnx in this version: there is saved/deep/net.onnx: move it to this folder\n"},
                {{"a/2/weights.bin"}, "/r/a/2: no model.onnx in this version: it holds weights.bin\n"},
                {{"a/1/model.onnx", "a/late.onnx"},
                        "/r/a/late.onnx: it lies beside the folders of versions, and is not served: move it into one\n"},
                {{"a.onnx", "a/1/model.onnx"},
                        "/r: the file a.onnx and the folder a are both the model \"a\": move one of them away\n"},
                {{"my model.onnx"},
                        "/r/my model.onnx: the name before .onnx is not a name: 1 to 1024 bytes of letters, digits, - _ "
                        ". and visible characters beyond ASCII, in UTF-8 (no dot at the start)\n"},
                {{"tokenizer.json", "vocab.txt"},
                        "/r: no NAME/VERSION/model.onnx and no NAME.onnx: it holds tokenizer.json, vocab.txt\n"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                char path[64], said[512];

                for (int k = 0; k < 4 && rows[i].files[k]; k++) {
                        snprintf(path, sizeof(path), "%zu/r/%s", i, rows[i].files[k]);
                        model(path);
                }
                snprintf(path, sizeof(path), "%zu/r", i);
                (void)layout_of(path_of(path));
                snprintf(said, sizeof(said), "%s/%zu%s", folder.path, i, rows[i].said);
                cr_expect_str_eq(reports, said);
        }
}

/* ---- names ---- */

static void named(const char *path, const char *name)
{
        char text[2200];

        snprintf(text, sizeof(text), "name: \"%s\"\n", name);
        folder_write(&folder, path, text);
}

/* Of @length times the character @character, and an end. */
static const char *long_name(char *ret_name, const char *character, size_t length, const char *end)
{
        ret_name[0] = 0;
        for (size_t i = 0; i < length; i++)
                strcat(ret_name, character);
        return strcat(ret_name, end);
}

Test(repository, a_model_is_called_as_its_configuration_says)
{
        static char name[2048], other[2048], versioned[2064], odd[2048];
        struct sl_repository_scan *result;
        struct sl_error error = {""};
        const char *wanted = other;

        model("a/1/model.onnx");
        model("b/1/model.onnx");
        model("b/3/model.onnx");
        model("c/1/model.onnx");
        model("d/1/model.onnx");
        folder_write(&folder, "d/config.yaml", "batch_max: 4\n");
        named("a/config.yaml", long_name(name, "n", 1023, "1"));
        snprintf(versioned, sizeof(versioned), "version_policy: {all: true}\nname: %s\n", long_name(other, "n", 1023, "2"));
        folder_write(&folder, "b/config.yaml", versioned);
        named("c/config.yaml", long_name(odd, "\xe5\x90\x8d", 341, ""));
        result = scan();
        cr_expect_str_eq(reports, "");
        snprintf(versioned, sizeof(versioned), "%s:3", other);
        cr_expect_not_null(sl_repository_find(result, name));
        cr_expect_not_null(sl_repository_find(result, other));
        cr_expect_eq(sl_repository_find(result, versioned)->version, 3);
        cr_expect_not_null(sl_repository_find(result, odd));
        cr_expect_not_null(sl_repository_find(result, "d"));
        cr_expect_null(sl_repository_find(result, "a"));
        sl_repository_scan_free(result);
        cr_assert_eq(scan_of(&wanted, 1, &result, &error), 0, "%s", error.text);
        cr_expect_not_null(sl_repository_find(result, other));
        cr_expect_null(sl_repository_find(result, name), "only that one was asked for");
        sl_repository_scan_free(result);
        wanted = "a";
        cr_expect_eq(scan_of(&wanted, 1, &result, &error), -ENOENT, "nothing is called so any more");
}

Test(repository, a_name_that_no_model_has_is_one_line_with_value_and_limit)
{
        static const struct {
                const char *character, *end, *said;
                size_t length;
        } rows[] = {{"n", "", "\" is not a name: it has 1025 bytes, a model's has at most 1024\n", 1025},
                {"\xe5\x90\x8d", "", "\" is not a name: it has 1026 bytes, a model's has at most 1024\n", 342},
                {"n", "\xe2\x80\xae", "\" is not a name: 1 to 1024 bytes of ", 3},
                {"n", "\xc2\xa0", "\" is not a name: 1 to 1024 bytes ", 3},
                {"a b", "", "\"a b\" is not a name: 1 to 1024 bytes ", 1},
                {"a/", "b", "\"a/b\" is not a name: 1 to 1024 bytes ", 1},
                {"a", ":2", "\"a:2\" is not a name: 1 to 1024 bytes ", 1}};
        static char name[4096];

        model("a/1/model.onnx");
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                reports[0] = 0;
                named("a/config.yaml", long_name(name, rows[i].character, rows[i].length, rows[i].end));

                struct sl_repository_scan *result = scan();

                cr_expect_not_null(strstr(reports, "/a/config.yaml:1: name: \""), "%s", reports);
                cr_expect_not_null(strstr(reports, rows[i].said), "%zu: %s", i, reports);
                cr_expect_eq(strchr(reports, '\n'), reports + strlen(reports) - 1);
                cr_expect_str_eq(names(result), "");
                sl_repository_scan_free(result);
        }
}

/* Whichever folder comes first: neither of two that are called alike is served, and their twins in other repositories wait. */
Test(repository, of_two_models_of_one_name_neither_is_served)
{
        struct sl_repository_scan *result;

        model("a/1/model.onnx");
        model("a/2/model.onnx");
        folder_write(&folder, "a/config.yaml", "version_policy: {all: true}\n");
        model("b/1/model.onnx");
        named("b/config.yaml", "a");
        model("c.onnx");
        model("c/1/model.onnx");
        named("c/config.yaml", "d");
        result = scan();
        cr_expect_str_eq(names(result), "c d", "a folder that is called otherwise is no twin of a file");
        cr_expect_not_null(strstr(reports, "two models are called \"a\", by their folders or the key name"), "%s", reports);
        cr_expect_not_null(sl_repository_find(result, "a")->refused);
        sl_repository_scan_free(result);
}

Test(repository, a_file_that_is_no_model_is_no_repository)
{
        struct sl_repository_scan *result = NULL;
        struct sl_error complaint = {""}, error = {""};

        folder_write(&folder, "net.pb", "");
        cr_expect_eq(sl_repository_scan_plain(path_of("net.pb"), &complaint, &result, &error), -ENOTDIR);
        cr_expect_not_null(strstr(error.text, "net.pb\": a file, and none that is called NAME.onnx"), "%s", error.text);
}

/* A file beside it whose name begins as its own does is its own; another model's is not. */
Test(repository, the_stamp_of_a_file_among_others_is_its_own)
{
        char *repository;
        uint64_t first;

        model("flat/lenet.onnx");
        model("flat/other.onnx");
        folder_write(&folder, "flat/lenet.onnx.data", "1");
        repository = strdup(path_of("flat"));
        first = stamp_of(repository);
        folder_write(&folder, "flat/other.onnx", "another model");
        folder_write(&folder, "flat/log", "a line");
        cr_expect_eq(stamp_of(repository), first);
        folder_write(&folder, "flat/lenet.onnx.data", "22");
        cr_expect_neq(stamp_of(repository), first);
        free(repository);
}

/* A task is a name of its own, and no model; what it lacks is told, and it is there without it. */
Test(repository, a_task_names_models_and_ensembles_and_is_none)
{
        model("one/1/model.onnx");
        folder_write(&folder, "mean/config.yaml", "ensemble: {members: [one]}\n");
        folder_write(&folder, "read/config.yaml",
                "task: {variants: [one, mean, nowhere], accuracy: [0.5, 0.75, 1], choice: accurate}\n");
        folder_write(&folder, "again/config.yaml", "name: another\ntask: {variants: [read], accuracy: [1]}\n");
        folder_write(&folder, "full/config.yaml", "task: {variants: [one], accuracy: [1]}\n");
        folder_write(&folder, "of/config.yaml", "ensemble: {members: [read]}\n");
        model("full/1/model.onnx");
        struct sl_repository_scan *result = scan();
        uint32_t n;
        const struct sl_task_spec *tasks = sl_repository_tasks(result, &n);

        cr_assert_str_eq(names(result), "one mean");
        cr_assert_eq(n, 1);
        cr_expect_str_eq(tasks[0].name, "read");
        cr_expect_eq(tasks[0].n, 3);
        cr_expect_str_eq(tasks[0].variants[1], "mean");
        cr_expect_float_eq(tasks[0].accuracies[1], 0.75, 0);
        cr_expect_null(tasks[0].costs);
        cr_expect_str_eq(sl_choice_policy_name(tasks[0].policy), "accurate");
        cr_expect(strstr(reports, "task \"read\": variant \"nowhere\" is not in the repository"), "%s", reports);
        cr_expect(strstr(reports, "task \"another\": variant \"read\" is a task"), "%s", reports);
        cr_expect(strstr(reports, "full: a task has no versions of its own"), "%s", reports);
        cr_expect(strstr(reports, "ensemble \"of\": member \"read\" is a task"), "%s", reports);
        sl_repository_scan_free(result);
}
