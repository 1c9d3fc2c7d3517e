/*
 * A bash completion script from the tables of options.c.
 */
#include <string.h>

#include "cli.h"

static void print_words(FILE *file, const char *choices)
{
    for (; *choices; choices++)
        (void)fputc(*choices == '|' ? ' ' : *choices, file);
}

static void print_option_names(FILE *file, const struct cli_group *group)
{
    for (uint32_t i = 0; i < group->row_count; i++)
        (void)fprintf(file, " --%s", group->rows[i].name);
}

/* What to offer after an option: its words, files, folders, or nothing. */
static void print_values(FILE *file, const char *verb, const struct cli_group *group)
{
    for (uint32_t i = 0; i < group->row_count; i++) {
        const struct cli_row *row = &group->rows[i];
        if (!row->argument)
            continue;
        (void)fprintf(file, "    %s:--%s) ", verb, row->name);
        if (row->kind == CLI_CHOICE || strchr(row->argument, '|')) {
            (void)fputs("COMPREPLY=($(compgen -W '", file);
            print_words(file, row->argument);
            (void)fputs("' -- \"$word\")) ;;\n", file);
        } else if (strcmp(row->argument, "DIR") == 0) {
            (void)fputs("COMPREPLY=($(compgen -d -- \"$word\")) ;;\n", file);
        } else if (strcmp(row->argument, "FILE") == 0 || strcmp(row->argument, "PATH") == 0 ||
                   strcmp(row->argument, "CONFIG.json") == 0) {
            (void)fputs("COMPREPLY=($(compgen -f -- \"$word\")) ;;\n", file);
        } else {
            (void)fputs("COMPREPLY=() ;;\n", file);
        }
    }
}

static void print_verb_names(FILE *file)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        (void)fprintf(file, "%s%s", verb == cli_verbs ? "" : " ", verb->name);
}

static void print_verb_options(FILE *file, const struct cli_verb *verb)
{
    (void)fprintf(file, "    %s) options='", verb->name);
    if (verb->run == cli_help)
        print_verb_names(file);
    for (int i = 0; verb->groups[i]; i++)
        print_option_names(file, verb->groups[i]);
    print_option_names(file, &cli_group_global);
    (void)fputs("'", file);
    if (verb->run == cli_pack || verb->run == cli_unpack)
        (void)fputs("; COMPREPLY=($(compgen -f -- \"$word\"))", file);
    (void)fputs(" ;;\n", file);
}

void cli_completion_print(FILE *file)
{
    (void)fputs("# bash completion for cubinet: source <(cubinet help --completion bash)\n"
                "_cubinet()\n{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= options= i\n"
                "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                "        case ${COMP_WORDS[i]} in\n"
                "        --cache|--base) ((i++)) ;;\n"
                "        -*) ;;\n"
                "        *) verb=${COMP_WORDS[i]}; break ;;\n"
                "        esac\n"
                "    done\n"
                "    COMPREPLY=()\n    case $verb:$before in\n",
                file);
    print_values(file, "*", &cli_group_global);
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        for (int i = 0; verb->groups[i]; i++)
            print_values(file, verb->name, verb->groups[i]);
    (void)fputs("    *)\n    case $verb in\n", file);
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        print_verb_options(file, verb);
    (void)fputs("    *) options='", file);
    print_verb_names(file);
    print_option_names(file, &cli_group_global);
    (void)fputs("' ;;\n    esac\n    COMPREPLY+=($(compgen -W \"$options\" -- \"$word\")) ;;\n    esac\n}\n"
                "complete -F _cubinet cubinet\n",
                file);
}
