/* Numbers out of the small texts that the measured programs answer with. */
#ifndef PURE_EXPERIMENTS_BENCH_TEXT_H
#define PURE_EXPERIMENTS_BENCH_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The unsigned number behind `"name":` in a flat JSON text; 0 if it is not there. */
uint64_t text_json_number(const char *text, size_t size, const char *name);

/* The sum of all samples of a metric in Prometheus' text format: of every label set, or of those that begin
 * as `name` says, up to the end of a label's value or a dash in it: `metric{loop="pure-send`. */
uint64_t text_metric_sum(const char *text, size_t size, const char *name);

#endif
