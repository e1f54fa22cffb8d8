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
        expect_refused(EPROTONOSUPPORT, "schema version 9; this program knows up to 2");
}

/* What the first schema was: the fields of today but threads, which its key did not have. */
static void make_first_schema(void)
{
        static const char *const types[] = {" TEXT NOT NULL, ", " INTEGER NOT NULL, ", " REAL, "};
        char text[8192] = "CREATE TABLE profile (", names[1024] = "";

        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                if (strcmp(field->name, "threads") == 0)
                        continue;
                strcat(strcat(text, field->name), types[field->kind]);
                if (field->is_key)
                        strcat(strcat(names, *names ? ", " : ""), field->name);
        }
        strcat(strcat(strcat(text, "PRIMARY KEY ("), names), ")) WITHOUT ROWID;");
        run_statement("DROP TABLE profile");
        run_statement(text);
        run_statement("INSERT INTO profile VALUES ('here', '', '', 'lenet', '', '', '', 4, '', '', '', '', '', '', 'measured', '', "
                      "9, 6, 1, 7, 5, 8, 9, 10, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1)");
        run_statement("PRAGMA user_version = 1");
}

static void expect_row_of_first_schema(struct sl_profile_store *store)
{
        struct sl_worker_profile wanted = some_profile(4), out;

        cr_assert_eq(sl_profile_store_find(store, &wanted, &out, &error), 0, "%s", error.text);
        cr_expect_eq(out.threads, 1);
        cr_expect_eq(out.latency_p50_ns, 7);
        wanted.threads = 2;
        cr_expect_eq(sl_profile_store_find(store, &wanted, &out, &error), -ENOENT);
}

Test(profile_store, a_store_of_the_first_schema_has_one_thread_in_each_row)
{
        struct sl_worker_profile team = some_profile(4), out;
        struct sl_profile_list list = {.n = 0};
        struct sl_profile_store *store = NULL;

        sl_profile_store_free(open_store());
        make_first_schema();
        cr_assert_eq(sl_profile_store_open(path, false, &store, &error), 0, "%s", error.text);
        expect_row_of_first_schema(store);
        sl_profile_store_free(store);
        store = open_store();
        expect_row_of_first_schema(store);
        team.threads = 2;
        cr_assert_eq(sl_profile_store_put(store, &team, 1, &error), 0, "%s", error.text);
        cr_assert_eq(sl_profile_store_find(store, &team, &out, &error), 0, "%s", error.text);
        cr_assert_eq(sl_profile_store_read(store, &list, &error), 0, "%s", error.text);
        cr_assert_eq(list.n, 2, "a team is a worker of its own");
        cr_expect_eq(list.items[1].threads, 2);
        sl_profile_list_deinit(&list);
        sl_profile_store_free(store);
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
