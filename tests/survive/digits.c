/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *read_floats(const char *path, size_t n)
{
        float *values = calloc(n, sizeof(*values));
        FILE *file = fopen(path, "rb");
        size_t got = file && values ? fread(values, sizeof(*values), n, file) : 0;

        if (file)
                fclose(file);
        if (got == n)
                return values;
        free(values);
        return NULL;
}

const char *digits_folder(void)
{
        const char *folder = getenv("STARLING_DIGITS");

        return folder ? folder : DIGITS;
}

bool digits_read(struct digits_data *data, const char *model)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/test-images.f32", digits_folder());
        data->images = read_floats(path, (size_t)DIGITS_N * DIGITS_INPUTS);
        snprintf(path, sizeof(path), "%s/expected/%s.f32", digits_folder(), model);
        data->expected = read_floats(path, (size_t)DIGITS_N * DIGITS_OUT);
        return data->images && data->expected;
}

void digits_release(struct digits_data *data)
{
        free(data->images);
        free(data->expected);
}

int digits_job_alloc(struct digits_job *job, const struct digits_data *data, struct starling_client *client)
{
        int r = starling_tensor_alloc(client, STARLING_F32, 4, (uint32_t[]){DIGITS_N, 1, 8, 8}, &job->input);

        if (r < 0)
                return r;
        memcpy(job->input.data, data->images, (size_t)DIGITS_N * DIGITS_INPUTS * sizeof(float));
        r = starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){DIGITS_N, DIGITS_OUT}, &job->output);
        if (r < 0)
                starling_free(client, job->input.data);
        return r;
}

void digits_job_free(struct digits_job *job, struct starling_client *client)
{
        starling_free(client, job->input.data);
        starling_free(client, job->output.data);
}

uint32_t digits_random(uint32_t *seed, uint32_t below)
{
        *seed = *seed * 1664525u + 1013904223u;
        return (uint32_t)(((uint64_t)(*seed >> 4) * below) >> 28);
}

struct starling_request digits_ask(struct digits_job *job, struct starling_model *model, uint32_t start, uint32_t samples)
{
        float *output = job->output.data;

        job->samples = samples;
        job->start = start;
        job->in = job->input;
        job->in.data = (float *)job->input.data + (size_t)job->start * DIGITS_INPUTS;
        job->in.bytes = (uint64_t)job->samples * DIGITS_INPUTS * sizeof(float);
        job->in.dims[0] = job->out.dims[0] = job->samples;
        job->out = job->output;
        job->out.dims[0] = job->samples;
        for (uint32_t i = 0; i < job->samples * DIGITS_OUT; i++)
                output[i] = NAN;
        return (struct starling_request){.model = model, .inputs = &job->in, .n_inputs = 1, .outputs = &job->out, .n_outputs = 1};
}

struct starling_request digits_fill(struct digits_job *job, struct starling_model *model, uint32_t *seed)
{
        static const uint32_t sizes[8] = {1, 1, 2, 7, 32, 33, 129, 300};
        uint32_t samples = sizes[digits_random(seed, 8)];

        return digits_ask(job, model, digits_random(seed, DIGITS_N - samples + 1), samples);
}

bool digits_right(const struct digits_job *job, const struct digits_data *data, char *ret_text, size_t bytes)
{
        const float *got = job->output.data, *wanted = data->expected + (size_t)job->start * DIGITS_OUT;

        for (uint32_t i = 0; i < job->samples * DIGITS_OUT; i++)
                if (!(fabsf(got[i] - wanted[i]) <= 1e-5f)) {
                        snprintf(ret_text, bytes, "samples %u+%u, element %u: %g, expected %g", job->start, job->samples, i,
                                (double)got[i], (double)wanted[i]);
                        return false;
                }
        return true;
}
