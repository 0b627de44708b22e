// Tests of tests/corpus.c, and that every file of the corpus can be read. Run from the root of the tree:
//   cc -std=c17 -Itests tests/test_corpus_format.c -lm -o test_corpus_format && ./test_corpus_format
#include "check.h"
#include "corpus.c"

#include <dirent.h>

#define ERRORS "//! alloc errors 32 zero\n"

#define FOLDER "tests/ptx"
static CorpusProgram program;
static CorpusMessage message;
static CorpusArgs args;

static bool parse(const char *text) {
  return corpus_parse(&program, text, strlen(text), &message);
}

// What `text` is refused with, ERRORS and a launch before it.
static const char *refused(const char *text) {
  static char whole[512];
  snprintf(whole, sizeof whole, ERRORS "//! launch k args=errors\n%s", text);
  return parse(whole) ? "accepted" : message.text;
}

TEST(parses_what_the_readme_says) {
  CHECK(parse("//! arch sm_90\n//! stack 4*1024\n//! alloc x 10*4+3 random-u32:7 seed=5\n" ERRORS
              "int x; //! not one\n"
              "//! launch k grid=4,2 block=33 smem=8*4 cluster=2 cooperative args=x+4,u32:5,errors\r\n"
              "//! launch k2 dependent\n//! prints  two  words \n"));
  CHECK_INT(program.arch, 90);
  CHECK_INT(program.stack, 4096);
  CHECK_INT(program.allocs[0].bytes, 43);
  CHECK_INT(program.allocs[0].bound, 7);
  CHECK_INT(program.allocs[0].seed, 5);
  CHECK_INT(program.launch_count, 2);
  const CorpusLaunch *launch = &program.launches[0];
  CHECK_STR(launch->kernel, "k");
  CHECK(launch->grid[0] == 4 && launch->grid[1] == 2 && launch->grid[2] == 1 && launch->block[0] == 33);
  CHECK(launch->cluster[0] == 2 && launch->cluster[2] == 1 && launch->smem == 32 && launch->cooperative);
  CHECK(program.launches[1].dependent && program.launches[1].cluster[0] == 0 &&
        program.launches[1].block[0] == 1);
  CHECK_INT(program.prints[0].length, strlen(" two  words "));
}

TEST(packs_arguments_as_c_does) {
  CHECK(parse("//! alloc x 64 zero\n" ERRORS
              "//! launch k args=u8:7,{u8:1,{u16:2,f64:0.5},u8:3},i16:-2,x+8,f32:1.5,{iota-u32:3},i64:-1\n"));
  uint64_t addresses[2] = {0x1000, 0x2000}, value;
  CHECK(corpus_pack(&program, 0, addresses, &args, &message));
  CHECK_INT(args.count, 7);
  const size_t offsets[7] = {0, 8, 40, 48, 56, 60, 72}, bytes[7] = {1, 32, 2, 8, 4, 12, 8};
  for (int i = 0; i < 7; i++) {
    CHECK_INT(args.offsets[i], offsets[i]);
    CHECK_INT(args.bytes[i], bytes[i]);
  }
  CHECK_INT(args.block[8], 1);
  CHECK_INT(args.block[16], 2);
  double real;
  memcpy(&real, args.block + 24, 8);
  CHECK(real == 0.5);
  CHECK_INT(args.block[32], 3);
  memcpy(&value, args.block + 48, 8);
  CHECK_INT(value, 0x1008);
  CHECK_INT(args.block[64], 1);
  CHECK_INT(args.block[68], 2);
}

TEST(refuses_what_it_cannot_read) {
  CHECK_STR(refused("//! alloc"), "line 3: alloc needs a name");
  CHECK_STR(refused("//! alloc x"), "line 3: '' is no size");
  CHECK_STR(refused("//! alloc x 4x zero"), "line 3: '4x' is no size");
  CHECK_STR(refused("//! alloc x 0 zero"), "line 3: '0' is no size");
  CHECK_STR(refused("//! alloc x 99999999999*99999999999 zero"),
            "line 3: '99999999999*99999999999' is no size");
  CHECK_STR(refused("//! alloc x 4 ones"), "line 3: unknown contents 'ones'");
  CHECK_STR(refused("//! alloc x 4 random-u32:0"), "line 3: '0' is no bound");
  CHECK_STR(refused("//! alloc x 4 values-u32:1,2"), "line 3: more values than 'x' holds");
  CHECK_STR(refused("//! alloc x 4 pointers:y"), "line 3: 'y' cannot stand in 'x'");
  CHECK_STR(refused("//! alloc x 4 zero sed=4"), "line 3: cannot read 'sed=4'");
  CHECK_STR(refused("//! alloc x 4 zero seed=4 more"), "line 3: 'more' is one word too many");
  CHECK_STR(refused("//! alloc errors 4 zero"), "line 3: second alloc 'errors'");
  CHECK_STR(refused("//! launch"), "line 3: launch needs a kernel");
  CHECK_STR(refused("//! launch k grid=0"), "line 3: cannot read 'grid=0'");
  CHECK_STR(refused("//! launch k grid=1,2,3,4"), "line 3: cannot read 'grid=1,2,3,4'");
  CHECK_STR(refused("//! launch k cluser=2"), "line 3: cannot read 'cluser=2'");
  CHECK_STR(refused("//! launch k args=nobody"), "line 3: no buffer 'nobody'");
  CHECK_STR(refused("//! launch k args=u8:256"), "line 3: '256' does not fit 1 bytes");
  CHECK_STR(refused("//! launch k args=i8:-129"), "line 3: '-129' does not fit 1 bytes");
  CHECK_STR(refused("//! launch k args=u32:x"), "line 3: 'x' is no number");
  CHECK_STR(refused("//! launch k args={u32:1"), "line 3: '{u32:1' is no struct");
  CHECK_STR(refused("//! launch k args={iota-u32:8193}"), "line 3: too many bytes of arguments");
  CHECK_STR(refused("//! arch 90"), "line 3: arch is sm_NN");
  CHECK_STR(refused("//! checks"), "line 3: 'checks' needs a number");
  CHECK_STR(refused("//! alocate"), "line 3: unknown directive 'alocate'");
  CHECK(!parse("//! launch k\n") && strcmp(message.text, "needs //! alloc errors 32 zero") == 0);
  CHECK(!parse(ERRORS) && strcmp(message.text, "launches nothing") == 0);
}

TEST(fills_buffers) {
  CHECK(parse(
      "//! alloc a 10 random-u32 seed=1\n//! alloc b 10 random-u32 seed=1\n//! alloc c 400 permutation-u32\n"
      "//! alloc d 400 integers-f16:9\n//! alloc e 16 pointers:a,c\n//! alloc f 400 random-f32\n" ERRORS
      "//! alloc g 12 values-u32:7,0x10\n//! alloc h 8 uninit\n//! launch k\n"));
  uint64_t addresses[CORPUS_MAX_ALLOCS] = {0x100, 0x200, 0x300};
  unsigned char a[10], b[10], raw[400];
  CHECK(corpus_fill(&program, 0, addresses, a) && corpus_fill(&program, 1, addresses, b));
  CHECK(memcmp(a, b, 10) == 0);
  CHECK(a[8] == 0xA5 && a[9] == 0xA5); // no whole element
  uint32_t words[100], seen[100] = {0};
  corpus_fill(&program, 2, addresses, raw);
  memcpy(words, raw, 400);
  int moved = 0;
  for (int i = 0; i < 100; i++) {
    CHECK(words[i] < 100 && seen[words[i] % 100]++ == 0);
    moved += words[i] != (uint32_t)i;
  }
  CHECK(moved > 50);
  uint16_t halves[200];
  corpus_fill(&program, 3, addresses, raw);
  memcpy(halves, raw, 400);
  for (int i = 0; i < 200; i++) { // 0, or 1 to 9 with 10 bits of mantissa behind 15 + log2
    int exponent = (halves[i] >> 10 & 31) - 15, mantissa = (halves[i] & 1023) | 1024;
    CHECK(halves[i] == 0 || (exponent >= 0 && exponent <= 3 && mantissa % (1 << (10 - exponent)) == 0));
  }
  uint64_t pointers[2];
  corpus_fill(&program, 4, addresses, pointers);
  CHECK(pointers[0] == 0x100 && pointers[1] == 0x300);
  float floats[100], least = 2, most = -2;
  corpus_fill(&program, 5, addresses, floats);
  for (int i = 0; i < 100; i++) least = fminf(least, floats[i]), most = fmaxf(most, floats[i]);
  CHECK(least >= -1 && least < -0.5f && most < 1 && most > 0.5f);
  corpus_fill(&program, 7, addresses, words);
  CHECK(words[0] == 7 && words[1] == 16 && words[2] == 0);
  CHECK(!corpus_fill(&program, 8, addresses, raw));
}

TEST(judges) {
  uint32_t errors[8] = {0, 5, 0, 0, 0, 0, 0, 0}, bad[8] = {1, 5, 17, 3, 9, 0, 8, 1};
  CHECK(parse(ERRORS "//! checks 5\n//! launch k\n//! prints b\n//! prints a\n"));
  CHECK(corpus_verdict(&program, errors, "a\nb\n", &message));
  CHECK_STR(message.text, "5 comparisons");
  CHECK(corpus_verdict(&program, errors, NULL, &message));
  CHECK(!corpus_verdict(&program, errors, "a\n", &message));
  CHECK_STR(message.text, "never printed: 'b'");
  CHECK(!corpus_verdict(&program, errors, "b\na\na\n", &message));
  CHECK_STR(message.text, "printed but not expected: 'a'");
  CHECK(!corpus_verdict(&program, bad, "a\nb\n", &message));
  CHECK_HAS(message.text, "line 17, index 3: got 0x0000000000000009, expected 0x0000000100000008");
  errors[1] = 4;
  CHECK(!corpus_verdict(&program, errors, "a\nb\n", &message));
  CHECK_STR(message.text, "4 comparisons made, 5 expected");
  errors[1] = 0;
  CHECK(!corpus_verdict(&program, errors, "a\nb\n", &message));
  CHECK_STR(message.text, "nothing was compared");
}

TEST(every_file_of_the_corpus) {
  DIR *folder = opendir(FOLDER);
  int files = 0;
  if (!CHECK_MSG(folder != NULL, "no folder " FOLDER)) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    static char text[1 << 16];
    char path[512];
    size_t length = strlen(entry->d_name);
    if (length < 3 || strcmp(entry->d_name + length - 3, ".cu") != 0) continue;
    snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
    FILE *file = fopen(path, "rb");
    if (!CHECK_MSG(file != NULL, "cannot open %s", path)) continue;
    length = fread(text, 1, sizeof text, file);
    fclose(file);
    files++;
    CHECK_MSG(corpus_parse(&program, text, length, &message), "%s: %s", path, message.text);
    text[length < sizeof text ? length : sizeof text - 1] = 0;
    const char *code = strstr(text, "#include"); // behind the directives
    for (int i = 0; i < program.launch_count; i++)
      CHECK_MSG(code && strstr(code, program.launches[i].kernel), "%s: no kernel %s", path,
                program.launches[i].kernel);
  }
  closedir(folder);
  CHECK(files >= 60);
}

CHECK_MAIN
