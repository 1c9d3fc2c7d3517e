/*
 * The tables: every option once, every verb once. Parsing, help, the man page and shell completion read them.
 */
#include "cli.h"

#include <string.h>

#define AT(field) offsetof(struct cli_options, field)
#define GROUP(title, rows)                                                                                             \
    {                                                                                                                  \
        title, rows, sizeof(rows) / sizeof((rows)[0])                                                                  \
    }
#define M_MAX INT32_MAX /* enumeration runs over the whole range */
#define RANKS_MAX 65536
#define ARCHES "sm_80|sm_86|sm_87|sm_89|sm_90a|sm_100a|sm_103a|sm_110a|sm_120a|sm_121a"

static const struct cli_row global_rows[] = {
    {"cache", 0, CLI_TEXT, AT(cache), "DIR",
     "cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet, $HOME/.cache/cubinet)", 0, 0},
    {"base", 0, CLI_TEXTS, AT(bases), "PATH",
     "read-only base layer below it, a folder or a pack; may be given several times (default: CUBINET_BASES, a colon "
     "list)",
     0, 0},
    {"fleet", 0, CLI_TEXT, AT(fleet), "URL",
     "server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH (default: CUBINET_FLEET, where a password is "
     "better kept)",
     0, 0},
    {"json", 0, CLI_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {"quiet", 0, CLI_FLAG, AT(quiet), NULL, "no progress and no notices on stderr", 0, 0},
    {"trust-folder", 0, CLI_FLAG, AT(trust_folder), NULL,
     "use a cache folder that is refused since others could write it or replace it", 0, 0},
    {"help", 'h', CLI_FLAG, AT(help), NULL, "this help", 0, 0},
    {"version", 0, CLI_FLAG, AT(version), NULL, "the same as the verb version", 0, 0},
};
const struct cli_group cli_group_global = GROUP("Global options, before or after the verb", global_rows);

static const struct cli_row profile_rows[] = {
    {"in", 0, CLI_CHOICE, AT(in), "bf16|fp16|fp32|e4m3", "dtype of the activations (default: bf16)", CBN_DTYPE_BF16, 0},
    {"out", 0, CLI_CHOICE, AT(out), "bf16|fp16|fp32", "dtype of the output (default: bf16)", CBN_DTYPE_BF16, 0},
    {"weight-scale", 0, CLI_CHOICE, AT(weight_scale), "fp32|ue8m0", "storage of the weight scales (default: fp32)",
     CBN_SCALE_FP32, 0},
    {"scale-gran", 0, CLI_CHOICE, AT(scale_gran), "block|row",
     "a weight scale covers 128x128, or 128 columns of one row (default: block)", CBN_GRAN_BLOCK, 0},
    {"act-scale", 0, CLI_CHOICE, AT(act_scale), "row|col|col4|packed-row|packed-col",
     "activation scales that e4m3 input brings, or that fp8_quantize writes (default: col4)", CBN_LAYOUT_ROW, 0},
    {"pow2", 0, CLI_FLAG, AT(pow2), NULL, "fp32 activation scales are rounded up to a power of two", 0, 0},
    {"bias", 0, CLI_CHOICE, AT(bias), "none|out|fp32", "bias of the output's dtype or fp32 (default: none)",
     CBN_BIAS_NONE, 0},
    {"no-pdl", 0, CLI_FLAG, AT(no_pdl), NULL, "no programmatic dependent launch", 0, 0},
    {"propagate", 0, CLI_FLAG, AT(propagate), NULL, "non-finite activations become NaN codes", 0, 0},
    {"approx", 0, CLI_FLAG, AT(approx), NULL,
     "fp8_quantize divides by div.approx.ftz, as kernels built with fast math do; fp32 scales only", 0, 0},
    {"sms", 0, CLI_NUMBER, AT(sms), "S", "SMs of the device (default: the architecture's usual count)", 1, 65536},
    {"max-sms", 0, CLI_NUMBER, AT(max_sms), "S", "SMs that a call may use (default: all)", 1, 65536},
    {"policy", 0, CLI_TEXT, AT(policy), "default|reference", "guard table (default: CUBINET_POLICY, else default)", 0,
     0},
    {"disable", 0, CLI_TEXT, AT(disable), "KERNEL[,KERNEL]", "candidates to switch off (default: CUBINET_DISABLE)", 0,
     0},
    {"enable", 0, CLI_TEXT, AT(enable), "KERNEL[,KERNEL]",
     "candidates to switch on that are off by default (default: CUBINET_ENABLE)", 0, 0},
    {"strict-route", 0, CLI_FLAG, AT(strict_route), NULL, "refuse a fallback candidate in place of choosing it", 0, 0},
};
const struct cli_group cli_group_profile = GROUP("Call profile: what decides a route besides the shape", profile_rows);

static const struct cli_row model_rows[] = {
    {"model", 0, CLI_TEXT, AT(model), "CONFIG.json", "a Hugging Face config.json", 0, 0},
    {"tp", 0, CLI_NUMBER, AT(tp), "N", "tensor-parallel ranks (default: 1)", 1, RANKS_MAX},
    {"ep", 0, CLI_NUMBER, AT(ep), "N", "expert-parallel ranks (default: experts are sharded by --tp)", 1, RANKS_MAX},
};
static const struct cli_group model_group = GROUP("Model", model_rows);

static const struct cli_row request_rows[] = {
    {"manifest", 0, CLI_TEXT, AT(manifest), "FILE",
     "shapes in place of a model: {\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\", \"layer\", \"n\", \"k\", "
     "\"groups\"}]}; what --json shapes prints is one",
     0, 0},
    {"all", 0, CLI_FLAG, AT(all), NULL, "every specialisation that any shape can reach under the profile", 0, 0},
    {"max-m", 0, CLI_NUMBER, AT(max_m), "M", "largest M of a call (default: 131072)", 0, M_MAX},
    {"ops", 0, CLI_TEXT, AT(ops), "OP[,OP]",
     "only these of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm (default: all that the layers need)", 0, 0},
    {"arch", 0, CLI_TEXT, AT(arch), ARCHES, "architectures, a comma list", 0, 0},
};
static const struct cli_group request_group = GROUP("Request", request_rows);

static const struct cli_row warm_rows[] = {
    {"jobs", 'j', CLI_NUMBER, AT(jobs), "N", "builds at once (default: one a core)", 1, 1024},
    {"pin", 0, CLI_FLAG, AT(pin), NULL, "pin what was requested, so that eviction and prune leave it", 0, 0},
    {"push", 0, CLI_FLAG, AT(push), NULL,
     "store all that was requested on the fleet's server, also what was there before; exits 4 when it takes only a part, "
     "1 when nothing",
     0, 0},
};
static const struct cli_group warm_group = GROUP("Building", warm_rows);

#define OP_ROW                                                                                                         \
    {                                                                                                                  \
        "op", 0, CLI_TEXT, AT(op), "fp8_gemm|fp8_quantize|fp8_einsum|fp8_grouped_gemm", "the operation", 0, 0          \
    }
#define ARCH_ROW                                                                                                       \
    {                                                                                                                  \
        "arch", 0, CLI_TEXT, AT(arch), ARCHES, "architecture", 0, 0                                                    \
    }
#define EXTENT_FROM(low, name, letter_help)                                                                            \
    {                                                                                                                  \
#name, 0, CLI_NUMBER, AT(name), "NUMBER", letter_help, low, INT64_MAX                                          \
    }
#define EXTENT(name, letter_help) EXTENT_FROM(0, name, letter_help)
#define COUNT(name, letter_help) EXTENT_FROM(1, name, letter_help) /* of groups: without one there is no call */

#define EXTENT_ROWS                                                                                                    \
    EXTENT(n, "fp8_gemm, fp8_grouped_gemm: columns of the output"),                                                    \
        EXTENT(k, "fp8_gemm, fp8_grouped_gemm: columns of A; fp8_quantize: columns of x"),                             \
        EXTENT(lda, "fp8_gemm: row stride of A in elements (default: k)"),                                             \
        COUNT(g, "fp8_quantize, fp8_einsum: groups"), EXTENT(d, "fp8_quantize, fp8_einsum: columns of a group"),       \
        EXTENT(r, "fp8_einsum: columns of a group's output"), COUNT(experts, "fp8_grouped_gemm: experts")

static const struct cli_row call_rows[] = {
    OP_ROW,
    EXTENT(m, "fp8_gemm, fp8_grouped_gemm: rows of A"),
    EXTENT(t, "fp8_quantize, fp8_einsum: rows of x"),
    EXTENT_ROWS,
    ARCH_ROW,
};
static const struct cli_group call_group = GROUP("Call", call_rows);

static const struct cli_row sweep_rows[] = {
    OP_ROW,
    {"m", 0, CLI_NUMBERS, AT(m_list), "M[,M]", "rows (fp8_quantize, fp8_einsum: T), a comma list", 0, INT64_MAX},
    EXTENT_ROWS,
    ARCH_ROW,
};
static const struct cli_group sweep_group = GROUP("Calls", sweep_rows);

static const struct cli_row ls_rows[] = {
    {"op", 0, CLI_TEXT, AT(op), "OP", "only this operation", 0, 0},
    {"arch", 0, CLI_TEXT, AT(arch), ARCHES, "only this architecture", 0, 0},
    {"kernel", 0, CLI_TEXT, AT(kernel), "KERNEL", "only this candidate", 0, 0},
    {"sort", 0, CLI_CHOICE, AT(sort), "used|size|created",
     "last used, largest or newest first (default: by operation, kernel, architecture and key)", 0, 0},
};
static const struct cli_group ls_group = GROUP("Selection", ls_rows);

static const struct cli_row show_rows[] = {
    {"cubin", 0, CLI_TEXT, AT(cubin), "FILE", "write the entry's bytes, of the newest compiler, into this file", 0, 0},
    {"source", 0, CLI_FLAG, AT(source), NULL, "print the source that the entry was cut from", 0, 0},
    {"resources", 0, CLI_FLAG, AT(resources), NULL, "print registers, static shared memory and spills only", 0, 0},
};
static const struct cli_group show_group = GROUP("Parts of the entry", show_rows);

static const struct cli_row stats_rows[] = {
    {"prometheus", 0, CLI_FLAG, AT(prometheus), NULL, "print Prometheus' text format", 0, 0},
};
static const struct cli_group stats_group = GROUP("Output", stats_rows);

static const struct cli_row prune_rows[] = {
    {"max-size", 0, CLI_SIZE, AT(max_size), "SIZE",
     "come down to this many bytes in use, as in 512MiB; least recently used entries go first", 0, 0},
    {"older-than", 0, CLI_SPAN, AT(older_than), "TIME", "not used for so long, as in 30d", 0, 0},
    {"arch", 0, CLI_TEXT, AT(arch), ARCHES, "only this architecture", 0, 0},
    {"op", 0, CLI_TEXT, AT(op), "OP", "only this operation", 0, 0},
    {"compiler", 0, CLI_TEXT, AT(compiler), "<VERSION", "only what a compiler below this version cut, as in '<13.0'", 0,
     0},
    {"stale", 0, CLI_FLAG, AT(stale), NULL, "only what was cut from templates that this library does not hold", 0, 0},
    {"all", 0, CLI_FLAG, AT(all), NULL, "every entry that is not pinned", 0, 0},
    {"unpinned-too", 0, CLI_FLAG, AT(unpinned_too), NULL, "with --all: pinned entries as well", 0, 0},
};
static const struct cli_group prune_group = GROUP("Rules: an entry goes that matches all that are given", prune_rows);

static const struct cli_row prune_way_rows[] = {
    {"compact", 0, CLI_FLAG, AT(compact), NULL, "rewrite the file afterwards, when no other process has it open", 0, 0},
    {"dry-run", 0, CLI_FLAG, AT(dry_run), NULL, "tell, remove nothing", 0, 0},
};
static const struct cli_group prune_way_group = GROUP("How", prune_way_rows);

static const struct cli_row pack_rows[] = {
    {"op", 0, CLI_TEXT, AT(op), "OP", "only this operation", 0, 0},
    {"kernel", 0, CLI_TEXT, AT(kernel), "KERNEL", "only this candidate", 0, 0},
};
static const struct cli_group pack_group = GROUP("Selection of what is there, with --arch", pack_rows);

static const struct cli_row unpack_rows[] = {
    {"expect-digest", 0, CLI_TEXT, AT(expect_digest), "SHA256", "take this very file and no other", 0, 0},
};
static const struct cli_group unpack_group = GROUP("Trust", unpack_rows);

static const struct cli_row verify_rows[] = {
    {"repair", 0, CLI_FLAG, AT(repair), NULL,
     "drop damaged entries of the writable layer; they are rebuilt when needed", 0, 0},
    {"dry-run", 0, CLI_FLAG, AT(dry_run), NULL, "with --repair: change nothing", 0, 0},
};
static const struct cli_group verify_group = GROUP("Repair", verify_rows);

static const struct cli_row selftest_rows[] = {
    {"op", 0, CLI_TEXT, AT(op), "fp8_gemm|fp8_quantize", "only this operation", 0, 0},
};
static const struct cli_group selftest_group = GROUP("Selection", selftest_rows);

static const struct cli_row help_rows[] = {
    {"man", 0, CLI_FLAG, AT(man), NULL, "the man page", 0, 0},
    {"completion", 0, CLI_CHOICE, AT(completion), "bash", "a completion script for this shell", 0, 0},
};
static const struct cli_group help_group = GROUP("Other forms", help_rows);

const struct cli_verb cli_verbs[] = {
    {"warm",
     "(--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]",
     "build every kernel that a model needs",
     "Reads a model's config.json, derives its FP8 layers after sharding, enumerates every specialisation that the "
     "dispatcher can reach for M in 0..max-m, and builds what the cache does not hold. Needs NVRTC, no GPU. Builds run "
     "in child processes. Exits 3 when no kernel takes some of a layer's calls, 4 when some kernels could not be "
     "built, 1 when none could.",
     {&model_group, &request_group, &warm_group, &cli_group_profile, NULL},
     0,
     cli_warm},
    {"check",
     "(--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]",
     "say whether a warm would build anything",
     "The same enumeration as warm, building nothing. Exits 0 if and only if nothing would be compiled and every layer "
     "is covered, else 3.",
     {&model_group, &request_group, &cli_group_profile, NULL},
     0,
     cli_check},
    {"shapes",
     "--model CONFIG.json [--tp N] [--ep N]",
     "list the layers of a model",
     "The linear layers that a config leads to, with their shapes after sharding, and whether each is block FP8. Its "
     "JSON is a manifest that warm and check take.",
     {&model_group, NULL},
     0,
     cli_shapes},
    {"ls",
     "[options]",
     "list the cache",
     "One line for each entry that verifies, the writable layer first. Exits 3 when damaged entries were met.",
     {&ls_group, NULL},
     0,
     cli_ls},
    {"show",
     "KEY [--cubin FILE] [--source] [--resources] | KEY1 KEY2",
     "decode one entry, or say how two keys differ",
     "Everything that is recorded of the entry whose key begins with KEY. With an option only that part is printed. "
     "Two "
     "keys: the fields in which they differ. Exits 1 when no key or more than one begins so.",
     {&show_group, NULL},
     2,
     cli_show},
    {"stats",
     "[--prometheus]",
     "count entries, bytes, hits and misses by layer",
     "What each layer holds, and the counters that the writable one keeps over every process that used it: hits, "
     "misses "
     "by reason, evictions, the time that building took and that hits saved.",
     {&stats_group, NULL},
     0,
     cli_stats},
    {"verify",
     "[--repair]",
     "check every entry of the cache",
     "Reads every entry of every layer and checks it against its key. Exits 3 when damage was found, 0 after a "
     "--repair that mended all of it.",
     {&verify_group, NULL},
     0,
     cli_verify},
    {"prune",
     "RULES [--compact] [--dry-run]",
     "remove entries by rule",
     "Removes entries of the writable layer, never those of a base, and pinned ones only with --all --unpinned-too. "
     "What is removed is rebuilt when needed.",
     {&prune_group, &prune_way_group, NULL},
     0,
     cli_prune},
    {"pin",
     "KEY... | (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]",
     "mark entries that eviction and prune must leave",
     "Marks the entries of these keys, or of every kernel that a request reaches. Exits 3 when the cache does not hold "
     "all of the request. Entries of a base need no mark.",
     {&model_group, &request_group, &cli_group_profile, NULL},
     CLI_ARGUMENTS_ANY,
     cli_pin},
    {"unpin",
     "KEY... | (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]",
     "take the marks away",
     "Takes the marks of pin away from these keys, or from every kernel that a request reaches.",
     {&model_group, &request_group, &cli_group_profile, NULL},
     CLI_ARGUMENTS_ANY,
     cli_unpin},
    {"pack",
     "OUT [--op OP] [--kernel KERNEL] [--arch ARCH] | OUT (--model CONFIG.json [--tp N] | --manifest FILE | --all) "
     "--arch ARCH[,ARCH] [options]",
     "write one file for deployment",
     "Writes the entries of all layers, those that are selected, or every kernel that a request reaches, into one file "
     "that is verified as a whole and entry by entry. The same kernels give the same bytes, whichever cache they come "
     "from. Exits 3, naming what is missing and the command that builds it, when a request is not complete: nothing is "
     "written then. OUT may be -, standard output. A pack serves in place with --base, or is unpacked.",
     {&pack_group, &model_group, &request_group, &cli_group_profile, NULL},
     1,
     cli_pack},
    {"unpack",
     "IN [--expect-digest SHA256]",
     "store the entries of a pack",
     "Reads and verifies the whole pack, then stores its entries in the writable layer. A pack that was cut or altered, "
     "or is not the one expected, exits 3, and nothing of it is taken. IN may be -, standard input.",
     {&unpack_group, NULL},
     1,
     cli_unpack},
    {"explain",
     "--op OP EXTENTS --arch ARCH [options]",
     "say which kernel a call would take, and why",
     "The dispatcher's own decision for one call, launching nothing: each candidate with its verdict, the guard that "
     "refused it and the value that the guard saw. Extents: --m --n --k [--lda] for fp8_gemm; --t --k or --t --g --d "
     "for "
     "fp8_quantize; --t --g --r --d for fp8_einsum; --m --n --k --experts for fp8_grouped_gemm. Exits 1 when no "
     "candidate takes the call.",
     {&call_group, &cli_group_profile, NULL},
     0,
     cli_explain},
    {"matrix",
     "--op OP --m M[,M] EXTENTS --arch ARCH [options]",
     "print the routing table over several M",
     "The decision for each M, with every candidate on and with each of them switched off in turn.",
     {&sweep_group, &cli_group_profile, NULL},
     0,
     cli_matrix},
    {"selftest",
     "[--op OP]",
     "run every kernel on the GPU against the reference",
     "Runs every candidate of the first device's architecture against the CPU reference and prints the errors. Exits 1 "
     "when a case failed or when there is no device.",
     {&selftest_group, NULL},
     0,
     cli_selftest},
    {"doctor",
     "",
     "report what works here and how to mend what does not",
     "Driver, devices, NVRTC, the cache folder and the layers. Exits 1 when a check failed; a machine without a GPU is "
     "no "
     "failure.",
     {NULL},
     0,
     cli_doctor},
    {"config", "", "print every setting and where it came from", "", {NULL}, 0, cli_config},
    {"version",
     "",
     "print the versions",
     "The library, the cache's format, the digest of the embedded templates.",
     {NULL},
     0,
     cli_version},
    {"help", "[VERB] [--man | --completion SHELL]", "print help", "", {&help_group, NULL}, 1, cli_help},
    {NULL, NULL, NULL, NULL, {NULL}, 0, NULL},
};

const struct cli_verb *cli_verb_find(const char *name)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}
