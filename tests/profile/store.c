/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the store of profiles: what goes in comes out, a worker has one profile, what is no store of ours is refused.
 */
#include "base/error.h"
#include "profile_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[96];
static struct sl_error error;

static void setup(void)
{
        strcpy(folder, "/tmp/store-XXXXXX");
        cr_assert_not_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/profiles.db", folder);
}

static void teardown(void)
{
        unlink(path);
        rmdir(folder);
}

TestSuite(profile_store, .init = setup, .fini = teardown);

static struct sl_worker_profile some_profile(uint64_t batch)
{
        struct sl_worker_profile profile;

        sl_worker_profile_init(&profile);
        strcpy(profile.host, "here");
        strcpy(profile.model, "lenet");
        strcpy(profile.origin, "measured");
        profile.batch = batch;
        profile.latency_p50_ns = 0.1 + 1.0 / 3;
        return profile;
}

static struct sl_profile_store *open_store(void)
{
        struct sl_profile_store *store = NULL;

        cr_assert_eq(sl_profile_store_open(path, true, &store, &error), 0, "%s", error.text);
        return store;
}

Test(profile_store, what_goes_in_comes_out)
{
        struct sl_worker_profile in = some_profile(4), out;
        struct sl_profile_store *store = open_store();

        cr_assert_eq(sl_profile_store_put(store, &in, 1, &error), 0, "%s", error.text);
        cr_assert_eq(sl_profile_store_find(store, &in, &out, &error), 0, "%s", error.text);
        cr_expect(sl_profile_is_same(&in, &out, false));
        cr_expect_eq(out.latency_p50_ns, in.latency_p50_ns);
        cr_expect(isnan(out.slowdown), "what is unknown stays so");
        in.batch = 8;
        cr_expect_eq(sl_profile_store_find(store, &in, &out, &error), -ENOENT);
        sl_profile_store_free(store);
}

Test(profile_store, a_worker_has_one_profile)
{
        struct sl_worker_profile profiles[] = {some_profile(1), some_profile(2), some_profile(2)};
        struct sl_profile_list list = {.n = 0};
        struct sl_profile_store *store = open_store();

        profiles[2].latency_p50_ns = 7;
        cr_assert_eq(sl_profile_store_put(store, profiles, 3, &error), 0, "%s", error.text);
        cr_assert_eq(sl_profile_store_read(store, &list, &error), 0, "%s", error.text);
        cr_assert_eq(list.n, 2);
        cr_expect_eq(list.items[1].latency_p50_ns, 7);
        sl_profile_list_deinit(&list);
        sl_profile_store_free(store);
}

static void run_statement(const char *statement)
{
        sqlite3 *database;

        cr_assert_eq(sqlite3_open(path, &database), SQLITE_OK);
        cr_assert_eq(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
}

static void expect_refused(int code, const char *words)
{
        struct sl_profile_store *store;

        cr_expect_eq(sl_profile_store_open(path, true, &store, &error), -code);
        cr_expect_not_null(strstr(error.text, words), "%s", error.text);
        cr_expect_not_null(strstr(error.text, path), "%s", error.text);
}

Test(profile_store, a_newer_schema_is_refused_by_both_numbers)
{
        sl_profile_store_free(open_store());
        run_statement("PRAGMA user_version = 9");
        expect_refused(EPROTONOSUPPORT, "schema version 9; this program knows up to 1");
}

Test(profile_store, a_database_of_another_program_is_refused)
{
        run_statement("CREATE TABLE a (b)");
        expect_refused(EMEDIUMTYPE, "another program");
}

Test(profile_store, what_is_no_database_is_refused)
{
        FILE *file = fopen(path, "w");

        for (int i = 0; i < 1000; i++)
                fprintf(file, "not a database\n");
        fclose(file);
        expect_refused(EMEDIUMTYPE, "is no database");
}
