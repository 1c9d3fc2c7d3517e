/*
 * Every refusal of a folder: its words, its mend, which works, and the override, which is said.
 */
#include "users_fixture.h"

#define OVERRIDE ", or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)"

struct refusal {
    const char *before;  /* a shell command that makes it so, in the scratch folder, as root */
    const char *folder;  /* named */
    const char *message; /* %s: the scratch folder */
    const char *mend;    /* what the message says, as a shell command; "": mended names another folder */
    const char *mended;
    bool empty; /* trusted by override it still cannot be written, and holds nothing */
};

static const struct refusal refusals[] = {
    {"mkdir cache; chown 54321 cache; chmod 757 cache", "cache",
     "everyone can write it; run chmod o-w '%s/cache'" OVERRIDE, "chmod o-w cache", "cache", false},
    {"mkdir -m 777 open; mkdir open/cache; chown 54321 open/cache", "open/cache",
     "everyone can write a folder above it, and so replace it; run chmod o-w (or +t) on the folders above "
     "'%s/open/cache'" OVERRIDE,
     "chmod o-w open", "open/cache", false},
    {"mkdir -m 777 open; mkdir -p open/a/cache; chown 54321 open/a/cache", "open/a/cache",
     "everyone can write a folder above it, and so replace it; run chmod o-w (or +t) on the folders above "
     "'%s/open/a/cache'" OVERRIDE,
     "chmod +t open", "open/a/cache", false},
    {"mkdir cache; chown 54321 cache; ln -s cache link; chown -h 54322 link", "link",
     "it is reached through a symbolic link that another user owns; name the folder '%s/cache' itself" OVERRIDE, "",
     "cache", false},
    {"mkdir -m 2770 theirs; chown 54322:54399 theirs; chmod 2770 theirs; ln -s theirs link; chown -h 54321 link; "
     "mkdir own; chown 54321 own",
     "link",
     "a symbolic link leads into a folder that another user owns; name a folder of your own in place of "
     "'%s/link'" OVERRIDE,
     "", "own", false},
    {"mkdir theirs; chown 54322:54399 theirs; chmod 755 theirs", "theirs",
     "another user owns it and does not share it with a group of this user; share '%s/theirs' with chmod g+rwxs, name "
     "a folder of your own" OVERRIDE,
     "chmod g+rwxs theirs", "theirs", true},
    {"mkdir -m 700 theirs; chown 54322:54400 theirs; chmod 2775 theirs; mkdir own; chown 54321 own", "theirs",
     "another user owns it and does not share it with a group of this user; share '%s/theirs' with chmod g+rwxs, name "
     "a folder of your own" OVERRIDE,
     "", "own", true},
};

static void run_shell(const struct scratch *scratch, const char *command)
{
    char text[2048];
    (void)snprintf(text, sizeof(text), "cd '%s' && umask 022 && %s", scratch->path, command);
    ck_assert_int_eq(system(text), 0);
}

static void open_as_other(const struct scratch *scratch, const char *folder, const char *message, bool trust_folder,
                          bool empty)
{
    char text[2 * PATH_BYTES + 600] = "";
    struct events events = {0};
    struct cbn_error err = {0};
    become(OTHER_UID, OTHER_UID, SHARED_GID);
    struct cbn__cabinet_options options = options_for(in(scratch, folder), &events);
    struct cbn__cabinet *cabinet = NULL;
    options.trust_folder = trust_folder;
    bool refused = message && !trust_folder;
    int32_t status = cbn__cabinet_open(&options, &cabinet, &err);
    bool right = status == (refused ? CBN_STATUS_UNTRUSTED
                            : empty ? CBN_STATUS_IO
                                    : CBN_STATUS_OK) &&
                 cbn__cabinet_layer_count(cabinet) == (status == CBN_STATUS_OK) &&
                 events.notices == (message != NULL) + empty;
    if (refused)
        (void)snprintf(text, sizeof(text), "the cache folder %s is not trusted: %s", in(scratch, folder), message);
    right = right && (!refused || strcmp(err.message, text) == 0) &&
            (!message || empty || strstr(events.last, refused ? err.message : "is used by override although"));
    if (!right)
        fprintf(stderr, "%s: status %d, %d notices: %s | %s\n", folder, status, events.notices, err.message,
                events.last);
    cbn__cabinet_close(cabinet);
    _exit(right ? 0 : 1);
}

/* As the user of OTHER_UID, in the group of SHARED_GID. message: of the refusal, NULL: there is none. */
static void expect_opening(const struct scratch *scratch, const char *folder, const char *message, bool trust_folder,
                           bool empty)
{
    pid_t child = fork();
    if (child == 0)
        open_as_other(scratch, folder, message, trust_folder, empty);
    reap(child);
}

START_TEST(a_refusal_names_what_mends_it)
{
    SCRATCH_AUTO scratch = scratch_make();
    const struct refusal *refusal = &refusals[_i];
    char message[2 * PATH_BYTES + 600];
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    run_shell(&scratch, refusal->before);
    const char *place = strstr(refusal->message, "%s");
    (void)snprintf(message, sizeof(message), "%.*s%s%s", (int)(place - refusal->message), refusal->message,
                   scratch.path, place + 2);
    expect_opening(&scratch, refusal->folder, message, false, false);
    expect_opening(&scratch, refusal->folder, message, true, refusal->empty);
    if (refusal->mend[0])
        run_shell(&scratch, refusal->mend);
    expect_opening(&scratch, refusal->mended, NULL, false, false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals");
    TCase *cases = tcase_create("refusals");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, a_refusal_names_what_mends_it, 0, sizeof(refusals) / sizeof(refusals[0]));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
