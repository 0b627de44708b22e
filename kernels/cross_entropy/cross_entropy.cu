// The kernels of softmax, with the epilogue of cross_entropy, in a module of their own: fewer of them (cross_entropy.def), and
// under softmax's names, so that its launch rule takes the first that is here.
#define LABELS 1
#define SOFTMAX_DEF "cross_entropy/cross_entropy.def"
#include "softmax/softmax.cu"
