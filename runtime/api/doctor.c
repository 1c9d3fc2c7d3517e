/*
 * doctor: what was found where, and what to do about the rest.
 */
#include "api/runtime.h"

#include <stdio.h>
#include <string.h>

#include "api/settings.h"
#include "cache/folder.h"
#include "cache/pack_base.h"

struct doctor {
    struct cbn_runtime *runtime;
    cbn_doctor_fn check;
    void *user;
};

enum finding { FINDING_WRONG = 0, FINDING_RIGHT = 1, FINDING_ABSENT = 2 };

static void tell(const struct doctor *doctor, const char *name, enum finding finding, const char *detail,
                 const char *mend)
{
    struct cbn_doctor_check check = {
        .size = sizeof(check), .ok = (uint32_t)finding, .name = name, .detail = detail, .mend = mend};
    doctor->check(doctor->user, &check);
}

static void check_devices(const struct doctor *doctor, const struct cbn__driver *driver)
{
    int count = 0;
    struct cbn_error error = {0};
    if (cbn__driver_device_count(driver, &count, &error) != CBN_STATUS_OK || count == 0) {
        tell(doctor, "device", FINDING_ABSENT, count ? error.message : "the driver sees no device",
             "nothing is needed to warm a cache; to launch, give the process a GPU");
        return;
    }
    for (int i = 0; i < count; i++) {
        struct cbn__device_facts facts;
        char detail[256], arch[16];
        if (cbn__driver_device_facts(driver, i, &facts, &error) != CBN_STATUS_OK) {
            tell(doctor, "device", FINDING_WRONG, error.message, "look at the driver's own tools");
            continue;
        }
        cbn_arch_format(facts.arch, arch, sizeof(arch));
        (void)snprintf(detail, sizeof(detail), "%d: %s, compute capability %u.%u, %u SMs, kernels of %s", i, facts.name,
                       facts.capability / 10, facts.capability % 10, facts.sms, facts.arch ? arch : "no architecture");
        tell(doctor, "device", facts.arch ? FINDING_RIGHT : FINDING_WRONG, detail,
             facts.arch ? "" : "use a device of compute capability 8.0 or newer");
    }
}

static void check_driver(const struct doctor *doctor)
{
    struct cbn__driver *driver = NULL;
    struct cbn_error error = {0};
    if (cbn__runtime_driver(doctor->runtime, &driver, &error) != CBN_STATUS_OK) {
        tell(doctor, "driver", FINDING_ABSENT, error.message,
             "nothing is needed to warm a cache; to launch, install an NVIDIA driver of 12.4 or newer, or name its "
             "libcuda.so.1 in CUBINET_CUDA");
        return;
    }
    char detail[512];
    uint32_t version = cbn__driver_version(driver);
    (void)snprintf(detail, sizeof(detail), "CUDA %u.%u from %s", version / 1000, version % 1000 / 10,
                   cbn__driver_path(driver));
    tell(doctor, "driver", FINDING_RIGHT, detail, "");
    check_devices(doctor, driver);
}

static void check_nvrtc(const struct doctor *doctor)
{
    const char *path = NULL;
    uint32_t version = 0;
    struct cbn_error error = {0};
    if (cbn__builder_nvrtc(doctor->runtime->builder, &path, &version, &error) != CBN_STATUS_OK) {
        tell(doctor, "nvrtc", FINDING_WRONG, error.message,
             "install libnvrtc of CUDA 12 or 13 (the PyPI wheel nvidia-cuda-nvrtc will do), or name it in CUBINET_NVRTC; a "
             "cache that is warm needs none");
        return;
    }
    char detail[512];
    (void)snprintf(detail, sizeof(detail), "NVRTC %u.%u from %s", version / 1000, version % 1000, path);
    tell(doctor, "nvrtc", FINDING_RIGHT, detail, "");
}

static void check_folder(const struct doctor *doctor, const char *name, const char *path, const char *origin,
                         bool needs_writing)
{
    struct cbn__folder_report report;
    cbn__folder_inspect(path, &report);
    char detail[1024];
    /* To be unwritable is no problem of a base. */
    bool right = report.exists && report.trusted && report.local && (report.writable || !needs_writing);
    bool falls_back = strcmp(origin, CBN__ORIGIN_FALLBACK) == 0;
    (void)snprintf(detail, sizeof(detail), "%s%s: %s, %s, mode %04o, owner %u, %s, %llu MiB free%s%s", path,
                   falls_back ? " (in place of the default folder, whose filesystem is not known to be local)" : "",
                   report.exists ? "exists" : "does not exist", report.filesystem[0] ? report.filesystem : "?",
                   report.mode & 07777u, report.owner_uid, report.writable ? "writable" : "not writable",
                   (unsigned long long)(report.free_bytes >> 20), right ? "" : "; ", right ? "" : report.problem);
    tell(doctor, name, right ? FINDING_RIGHT : FINDING_WRONG, detail, right ? "" : report.mend);
}

static void check_pack(const struct doctor *doctor, const char *path)
{
    struct cbn_error error = {0};
    uint64_t entries = 0;
    char detail[1024];
    bool trust = (doctor->runtime->flags & CBN_RUNTIME_TRUST_FOLDER) != 0;
    int32_t status = cbn__pack_base_inspect(path, trust, &entries, &error);
    (void)snprintf(detail, sizeof(detail), "%s: a pack of %llu entries, read in place", path,
                   (unsigned long long)entries);
    if (status == CBN_STATUS_OK)
        tell(doctor, "base-pack", FINDING_RIGHT, detail, "");
    else
        tell(doctor, "base-pack", FINDING_WRONG, error.message,
             status == CBN_STATUS_UNTRUSTED
                 ? "have it as a file of root or of this user, or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)"
                 : "fetch it again, or pack it anew with this release");
}

static void check_base(const struct doctor *doctor, const char *path)
{
    if (cbn__pack_base_is_one(path))
        check_pack(doctor, path);
    else
        check_folder(doctor, "base-folder", path, doctor->runtime->settings.bases.origin, false);
}

static void check_lock(const struct doctor *doctor, const char *path)
{
    struct cbn_error error = {0};
    int32_t status = cbn__folder_probe_lock(path, doctor->runtime->lock_timeout_ms, &error);
    if (status == CBN_STATUS_OK)
        tell(doctor, "lock", FINDING_RIGHT, "free to read", "");
    else if (status == CBN_STATUS_NOT_FOUND)
        tell(doctor, "lock", FINDING_ABSENT, error.message, "nothing is needed: it is made when the folder is first used");
    else if (status == CBN_STATUS_TIMEOUT)
        tell(doctor, "lock", FINDING_WRONG, error.message,
             "end or resume the process that holds it (fuser names those that have it open); until then every kernel is compiled anew");
    else
        tell(doctor, "lock", FINDING_WRONG, error.message, "use a folder and a filesystem that allow locks");
}

static void check_layers(const struct doctor *doctor)
{
    struct cbn_runtime *runtime = doctor->runtime;
    uint32_t count = cbn__cabinet_layer_count(runtime->cabinet);
    for (uint32_t i = 0; i < count; i++) {
        struct cbn__layer layer;
        struct cbn_error error = {0};
        char detail[1024];
        if (cbn__cabinet_layer(runtime->cabinet, i, &layer, &error) != CBN_STATUS_OK) {
            tell(doctor, "layer", FINDING_WRONG, error.message, "run `cubinet verify`");
            continue;
        }
        (void)snprintf(detail, sizeof(detail), "%u: %s, %s, %llu entries, %llu bytes", i, layer.path,
                       layer.is_base    ? "read-only base"
                       : layer.writable ? "writable overlay"
                                        : "overlay opened read-only",
                       (unsigned long long)layer.entries, (unsigned long long)layer.file_bytes);
        tell(doctor, "layer", FINDING_RIGHT, detail, "");
    }
    if (!count)
        tell(doctor, "layer", FINDING_WRONG, "no layer is open: every kernel is compiled to memory",
             "name a cache folder with --cache or CUBINET_CACHE");
}

static void check_fleet(const struct doctor *doctor)
{
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    struct cbn_error error = {0};
    char detail[1024];
    int32_t status = cbn_fleet_inspect(doctor->runtime, &info, &error);
    if (status == CBN_STATUS_NOT_FOUND)
        return;
    if (status != CBN_STATUS_OK) {
        (void)snprintf(detail, sizeof(detail), "%s: %s", info.url, error.message);
        tell(doctor, "fleet", FINDING_WRONG, detail,
             "start the server, or mend address and password in CUBINET_FLEET; until then kernels come from folders and "
             "builds");
        return;
    }
    (void)snprintf(detail, sizeof(detail), "%s: %s, %llu keys, %llu MiB in use, bound %llu MiB%s, eviction %s%s",
                   info.url, info.server, (unsigned long long)info.keys, (unsigned long long)(info.used_bytes >> 20),
                   (unsigned long long)(info.max_bytes >> 20), info.max_bytes ? "" : " (none)",
                   info.eviction[0] ? info.eviction : "unknown", info.read_only ? ", a replica" : "");
    tell(doctor, "fleet", info.read_only ? FINDING_WRONG : FINDING_RIGHT, detail,
         info.read_only ? "name the primary server: a replica takes no kernels, and its machines build each for itself"
                        : "");
}

int32_t cbn_doctor(struct cbn_runtime *runtime, cbn_doctor_fn check, void *user, struct cbn_error *err)
{
    if (!runtime || !check)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "check" : "runtime");
    struct doctor doctor = {runtime, check, user};
    check_driver(&doctor);
    check_nvrtc(&doctor);
    if (runtime->settings.cache_dir.value)
        check_folder(&doctor, "cache-folder", runtime->settings.cache_dir.value,
                     runtime->settings.cache_dir.origin, !(runtime->flags & CBN_RUNTIME_READ_ONLY));
    if (runtime->settings.cache_dir.value)
        check_lock(&doctor, runtime->settings.cache_dir.value);
    for (uint32_t i = 0; i < runtime->base_count; i++)
        check_base(&doctor, runtime->base_dirs[i]);
    check_layers(&doctor);
    check_fleet(&doctor);
    return CBN_STATUS_OK;
}
