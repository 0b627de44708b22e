// What the files of src/ptx share while a module is being built; nothing here outlives sol_ptx_load.
#ifndef SOL_PTX_INTERNAL_H
#define SOL_PTX_INTERNAL_H

#include "base/arena.h"
#include "base/error.h"
#include "ptx/lex.h"
#include "ptx/ptx.h"

// ---- growing arrays ----

typedef struct Vec {
  void *data;
  uint32_t count, cap;
} Vec;

// Adds a zeroed element and returns it (it moves when the next one is added); NULL where memory is out.
void *sol_ptx_vec_add(Vec *vec, size_t size);
void sol_ptx_vec_free(Vec *vec);
#define VEC_AT(vec, type, i) (&((type *)(vec)->data)[i])

// ---- names and scopes ----

typedef struct Name Name;

typedef enum BindKind { BIND_REGS, BIND_SYMBOL, BIND_FUNC } BindKind;

// What a name stands for in a scope.
typedef struct Binding {
  Name *name;
  struct Binding *shadowed; // what the name stood for outside
  struct Binding *older;    // bound earlier in the same scope
  uint32_t index;           // symbol or function; a register's number, once used (PTX_NONE before)
  uint32_t count;           // %r<count>; PTX_NONE: a single register
  uint16_t depth;
  uint8_t kind, type, vec;
  bool gone; // its scope is closed
} Binding;

typedef struct Member { // a used register of a %r<count>
  const Binding *set;
  struct Member *next;
  uint32_t reg;
} Member;

typedef enum LabelKind { LABEL_INST, LABEL_TABLE, LABEL_PROTOTYPE } LabelKind;

typedef struct Label {
  Name *name;
  struct Label *shadowed, *older;
  uint32_t index; // instruction, table or prototype
  uint16_t depth;
  uint8_t kind;
} Label;

// A distinct text. "%r12" has the prefix "%r" and the number 12.
struct Name {
  const char *text, *kept; // kept: its copy in the module
  uint32_t length, hash, number;
  Name *prefix;         // NULL: no number at its end
  Binding *bound, *set; // set: of a prefix, %r<...>
  Label *label;
  Member *members;                         // by the sets that its prefix stands for
  uint32_t sreg;                           // first of the special registers with this name
  struct Code *code;                       // of an opcode
  uint32_t debug_text, debug_source;       // of a label in .debug_str: offset there, plus one; whose
  uint32_t file;                           // of a file's name: index, plus one
  uint32_t linked_function, linked_symbol; // while linking: plus one
};

typedef struct Names {
  SolArena *arena;
  Name **slots;
  uint32_t count, cap;
} Names;

Name *sol_ptx_intern(Names *names, const char *text, size_t length); // NULL where memory is out
void sol_ptx_names_free(Names *names);

// ---- opcodes ----

typedef enum SlotShape { SLOT_PLAIN, SLOT_MEM, SLOT_TEX, SLOT_NEVER } SlotShape;

// One position of a form's operands: the grammar is at the top of ops.def.
typedef struct Slot {
  uint8_t shape; // SlotShape
  uint8_t type;  // PtxType; PTX_TYPE_NONE: address-sized
  uint8_t space; // of an address
  uint8_t count; // elements of a vector
  bool written, optional, joined, wider, parts, address, constant, fragment;
  bool label, table;
  bool part, minus; // registers of video instructions: parts, a sign
  bool descriptor;  // a fragment in whose place one 64-bit register may be
} Slot;

typedef struct Code {
  PtxCode pub;
  uint8_t slot_count, required;
  Slot slots[PTX_MAX_OPERANDS];
} Code;

// ---- the parser ----

typedef struct Func {
  PtxFunction pub;
  Name *name;
  PtxOperand *operands; // all of its instructions' operands and their elements
  uint32_t operand_count;
  PtxInst *insts;
  uint32_t alias;                      // function it is another name for; PTX_NONE
  uint32_t symbol_first, symbol_count; // its variables
  size_t at;                           // offset of its declaration
} Func;

enum { DROPPED = 0xfffffffeu }; // PtxSymbol.function of a variable that only a superseded declaration had

typedef struct Scope {
  Binding *bindings;
  Label *labels;
  uint64_t param_top;
  uint32_t pending_mark;
} Scope;

typedef struct Pending { // a label used before it is known
  Name *name;
  uint32_t operand; // in `operands`; or, for a table's entry, in `targets`
  bool in_table;
  size_t at;
} Pending;

typedef struct SymbolExtra {
  Name *name;
  size_t at;
} SymbolExtra;

typedef struct FileEntry {
  uint32_t number, index;
} FileEntry;

typedef struct LocExtra {
  Name *function; // label in .debug_str, and an offset from it
  uint32_t offset;
  uint32_t owner; // function that contains it
} LocExtra;

// Bytes of all .param variables of one function. ptxas gives kernels 32764; the emulator has a frame per lane
// and call.
enum { MAX_PARAM_BYTES = 1 << 20 };
enum { MAX_SCOPES = 128, MAX_OPCODE = 160, MAX_ELEMENTS = 256, MAX_EXPRESSION_DEPTH = 64 };

typedef struct Parser {
  Lexer lex;
  SolError *err;
  SolStatus status; // the first failure's
  SolArena *keep;   // the module's
  SolArena scratch; // gone after loading
  Names names;
  const SolPtxSource *sources, *source;
  uint32_t source_index, source_count;

  Vec functions, symbols, codes, locs, loc_extras,
      files;         // Func, PtxSymbol, Code *, PtxLoc, LocExtra, const char *
  Vec symbol_extras; // SymbolExtra
  Vec source_files;  // FileEntry
  Vec debug_text;    // char
  Vec loc_slots;     // uint32_t: hash of (function, file, line, column)
  uint32_t loc_used;
  uint64_t init_budget; // bytes that initialisers may still take

  int version_major, version_minor, target, address_bits;

  // The function being read.
  Scope scopes[MAX_SCOPES];
  uint16_t depth;
  uint32_t function; // PTX_NONE: module scope
  Vec regs, insts, operands, tables, table_targets, prototypes, pending;
  uint64_t param_top, param_max, local_top;
  uint32_t local_align;
  uint32_t loc;
  bool rolled; // the next instruction's
} Parser;

// Notes a failure at a byte of the text, and returns false. Only the first one counts.
bool sol_ptx_fail(Parser *p, SolStatus status, size_t at, const char *format, ...) SOL_PRINTF(4, 5);
bool sol_ptx_fail_memory(Parser *p);
bool sol_ptx_fail_expected(Parser *p, const char *what); // "expected WHAT, not 'token'"

// Tokens. `take` advances if the current token is that mark; `expect` fails if it is not.
bool sol_ptx_is_mark(const Parser *p, char mark);
bool sol_ptx_is_word(const Parser *p, const char *word);
bool sol_ptx_take(Parser *p, char mark);
bool sol_ptx_expect(Parser *p, char mark);
bool sol_ptx_take_word(Parser *p, const char *word);
Name *sol_ptx_take_name(Parser *p, const char *what); // NULL after a failure
char *sol_ptx_keep_text(Parser *p, const char *text, size_t length);
const char *sol_ptx_keep_name(Parser *p, Name *name);
void *sol_ptx_keep_copy(Parser *p, const void *from, size_t size);

// A constant expression; with `real` given, a floating-point number is taken too and *is_real set.
typedef struct Constant {
  uint64_t value;                                  // two's complement
  bool is_unsigned, is_real, is_bits32, is_bits64; // is_bits: 0f..., 0d...
  double real;
} Constant;
bool sol_ptx_constant(Parser *p, Constant *out);
bool sol_ptx_constant_u32(Parser *p, uint32_t *out, const char *what); // from 0 to 2^32 - 1

// Scopes.
bool sol_ptx_open_scope(Parser *p);
bool sol_ptx_close_scope(Parser *p);
Binding *sol_ptx_bind(Parser *p, Name *name, BindKind kind, size_t at); // NULL: bound already in this scope
// At the module's scope, `place` being the last of the name's bindings that are further in.
Binding *sol_ptx_bind_function(Parser *p, Name *name, Binding **place);
Binding *sol_ptx_bind_set(Parser *p, Name *prefix, uint32_t count, size_t at);
bool sol_ptx_bind_label(Parser *p, Name *name, LabelKind kind, uint32_t index, size_t at);
// The register a name stands for: the first of a vector's. PTX_NONE: the name is no register.
uint32_t sol_ptx_find_reg(Parser *p, Name *name, const Binding **binding);

// Words.
PtxType sol_ptx_type_of(const char *text, size_t length);
bool sol_ptx_take_type(Parser *p, PtxType *type);
const Code *sol_ptx_code_of(Parser *p, const char *text, size_t length, size_t at);

const char *sol_ptx_code_problem(const PtxCode *code); // an error that its form does not exclude; NULL: none

// The grammar, from the top down.
bool sol_ptx_parse_function(Parser *p, PtxLinkage linkage);
bool sol_ptx_parse_variable(Parser *p, PtxLinkage linkage);
bool sol_ptx_parse_reg(Parser *p);
bool sol_ptx_take_formal_type(Parser *p, PtxType *type); // of a parameter in a register
bool sol_ptx_parse_section(Parser *p);
bool sol_ptx_parse_file(Parser *p);
bool sol_ptx_parse_loc(Parser *p);
bool sol_ptx_finish_locs(Parser *p, uint32_t first); // at a source's end
bool sol_ptx_parse_pragma(Parser *p);
bool sol_ptx_parse_body(Parser *p); // with '{' current

// A variable's declaration after its space: alignment, vector, type, name, array sizes.
typedef struct Declaration {
  PtxType type;
  uint32_t align, vec;
  bool managed, unsized, is_array;
  uint64_t count; // elements, all dimensions together
  uint64_t size;
  uint64_t dims[8];
  uint32_t dim_count;
  Name *name; // NULL: `_`, or none where that is allowed
  size_t at;
} Declaration;
bool sol_ptx_parse_attributes(Parser *p, Declaration *out);
bool sol_ptx_parse_declaration(Parser *p, Declaration *out, bool need_name);
uint32_t sol_ptx_add_symbol(Parser *p, const Declaration *d, int space, PtxLinkage linkage);
bool sol_ptx_parse_initialiser(Parser *p, const Declaration *d, uint32_t symbol);

// An instruction's operands, from text to `operands`; see operand.c.
bool sol_ptx_parse_operands(Parser *p, const Code *code, PtxInst *inst, size_t at);
bool sol_ptx_parse_call(Parser *p, const Code *code, PtxInst *inst, size_t at);

// After parsing.
bool sol_ptx_link(Parser *p);          // one module of what the sources declare
bool sol_ptx_check_calls(Parser *p);   // arguments against parameters
bool sol_ptx_flow(Parser *p, Func *f); // blocks and reconvergence
bool sol_ptx_graph(Parser *p);         // who calls whom, and what shared memory kernels need
bool sol_ptx_lay_out_shared(Parser *p, const Vec *taken); // taken: functions whose address is, uint32_t

#endif
