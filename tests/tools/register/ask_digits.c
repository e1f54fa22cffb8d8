/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask_digits SOCKET TASK ACCURACY IMAGES LABELS: a query by the public header alone. Prints which variant answered, how accurate it
 * is said to be, and its share of right classes on the samples from 149 on.
 */
#include <starling.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS  64
#define CLASSES 10
#define FIRST   149
#define COUNT   450

static unsigned char labels[FIRST + COUNT];
static float pixels[(FIRST + COUNT) * PIXELS];

static int read_whole(const char *path, void *data, size_t bytes)
{
        FILE *file = fopen(path, "rb");
        size_t n = file ? fread(data, 1, bytes, file) : 0;

        if (file)
                fclose(file);
        return n == bytes;
}

static int count_right(const float *rows)
{
        int right = 0;

        for (int i = 0; i < COUNT; i++) {
                int at = 0;

                for (int k = 1; k < CLASSES; k++)
                        at = rows[i * CLASSES + k] > rows[i * CLASSES + at] ? k : at;
                right += at == labels[FIRST + i];
        }
        return right;
}

static int ask(struct starling_client *client, struct starling_model *model, struct starling_error *error)
{
        const uint32_t image_dims[] = {COUNT, 1, 8, 8}, row_dims[] = {COUNT, CLASSES};
        struct starling_queue *queue;
        struct starling_tensor images, rows;
        struct starling_completion completion;
        struct starling_answer answer;
        int status = starling_queue_open(client, &queue, error);

        status = status < 0 ? status : starling_tensor_alloc(client, STARLING_F32, 4, image_dims, &images);
        status = status < 0 ? status : starling_tensor_alloc(client, STARLING_F32, 2, row_dims, &rows);
        if (status < 0)
                return status;
        memcpy(images.data, pixels + FIRST * PIXELS, COUNT * PIXELS * sizeof(float));
        const struct starling_request request = {
                .model = model, .inputs = &images, .outputs = &rows, .n_inputs = 1, .n_outputs = 1};
        status = starling_infer(queue, &request, &completion);
        status = status < 0 ? status : starling_completion_variant(queue, &completion, &answer);
        if (status < 0)
                return status;
        printf("%s %.6f %.6f\n", answer.variant, answer.accuracy, count_right(rows.data) / (double)COUNT);
        return 0;
}

int main(int argc, char **argv)
{
        struct starling_client *client;
        struct starling_model *model;
        struct starling_error error = {""};
        int status;

        if (argc != 6 || !read_whole(argv[4], pixels, sizeof(pixels)) || !read_whole(argv[5], labels, sizeof(labels)))
                return 2;
        const struct starling_query query = {.accuracy = strtod(argv[3], NULL)};
        const struct starling_options options = {.runtime = argv[1]};
        status = starling_connect(&options, &client, &error);
        if (status < 0) {
                fprintf(stderr, "%s\n", error.text);
                return 1;
        }
        status = starling_query_open(client, argv[2], &query, &model, &error);
        status = status < 0 ? status : ask(client, model, &error);
        if (status < 0)
                fprintf(stderr, "%s: %s\n", starling_strerror(status), error.text);
        starling_close(client);
        return status < 0;
}
