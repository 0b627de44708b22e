// Variables, functions, calls, source positions and linking (src/ptx).
#include "ptx_check.h"

// ---- variables ----

static const PtxSymbol *symbol(const SolPtxModule *m, const char *name) {
  const PtxSymbol *s = m ? sol_ptx_find_symbol(m, name) : NULL;
  CHECK_MSG(!m || s, "no symbol '%s'", name);
  return s;
}

static void check_bytes(const SolPtxModule *m, const char *name, uint64_t size, const void *bytes,
                        uint64_t count) {
  const PtxSymbol *s = symbol(m, name);
  if (!s) return;
  CHECK_MSG(s->size == size, "%s has %llu bytes", name, (unsigned long long)s->size);
  CHECK_MSG(s->init_bytes == count && (!count || !memcmp(s->init, bytes, count)),
            "%s starts with other bytes", name);
}

TEST(initialisers) {
  SolPtxModule *m = LOAD(".global .align 4 .b8 a[6] = {1, 0xff, -1};\n"
                         ".global .u16 b[] = {1, 2, 0x10003};\n"
                         ".const .f32 c[2] = {1.5, 0fBF800000};\n"
                         ".global .f64 d = 0d3FF0000000000000;\n"
                         ".global .s64 e = -(1 << 40);\n"
                         ".global .v4 .u8 f[2] = {{1, 2, 3, 4}, {5}};\n"
                         ".global .u8 g[2][3] = {{1}, {2, 3}};\n"
                         ".global .u8 h[][2] = {{1, 2}, {3}};\n"
                         ".global .u8 i[2][2] = {1, 2, 3};\n"
                         ".visible .global .u32 j, k = 7, l[3];\n"
                         ".global .b8 huge[2][5000000000];\n"
                         ".global .f32 n = 3;\n");
  check_bytes(m, "a", 6, "\x01\xff\xff", 3);
  check_bytes(m, "b", 6, "\x01\0\x02\0\x03\0", 6);
  check_bytes(m, "c", 8, "\0\0\xc0\x3f\0\0\x80\xbf", 8);
  check_bytes(m, "d", 8, "\0\0\0\0\0\0\xf0\x3f", 8);
  check_bytes(m, "e", 8, "\0\0\0\0\0\xff\xff\xff", 8);
  check_bytes(m, "f", 8, "\x01\x02\x03\x04\x05", 5);
  check_bytes(m, "g", 6, "\x01\0\0\x02\x03", 5);
  check_bytes(m, "h", 4, "\x01\x02\x03", 3);
  check_bytes(m, "i", 4, "\x01\x02\x03", 3);
  check_bytes(m, "j", 4, "", 0);
  check_bytes(m, "k", 4, "\x07\0\0\0", 4);
  check_bytes(m, "l", 12, "", 0);
  check_bytes(m, "huge", 10000000000, "", 0);
  check_bytes(m, "n", 4, "\0\0\x40\x40", 4);
  if (m) CHECK_INT(symbol(m, "a")->align, 4);
  if (m) CHECK_INT(symbol(m, "f")->align, 4);
  if (m) CHECK_INT(symbol(m, "c")->space, PTX_SPACE_CONST);
  sol_ptx_free(m);
}

TEST(addresses_in_initialisers) {
  SolPtxModule *m = LOAD(".global .u32 a[4]; .func f() { ret; }\n"
                         ".global .u64 p[3] = {a, generic(a)+8, f};\n"
                         ".global .b8 q[8] = {7, 0xff(a), 0xff00(a+4), 0xff000000(generic(a)+4)};\n");
  const PtxSymbol *p = symbol(m, "p"), *q = symbol(m, "q");
  if (!p || !q) return;
  CHECK_INT(p->reloc_count, 3);
  CHECK_STR(m->symbols[p->relocs[0].symbol].name, "a");
  CHECK(!p->relocs[0].generic && p->relocs[1].generic);
  CHECK_INT(p->relocs[1].addend, 8);
  CHECK_INT(p->relocs[1].offset, 8);
  CHECK_INT(p->relocs[1].bytes, 8);
  CHECK_STR(m->functions[p->relocs[2].function].name, "f");
  CHECK(m->functions[p->relocs[2].function].address_taken);
  CHECK_INT(q->reloc_count, 3);
  CHECK_INT(q->relocs[0].offset, 1);
  CHECK_INT(q->relocs[1].shift, 8);
  CHECK_INT(q->relocs[1].addend, 4);
  CHECK_INT(q->relocs[1].bytes, 1);
  CHECK_INT(q->relocs[2].shift, 24);
  CHECK(q->relocs[2].generic);
  CHECK_INT(q->init[0], 7);
  sol_ptx_free(m);
}

TEST(shared_memory_is_laid_out_per_kernel) {
  SolPtxModule *m =
      LOAD(".shared .b8 x[3]; .shared .align 16 .b8 y[32]; .shared .b8 unused[1000]; .extern .shared .align "
           "32 .b8 dyn[];\n"
           ".func f() { .reg .b16 h; ld.shared.u8 h, [y]; ret; }\n"
           ".func taken() { .shared .u64 z; .reg .b64 d; ld.shared.u64 d, [z]; ret; }\n"
           ".entry a() { .reg .b16 h; ld.shared.u8 h, [x]; call f; ret; }\n"
           ".entry b() { .reg .b32 r; .shared .u32 w; mov.u32 r, w; mov.u32 r, dyn; ret; }\n"
           ".entry c() { .reg .b64 d; P: .callprototype _ (); mov.u64 d, taken; call d, (), P; ret; }\n"
           ".entry d() { ret; }\n");
  if (!m) return;
  const PtxFunction *a = sol_ptx_find_function(m, "a"), *b = sol_ptx_find_function(m, "b"),
                    *c = sol_ptx_find_function(m, "c"), *d = sol_ptx_find_function(m, "d");
  CHECK_INT(a->shared_bytes, 48);
  CHECK_INT(a->shared_count, 2);
  CHECK(!a->uses_dynamic_shared);
  CHECK_INT(b->shared_bytes, 4);
  CHECK(b->uses_dynamic_shared);
  CHECK_INT(b->dynamic_align, 32);
  CHECK_INT(b->shared[1].offset, 32);
  CHECK_INT(c->shared_bytes, 8);
  CHECK(c->calls_indirectly);
  CHECK_INT(d->shared_bytes, 0);
  sol_ptx_free(m);
}

// ---- functions ----

TEST(frames) {
  SolPtxModule *m =
      LOAD(".func (.param .b32 r, .param .align 16 .b8 s[24]) f(.param .b8 c, .param .b64 d, .param .align 8 "
           ".b8 e[12])\n"
           "{ .local .b8 x[3]; .local .align 16 .b8 y[20];\n"
           "{ .param .b64 p; .param .b32 q; } { .param .b32 p; } ret; }\n"
           ".visible .entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .b8 c) { ret; }");
  if (!m) return;
  const PtxFunction *f = sol_ptx_find_function(m, "f"), *k = kernel(m);
  CHECK_INT(f->result_count, 2);
  CHECK_INT(m->symbols[f->results[1]].offset, 16);
  CHECK_INT(f->param_offset, 48);
  CHECK_INT(m->symbols[f->params[1]].offset, 56);
  CHECK_INT(m->symbols[f->params[2]].offset, 64);
  CHECK_INT(f->param_size, 28);
  CHECK_INT(f->param_bytes, 92); // 76 to 80, then p and q; the second block's p takes the same place
  CHECK_INT(f->local_bytes, 36);
  CHECK_INT(f->local_align, 16);
  CHECK_INT(k->param_offset, 0);
  CHECK_INT(k->param_size, 17);
  CHECK_INT(m->symbols[k->params[1]].offset, 8);
  CHECK_INT(m->symbols[k->params[2]].offset, 16);
  sol_ptx_free(m);
}

TEST(directives_of_functions) {
  SolPtxModule *m =
      LOAD(".visible .entry k() .maxntid 128, 2 .reqntid 64 .minnctapersm 3 .maxnctapersm 5 .maxnreg 40\n"
           ".reqnctapercluster 2, 1, 1 .explicitcluster .maxclusterrank 4 .blocksareclusters .pragma "
           "\"nounroll\";\n"
           "{ .pragma \"x\", \"y\"; ret; }\n"
           ".weak .func w() .noreturn { trap; } .extern .func e(.param .b32 x) .noreturn;");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  CHECK(k->maxntid[0] == 128 && k->maxntid[1] == 2 && k->maxntid[2] == 1);
  CHECK(k->reqntid[0] == 64 && k->reqntid[2] == 1);
  CHECK(k->minnctapersm == 3 && k->maxnctapersm == 5 && k->maxnreg == 40 && k->maxclusterrank == 4);
  CHECK(k->reqnctapercluster[0] == 2 && k->explicitcluster && k->blocksareclusters);
  CHECK_INT(k->linkage, PTX_LINK_VISIBLE);
  CHECK(sol_ptx_find_function(m, "w")->noreturn);
  CHECK_INT(sol_ptx_find_function(m, "w")->linkage, PTX_LINK_WEAK);
  CHECK(!sol_ptx_find_function(m, "e")->defined && sol_ptx_find_function(m, "e")->noreturn);
  CHECK(m->version_major == 9 && m->version_minor == 0 && m->target == 100 && m->address_bits == 64);
  sol_ptx_free(m);
}

TEST(calls) {
  SolPtxModule *m =
      LOAD(".func (.param .b32 r) f(.param .b64 x); .func g() { ret; } .func (.reg .u32 a) old(.reg .u32 b, "
           ".reg .f32 c);\n"
           ".func (.param .b32 r) f2(.param .b64 x) { ret; }\n"
           ".visible .entry k() { .reg .b64 d; .reg .b32 r; .reg .f32 x; .param .b64 in; .param .b32 out;\n"
           "call.uni (out), f, (in);\n"
           "call g;\n"
           "call (r), old, (5, x);\n"
           "P: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;\n"
           "call (out), d, (in), P;\n"
           "T: .calltargets f, f2;\n"
           "call (_), d, (in), T;\n"
           "ret; }\n"
           ".func (.param .b32 r) f(.param .b64 x) { .param .b32 o; .param .b64 i; call (o), f, (i); call g; "
           "ret; }\n"
           ".func (.reg .u32 a) old(.reg .u32 b, .reg .f32 c) { mov.u32 a, b; ret; }");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  const PtxOperand *call = k->insts[0].operands;
  CHECK_STR(m->functions[call[0].index].name, "f");
  CHECK(call[1].kind == PTX_ARG_VEC && call[1].count == 1 && call[1].written);
  CHECK_STR(m->symbols[call[1].elems[0].index].name, "out");
  CHECK_STR(m->symbols[call[2].elems[0].index].name, "in");
  CHECK_INT(k->insts[1].operands[2].count, 0);
  CHECK_INT(k->insts[2].operands[2].elems[0].kind, PTX_ARG_IMM);
  CHECK_INT(k->insts[2].operands[2].elems[1].kind, PTX_ARG_REG);
  const PtxPrototype *p = &k->prototypes[k->insts[3].prototype], *t = &k->prototypes[k->insts[4].prototype];
  CHECK(p->noreturn && p->result_count == 1 && p->result_bytes[0] == 4 && p->param_bytes[0] == 8 &&
        p->target_count == 0);
  CHECK(t->target_count == 2 && t->param_count == 1 && t->param_bytes[0] == 8 && t->result_bytes[0] == 4);
  CHECK_STR(m->functions[t->targets[1]].name, "f2");
  CHECK_INT(k->insts[4].operands[1].elems[0].kind, PTX_ARG_SINK);
  CHECK(sol_ptx_find_function(m, "f")->recursive && !sol_ptx_find_function(m, "g")->recursive &&
        !k->recursive);
  CHECK_INT(k->callee_count, 3);
  const PtxFunction *old = sol_ptx_find_function(m, "old");
  CHECK(old->params[0] == PTX_NONE && old->regs[old->param_regs[1]].type == PTX_F32);
  sol_ptx_free(m);
}

TEST(vectors_are_passed_as_their_elements) {
  SolPtxModule *m = LOAD(
      ".func (.reg .v2 .u32 r) swap(.reg .v2 .u32 x, .reg .b64 y) { mov.u32 r.x, x.y; mov.u32 r.y, x.x; ret; "
      "}\n"
      ".visible .entry k() { .reg .v2 .u32 v; .reg .b64 d; call (v), swap, (v, d); mov.b64 d, v; ret; }");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  const PtxFunction *f = sol_ptx_find_function(m, "swap");
  CHECK(f->result_count == 2 && f->param_count == 3 && f->param_regs[1] == f->param_regs[0] + 1);
  const PtxOperand *call = k->insts[0].operands;
  CHECK(call[1].count == 2 && call[2].count == 3);
  CHECK_INT(call[2].elems[1].index, call[2].elems[0].index + 1);
  CHECK(k->insts[1].operands[1].kind == PTX_ARG_VEC && k->insts[1].operands[1].elems[1].type == PTX_B32);
  sol_ptx_free(m);
}

TEST(a_parameter_may_have_its_functions_name) {
  SolPtxModule *m = LOAD(".func f(.param .b64 f) { .reg .b64 d; ld.param.u64 d, [f]; ret; }\n"
                         ".visible .entry k() { .param .b64 p; call f, (p); ret; }");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  CHECK_STR(m->functions[k->insts[0].operands[0].index].name, "f");
  sol_ptx_free(m);
}

TEST(recursion_through_others_and_addresses) {
  SolPtxModule *m =
      LOAD(".func a(); .func b() { call a; ret; } .func a() { call b; ret; } .func c() { call a; ret; }\n"
           ".func t() { .reg .b64 d; P: .callprototype _ (); call d, (), P; ret; } .func u() { ret; }\n"
           ".global .u64 table[2] = {t, u};");
  if (!m) return;
  CHECK(sol_ptx_find_function(m, "a")->recursive && sol_ptx_find_function(m, "b")->recursive);
  CHECK(!sol_ptx_find_function(m, "c")->recursive);
  CHECK(sol_ptx_find_function(m, "t")->recursive && !sol_ptx_find_function(m, "u")->recursive);
  sol_ptx_free(m);
}

TEST(tables) {
  SolPtxModule *m = BODY("T: .branchtargets A, B, A; brx.idx %r1, T; A: mov.u32 %r1, 1; B: ret;");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  CHECK_INT(k->insts[0].operands[1].kind, PTX_ARG_TABLE);
  CHECK_INT(k->tables[0].count, 3);
  CHECK(k->tables[0].targets[0] == 1 && k->tables[0].targets[1] == 2 && k->tables[0].targets[2] == 1);
  CHECK(k->insts[0].diverges);
  CHECK_INT(k->insts[0].reconverge, 2);
  sol_ptx_free(m);
}

// ---- source positions ----

TEST(positions) {
  SolPtxModule *m = LOAD(".visible .entry k() { .reg .b32 r;\n"
                         "mov.u32 r, 0;\n"
                         ".loc 2 10 5\nmov.u32 r, 1;\n"
                         ".loc 1 20 1, function_name $s1, inlined_at 2 10 5\nmov.u32 r, 2;\n"
                         ".loc 1 30 2, function_name $s0+1, inlined_at 1 20 1\nmov.u32 r, 3;\n"
                         ".loc 3 40 2, inlined_at 2 77 7\nmov.u32 r, 4;\n"
                         "ret; }\n"
                         ".file 1 \"lib.cuh\"\n.file 2 \"dir with space/main.cu\", 1700000000, 99\n"
                         ".section .debug_str {\n$s0: .b8 97,98\n.b8 99,0\n$s1:\n.b8 102,0\n}\n"
                         ".section .debug_info { .b32 $s1-$s0 { } // }\n .b64 k }\n");
  const PtxFunction *k = kernel(m);
  if (!k) return;
  CHECK_INT(k->insts[0].loc, PTX_NONE);
  const PtxLoc *one = &m->locs[k->insts[1].loc], *two = &m->locs[k->insts[2].loc],
               *three = &m->locs[k->insts[3].loc], *four = &m->locs[k->insts[4].loc];
  CHECK_STR(m->files[one->file], "dir with space/main.cu");
  CHECK(one->line == 10 && one->column == 5 && one->inlined_at == PTX_NONE && !one->function);
  CHECK_STR(m->files[two->file], "lib.cuh");
  CHECK_STR(two->function, "f");
  CHECK_INT(two->inlined_at, k->insts[1].loc);
  CHECK_STR(three->function, "bc");
  CHECK_INT(three->inlined_at, k->insts[2].loc);
  CHECK_INT(four->file, PTX_NONE); // no .file 3
  CHECK(m->locs[four->inlined_at].line == 77 && m->locs[four->inlined_at].inlined_at == PTX_NONE);
  CHECK_INT(k->insts[1].line, 3 + 4);
  CHECK_INT(k->insts[4].line, 3 + 10);
  sol_ptx_free(m);
}

// ---- linking ----

static SolPtxModule *load_two(const char *first, const char *second, SolError *err) {
  char text[2][2048];
  SolPtxSource sources[2];
  const char *from[2] = {first, second};
  for (int i = 0; i < 2; i++) {
    snprintf(text[i], sizeof text[i], "%s%s", PTX_HEAD, from[i]);
    sources[i] = (SolPtxSource){i ? "second.ptx" : "first.ptx", text[i], strlen(text[i])};
  }
  return load_sources(sources, 2, err);
}

TEST(sources_are_linked) {
  SolError err = {0};
  SolPtxModule *m = load_two(
      ".extern .func (.param .b32 r) f(.param .b64 x); .extern .func nowhere();\n"
      ".extern .global .align 4 .b8 g[8]; .extern .shared .b8 dyn[]; .common .global .u32 com; .global .u32 "
      "mine = 1;\n"
      ".func static1() { call nowhere; ret; } .weak .func w() { ret; }\n"
      ".visible .entry k() { .reg .b64 d; .param .b64 x; .param .b32 r; call (r), f, (x); mov.u64 d, g; "
      "mov.u64 d, mine;\n"
      " mov.u64 d, com; mov.u64 d, dyn; call static1; call w; ret; }",
      ".func static1() { trap; } .weak .func w() { exit; } .global .u32 mine = 2; .common .global .u32 com;\n"
      ".visible .global .align 4 .b8 g[8] = {9}; .extern .shared .b8 dyn[];\n"
      ".visible .func (.param .b32 r) f(.param .b64 x) { .reg .b64 d; call static1; call w; mov.u64 d, mine; "
      "ret; }",
      &err);
  CHECK_MSG(m, "%s", err.message);
  const PtxFunction *k = kernel(m);
  if (!k) return;
  const PtxFunction *f = &m->functions[k->insts[0].operands[0].index];
  CHECK(f->defined && f->source == 1);
  CHECK_INT(m->symbols[k->insts[1].operands[1].index].init[0], 9);
  CHECK_INT(m->symbols[k->insts[2].operands[1].index].init[0], 1);
  const PtxFunction *first = &m->functions[k->insts[5].operands[0].index],
                    *weak = &m->functions[k->insts[6].operands[0].index];
  const PtxFunction *second = &m->functions[f->insts[0].operands[0].index];
  CHECK(first != second && second->insts[0].code->op == PTX_OP_TRAP);
  CHECK_INT(weak->insts[0].code->op, PTX_OP_RET); // the first weak one counts, for both
  CHECK(&m->functions[f->insts[1].operands[0].index] == weak);
  CHECK_INT(m->symbols[f->insts[2].operands[1].index].init[0], 2);
  CHECK(!sol_ptx_find_function(m, "nowhere")->defined);
  CHECK_INT(m->function_count, 6); // k f static1 static1 w nowhere
  sol_ptx_free(m);
}

TEST(a_strong_definition_beats_a_weak_one_and_aliases_are_followed) {
  SolError err = {0};
  SolPtxModule *m = load_two(".weak .func w() { ret; } .func other(); .alias other, w; .visible .entry k() { "
                             "call w; call other; ret; }",
                             ".visible .func w() { trap; }", &err);
  const PtxFunction *k = kernel(m);
  if (!k) return;
  CHECK_INT(m->functions[k->insts[0].operands[0].index].insts[0].code->op, PTX_OP_TRAP);
  CHECK_INT(k->insts[1].operands[0].index, k->insts[0].operands[0].index);
  CHECK_INT(m->function_count, 2);
  sol_ptx_free(m);
}

static void check_link_error(const char *first, const char *second, int line, const char *part) {
  SolError err = {0};
  SolPtxModule *m = load_two(first, second, &err);
  CHECK_MSG(!m, "linked without '%s'", part);
  CHECK_HAS(err.message, part);
  CHECK_INT(err.line - 3, line);
  sol_ptx_free(m);
}

TEST(link_errors_name_their_source) {
  check_link_error(".visible .func f() { ret; }", "\n\n.visible .func f() { ret; }", 3,
                   "second.ptx: 'f' is defined in another source too");
  check_link_error(".visible .global .u32 g;", "\n.visible .global .u32 g;", 2,
                   "second.ptx: 'g' is defined in another");
  check_link_error(".extern .global .u32 g;\n.entry k() { .reg .b64 d; mov.u64 d, g; }", "", 1,
                   "first.ptx: 'g' is declared .extern and defined nowhere");
  check_link_error(".extern .func f(.param .b32 x);", ".visible .func f(.param .b64 x) { ret; }", 1,
                   "first.ptx: 'f' has other parameters");
  check_link_error(".extern .const .u32 g;", ".visible .global .u32 g;", 1,
                   "second.ptx: 'g' is in another state space");
  check_link_error("\n.extern .global .u32 g;",
                   "\n\n.extern .global .u32 g;\n.entry k() { .reg .b64 d; mov.u64 d, g; }", 3,
                   "second.ptx: 'g' is declared .extern");
  check_link_error(".func a(); .func b(); .alias a, b;\n.alias b, a;", "", 1, "alias of itself");
}

TEST(arguments_of_load) {
  SolPtxModule *m = (SolPtxModule *)&m;
  SolError err;
  SolPtxSource source = {"x", PTX_HEAD, strlen(PTX_HEAD)};
  CHECK_INT(sol_ptx_load(&source, 0, &m, &err), SOL_ERR_ARGUMENT);
  CHECK(!m);
  CHECK_INT(sol_ptx_load(NULL, 1, &m, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_ptx_load(&source, 1, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_ptx_load(&(SolPtxSource){"x", NULL, 5}, 1, &m, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_ptx_load(&(SolPtxSource){NULL, "", 0}, 1, &m, NULL), SOL_ERR_SYNTAX);
  CHECK_INT(sol_ptx_load(&source, 1, &m, NULL), SOL_OK);
  CHECK(!sol_ptx_find_function(m, "k") && !sol_ptx_find_symbol(m, "k"));
  sol_ptx_free(m);
  sol_ptx_free(NULL);
}

CHECK_MAIN
