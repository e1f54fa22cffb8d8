/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the program that perf/engine drives: an order is one line, so is its answer; samples are divided among lanes without a
 * trace in the result; a kept plan answers as the model did.
 */
#include "builder.h"
#include "cores.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES     5
#define INPUT_BYTES (SAMPLES * 8 * 8 * 4)
#define OUT_BYTES   (SAMPLES * 10 * 4)
#define MODEL       DIGITS "/models/lenet/1/model.onnx"

static char folder[] = "/tmp/starling-engine-XXXXXX";

static void make_input(void)
{
        float pixels[INPUT_BYTES / 4];
        char path[128];

        cr_assert_not_null(mkdtemp(folder));
        for (size_t i = 0; i < INPUT_BYTES / 4; i++)
                pixels[i] = (float)((i * 7919) % 101) / 101.0f;
        snprintf(path, sizeof(path), "%s/input", folder);
        FILE *file = fopen(path, "we");
        cr_assert_eq(fwrite(pixels, 1, sizeof(pixels), file), sizeof(pixels));
        fclose(file);
}

static void remove_folder(void)
{
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", folder);
        cr_assert_eq(system(command), 0);
}

TestSuite(engine, .init = make_input, .fini = remove_folder);

/* The answers to @orders, one a line. */
static const char *answers(const char *options, const char *orders, char ret_text[4096])
{
        char command[1024];

        snprintf(command, sizeof(command), "cd %s && printf '%s' | %s %s", folder, orders, ENGINE, options);
        FILE *pipe = popen(command, "re");
        cr_assert_not_null(pipe);
        ret_text[fread(ret_text, 1, 4095, pipe)] = 0;
        cr_assert_eq(pclose(pipe), 0);
        return ret_text;
}

static void read_output(char ret_bytes[OUT_BYTES])
{
        char path[128];

        snprintf(path, sizeof(path), "%s/0.0.raw", folder);
        FILE *file = fopen(path, "re");
        cr_assert_not_null(file);
        cr_assert_eq(fread(ret_bytes, 1, OUT_BYTES, file), OUT_BYTES);
        fclose(file);
        remove(path);
}

static uint32_t lines(const char *text)
{
        uint32_t n = 0;

        for (; *text; text++)
                n += *text == '\n';
        return n;
}

Test(engine, an_order_that_fails_is_answered_and_the_next_is_obeyed)
{
        char text[4096];

        answers("--model " MODEL, "run 1\\ndance\\nload\\nload\\nrun 0\\nrun 3\\n", text);
        cr_expect_eq(lines(text), 6, "%s", text);
        cr_expect_not_null(
                strstr(text, "{\"error\":\"run: load first, then 1 to 100000 times, not \\\"1\\\"\"}\n{\"error\":\"there is no"));
        cr_expect_not_null(strstr(text, "not \\\"0\\\"\"}\n{\"ns\":["), "%s", text);
}

Test(engine, a_model_that_cannot_be_read_is_an_answer)
{
        char text[4096];

        answers("--model absent.onnx", "load\\n", text);
        cr_expect_not_null(strstr(text, "{\"error\":"));
        cr_expect_not_null(strstr(text, "absent.onnx"), "%s", text);
}

Test(engine, two_lanes_compute_what_one_does)
{
        char text[4096], one[OUT_BYTES], two[OUT_BYTES];
        int cpus[2];

        if (sl_cores_pick(cpus) < 0)
                cr_skip_test("two CPUs are wanted");
        answers("--model " MODEL " --batch 5 --cpus 0 --input image=input", "load\\noutputs .\\n", text);
        cr_assert_not_null(strstr(text, "\"shape\":[5,10]"), "%s", text);
        cr_expect_not_null(strstr(text, "\"lanes\":1"), "%s", text);
        read_output(one);
        answers("--model " MODEL " --batch 5 --cpus 0,1 --input image=input", "load\\nrun 20\\noutputs .\\n", text);
        cr_expect_not_null(strstr(text, "\"lanes\":2"), "%s", text);
        read_output(two);
        for (size_t i = 0; i < OUT_BYTES / sizeof(float); i++)
                cr_expect_float_eq(((float *)one)[i], ((float *)two)[i], 1e-4f);
}

Test(engine, a_kept_plan_answers_as_the_model_did)
{
        char text[4096], first[OUT_BYTES], second[OUT_BYTES];

        answers("--model " MODEL " --batch 5 --keep-plan plan --input image=input", "load\\noutputs .\\n", text);
        read_output(first);
        answers("--plan plan --batch 5 --input image=input", "load\\noutputs .\\n", text);
        read_output(second);
        cr_expect_arr_eq(first, second, OUT_BYTES);
}

/* Pixel i is zero where i is a multiple of 101: one of the first sample, none of the third. */
Test(engine, outputs_that_hang_on_data_are_written_for_each_sample)
{
        struct builder *b = builder_new(17);
        char text[4096], path[128];
        size_t bytes;

        builder_input(b, "image", SL_DTYPE_F32, DIMS(-1, 64));
        builder_node(b, "NonZero", "image", "where");
        builder_output(b, "where");
        uint8_t *model = builder_pack(b, &bytes);
        snprintf(path, sizeof(path), "%s/open.onnx", folder);
        FILE *file = fopen(path, "we");
        cr_assert_eq(fwrite(model, 1, bytes, file), bytes);
        fclose(file);
        builder_free(b);
        answers("--model open.onnx --batch 5 --input image=input", "load\\noutputs .\\n", text);
        cr_expect_not_null(strstr(text, "\"sample\":0,\"dtype\":\"int64\",\"shape\":[2,63]"), "%s", text);
        cr_expect_not_null(strstr(text, "\"sample\":2,\"dtype\":\"int64\",\"shape\":[2,64]"), "%s", text);
        cr_expect_not_null(strstr(text, "\"sample\":4"), "%s", text);
}

Test(engine, an_input_of_another_size_is_refused)
{
        char text[4096];

        answers("--model " MODEL " --batch 4 --input image=input", "load\\n", text);
        cr_expect_not_null(strstr(text, "1280 bytes, the input takes 1024"), "%s", text);
}

Test(engine, workers_are_made_for_each_size)
{
        char text[4096];

        answers("--model " MODEL " --batch 4", "workers 1,1,2,4\\nworkers 1,x\\n", text);
        cr_expect_not_null(strstr(text, "\"workers\":4"), "%s", text);
        cr_expect_eq(lines(text), 2);
        cr_expect_not_null(strstr(text, "{\"error\":"), "%s", text);
}
