/* How many seeds, where each one costs ten times as much: under sanitizers, which look for other mistakes
 * than rare orders of events do. */
#ifndef PURE_TESTS_FEWER_H
#define PURE_TESTS_FEWER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEWER(seeds) (((seeds) + 5) / 6)
#else
#define FEWER(seeds) (seeds)
#endif

#endif
