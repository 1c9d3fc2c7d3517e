/*
 * What the files of the command line share: options, verbs, the session, and how a verb speaks.
 *
 * Includes the public headers only: the tool proves that they are enough. Single-threaded.
 */
#ifndef CUBINET_CLI_H
#define CUBINET_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include <cubinet/cubinet.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_INCOMPLETE = 3, /* damage, or something missing or uncovered */
    CLI_PARTLY = 4      /* some kernels failed to build */
};

#define CLI_UNSET (-1) /* a number that was not given: every number of the command line is 0 or more */
#define CLI_LIST_MAX 64

struct cli_texts {
    const char *items[CLI_LIST_MAX];
    uint32_t count;
};

struct cli_numbers {
    int64_t items[CLI_LIST_MAX];
    uint32_t count;
};

/* Where the rows of the option tables (options.c) store what was given. */
struct cli_options {
    const char *cache, *fleet;
    struct cli_texts bases;
    bool json, quiet, help, version, trust_folder;

    const char *model, *manifest, *ops, *arch;
    bool all;
    int64_t tp, ep, max_m, jobs;

    int64_t in, out, weight_scale, scale_gran, act_scale, bias, sms, max_sms;
    bool pow2, no_pdl, propagate, approx, strict_route;
    const char *policy, *disable, *enable;

    const char *op, *kernel;
    int64_t m, n, k, lda, t, g, d, r, experts;
    struct cli_numbers m_list;
    int64_t sort;
    bool repair, dry_run;
    const char *cubin, *compiler, *expect_digest;
    bool source, resources, prometheus;
    int64_t max_size, older_than;
    bool stale, unpinned_too, compact, pin, push;
    bool man;
    int64_t completion;
};

enum cli_kind {
    CLI_FLAG,    /* bool */
    CLI_TEXT,    /* const char * */
    CLI_TEXTS,   /* struct cli_texts, repeatable */
    CLI_NUMBER,  /* int64_t in [low, high] */
    CLI_NUMBERS, /* struct cli_numbers: a comma list, each in [low, high] */
    CLI_SIZE,    /* int64_t, bytes: "512MiB" */
    CLI_SPAN,    /* int64_t, seconds: "30d" */
    CLI_CHOICE   /* int64_t: low + the position in argument, which lists the words: "a|b|c" */
};

struct cli_row {
    const char *name;
    char letter; /* 0: none */
    enum cli_kind kind;
    size_t offset;        /* into struct cli_options */
    const char *argument; /* as help prints it; NULL for a flag */
    const char *help;
    int64_t low, high;
};

struct cli_group {
    const char *title;
    const struct cli_row *rows;
    uint32_t row_count;
};

struct cli;

#define CLI_GROUPS_MAX 4
#define CLI_ARGUMENTS_ANY INT_MAX

struct cli_verb {
    const char *name;
    const char *usage; /* what follows the verb */
    const char *summary;
    const char *details;                                /* one paragraph */
    const struct cli_group *groups[CLI_GROUPS_MAX + 1]; /* besides the global one; ends in NULL */
    int argument_max;                                   /* arguments that are no options */
    int (*run)(struct cli *cli);
};

/* The verbs in the order of the help; ends in a row without a name. */
extern const struct cli_verb cli_verbs[];
extern const struct cli_group cli_group_global;
extern const struct cli_group cli_group_profile;
const struct cli_verb *cli_verb_find(const char *name);

/* One run of the tool. */
struct cli {
    const struct cli_verb *verb; /* NULL: none was given */
    struct cli_options options;
    const char **arguments; /* ends in NULL */
    int argument_count;
    struct cbn_runtime *runtime;
    bool cache_is_absent;     /* a verb that makes none found no cache */
    uint32_t damage_events;   /* told by the library so far */
    struct cli_texts notices; /* told while the session was being opened */
    struct cli_texts owned;   /* option arguments to free */
    void *contexts[2];        /* popt's, alive as long as arguments */
};

/* parse.c: CLI_OK, or CLI_USAGE after it said why. */
int cli_parse(struct cli *cli, int argc, const char **argv);
void cli_parse_done(struct cli *cli);

/* numbers.c: NULL, or what is wrong with the text ("is not a number", ...). */
const char *cli_number_read(const char *text, int64_t low, int64_t high, int64_t *ret_number);
/* Bytes with a unit ("512MiB"), seconds with a unit ("30d"), a compiler's version ("12.9") as 1000 * major + minor. */
const char *cli_size_read(const char *text, int64_t *ret_bytes);
const char *cli_span_read(const char *text, int64_t *ret_s);
const char *cli_version_read(const char *text, uint32_t *ret_version);
/* The position of text in "a|b|c"; -1 when it is none of them. */
int cli_choice_find(const char *choices, const char *text, size_t text_length);
/* Writes the word at a position of "a|b|c". */
void cli_choice_name(const char *choices, int64_t position, char *ret_name, size_t name_bytes);

/* What a verb wants of the cache folder. */
enum cli_cache {
    CLI_CACHE_NONE,     /* nothing */
    CLI_CACHE_SETTINGS, /* only what it is set to: nothing is made, nothing is said of it */
    CLI_CACHE_SHOWN,    /* reports on it, whatever its state */
    CLI_CACHE_USED,     /* goes on without it, unless it was named by --cache */
    CLI_CACHE_NEEDED,   /* made where it is missing; by the side of a base goes on without it */
    CLI_CACHE_LOOKED,   /* as USED, and never made: a missing one holds nothing */
    CLI_CACHE_PRESENT   /* as NEEDED, and never made: a missing one holds nothing, unless --cache names its folder */
};

/* session.c: opens the runtime with the global options. */
int cli_session_open(struct cli *cli, enum cli_cache need);
void cli_session_close(struct cli *cli);

/* fleet.c: the server that a fleet shares. */
struct cli_fleet {
    int32_t status; /* NOT_FOUND: none is named */
    struct cbn_error error;
    struct cbn_fleet_info info;
};
void cli_fleet_ask(const struct cli *cli, struct cli_fleet *ret_fleet);
void cli_fleet_print(const struct cli_fleet *fleet);
json_t *cli_fleet_json(const struct cli_fleet *fleet); /* null: none is named */
void cli_fleet_print_prometheus(const struct cli_fleet *fleet);

/* layers.c: CLI_USAGE when the open session's cache and bases name one folder twice: its entries would count twice. */
int cli_layers_check(const struct cli *cli);

/* profile.c */
/* Completes the options from the open session's settings and the defaults; printing goes by the completed options. */
void cli_profile_get(struct cli *cli, struct cbn_profile *ret_profile);
void cli_profile_print(const struct cli *cli);
json_t *cli_profile_json(const struct cli *cli);
int cli_arch_get(struct cli *cli, uint32_t *ret_arch);
#define CLI_ARCHES_MAX 16
int cli_arches_get(struct cli *cli, uint32_t *ret_arches, uint32_t *ret_count);

/* shape.c: the query of one call from --op and its extents. sweep: m comes from elsewhere (matrix). */
int cli_shape_query(struct cli *cli, bool sweep, struct cbn_query *ret_query);
void cli_shape_print(const struct cli *cli, const struct cbn_query *query);
json_t *cli_shape_json(const struct cli *cli, const struct cbn_query *query);

/* spec.c: parameters as text ("IN=bf16 OUT=bf16 SWAP_AB=1") and as JSON. The caller frees the text. */
char *cli_spec_params(const struct cbn_spec *spec);
json_t *cli_spec_params_json(const struct cbn_spec *spec);
/* The value of a parameter or fact: dtypes and architectures by name. text_bytes >= 24. */
void cli_value_format(const char *name, int64_t value, char *ret_text, size_t text_bytes);

/* entry.c: what is kept of an entry after its callback. */
struct cli_entry {
    struct cbn_spec spec;
    uint64_t size_bytes, hits;
    int64_t created_s, last_used_s;
    uint32_t compile_ms, registers, shared_bytes, spill_bytes, layer;
    bool pinned;
    char compiler[32];
    char source_digest[33];
    char *layer_path;
};
void cli_entry_keep(const struct cbn_entry_info *info, struct cli_entry *ret_entry);
void cli_entry_done(struct cli_entry *entry);
json_t *cli_entry_json(const struct cli_entry *entry);

/* output.c: data on stdout, talk on stderr. */
/* A line of progress on the terminal that the next talk, or the next bar, wipes. */
void cli_bar_show(const char *text);
void cli_bar_clear(void);
/* progress.c: done of total things, drawn where stderr is a terminal; clear the bar when it is over. */
void cli_progress_count(const struct cli *cli, uint64_t done, uint64_t total, const char *text);
void cli_say(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "cubinet: VERB: message" and returns code. */
int cli_fail(const struct cli *cli, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
int cli_fail_error(const struct cli *cli, const struct cbn_error *err);
/* The message, and what the operating system said where it does not name that. The caller frees it. */
char *cli_error_format(const struct cbn_error *err);
void *cli_grow(void *items, size_t *capacity, size_t count, size_t item_bytes); /* exits when memory is out */
char *cli_text_copy(const char *text);
unsigned char *cli_bytes_copy(const void *bytes, size_t size);
char *cli_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
json_t *cli_json_begin(const struct cli *cli);                      /* with the verb's schema */
void cli_json_set(json_t *object, const char *name, json_t *value); /* exits when memory is out */
void cli_json_add(json_t *array, json_t *value);
json_t *cli_json_text(const char *text); /* bytes that are no UTF-8 become '?'; NULL becomes null */
void cli_json_print(json_t *root);       /* and frees it */
json_t *cli_json_time(int64_t unix_s);   /* RFC 3339, UTC; null for 0 */
void cli_time_format(int64_t unix_s, char *ret_text, size_t text_bytes);
void cli_bytes_format(uint64_t bytes, char *ret_text, size_t text_bytes);
void cli_label_print(const char *text); /* the value of a Prometheus label, escaped */

/* A table of text: columns as wide as their widest cell, two blanks between. */
struct cli_table {
    uint32_t columns;
    size_t count, capacity;
    char **cells;
};
void cli_table_add(struct cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(struct cli_table *table, FILE *file, const char *indent); /* and frees the cells */
void cli_table_done(struct cli_table *table);

/* The verbs, one file each. */
int cli_warm(struct cli *cli);
int cli_check(struct cli *cli);
int cli_shapes(struct cli *cli);
int cli_ls(struct cli *cli);
int cli_show(struct cli *cli);
int cli_stats(struct cli *cli);
int cli_verify(struct cli *cli);
int cli_prune(struct cli *cli);
int cli_pin(struct cli *cli);
int cli_unpin(struct cli *cli);
int cli_pack(struct cli *cli);
int cli_unpack(struct cli *cli);
int cli_explain(struct cli *cli);
int cli_matrix(struct cli *cli);
int cli_selftest(struct cli *cli);
int cli_doctor(struct cli *cli);
int cli_config(struct cli *cli);
int cli_version(struct cli *cli);
int cli_help(struct cli *cli);
/* Help of a verb, or of the tool. */
void cli_help_print(const struct cli_verb *verb, FILE *file);
void cli_manual_print(FILE *file);
void cli_completion_print(FILE *file);
/* --model with --tp and --ep. */
int32_t cli_model_load(const struct cli *cli, struct cbn_model **ret_model, struct cbn_error *err);

#endif
