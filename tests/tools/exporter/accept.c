/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a scraper gets. */
#include "accept.h"

#include <criterion/criterion.h>

static bool gets_openmetrics(const char *accept)
{
        return accept_format(accept) == EXPOSITION_OPENMETRICS;
}

Test(exporter_accept, openmetrics_is_for_those_who_name_it)
{
        cr_expect(gets_openmetrics("application/openmetrics-text"));
        cr_expect(gets_openmetrics("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                                   "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
        cr_expect(gets_openmetrics(" Text/Plain ; q=0.5 , Application/OpenMetrics-Text ; q=0.5"));
        cr_expect_not(gets_openmetrics("application/openmetrics-text;q=0.2, text/plain"));
        cr_expect_not(gets_openmetrics("application/openmetrics-text; Q=0.4, text/*;q=0.41"));
        cr_expect_not(gets_openmetrics("application/openmetrics-text;q=0"));
        cr_expect_not(gets_openmetrics(
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited, */*"));
}

Test(exporter_accept, what_makes_no_sense_asks_for_nothing)
{
        const char *const nonsense[] = {"", ",", ";;;", ",;,;,", "q=1", "application/openmetrics-text;q=x",
                "application/openmetrics-tex", "application/openmetrics-texts", ";application/openmetrics-text", "\xff\xfe",
                "text/html"};

        cr_expect_not(gets_openmetrics(NULL));
        for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
                cr_expect_not(gets_openmetrics(nonsense[i]), "%s", nonsense[i]);
        cr_expect(gets_openmetrics("application/openmetrics-text;q=99999999999999"));
}
