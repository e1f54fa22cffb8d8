/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include "checks.h"
#include "host.h"

#include <string.h>

static const struct check {
        struct sl_check_description description;
        void (*look)(const struct sl_host *host, struct sl_finding *finding);
} checks[] = {
#define X(name, function, text) {{name, text}, function},
        SL_CHECKS(X)
#undef X
};

uint32_t sl_doctor_checks(void)
{
        return sizeof(checks) / sizeof(checks[0]);
}

struct sl_check_description sl_doctor_check(uint32_t i)
{
        return checks[i].description;
}

int sl_doctor_find(const char *name, size_t bytes)
{
        for (uint32_t i = 0; i < sl_doctor_checks(); i++)
                if (strlen(checks[i].description.name) == bytes && memcmp(checks[i].description.name, name, bytes) == 0)
                        return (int)i;
        return -1;
}

const char *sl_verdict_text(enum sl_verdict verdict)
{
        static const char *const texts[] = {[SL_VERDICT_OK] = "ok",
                [SL_VERDICT_UNKNOWN] = "cannot tell",
                [SL_VERDICT_BETTER] = "could be better",
                [SL_VERDICT_WRONG] = "wrong"};

        return texts[verdict];
}

const char *sl_verdict_word(enum sl_verdict verdict)
{
        static const char *const words[] = {[SL_VERDICT_OK] = "ok",
                [SL_VERDICT_UNKNOWN] = "unknown",
                [SL_VERDICT_BETTER] = "better",
                [SL_VERDICT_WRONG] = "wrong"};

        return words[verdict];
}

enum sl_verdict sl_doctor_run(const struct sl_doctor_options *options, sl_finding_fn *report, void *context)
{
        enum sl_verdict worst = SL_VERDICT_OK;
        struct sl_host host;

        sl_host_init(&host, options->root, options->probes, options->config, options->configured);
        for (uint32_t i = 0; i < sl_doctor_checks(); i++) {
                struct sl_finding finding = {.check = checks[i].description.name};

                if (options->only && !options->only[i])
                        continue;
                checks[i].look(&host, &finding);
                worst = finding.verdict > worst ? finding.verdict : worst;
                report(context, &finding);
        }
        return worst;
}
