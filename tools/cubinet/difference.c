/*
 * show KEY1 KEY2: the fields in which two keys differ.
 */
#include <string.h>

#include "record.h"

struct difference {
    struct cli_table table;
    json_t *items; /* NULL: text */
    size_t count;
};

/* NULL: one of them has no such field. */
static void add(struct difference *difference, const char *field, const char *left, const char *right)
{
    if (left && right && strcmp(left, right) == 0)
        return;
    difference->count++;
    if (!difference->items) {
        cli_table_add(&difference->table, "%s", field);
        cli_table_add(&difference->table, "%s", left ? left : "-");
        cli_table_add(&difference->table, "%s", right ? right : "-");
        return;
    }
    json_t *item = json_object(), *values = json_array();
    cli_json_set(item, "field", cli_json_text(field));
    cli_json_add(values, cli_json_text(left));
    cli_json_add(values, cli_json_text(right));
    cli_json_set(item, "values", values);
    cli_json_add(difference->items, item);
}

/* The value of a parameter as text; NULL when the specialisation has none of that name. */
static const char *find_param(const struct cbn_spec *spec, const char *name, char *text, size_t text_bytes)
{
    for (uint32_t i = 0; i < spec->param_count; i++) {
        if (strcmp(spec->params[i].name, name) != 0)
            continue;
        cli_value_format(name, spec->params[i].value, text, text_bytes);
        return text;
    }
    return NULL;
}

static void add_param(struct difference *difference, const char *name, const struct cbn_spec *left,
                      const struct cbn_spec *right)
{
    char texts[2][CBN_TEXT_BYTES];
    add(difference, name, find_param(left, name, texts[0], sizeof(texts[0])),
        find_param(right, name, texts[1], sizeof(texts[1])));
}

static void add_params(struct difference *difference, const struct cbn_spec *left, const struct cbn_spec *right)
{
    char ignored[CBN_TEXT_BYTES];
    for (uint32_t i = 0; i < left->param_count; i++)
        add_param(difference, left->params[i].name, left, right);
    for (uint32_t i = 0; i < right->param_count; i++)
        if (!find_param(left, right->params[i].name, ignored, sizeof(ignored)))
            add_param(difference, right->params[i].name, left, right);
}

static void compare(struct difference *difference, const struct cli_record *left, const struct cli_record *right)
{
    const struct cbn_spec *one = &left->entry.spec, *other = &right->entry.spec;
    add(difference, "op", one->op, other->op);
    add(difference, "kernel", one->kernel, other->kernel);
    add(difference, "arch", one->arch, other->arch);
    add_params(difference, one, other);
    add(difference, "options", left->options, right->options);
    add(difference, "source digest", left->entry.source_digest, right->entry.source_digest);
    /* Of what a key holds, the two fields that an entry's description leaves out. */
    if (difference->count == 0 && strcmp(one->key, other->key) != 0)
        add(difference, "argument layout or symbol", NULL, NULL);
}

void cli_difference_print(const struct cli *cli, const struct cli_record *left, const struct cli_record *right)
{
    struct difference difference = {.table = {.columns = 3}, .items = cli->options.json ? json_array() : NULL};
    const char *left_key = left->entry.spec.key, *right_key = right->entry.spec.key;
    cli_table_add(&difference.table, "FIELD");
    cli_table_add(&difference.table, "%s", left_key);
    cli_table_add(&difference.table, "%s", right_key);
    compare(&difference, left, right);
    if (!difference.items) {
        if (difference.count)
            cli_table_print(&difference.table, stdout, "");
        else
            (void)printf("the keys are equal: %s\n", left_key);
    } else {
        json_t *root = cli_json_begin(cli), *keys = json_array();
        cli_json_add(keys, cli_json_text(left_key));
        cli_json_add(keys, cli_json_text(right_key));
        cli_json_set(root, "keys", keys);
        cli_json_set(root, "equal", json_boolean(difference.count == 0));
        cli_json_set(root, "differences", difference.items);
        cli_json_print(root);
    }
    cli_table_done(&difference.table);
}
