/*
 * A model's config.json of any bytes, under several shardings.
 */
#include "memory_file.h"
#include "model_check.h"

static const int64_t ranks[][2] = {{0, 0}, {8, 0}, {8, 8}, {3, 2}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file file = memory_file_make(data, size);
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
        struct cbn_model *model = NULL;
        struct cbn_error err = {0};
        options.tp = ranks[i][0];
        options.ep = ranks[i][1];
        int32_t status = cbn_model_load(file.path, &options, &model, &err);
        check_model(status, model, &err);
    }
    memory_file_done(&file);
    return 0;
}
