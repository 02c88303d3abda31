#include "host/cli.h"

#include "host/cli_commands.h"
#include "host/config_values.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>

enum option {
    TAKES_CONFIG = 1, /* needed, unless the command takes --url or is given --store */
    TAKES_URL = 2,
    TAKES_JSON = 4,
    TAKES_STORE = 8,
    TAKES_FROM = 16,
    TAKES_FULL = 32,
    TAKES_REPAIR = 64
};

#define RUNNING "[-c FILE | --url URL [--ca FILE]]" /* where it runs */

struct command {
    const char *name;
    int (*run)(const struct cli_arguments *arguments, const struct host_options *options);
    unsigned takes;                      /* enum option */
    unsigned operands_min, operands_max; /* at most CLI_OPERANDS_MAX */
    const char *usage;
    const char *help;
};

static const struct command commands[] = {
    {"run", cli_run, TAKES_CONFIG, 0, 0, "run -c FILE",
     "Runs the host in the foreground. SIGTERM and SIGINT drain it and end it; SIGHUP reads FILE again.\n"},
    {"check", cli_check, TAKES_CONFIG, 0, 0, "check -c FILE",
     "Checks the configuration, the host's key, the apps' modules, the store and the kernel, and starts\n"
     "nothing. Prints each problem with its file, its line and the remedy, at most 20 of the file; what "
     "else\n"
     "there is to check is looked at once the file is right.\n"},
    {"key", cli_key, 0, 2, 2, "key new FILE | key show FILE",
     "new makes a host key and its file, mode 0600, and never replaces one. Both print the key's public\n"
     "half, 44 characters: it is what other hosts write as key = in [peer] and in outputs that lead here.\n"},
    {"status", cli_show_status, TAKES_CONFIG | TAKES_URL | TAKES_JSON, 0, 0, "status [--json] " RUNNING,
     "Shows the apps, outlets and links of a running host, what rests and why.\n"
     "--json prints the host's own answer.\n"},
    {"state", cli_show_state, TAKES_CONFIG | TAKES_URL, 1, 1, "state " RUNNING " APP",
     "Prints what an app of a running host shows of its state.\n"},
    {"send", cli_send, TAKES_CONFIG | TAKES_URL, 2, 3, "send " RUNNING " APP EVENT [DATA | -]",
     "Publishes one event and prints the number under which the app has stored it.\n"
     "DATA is the event's data, \"-\" takes it from standard input; without either it is empty.\n"
     "Data that begins with '-' has \"--\" before it: send counter count -- -5\n"},
    {"log", cli_log, TAKES_CONFIG | TAKES_STORE | TAKES_FROM | TAKES_FULL | TAKES_JSON, 1, 1,
     "log [--from N] [--full] [--json] -c FILE | --store DIR APP",
     "Prints what an app took and sent, as its journal has it, oldest first; a host may be running with it.\n"
     "--from N begins with the app's event N. Data is cut after some bytes, unless --full is given.\n"
     "--json prints an object a line, with whole data. What is kept is up to keep = in [app].\n"},
    {"fsck", cli_fsck, TAKES_REPAIR, 1, 1, "fsck [--repair] DIR",
     "Reads every byte of the store in DIR and says what is damaged. --repair makes it clean, and loses\n"
     "nothing that is whole: no host may be running with it. Exit status 4: it is (or stays) damaged.\n"},
    {"dead", cli_dead, TAKES_CONFIG | TAKES_URL | TAKES_JSON, 2, 3,
     "dead list|replay|drop [--json] " RUNNING " OUTPUT [RANGE]",
     "Records that the receiver of OUTPUT (APP.OUTPUT) refused as often as attempts = allows: list shows\n"
     "them, replay sends them again, drop forgets them. RANGE is a number, two as in 5-9, or all, which is\n"
     "meant where none is given; drop needs it. With --json, list prints an object a line.\n"},
    {"app", cli_app, TAKES_CONFIG | TAKES_URL, 2, 2, "app resume " RUNNING " APP",
     "An app that has ended the process three times in a row is suspended when the host starts, until the\n"
     "file of its module is another. resume forgets its deaths: the next start loads it again. With -c FILE\n"
     "the host need not run.\n"},
    {"output", cli_output, TAKES_CONFIG | TAKES_URL, 2, 2, "output enable|disable " RUNNING " OUTPUT",
     "A wire OUTPUT (APP.OUTPUT) that is disabled, by itself or by command, keeps what is sent to it, also\n"
     "when the host is restarted, until it is enabled, or configured anew.\n"},
};

static const char general_help[] =
    "\n"
    "A running host is found by -c FILE (the configuration it runs with), by --url URL, or at\n"
    "http://" CONFIG_HTTP
    ". If it needs a token, that comes from FILE or from $PURE_HOST_TOKEN. With an https\n"
    "URL its certificate is verified: against the system's CA certificates, or those of --ca FILE.\n"
    "\n"
    "Exit status: 0 done; 1 failed; 2 usage or configuration; 3 the kernel refuses io_uring;\n"
    "4 the store is degraded.\n";

int cli_fail(enum cli_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout); /* what was printed before it stands before it */
    fputs("pure-host: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

static void print_help(void)
{
    puts("pure-host runs many small apps in one process and delivers what they send.\n\nusage:");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        printf("    pure-host %s\n", commands[i].usage);
    puts("    pure-host --version | --help | COMMAND --help");
    fputs(general_help, stdout);
}

static void print_command_help(const struct command *command)
{
    printf("usage: pure-host %s\n\n%s", command->usage, command->help);
    fputs(general_help, stdout);
}

/* Whatever was printed has to have arrived: a full disk is a failure. */
static int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return cli_fail(CLI_FAILED, "standard output cannot be written");
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int fail_unknown_command(const char *name)
{
    const char *names[ARRAY_SIZE(commands)];
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        names[i] = commands[i].name;
    const char *near = nearest_name(name, names, ARRAY_SIZE(commands));
    if (near)
        return cli_fail(CLI_USAGE, "unknown command '%s': did you mean '%s'?", name, near);
    return cli_fail(CLI_USAGE, "unknown command '%s': see pure-host --help", name);
}

/* --- arguments --- */

struct reader {
    char **argv;
    int argc, at;
    const struct command *command;
    struct cli_arguments *arguments;
};

/* The value of "--name VALUE", "--name=VALUE" or "-n VALUE", if the argument is that option. */
static bool option_value(struct reader *r, const char *name, const char **value)
{
    const char *argument = r->argv[r->at];
    size_t size = strlen(name);
    if (strncmp(argument, name, size) != 0)
        return false;
    if (argument[size] == '=' && name[1] == '-')
        *value = argument + size + 1;
    else if (argument[size] == '\0')
        *value = r->at + 1 < r->argc ? r->argv[++r->at] : "";
    else
        return false;
    return true;
}

static int read_option(struct reader *r)
{
    struct cli_arguments *arguments = r->arguments;
    const char *argument = r->argv[r->at];
    unsigned takes = r->command->takes;
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
        arguments->help = true;
    else if (strcmp(argument, "--version") == 0)
        arguments->version = true;
    else if ((takes & TAKES_JSON) && strcmp(argument, "--json") == 0)
        arguments->json = true;
    else if ((takes & TAKES_FULL) && strcmp(argument, "--full") == 0)
        arguments->full = true;
    else if ((takes & TAKES_REPAIR) && strcmp(argument, "--repair") == 0)
        arguments->repair = true;
    else if ((takes & TAKES_FROM) && option_value(r, "--from", &arguments->from))
        return arguments->from[0] ? 0 : cli_fail(CLI_USAGE, "--from needs a number");
    else if ((takes & TAKES_STORE) && option_value(r, "--store", &arguments->store))
        return arguments->store[0] ? 0 : cli_fail(CLI_USAGE, "--store needs a directory");
    else if ((takes & TAKES_CONFIG) && option_value(r, "-c", &arguments->config))
        return arguments->config[0] ? 0 : cli_fail(CLI_USAGE, "-c needs a FILE");
    else if ((takes & TAKES_URL) && option_value(r, "--url", &arguments->url))
        return arguments->url[0] ? 0 : cli_fail(CLI_USAGE, "--url needs a URL");
    else if ((takes & TAKES_URL) && option_value(r, "--ca", &arguments->ca))
        return arguments->ca[0] ? 0 : cli_fail(CLI_USAGE, "--ca needs a FILE");
    else
        return cli_fail(CLI_USAGE, "unknown option '%s': usage: pure-host %s%s", argument, r->command->usage,
                        r->command->operands_max > 0 ? "; \"--\" goes before what begins with '-' and is none"
                                                     : "");
    return 0;
}

static int read_operand(struct reader *r)
{
    struct cli_arguments *arguments = r->arguments;
    if (arguments->operand_count == r->command->operands_max)
        return cli_fail(CLI_USAGE, "unexpected '%s': usage: pure-host %s", r->argv[r->at], r->command->usage);
    arguments->operands[arguments->operand_count++] = r->argv[r->at];
    return 0;
}

static int read_arguments(struct reader *r)
{
    bool options = true;
    int failed = 0;
    for (; r->at < r->argc && failed == 0; r->at++) {
        const char *argument = r->argv[r->at];
        if (options && strcmp(argument, "--") == 0)
            options = false;
        else if (options && argument[0] == '-' && argument[1] != '\0')
            failed = read_option(r);
        else
            failed = read_operand(r);
    }
    return failed;
}

static int check_arguments(const struct command *command, const struct cli_arguments *arguments)
{
    if (arguments->operand_count < command->operands_min)
        return cli_fail(CLI_USAGE, "usage: pure-host %s", command->usage);
    if (arguments->config && arguments->url)
        return cli_fail(CLI_USAGE, "-c and --url exclude each other");
    if (arguments->ca && !arguments->url)
        return cli_fail(CLI_USAGE, "--ca is for --url https://...");
    if (arguments->config && arguments->store)
        return cli_fail(CLI_USAGE, "-c and --store exclude each other");
    bool needs_config = (command->takes & TAKES_CONFIG) && !(command->takes & TAKES_URL);
    if (needs_config && !arguments->config && !arguments->store)
        return cli_fail(CLI_USAGE, "usage: pure-host %s", command->usage);
    return 0;
}

static int run_command(const struct command *command, int argc, char **argv,
                       const struct host_options *options)
{
    struct cli_arguments arguments = {0};
    struct reader r = {argv, argc, 2, command, &arguments};
    int failed = read_arguments(&r);
    if (failed != 0)
        return failed;
    if (arguments.help) {
        print_command_help(command);
        return CLI_DONE;
    }
    if (arguments.version) {
        puts("pure-host " PURE_VERSION);
        return CLI_DONE;
    }
    failed = check_arguments(command, &arguments);
    return failed != 0 ? failed : command->run(&arguments, options);
}

int cli_main(int argc, char **argv, const struct host_options *options)
{
    if (sodium_init() < 0)
        return cli_fail(CLI_FAILED, "libsodium does not start on this system");
    if (argc < 2)
        return cli_fail(CLI_USAGE, "no command: see pure-host --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return finish_output(CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("pure-host " PURE_VERSION);
        return finish_output(CLI_DONE);
    }
    const struct command *command = find_command(argv[1]);
    if (!command)
        return fail_unknown_command(argv[1]);
    return finish_output(run_command(command, argc, argv, options));
}
