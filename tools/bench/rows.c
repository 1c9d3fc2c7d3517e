/*
 * See rows.h.
 */
#include "rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static FILE *file;
static bool in_line;

bool rows_open(const char *path)
{
    if (!path)
        return true;
    file = fopen(path, "w");
    if (file)
        return fputs("peer,op,M,N,K,groups,median_us_graph,median_us_events,TFLOPs,GBps,rel_err,notes\n", file) >= 0;
    fprintf(stderr, "gemm_bench: %s: %s\n", path, strerror(errno));
    return false;
}

static void print_number(const char *format, double value, bool present)
{
    if (present)
        (void)fprintf(file, format, value);
    (void)fputc(',', file);
}

static void write_row(const struct row *row)
{
    double flops = 2.0 * (double)row->m * (double)row->n * (double)row->k;
    (void)fprintf(file, "%s,%s,%lld,%lld,%lld,1,", row->peer, row->op, (long long)row->m, (long long)row->n,
                  (long long)row->k);
    print_number("%.3f", row->us, row->us > 0.0);
    print_number("%.3f", 0.0, false);
    print_number("%.1f", flops / row->us * 1e-6, row->us > 0.0 && flops > 0.0);
    print_number("%.0f", row->bytes / row->us * 1e-3, row->us > 0.0);
    print_number("%.2e", row->error, !isnan(row->error));
    (void)fprintf(file, "%s\n", row->notes);
    (void)fflush(file);
}

void rows_add(const struct row *row)
{
    if (file)
        write_row(row);
    if (!in_line)
        printf("%lldx%lld %s", (long long)row->n, (long long)row->k, row->peer);
    in_line = true;
    if (row->m > 0)
        printf(" %lld:", (long long)row->m);
    else
        printf(" ");
    if (row->us > 0.0)
        printf("%.2f", row->us);
    else
        printf("FAILED");
}

void rows_end_line(void)
{
    if (in_line)
        printf("\n");
    in_line = false;
    (void)fflush(stdout);
}

bool rows_close(void)
{
    if (!file)
        return true;
    bool written = !ferror(file);
    return fclose(file) == 0 && written;
}
