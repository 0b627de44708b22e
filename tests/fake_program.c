// A program for `sol profile` on tests/fake_gpu.c: each argument is something it does.
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned flags);
void fake_launch(const char *name, unsigned grid, unsigned block, int captured);
void fake_graph(const char *nodes, int times);
const char *fake_ran(void);
size_t fake_delivered(void);

// Signals that have a handler end a sleep: only what ends the process may end this.
static void wait_for_the_end(void) {
  for (;;) pause();
}

// Until the library has been handed the records of all kernels, and has written them.
static void wait_for_records(size_t count) {
  const struct timespec moment = {0, 10000000};
  while (fake_delivered() < count) nanosleep(&moment, NULL);
}

static void act(const char *what, char **argv) {
  if (strcmp(what, "copy") == 0) fake_launch("_ZN2my4copyEPKfPfi", 64, 256, 0);
  if (strcmp(what, "wide") == 0) fake_launch("_ZN2my4copyEPKfPfi", 128, 256, 0);
  if (strcmp(what, "sum") == 0) fake_launch("sum", 1, 1024, 0);
  if (strcmp(what, "together") == 0) fake_launch("together", 1, 1024, 0);
  if (strcmp(what, "many") == 0)
    for (int i = 0; i < 100; i++) fake_launch("sum", 1, 1024, 0);
  if (strcmp(what, "capture") == 0) fake_launch("sum", 1, 1024, 1);
  if (strcmp(what, "graph") == 0) fake_graph("k", 1);
  if (strncmp(what, "graph:", 6) == 0) fake_graph(what + 6, 1); // its nodes
  if (strncmp(what, "graphs:", 7) == 0) fake_graph(what + 7, 10);
  if (strcmp(what, "ran") == 0) printf("ran %s.\n", fake_ran());
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "killed") == 0) raise(SIGKILL);
  if (strcmp(what, "fail") == 0) exit(3);
  if (strcmp(what, "wait") == 0) wait_for_the_end();
  if (strcmp(what, "delivered") == 0) wait_for_records(1);
  if (strcmp(what, "print") == 0) puts("the program's own words");
  if (strcmp(what, "fork") == 0 && fork() == 0) { // CUDA is of no use to it: it must not write
    fake_launch("child", 1, 32, 0);
    exit(0);
  }
  if (strcmp(what, "spawn") == 0 && fork() == 0) { // a process of its own
    execl(argv[0], argv[0], "cuda", "sum", (char *)NULL);
    _exit(127);
  }
  while (wait(NULL) > 0) {
  }
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "cuda") == 0 && cuInit(0)) return 9;
    act(argv[i], argv);
    fflush(stdout);
  }
  return 0;
}
