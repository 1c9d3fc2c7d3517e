/*
 * doctor: what works here, and how to mend what does not.
 */
#include <stdlib.h>

#include "cli.h"

enum { CHECK_FAILED = 0, CHECK_OK = 1, CHECK_ABSENT = 2 };

struct visit {
    json_t *checks; /* NULL: text */
    uint32_t failed;
};

static const char *state_word(uint32_t state)
{
    if (state == CHECK_OK)
        return "ok";
    return state == CHECK_ABSENT ? "absent" : "failed";
}

static void print_text(const struct cbn_doctor_check *check)
{
    (void)printf("%-7s %s: %s\n", state_word(check->ok), check->name, check->detail);
    if (check->mend && *check->mend)
        (void)printf("        mend: %s\n", check->mend);
}

static void hear(void *user, const struct cbn_doctor_check *check)
{
    struct visit *visit = user;
    visit->failed += check->ok == CHECK_FAILED;
    if (!visit->checks) {
        print_text(check);
        return;
    }
    json_t *item = json_object();
    cli_json_set(item, "name", cli_json_text(check->name));
    cli_json_set(item, "ok", json_boolean(check->ok != CHECK_FAILED));
    cli_json_set(item, "state", json_string(state_word(check->ok)));
    cli_json_set(item, "detail", cli_json_text(check->detail));
    cli_json_set(item, "mend", cli_json_text(check->mend ? check->mend : ""));
    cli_json_add(visit->checks, item);
}

int cli_doctor(struct cli *cli)
{
    int code = cli_session_open(cli, CLI_CACHE_SHOWN);
    if (code != CLI_OK)
        return code;
    struct visit visit = {.checks = cli->options.json ? json_array() : NULL};
    struct cbn_error err = {0};
    if (cbn_doctor(cli->runtime, hear, &visit, &err) != CBN_STATUS_OK) {
        json_decref(visit.checks);
        return cli_fail_error(cli, &err);
    }
    if (visit.checks) {
        json_t *root = cli_json_begin(cli);
        cli_json_set(root, "checks", visit.checks);
        cli_json_print(root);
    }
    return visit.failed ? CLI_FAILED : CLI_OK;
}
