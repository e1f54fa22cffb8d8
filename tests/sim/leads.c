/* SPDX-License-Identifier: Apache-2.0 */
/* The index of names that others follow, against a look at every name: where all is of few files, and in a wide fleet. */
#include "leads.h"

#include "rounds.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define CROWD 24u
#define WIDE  SL_FLEET_NAMES_MAX

struct bed {
        struct sl_fleet fleet;
        struct sl_fleet_name names[WIDE];
        struct sl_leads leads;
        uint64_t seed;
        uint32_t keys; /* files, models and open names are 1 to that */
};

static uint32_t below(struct bed *bed, uint32_t n)
{
        bed->seed = bed->seed * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)((bed->seed >> 33) % n);
}

/* A model began once, under however many names it serves. */
static uint64_t begun_of(uint64_t model)
{
        return 1 + model * 7 % 11;
}

static void fill_name(struct bed *bed, struct sl_fleet_name *name)
{
        *name = (struct sl_fleet_name){
                .used = below(bed, 8) != 0,
                .kind = (enum sl_fleet_kind)below(bed, 3),
                .want = below(bed, 3),
                .file = 1 + below(bed, bed->keys),
                .open = 1 + below(bed, bed->keys),
                .needs_base = below(bed, 2),
                .serves = below(bed, 3),
                .model = 1 + below(bed, bed->keys),
                .rests = below(bed, 4) == 0,
                .standby = below(bed, 3),
                .load = (enum sl_fleet_load)below(bed, SL_FLEET_LOAD_FAILED + 1),
                .load_want = below(bed, 3),
                .load_file = below(bed, 2) ? 1 + below(bed, bed->keys) : 0,
                .load_since_ns = below(bed, 100),
        };
        name->begun = begun_of(name->model);
}

static void fill(struct bed *bed, uint64_t seed, uint32_t n, uint32_t keys)
{
        bed->seed = seed;
        bed->keys = keys;
        bed->fleet = (struct sl_fleet){.n = n, .names = bed->names};
        bed->leads.fleet = NULL;
        for (uint32_t i = 0; i < n; i++)
                fill_name(bed, &bed->names[i]);
        sl_leads_fill(&bed->leads, &bed->fleet);
}

/* ---- each rule, of one name ---- */

static bool serves(const struct sl_fleet_name *name)
{
        return name->used && name->kind != SL_FLEET_ENSEMBLE && name->want > 0 && name->serves == name->want && !name->rests;
}

static bool is_wanted_standby(const struct sl_fleet_name *name)
{
        return name->used && name->want > 0 && name->standby == name->want;
}

static bool loads(const struct sl_fleet_name *name)
{
        return name->used && name->load != SL_FLEET_LOAD_NONE && name->load != SL_FLEET_LOAD_FAILED;
}

static bool loads_what_is_wanted(const struct sl_fleet_name *name)
{
        return loads(name) && name->want > 0 && name->load_want == name->want;
}

static bool loads_file(const struct sl_fleet_name *name, uint64_t file)
{
        if (name->load_file)
                return loads(name) && name->load_file == file;
        return loads_what_is_wanted(name) && name->file == file;
}

/* ---- all names, one after the other ---- */

/* One that may be led by began last of those: any that did will do. */
static void expect_newest(const struct bed *bed, uint32_t found, uint64_t newest, bool (*may)(const struct sl_fleet_name *name))
{
        cr_assert_eq(found == SL_FLEET_NONE, newest == 0);
        if (found == SL_FLEET_NONE)
                return;
        cr_assert_lt(found, bed->fleet.n);
        cr_assert(may(&bed->names[found]));
        cr_assert_eq(bed->names[found].begun, newest);
}

static void check_serving(struct bed *bed, uint64_t file, uint64_t model, uint64_t since)
{
        uint32_t found = sl_leads_serving(&bed->leads, file, model, since);
        uint64_t newest = 0;

        for (uint32_t i = 0; i < bed->fleet.n; i++) {
                const struct sl_fleet_name *name = &bed->names[i];

                if (serves(name) && name->file == file && name->model != model && name->begun >= since && name->begun > newest)
                        newest = name->begun;
        }
        expect_newest(bed, found, newest, serves);
        if (found != SL_FLEET_NONE)
                cr_assert(bed->names[found].file == file && bed->names[found].model != model);
}

static void check_standby(struct bed *bed, uint64_t file, uint64_t since)
{
        uint32_t found = sl_leads_standby(&bed->leads, file, since);
        uint64_t newest = 0;

        for (uint32_t i = 0; i < bed->fleet.n; i++) {
                const struct sl_fleet_name *name = &bed->names[i];

                if (is_wanted_standby(name) && name->file == file && name->begun >= since && name->begun > newest)
                        newest = name->begun;
        }
        expect_newest(bed, found, newest, is_wanted_standby);
        if (found != SL_FLEET_NONE)
                cr_assert_eq(bed->names[found].file, file);
}

static void check_loading(struct bed *bed, uint64_t file)
{
        bool is_loading = false;

        for (uint32_t i = 0; i < bed->fleet.n; i++)
                is_loading |= loads_file(&bed->names[i], file);
        cr_assert_eq(sl_leads_load(&bed->leads, file), is_loading);
}

static void check_base(struct bed *bed, uint32_t open)
{
        uint32_t found = sl_leads_base(&bed->leads, open), newest = SL_FLEET_NONE;

        for (uint32_t i = 0; i < bed->fleet.n; i++) {
                const struct sl_fleet_name *name = &bed->names[i];

                if (loads_what_is_wanted(name) && name->needs_base && name->open == open &&
                        (newest == SL_FLEET_NONE || name->load_since_ns > bed->names[newest].load_since_ns))
                        newest = i;
        }
        cr_assert_eq(found == SL_FLEET_NONE, newest == SL_FLEET_NONE);
        if (found == SL_FLEET_NONE)
                return;
        cr_assert(loads_what_is_wanted(&bed->names[found]) && bed->names[found].needs_base && bed->names[found].open == open);
        cr_assert_eq(bed->names[found].load_since_ns, bed->names[newest].load_since_ns);
}

static void check_keep(struct bed *bed, uint64_t model)
{
        bool keeps = false;

        for (uint32_t i = 0; i < bed->fleet.n; i++)
                keeps |= serves(&bed->names[i]) && bed->names[i].model == model;
        cr_assert_eq(sl_leads_keep(&bed->leads, model), keeps);
}

static void check_key(struct bed *bed, uint32_t key)
{
        for (uint64_t since = 0; since < 13; since += 3) {
                check_standby(bed, key, since);
                check_serving(bed, key, 0, since);
                check_serving(bed, key, 1 + below(bed, bed->keys), since);
        }
        check_loading(bed, key);
        check_base(bed, key);
        check_keep(bed, key);
}

Test(leads, of_a_crowd_are_those_that_a_look_at_every_name_finds)
{
        static struct bed bed;

        for (uint64_t seed = 1; seed <= SL_ROUNDS(4000); seed++) {
                fill(&bed, seed, 1 + (uint32_t)seed % CROWD, 3);
                for (uint32_t key = 1; key <= 3 + 1; key++)
                        check_key(&bed, key);
        }
}

/* Where every bucket has names of several files. */
Test(leads, of_a_wide_fleet_are_those_that_a_look_at_every_name_finds)
{
        static struct bed bed;

        fill(&bed, 1, WIDE, WIDE);
        for (uint32_t key = 1; key <= WIDE; key += SL_ROUNDS(8) < 8 ? 64 : 8)
                check_key(&bed, key);
}

/* The index is of the fleet that it was filled with. */
Test(leads, are_filled_once)
{
        static struct bed bed;

        fill(&bed, 1, 1, 1);
        bed.names[0] = (struct sl_fleet_name){.used = true, .want = 1, .file = 1, .standby = 1, .begun = 1};
        sl_leads_fill(&bed.leads, &bed.fleet);
        cr_expect_eq(sl_leads_standby(&bed.leads, 1, 0), SL_FLEET_NONE);
        bed.leads.fleet = NULL;
        sl_leads_fill(&bed.leads, &bed.fleet);
        cr_expect_eq(sl_leads_standby(&bed.leads, 1, 0), 0);
}
