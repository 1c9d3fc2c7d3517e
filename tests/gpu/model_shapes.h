/*
 * Every distinct (N, K) of the block FP8 linear layers of DeepSeek-V3, DeepSeek-V4-Flash and Qwen3-32B at 1, 4 and 8
 * tensor-parallel ranks. tests/unit/test_receipt.c holds it against the models' configs.
 */
#ifndef TESTS_GPU_MODEL_SHAPES_H
#define TESTS_GPU_MODEL_SHAPES_H

#define MODEL_SHAPE_MAP(X)                                                                                             \
    X(512, 4096)                                                                                                       \
    X(512, 7168) X(1024, 4096) X(1024, 7168) X(1280, 5120) X(1536, 4096) X(2112, 7168) X(2560, 5120) X(3072, 1536)     \
        X(4096, 256) X(4096, 512) X(4096, 1024) X(4096, 2048) X(4096, 4096) X(4096, 7168) X(4096, 8192) X(4608, 7168)  \
            X(5120, 1024) X(5120, 2048) X(5120, 3200) X(5120, 6400) X(5120, 8192) X(5120, 25600) X(6144, 1536)         \
                X(6400, 5120) X(7168, 256) X(7168, 512) X(7168, 2048) X(7168, 2304) X(7168, 4096) X(7168, 4608)        \
                    X(7168, 16384) X(7168, 18432) X(8192, 512) X(8192, 1024) X(9216, 7168) X(10240, 5120)              \
                        X(12800, 5120) X(24576, 1536) X(32768, 512) X(32768, 1024) X(36864, 7168) X(51200, 5120)

#endif
