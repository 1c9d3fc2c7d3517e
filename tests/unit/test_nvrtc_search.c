/*
 * The search for NVRTC place by place. The file under test is included: on a machine with a toolkit the whole search
 * ends there, so the later places are asked one by one.
 */
#include "driver/nvrtc.c"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"

static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH"};

static char root[64];

/* Each test runs in a process of its own, so that the environment and root are its own too. */
static void begin(void)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        ck_assert_int_eq(unsetenv(variables[i]), 0);
    (void)snprintf(root, sizeof(root), "/tmp/cubinet-search-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void end(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "/bin/rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void make_folders(const char *below, char ret_path[PATH_MAX])
{
    (void)snprintf(ret_path, PATH_MAX, "%s/%s", root, below);
    for (char *at = ret_path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        (void)mkdir(ret_path, 0700);
        *at = '/';
    }
}

static void plant(const char *below, const char *target)
{
    char path[PATH_MAX];
    make_folders(below, path);
    ck_assert_int_eq(symlink(target, path), 0);
}

static void set_variable(const char *name, const char *below)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s%s", root, below);
    ck_assert_int_eq(setenv(name, path, 1), 0);
}

static bool finds(bool (*search_place)(struct cbn__search *))
{
    __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT,
                                                                            .accept = is_nvrtc};
    bool found = search_place(&search);
    ck_assert_int_eq(found, search.handle != NULL);
    if (search.handle) {
        const char *path = cbn__library_path(search.handle);
        ck_assert_msg(strncmp(path, root, strlen(root)) == 0 || strncmp(path, "/tmp/", 5) != 0, "%s", path);
        (void)dlclose(search.handle);
    }
    return found;
}

START_TEST(a_virtual_environment_is_searched)
{
    begin();
    ck_assert(!finds(search_pythons));
    plant("env/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13", STUB);
    ck_assert(!finds(search_pythons));
    set_variable("VIRTUAL_ENV", "/env");
    ck_assert(finds(search_pythons));
    end();
}
END_TEST

START_TEST(a_conda_environment_is_searched)
{
    begin();
    plant("conda/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", STUB);
    set_variable("CONDA_PREFIX", "/conda");
    ck_assert(finds(search_pythons));
    end();
}
END_TEST

/* As venv makes it: bin/python3 leads to the interpreter of another prefix, which has the packages. */
START_TEST(pythons_on_the_path_are_searched)
{
    begin();
    char path[PATH_MAX];
    plant("real/bin/python3.11", "/bin/true");
    plant("real/lib/python3.11/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", STUB);
    plant("bare/bin/python3", "/nonexistent");
    plant("env/bin/python3", "/nonexistent");
    plant("env/lib/python3.11/site-packages/nvidia/cu13/lib/other.so", STUB);
    (void)snprintf(path, sizeof(path), "bin:%s/bare/bin::%s/env/bin:", root, root);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    ck_assert(!finds(search_pythons));
    (void)snprintf(path, sizeof(path), "%s/env/bin/python3", root);
    ck_assert_int_eq(unlink(path), 0);
    make_folders("env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/x", path);
    plant("env/bin/python3", "/bin/true");
    plant("env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", STUB);
    ck_assert(finds(search_pythons));
    end();
}
END_TEST

START_TEST(toolkit_variables_are_searched)
{
    static const char *const names[] = {"CUDA_HOME", "CUDA_PATH"};
    for (int i = 0; i < 2; i++) {
        begin();
        plant("kit/lib64/libnvrtc.so.13", STUB);
        set_variable(names[i], "/kit");
        __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT,
                                                                                .accept = is_nvrtc};
        ck_assert(search_toolkits(&search));
        ck_assert_ptr_nonnull(strstr(cbn__library_path(search.handle), "/kit/lib64/libnvrtc.so.13"));
        (void)dlclose(search.handle);
        end();
    }
}
END_TEST

START_TEST(a_relative_folder_is_passed_over)
{
    begin();
    plant("env/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13", STUB);
    ck_assert_int_eq(chdir(root), 0);
    ck_assert_int_eq(setenv("VIRTUAL_ENV", "env", 1), 0);
    ck_assert_int_eq(setenv("PATH", "env/bin:", 1), 0);
    ck_assert(!finds(search_pythons));
    ck_assert_int_eq(chdir("/"), 0);
    end();
}
END_TEST

/* Of several files the newest name; one that does not load is passed over and its reason kept. */
START_TEST(the_newest_that_loads_is_taken)
{
    begin();
    plant("kit/lib64/libnvrtc.so.12", STUB);
    plant("kit/lib64/libnvrtc.so.13", STUB);
    plant("kit/lib64/libnvrtc.so.14", "/etc/hostname");
    __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT,
                                                                            .accept = is_nvrtc};
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s/kit", root);
    ck_assert(search_folder(&search, folder, "/lib64"));
    ck_assert_ptr_nonnull(strstr(cbn__library_path(search.handle), "libnvrtc.so.13"));
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&search.reason), "libnvrtc.so.14"));
    (void)dlclose(search.handle);
    end();
}
END_TEST

START_TEST(an_unsuccessful_search_lists_its_places)
{
    begin();
    set_variable("VIRTUAL_ENV", "/env");
    __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT,
                                                                            .accept = is_nvrtc};
    struct cbn_error err = {0};
    ck_assert(!search_pythons(&search));
    ck_assert_int_eq(fail_search(&search, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(err.message, "CUBINET_NVRTC") && strstr(err.message, "nvidia-cuda-nvrtc"), "%s", err.message);
    ck_assert_msg(strstr(err.message, "/env/lib/python3*/*-packages/nvidia/{cu13,cuda_nvrtc}/lib"), "%s", err.message);
    end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("nvrtc search");
    tcase_add_test(tests, a_virtual_environment_is_searched);
    tcase_add_test(tests, a_conda_environment_is_searched);
    tcase_add_test(tests, pythons_on_the_path_are_searched);
    tcase_add_test(tests, toolkit_variables_are_searched);
    tcase_add_test(tests, a_relative_folder_is_passed_over);
    tcase_add_test(tests, the_newest_that_loads_is_taken);
    tcase_add_test(tests, an_unsuccessful_search_lists_its_places);
    Suite *suite = suite_create("nvrtc search");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
