/*
 * The environment: the only file that calls getenv. Read when a runtime is created, never per call or per launch.
 */
#ifndef CBN_BASE_ENV_H
#define CBN_BASE_ENV_H

#include <stdbool.h>

/* X(NAME, variable) */
#define CBN__ENV_MAP(X)                                                                                                \
    X(CACHE, "CUBINET_CACHE")                                                                                          \
    X(BASES, "CUBINET_BASES")                                                                                          \
    X(NVRTC, "CUBINET_NVRTC")                                                                                          \
    X(CUDA, "CUBINET_CUDA")                                                                                            \
    X(POLICY, "CUBINET_POLICY")                                                                                        \
    X(DISABLE, "CUBINET_DISABLE")                                                                                      \
    X(ENABLE, "CUBINET_ENABLE")                                                                                        \
    X(FLEET, "CUBINET_FLEET")                                                                                          \
    X(XDG_CACHE_HOME, "XDG_CACHE_HOME")                                                                                \
    X(HOME, "HOME")                                                                                                    \
    X(CUDA_HOME, "CUDA_HOME")                                                                                          \
    X(CUDA_PATH, "CUDA_PATH")                                                                                          \
    X(VIRTUAL_ENV, "VIRTUAL_ENV")                                                                                      \
    X(CONDA_PREFIX, "CONDA_PREFIX")                                                                                    \
    X(PATH, "PATH")

enum cbn__env {
#define CBN__X(name, variable) CBN__ENV_##name,
    CBN__ENV_MAP(CBN__X)
#undef CBN__X
};

/* The process is setuid, setgid or has file capabilities: whoever started it chose the environment. */
bool cbn__env_is_ignored(void);
/* NULL when unset, empty, or when the process is setuid. Borrowed from the environment: copy before anything else. */
const char *cbn__env_get(enum cbn__env variable);
/* "CUBINET_CACHE". */
const char *cbn__env_name(enum cbn__env variable);

#endif
