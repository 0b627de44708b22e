"""What each rule of the audit (docs/rules.md) means for somebody who writes Triton: blocks, masks, num_warps."""

from __future__ import annotations

import dataclasses

from .bill import Kernel

TRITON = {
    "uncoalesced": "Where lanes are 16 bytes apart, each thread has neighbouring elements that the compiler could not access at "
    "once: let sizes in masks and strides be multiples of 16 (an argument that is one is specialised), or state it with "
    "tl.multiple_of and tl.max_contiguous. Otherwise let the tl.arange of the dimension with stride 1 run fastest in the block.",
    "aos": "Keep each field in a tensor of its own, or load whole records: a last dimension of the block that covers the record.",
    "column_walk": "The block's contiguous dimension is walked by rows. Swap the roles of the two tl.arange (offsets[:, None] and "
    "offsets[None, :]), or change the order of the block pointer (order=(1, 0)); for a transpose load along rows and tl.trans the block.",
    "misaligned": "Start every row on a multiple of 16 elements: pad the row stride, and tell the compiler with "
    "tl.multiple_of(stride, 16). A view that starts in the middle of a row is misaligned: pass the whole tensor and an offset.",
    "async_line": "The pipeline's copies (num_stages) start off a line: pad the row stride so that every row of the block starts on a multiple "
    "of 128 bytes, and pass pointers to the start of a tensor.",
    "gather": "Sort the indices, or gather whole rows: one program per index and a tl.arange along the row, not one element per index.",
    "partial_write": "Let masks end on multiples of 32 bytes: a BLOCK along the contiguous dimension that is a multiple of 16 "
    "elements, and a tensor padded to it.",
    "reread": "Use a larger BLOCK in the dimension whose data are read again, or order the programs so that those which share "
    "data run together (grouped ordering of tl.program_id, as for matrix products).",
    "rewrite": "Keep the accumulator in a variable of the program (tl.zeros before the loop) and tl.store it once after the loop.",
    "spill": "The block does not fit into registers: use a smaller BLOCK, more num_warps (the same block over more threads), or "
    "fewer num_stages.",
    "bank_conflict": "The layout of the shared-memory block is the compiler's: try another BLOCK shape, num_warps or num_stages, "
    "or load the operand in the other order and tl.trans it.",
    "atomics": "Reduce inside the program first (tl.sum), then one tl.atomic_add for a block; or write partial results and reduce "
    "them in a second kernel.",
    "divergence": "Use masks and tl.where in place of branches on loaded values; branches on tl.program_id are free.",
    "tree": "tl.sum and tl.reduce combine within warps first: use them in place of a loop over a block in shared memory, and fewer "
    "num_warps leave less to combine across warps.",
    "slow_math": "Divide block indices by tl.constexpr values where they can be, multiply by reciprocals that are computed once, keep indices in "
    "32 bits, and keep values in tl.float32: a tl.float64 constant or argument makes a whole expression double.",
    "shared_detour": "A layout is converted and converted back: keep the same BLOCK order between load, reduction and store, and "
    "reduce along the contiguous dimension.",
    "small_grid": "Use a smaller BLOCK, so that there are more programs; or split the reduced dimension among programs (split-K) "
    "and add the parts up.",
    "narrow": "Give each thread more neighbouring elements: a larger BLOCK or fewer num_warps. Where the mask or a stride keeps the "
    "compiler from wide accesses, state what it divides: pass sizes that are multiples of 16, or tl.multiple_of(stride, 16).",
    "occupancy": "Use a smaller BLOCK, fewer num_stages (shared memory) or another num_warps, so that more programs fit on an SM; "
    "maxnreg limits registers.",
    "in_flight": "Load more before the first use: a larger BLOCK, num_stages for loops (tl.range with num_stages), more num_warps.",
    "tail": "Choose BLOCK so that the grid is a multiple of what fits on the GPU at once, or launch that many programs and loop "
    "over the work (a persistent kernel).",
    "round_trip": "Do both in one kernel: the value stays in the block, and tl.store followed by tl.load goes away.",
    "one_lane": "A loop over single elements (tl.load without a tl.arange) is done by one lane while the others wait: load a BLOCK of them at a time, "
    "and combine with tl.sum, tl.reduce or tl.associative_scan.",
    "tiny_blocks": "Use a larger BLOCK, so that a program has work for more than a warp, and num_warps to match.",
    "launch_bound": "Do more in one launch, or record the launches in a CUDA graph.",
    "wide_type": "Store the tensor as float16 or bfloat16 and convert after the load: tl.load(...).to(tl.float32).",
}


def in_triton_words(kernel: Kernel) -> Kernel:
    """The same bill with fixes as a Triton programmer makes them; Sol's own stay in each finding's ``json``."""
    findings = [dataclasses.replace(finding, fix=TRITON.get(finding.rule, finding.fix)) for finding in kernel.findings]
    return dataclasses.replace(kernel, findings=findings)
