// FORWARD(name): the entry point `name` of this library jumps to that of libcudart.so.13. scripts/forward12.sh
// makes the list of names, which includes this file.
#if defined(__aarch64__)
#define JUMP(to) adrp x16, :got:to; ldr x16, [x16, :got_lo12:to]; br x16
#else
#define JUMP(to) jmp *to@GOTPCREL(%rip)
#endif
#define FORWARD(name)                            \
  .symver of13_##name, name@libcudart.so.13;     \
  .globl name;                                   \
  .type name, %function;                         \
  name: JUMP(of13_##name);                       \
  .size name, .-name

.section .note.GNU-stack, "", %progbits
.text
