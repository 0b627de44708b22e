// Loads PTX text into a linked module of decoded instructions. The module has everything the emulator needs to
// know about a program, in a form that is easy to read rather than fast to run: the emulator lowers it.
//
//   SolPtxModule *m;
//   if (sol_ptx_load(&(SolPtxSource){"a.ptx", text, length}, 1, &m, &err)) ...   err.line, .column, .message
//   const PtxFunction *k = sol_ptx_find_function(m, "my_kernel");
//   for (uint32_t i = 0; i < k->inst_count; i++) ... k->insts[i] ...
//   sol_ptx_free(m);
//
// A module is immutable after loading and may be read by any number of threads. It does not refer to the source
// texts. PTX_NONE is the index of something that is absent. Strings are NUL-terminated and live as long as the
// module.
#ifndef SOL_PTX_H
#define SOL_PTX_H

#include "base/port.h"
#include "sol/status.h"

enum { PTX_NONE = 0xffffffffu };
#define PTX_MAX_TEXT 0x7fffffffu // bytes of one source

// ---- words ----

typedef enum PtxOp {
  PTX_OP_NONE,
#define PTX_OP(id, root, modifiers, operands, handler, semantics) PTX_OP_##id,
#define PTX_FORM(id, root, modifiers, operands)
#define PTX_REFUSED(root, what)
#include "ptx/ops.def"
  PTX_OP_COUNT
} PtxOp;

typedef enum PtxType { // PTX_U32 ...; PTX_TYPE_NONE is 0
  PTX_TYPE_NONE,
#define PTX_TYPE(id, text, bits, class) PTX_##id,
#include "ptx/words.def"
  PTX_TYPE_COUNT
} PtxType;

typedef enum PtxTypeClass {
  PTX_CLASS_NONE,
  PTX_CLASS_PRED,
  PTX_CLASS_BITS,
  PTX_CLASS_UNSIGNED,
  PTX_CLASS_SIGNED,
  PTX_CLASS_FLOAT,
  PTX_CLASS_PACKED,  // several numbers in one register
  PTX_CLASS_ELEMENT, // a number that registers hold only packed
  PTX_CLASS_OPAQUE
} PtxTypeClass;

typedef enum PtxSreg { // PTX_SREG_TID_X ...
  PTX_SREG_NONE,
#define PTX_SREG(id, text, type) PTX_SREG_##id,
#include "ptx/words.def"
  PTX_SREG_COUNT
} PtxSreg;

enum PtxFlagBit {
#define PTX_FLAG(id, text) PTX_BIT_##id,
#include "ptx/words.def"
  PTX_FLAG_COUNT
};
_Static_assert(PTX_FLAG_COUNT <= 64, "PtxCode.flags has 64 bits");
#define PTX_HAS(code, id) (((code)->flags >> PTX_BIT_##id & 1) != 0) // PTX_HAS(code, FTZ)

// PTX_RND_RN, PTX_CMP_LT, PTX_FN_ADD, PTX_SPACE_GLOBAL ...; 0 in a field of PtxCode: no such modifier. The
// values of each kind start at 1, so a value is meaningful only for its kind.
enum PtxWordCount {
#define PTX_WORD(kind, id, text) PTX_AT_##kind##_##id,
#include "ptx/words.def"
  PTX_WORD_COUNT
};
enum PtxWord {
#define PTX_WORD(kind, id, text) PTX_##kind##_##id = PTX_AT_##kind##_##id - PTX_FIRST_##kind + 1,
#define PTX_FIRST_RND            PTX_AT_RND_RN
#define PTX_FIRST_CMP            PTX_AT_CMP_EQ
#define PTX_FIRST_BOOL           PTX_AT_BOOL_AND
#define PTX_FIRST_FN             PTX_AT_FN_LO
#define PTX_FIRST_SCALE          PTX_AT_SCALE_VEC_1X
#define PTX_FIRST_EDGE           PTX_AT_EDGE_WRAP
#define PTX_FIRST_SPACE          PTX_AT_SPACE_GLOBAL
#define PTX_FIRST_SEM            PTX_AT_SEM_RELAXED
#define PTX_FIRST_SCOPE          PTX_AT_SCOPE_CTA
#define PTX_FIRST_COP            PTX_AT_COP_CA
#define PTX_FIRST_EVICT1         PTX_AT_EVICT1_L1_NORMAL
#define PTX_FIRST_EVICT2         PTX_AT_EVICT2_L2_NORMAL
#define PTX_FIRST_PREFETCH       PTX_AT_PREFETCH_64B
#define PTX_FIRST_LAYOUT         PTX_AT_LAYOUT_ROW
#define PTX_FIRST_GEOM           PTX_AT_GEOM_1D
#include "ptx/words.def"
};
enum { PTX_SPACE_GENERIC = 0 }; // no state space given

int sol_ptx_type_bits(PtxType type); // of a register that holds it; 1 for PTX_PRED
PtxTypeClass sol_ptx_type_class(PtxType type);
const char *sol_ptx_type_name(PtxType type); // "f16x2"; "" for none
const char *sol_ptx_sreg_name(PtxSreg sreg); // "%tid.x"
PtxType sol_ptx_sreg_type(PtxSreg sreg);
const char *sol_ptx_op_id(PtxOp op);        // "FMA", as in ops.def
const char *sol_ptx_op_handler(PtxOp op);   // "float_arith"
const char *sol_ptx_op_operands(PtxOp op);  // "d a b c", of the PTX_OP line
const char *sol_ptx_op_semantics(PtxOp op); // "d = a * b + c, rounded once"

// ---- instructions ----

// An opcode with its modifiers. Instructions with the same opcode and modifiers share one.
typedef struct PtxCode {
  const char *text; // "ld.global.nc.v4.f32"
  uint64_t flags;   // PTX_HAS
  uint16_t op;      // PtxOp
  uint8_t type[4];  // PtxType t1 to t4; mma: D, A, B, C
  uint8_t rnd, cmp, bool_op, fn, edge, scale;
  uint8_t space, space2; // PTX_SPACE_...; 0: generic, or the opcode has none
  uint8_t sem, scope, cop, evict1, evict2, evict3, prefetch;
  uint8_t vec; // elements of a vector operand: 1, 2, 4, 8
  uint8_t layout, layout2, geom;
  uint16_t m, n, k; // shape; 0: none
  uint16_t form;    // which line of ops.def: see sol_ptx_form_operands
  uint32_t index;   // its index in SolPtxModule.codes
} PtxCode;

// The operand specification of ops.def for this code.
const char *sol_ptx_code_operands(const PtxCode *code);

typedef enum PtxArgKind {
  PTX_ARG_NONE,   // an optional operand that is omitted
  PTX_ARG_REG,    // index: register of the function
  PTX_ARG_IMM,    // value: its bits, converted to `type`, zero-extended to 64
  PTX_ARG_SREG,   // sreg, and index for %pm0, %envreg0 ...; only as the source of mov and cvt; its low bits
                  // where sol_ptx_sreg_type is wider than `type`
  PTX_ARG_SYMBOL, // index: SolPtxModule.symbols; value: byte offset. An address in the symbol's own space
                  // (LOCAL, PARAM: relative to the running call's frame)
  PTX_ARG_FUNC,   // index: SolPtxModule.functions
  PTX_ARG_MEM, // [base + value]: base is a register (index; 32-bit ones zero-extended), or a symbol (symbol),
               // or nothing. A symbol where the opcode has no space: the symbol's own space
  PTX_ARG_VEC, // count operands from `elems` on: REG, IMM or SINK
  PTX_ARG_TEX, // elems: handle (REG, SYMBOL), sampler or NONE, then the coordinates; txq, suq: handle alone
  PTX_ARG_LABEL, // index: instruction
  PTX_ARG_TABLE, // index: PtxFunction.tables
  PTX_ARG_SINK   // `_`: a destination whose result is discarded. Any destination may be one
} PtxArgKind;

// Parts of the registers of video instructions, r.b0 or r.h32: how many digits, and the digits, the last one lowest.
#define PTX_PART(bytes, count, digits) ((unsigned)(bytes) << 15 | (count) << 12 | (digits))
#define PTX_PART_BYTES(part)           ((unsigned)(part) >> 15 & 1)
#define PTX_PART_COUNT(part)           ((unsigned)(part) >> 12 & 7)
#define PTX_PART_DIGIT(part, i)        ((unsigned)(part) >> 3 * (i)&7)

typedef struct PtxOperand {
  uint8_t kind;    // PtxArgKind
  uint8_t type;    // PtxType the instruction reads or writes it as; a REG may be of another type of the same
                   // width, or wider where ops.def has '~'; vectors: of an element; MEM: none
  bool negated;    // !p: any predicate that is read may be; vmad: -r
  bool written;    // a destination
  uint8_t sreg;    // PtxSreg
  uint16_t count;  // VEC, TEX
  uint32_t index;  // register, symbol, function, instruction or table; MEM: base register or PTX_NONE
  uint32_t symbol; // MEM: base symbol or PTX_NONE
  uint64_t value;  // IMM: bits; SYMBOL, MEM: offset (two's complement); REG: PTX_PART of it, 0: the whole
  const struct PtxOperand *elems;
} PtxOperand;

enum { PTX_MAX_OPERANDS = 10 };

// A source position. `inlined_at` is the position of the call that was inlined here, which may itself be
// inlined.
typedef struct PtxLoc {
  uint32_t file; // SolPtxModule.files; PTX_NONE: unknown
  uint32_t line, column;
  uint32_t inlined_at;  // SolPtxModule.locs; PTX_NONE: not inlined
  const char *function; // mangled name of the inlined function; NULL
} PtxLoc;

// Control flow: bra has operands[0] = LABEL; brx operands[1] = TABLE. call: operands[0] = FUNC, or REG for an
// indirect call; [1] = VEC of results, [2] = VEC of arguments (SYMBOL of a .param variable, REG or IMM; an
// empty list is VEC with count 0), [3] = NONE; the prototype of an indirect call is in `prototype`. An
// instruction index equal to inst_count is the end of the function, an implicit return.
typedef struct PtxInst {
  const PtxCode *code;
  const PtxOperand *operands; // one for each operand position of the op in ops.def
  uint8_t operand_count;
  bool guard_not;      // @!p
  bool leader;         // first of a basic block
  bool diverges;       // a guarded bra or a brx: lanes may diverge here
  bool rolled;         // .pragma "nounroll" stands before it: of the loop that begins here
  uint32_t guard;      // predicate register; PTX_NONE: always executes
  uint32_t reconverge; // bra, brx: instruction where all live lanes reconverge; inst_count: at the end
  uint32_t prototype;  // indirect call: PtxFunction.prototypes; PTX_NONE
  uint32_t loc;        // SolPtxModule.locs; PTX_NONE
  uint32_t line;       // of the PTX text, from 1
} PtxInst;

typedef struct PtxReg {
  const char *name; // "%r" for %r12, the whole name for others
  uint32_t number;  // 12; PTX_NONE where the name is whole
  uint8_t type;     // PtxType as declared
} PtxReg;

// Signature of an indirect call: sizes of results and arguments in order. With targets (.calltargets) the
// callee is one of them.
typedef struct PtxPrototype {
  const uint32_t *result_bytes, *param_bytes;
  uint32_t result_count, param_count;
  const uint32_t *targets; // functions; NULL: any
  uint32_t target_count;
  bool noreturn;
} PtxPrototype;

typedef struct PtxTable {  // .branchtargets
  const uint32_t *targets; // instruction indices
  uint32_t count;
} PtxTable;

typedef struct PtxBlock {
  uint32_t first, count;   // instructions
  uint32_t next[2];        // successor blocks, by falling through and by branching; PTX_NONE
  uint32_t table;          // brx: PtxFunction.tables; PTX_NONE
  uint32_t post_dominator; // immediate post-dominator; PTX_NONE: the end
} PtxBlock;

// ---- variables ----

typedef enum PtxLinkage {
  PTX_LINK_LOCAL, // visible only in its own source
  PTX_LINK_VISIBLE,
  PTX_LINK_WEAK,
  PTX_LINK_COMMON,
  PTX_LINK_EXTERN // declared, but not defined in the module
} PtxLinkage;

typedef struct PtxReloc { // part of an initialiser that is an address
  uint64_t offset;        // in the variable
  uint32_t symbol;        // SolPtxModule.symbols; PTX_NONE: a function
  uint32_t function;      // SolPtxModule.functions; PTX_NONE: a symbol
  int64_t addend;
  bool generic;  // generic(...): the generic address, else the one in the symbol's space
  uint8_t bytes; // stored: 1, 2, 4, 8
  uint8_t shift; // of the address right by so many bits before storing, for 0xff00(name)
} PtxReloc;

// A variable. `offset` is, for LOCAL, in the function's local frame; for PARAM, in its parameter frame, see
// PtxFunction. The offset of SHARED depends on the kernel, see PtxFunction.shared; GLOBAL and CONST are placed
// by the emulator.
typedef struct PtxSymbol {
  const char *name;
  uint8_t space; // PTX_SPACE_GLOBAL, CONST, SHARED, LOCAL, PARAM; for textures, samplers, surfaces GLOBAL
  uint8_t type;  // PtxType of an element; PTX_TEXREF ... for opaque ones
  uint8_t vec;   // 1, 2, 4
  uint8_t linkage;
  bool managed;
  bool dynamic;  // extern shared array without a size: the launch's dynamic shared memory
  uint64_t size; // bytes; 0 for dynamic
  uint32_t align;
  uint32_t function; // owner; PTX_NONE: the module's
  uint64_t offset;
  const uint8_t *init; // init_bytes of it, the rest is zero
  uint64_t init_bytes;
  const PtxReloc *relocs;
  uint32_t reloc_count;
  uint32_t source, line; // where it is declared
} PtxSymbol;

// ---- functions ----

typedef struct PtxSharedVar {
  uint32_t symbol;
  uint64_t offset; // in the block's shared memory
} PtxSharedVar;

typedef struct PtxFunction {
  const char *name;
  bool entry;   // a kernel
  bool defined; // has a body; else an external function that the emulator must provide (vprintf, malloc ...)
  bool noreturn;
  bool address_taken; // an indirect call may reach it
  uint8_t linkage;
  uint32_t source, line;

  // Formal parameters: symbols[params[i]], and results. All .param variables of a function, the ones declared
  // in its body for calls included, have their `offset` in one frame of param_bytes: first results, then
  // parameters (param_offset, param_size: a kernel's argument buffer), then the body's own.
  // A formal declared .reg (old style) has no symbol: params[i] is PTX_NONE and param_regs[i] the register.
  const uint32_t *params, *results, *param_regs, *result_regs;
  uint32_t param_count, result_count;
  uint64_t param_offset, param_size, param_bytes;
  uint64_t local_bytes; // of .local variables
  uint32_t local_align;

  const PtxReg *regs;
  uint32_t reg_count; // only registers that instructions name
  const PtxInst *insts;
  uint32_t inst_count;
  const PtxBlock *blocks;
  uint32_t block_count;
  const PtxTable *tables;
  uint32_t table_count;
  const PtxPrototype *prototypes;
  uint32_t prototype_count;
  const uint32_t *callees; // functions called directly, each once
  uint32_t callee_count;
  bool calls_indirectly;
  bool recursive; // may call itself, directly or through others
  bool uses_alloca;

  // Kernels: the layout of the shared variables that the kernel and its callees may use; dynamic shared memory
  // starts at shared_bytes rounded up to dynamic_align.
  const PtxSharedVar *shared;
  uint32_t shared_count;
  uint64_t shared_bytes;
  bool uses_dynamic_shared;
  uint32_t dynamic_align;

  // Directives; 0: not given.
  uint32_t maxntid[3], reqntid[3], reqnctapercluster[3];
  uint32_t minnctapersm, maxnctapersm, maxnreg, maxclusterrank;
  bool explicitcluster, blocksareclusters;
} PtxFunction;

typedef struct SolPtxModule {
  const PtxFunction *functions;
  uint32_t function_count;
  const PtxSymbol *symbols;
  uint32_t symbol_count;
  const PtxCode *const *codes;
  uint32_t code_count;
  const PtxLoc *locs;
  uint32_t loc_count;
  const char *const *files; // as .file names them
  uint32_t file_count;
  const char *const *sources; // SolPtxSource.name
  uint32_t source_count;
  int version_major, version_minor; // the highest among the sources
  int target;                       // 90 for sm_90a, the highest
  int address_bits;                 // 64 or 32
} SolPtxModule;

// ---- loading ----

typedef struct SolPtxSource {
  const char *name; // for messages; NULL: "ptx"
  const char *text;
  size_t length;
} SolPtxSource;

// Parses, decodes and links. On failure no module is created and err has the line and column; with several
// sources err->message starts with the name of the source. Free the module with sol_ptx_free.
SolStatus sol_ptx_load(const SolPtxSource *sources, int count, SolPtxModule **out, SolError *err);
void sol_ptx_free(SolPtxModule *module); // NULL is allowed

const PtxFunction *sol_ptx_find_function(const SolPtxModule *module, const char *name); // NULL
const PtxSymbol *sol_ptx_find_symbol(const SolPtxModule *module, const char *name);     // module scope; NULL

// ---- helpers for executing instructions ----

typedef struct PtxFragment {
  int regs;     // registers a lane holds
  PtxType type; // of each of them: B32 where they hold packed elements
} PtxFragment;
// The fragment of matrix 'A', 'B', 'C' or 'D' of mma and wmma.mma, 'I' the offsets of an im2col copy, or 'L', the matrix that ldmatrix, stmatrix,
// wmma.load and wmma.store transfer.
PtxFragment sol_ptx_fragment(const PtxCode *code, char matrix);
int sol_ptx_tensor_rank(const PtxCode *code); // dimensions of the tensor that a copy is of

// Formats the instruction as PTX text, "@%p1 ld.global.u32 %r1, [%rd2+4];". Returns the length like snprintf.
size_t sol_ptx_format_inst(const SolPtxModule *module, const PtxFunction *function, const PtxInst *inst,
                           char *out, size_t cap);

#endif
