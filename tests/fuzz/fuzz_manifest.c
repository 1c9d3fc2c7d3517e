/*
 * Manifests of any bytes.
 */
#include "memory_file.h"
#include "model_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file file = memory_file_make(data, size);
    struct cbn_model *model = NULL;
    struct cbn_error err = {0};
    int32_t status = cbn_manifest_load(file.path, &model, &err);
    check_model(status, model, &err);
    memory_file_done(&file);
    return 0;
}
